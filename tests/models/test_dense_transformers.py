"""Against code that is not ours: transformers' own classes write, read and compute the same."""

import json
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor

import xpredflow.models as models
from xpredflow.models.attention import visible

SMALL = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "eos_token_id": 117,
    "bos_token_id": 116,
}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 24}
CLASSES = {
    "qwen2": (hf.Qwen2Config, hf.Qwen2ForCausalLM, {}),
    "qwen3": (hf.Qwen3Config, hf.Qwen3ForCausalLM, {"head_dim": 16}),
    "llama": (hf.LlamaConfig, hf.LlamaForCausalLM, {}),
    "llama with biases": (hf.LlamaConfig, hf.LlamaForCausalLM, {"attention_bias": True}),
    "qwen3 moe": (hf.Qwen3MoeConfig, hf.Qwen3MoeForCausalLM, {"head_dim": 16, **EXPERTS}),
    "qwen3 moe, every other layer": (
        hf.Qwen3MoeConfig,
        hf.Qwen3MoeForCausalLM,
        {**EXPERTS, "head_dim": 8, "norm_topk_prob": True, "decoder_sparse_step": 2},
    ),
}
LENGTH = 21  # the last block is not full


def written(directory, kind, dtype=torch.float32, **changes):
    """transformers' model with lively random weights, saved by transformers in several shards."""
    config, network, extra = CLASSES[kind]
    torch.manual_seed(4)
    made = network(config(**SMALL, **extra, **changes))
    with torch.no_grad():
        for parameter in made.parameters():
            noise = 0.2 * torch.randn_like(parameter)
            parameter.copy_(noise if parameter.ndim > 1 else parameter + noise)
    made = made.to(dtype).eval()
    made.save_pretrained(directory, max_shard_size="20KB")
    assert len(list(directory.glob("*.safetensors"))) > 1
    return made


def theirs(network, ids: Tensor, block: int) -> Tensor:
    """Their logits under the full or block mask."""
    positions = torch.arange(ids.shape[1]).expand(len(ids), -1)
    seen = visible(positions, positions, block or None)
    mask = torch.zeros(len(ids), 1, LENGTH, LENGTH)
    if seen is not None:
        mask = mask.masked_fill(~seen.unsqueeze(1), torch.finfo(torch.float32).min)
    with torch.no_grad():
        return network(input_ids=ids, attention_mask=mask.to(network.dtype)).logits


def ours(model, ids: Tensor) -> Tensor:
    positions = torch.arange(ids.shape[1]).expand(len(ids), -1)
    with torch.no_grad():
        return model.logits(model.embedding[ids], positions, positions)


def tokens() -> Tensor:
    return torch.randint(0, 115, (2, LENGTH), generator=torch.Generator().manual_seed(3))


def apart(a: Tensor, b: Tensor) -> float:
    return ((a - b).abs().max() / b.abs().max()).item()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("block", [0, 8])
@pytest.mark.parametrize("kind", CLASSES)
def test_logits_agree(tmp_path, kind, block, tied):
    network = written(tmp_path, kind, tie_word_embeddings=tied)
    model = models.load(tmp_path, mask=118, shift=0, block=block)
    assert model.block_size == (block or None)
    assert apart(ours(model, tokens()), theirs(network, tokens(), block)) < 1e-4


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "qwen3 moe"])
def test_shifted_logits_are_theirs_one_position_before(tmp_path, kind):
    network = written(tmp_path, kind)
    model = models.load(tmp_path, mask=118, shift=1, block=0)
    expected = theirs(network, tokens(), 0)
    expected = torch.cat((expected[:, :1], expected[:, :-1]), dim=1)
    assert apart(ours(model, tokens()), expected) < 1e-4


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama", "qwen3 moe"])
def test_bfloat16_is_read_as_stored_and_as_fp32(tmp_path, kind):
    network = written(tmp_path, kind, torch.bfloat16)
    stored = models.load(tmp_path, mask=118, shift=0, block=0)
    assert stored.embedding.dtype == torch.bfloat16
    assert torch.equal(stored.embedding, network.get_input_embeddings().weight)
    wide = models.load(tmp_path, mask=118, shift=0, block=0, dtype="float32")
    # read again: .float() would keep the rotary frequencies that bfloat16 has rounded
    widened = hf.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert apart(ours(wide, tokens()), theirs(widened, tokens(), 0)) < 1e-4


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama", "qwen3 moe"])
@pytest.mark.parametrize("tied", [False, True])
def test_what_we_save_loads_in_transformers(tmp_path, kind, tied):
    written(tmp_path / "theirs", kind, tie_word_embeddings=tied)
    model = models.load(tmp_path / "theirs", mask=118, shift=0, block=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    models.save(model, tmp_path / "ours", max_shard_bytes=20_000)
    loaded: Any = hf.AutoModelForCausalLM.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    again, report = loaded
    assert not any(report[field] for field in ("missing_keys", "unexpected_keys"))
    assert apart(theirs(again.eval(), tokens(), 0), ours(model, tokens())) < 1e-4
    # and what was said about it is part of it now
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["mask_token_id"] == 118
    assert torch.equal(ours(models.load(tmp_path / "ours"), tokens()), ours(model, tokens()))
