"""What published checkpoints of the dense layout leave out or contradict: read, or refused."""

import json

import pytest
import torch
from builders import VOCABULARY
from dense_checkpoints import BLOCKED, KINDS, SHIFTED, values, write_kind
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

import xpredflow.models as models
from xpredflow import InputError, generate

MDLM, BD3LM = "Qwen3-0.6B-diffusion-mdlm-v0.1", "Qwen3-0.6B-diffusion-bd3lm-v0.1"
HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"
DREAM, REASONER, ILLADA = "Dream-v0-Instruct-7B", "DreamReasoner-8B", "iLLaDA-8B-Instruct"
STABLE, SDAR = "Stable-DiffCoder-8B", "SDAR-1.7B-Chat"
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())


def write_tokenizer(directory, *added, **config):
    """256 bytes, then the added tokens from id 256 on."""
    tokenizer = Tokenizer(BPE(vocab={c: i for i, c in enumerate(BYTES)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    tokenizer.add_special_tokens([*added])
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_loads_as_it_is_published(tmp_path, name):
    model = models.load(write_kind(tmp_path, name))
    assert model.special.mask == 258
    assert (model.block_size is not None) == (name in BLOCKED)
    assert model.shape.shift == int(name in SHIFTED)
    assert model.embedding.shape == (VOCABULARY, 32)
    assert model.trunk()[2].weight.shape == (VOCABULARY, 32)


# Tied heads


@pytest.mark.parametrize("name", [MDLM, ILLADA])
def test_a_tied_head_may_be_absent_or_equal(tmp_path, name):
    absent = models.load(write_kind(tmp_path / "absent", name))
    table = values(KINDS[name])[TABLE]
    equal = models.load(write_kind(tmp_path / "equal", name, {HEAD: table.clone()}))
    for model in (absent, equal):
        assert model.trunk()[2].weight is model.embedding
        assert [n for n, _ in model.named_parameters() if "lm_head" in n] == []
        assert torch.equal(model.embedding, table)


def test_a_tied_head_that_differs_is_refused(tmp_path):
    other = values(KINDS[MDLM])[TABLE].clone()
    other[-1, -1] += 1e-3
    with pytest.raises(InputError, match=rf"{HEAD}' differs from '{TABLE}.*tie_word_embeddings"):
        models.load(write_kind(tmp_path, MDLM, {HEAD: other}))
    wide = torch.zeros(VOCABULARY, 31)
    with pytest.raises(InputError, match=r"lm_head.*\(288, 31\)"):
        models.load(write_kind(tmp_path / "wide", MDLM, {HEAD: wide}))


def test_a_head_that_is_missing_though_nothing_says_tied(tmp_path):
    directory = write_kind(tmp_path, MDLM)
    config = json.loads((directory / "config.json").read_text())
    config["tie_word_embeddings"] = False
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"lacks.*lm_head.*tie_word_embeddings"):
        models.load(directory)


def test_a_tied_model_stays_tied_when_it_is_copied_moved_and_saved(tmp_path):
    from copy import deepcopy

    model = models.load(write_kind(tmp_path, MDLM))
    for twin in (deepcopy(model), deepcopy(model).double()):
        assert twin.trunk()[2].weight is twin.embedding
        assert twin.embedding is not model.embedding
    models.save(model, tmp_path / "saved")
    again = models.load(tmp_path / "saved")
    assert again.trunk()[2].weight is again.embedding
    assert again.block_size is None  # the name told it; now the files do


# Two models under one name


def test_dream_names_two_models(tmp_path):
    dream = models.load(write_kind(tmp_path, DREAM))
    reasoner = models.load(write_kind(tmp_path, REASONER))
    assert (dream.family, dream.shape.shift, dream.block_size) == ("Dream", 1, None)
    assert (reasoner.family, reasoner.shape.shift, reasoner.block_size) == ("DreamReasoner", 0, 8)
    file = tmp_path / REASONER / "config.json"
    file.write_text(json.dumps(KINDS[REASONER] | {"architectures": ["DreamModel"]}))
    with pytest.raises(InputError, match=r"lacks.*self_attn\.q_proj\.bias"):
        models.load(file.parent)


def test_mdlm_and_bd3lm_have_one_config(tmp_path):
    assert KINDS[MDLM] == KINDS[BD3LM]
    assert models.load(write_kind(tmp_path, MDLM)).block_size is None
    directory = write_kind(tmp_path, BD3LM).rename(tmp_path / "mine")
    with pytest.raises(InputError, match=r"block is unknown.*block=32.*block=0.*\+block=32"):
        models.load(directory)
    assert models.load(directory, block=16).block_size == 16
    assert models.load(f"{directory}+block=0").block_size is None


def test_an_autoregressive_name_needs_every_fact(tmp_path):
    directory = write_kind(tmp_path, "open-dcoder-0.5B").rename(tmp_path / "mine")
    with pytest.raises(InputError, match=r"shift is unknown.*autoregressive"):
        models.load(directory)
    model = models.load(f"{directory}+shift=1+block=0")
    assert (model.shape.shift, model.block_size) == (1, None)


def test_sdar_blocks_are_told_by_config_or_name(tmp_path):
    silent = {"block_size": "ABSENT"}
    assert models.load(write_kind(tmp_path, SDAR, **silent)).block_size == 4
    for name, block in (("SDAR-8B-Chat-b32", 32), ("TraDo-4B-Instruct", 4)):
        directory = write_kind(tmp_path, SDAR, **silent).rename(tmp_path / name)
        assert models.load(directory).block_size == block
    unknown = write_kind(tmp_path, SDAR, **silent).rename(tmp_path / "mine")
    with pytest.raises(InputError, match="block is unknown"):
        models.load(unknown)


# The mask


def test_a_mask_that_is_nowhere_is_asked_for(tmp_path):
    directory = write_kind(tmp_path, STABLE, mask_token_id="ABSENT")
    write_tokenizer(directory, "<s>", "</s>", "<[MASK]>")
    with pytest.raises(InputError, match=r"mask is unknown.*never guessed.*\+mask=ID"):
        models.load(directory)
    assert models.load(directory, mask="<[MASK]>").special.mask == 258
    assert models.load(f"{directory}+mask=258").special.mask == 258
    with pytest.raises(InputError, match="mask is '<mask>', but the tokenizer has no such token"):
        models.load(directory, mask="<mask>")
    models.save(models.load(directory, mask=258), tmp_path / "saved")
    assert models.load(tmp_path / "saved").special.mask == 258


def test_the_mask_of_the_tokenizer_or_of_the_table(tmp_path):
    directory = write_kind(tmp_path, STABLE, mask_token_id="ABSENT")
    write_tokenizer(directory, "<s>", "</s>", "<m>", mask_token="<m>")
    assert models.load(directory).special.mask == 258
    # iLLaDA's is in neither of its files: 5, and not the 3 or 126336 that one would guess
    illada = models.load(write_kind(tmp_path, ILLADA, mask_token_id="ABSENT"))
    assert illada.special.mask == 5


def test_tokenizers_that_disagree(tmp_path):
    # SDAR: the token in one file is spelt otherwise in the other; config.json has the id
    directory = write_kind(tmp_path, SDAR)
    write_tokenizer(directory, "<s>", "</s>", "<MASK>", mask_token="<|MASK|>")
    model = models.load(directory)
    assert model.tokenizer.mask_token_id == 259  # the next free id: nothing the model knows
    assert model.special.mask == 258
    silent = write_kind(tmp_path / "silent", ILLADA, mask_token_id="ABSENT")
    write_tokenizer(silent, "<s>", "</s>", "<MASK>", mask_token="<|MASK|>")
    assert models.load(silent).special.mask == 5  # a token that no file has is not read at all
    write_tokenizer(silent, "<s>", "</s>", "<MASK>", mask_token="<MASK>")
    with pytest.raises(
        InputError, match=r"mask token is 258.*published with 5.*mask=5 or mask=258"
    ):
        models.load(silent)
    assert models.load(silent, mask=5).special.mask == 5


def test_mask_and_end_are_different_tokens(tmp_path):
    with pytest.raises(InputError, match="both 257"):
        models.load(write_kind(tmp_path, DREAM), mask=257)


def test_several_ends(tmp_path):
    directory = write_kind(tmp_path, SDAR, eos_token_id=[256, 257])
    assert models.load(directory).special.ends == (256, 257)
    directory = write_kind(tmp_path, DREAM)
    write_tokenizer(directory, "<|im_end|>", "<|endoftext|>")
    assert models.load(directory).special.ends == (257, 256)


# The vocabulary and the tokenizer


def test_rows_without_a_token_are_decoded_as_nothing(tmp_path):
    directory = write_kind(tmp_path, DREAM)
    write_tokenizer(directory, "<|im_end|>", "<|endoftext|>")  # 258 tokens, 288 rows, mask 258
    model = models.load(directory)
    assert len(model.tokenizer) == 258 < len(model.embedding)
    [done] = generate(model, ["abc"], decoder="mask", gen_length=32, stop_at_eos=False)
    assert any(token > 258 for token in done.all_ids)
    assert isinstance(done.text, str)


def test_a_tokenizer_of_two_files(tmp_path):
    directory = write_kind(tmp_path, DREAM)
    (directory / "vocab.json").write_text(json.dumps({c: i for i, c in enumerate(BYTES)}))
    (directory / "merges.txt").write_text("#version: 0.2\n")
    settings = {
        "tokenizer_class": "DreamTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
        "eos_token": "<|endoftext|>",
        "mask_token": "<|mask|>",
        "added_tokens_decoder": {
            str(256 + i): {"content": token, "special": True}
            for i, token in enumerate(["<|im_end|>", "<|endoftext|>", "<|mask|>"])
        },
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    model = models.load(directory)
    ids = model.tokenizer("héllo wörld", add_special_tokens=False)["input_ids"]
    assert model.tokenizer.decode(ids) == "héllo wörld"
    assert model.special.ends == (257, 256)
    assert model.tokenizer.get_vocab()["<|mask|>"] == 258
    settings["tokenizer_class"] = "NobodysTokenizer"  # how it splits text is not known
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    assert models.load(directory).tokenizer is None


def test_the_context_is_what_it_was_trained_on(tmp_path):
    directory = write_kind(tmp_path, DREAM, max_position_embeddings=131072)
    assert models.load(directory).max_length == 2048
    assert models.load(directory, max_length=4096).max_length == 4096
    assert models.load(write_kind(tmp_path, REASONER)).max_length == 128


def test_thinking_is_off_where_the_model_was_trained_so(tmp_path):
    directory = write_kind(tmp_path, MDLM)
    template = "{% if enable_thinking is false %}quiet{% else %}loud{% endif %}"
    write_tokenizer(directory, "<|im_end|>", "<|endoftext|>", "<|mask|>", chat_template=template)
    from xpredflow.engine.prompts import encode

    model = models.load(directory)
    ids = encode(model, "hi", chat=None, system=None).ids
    assert model.tokenizer.decode(ids) == "quiet"


# What is not implemented, and misuse

REFUSED = [
    (DREAM, {"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling is"),
    (DREAM, {"use_sliding_window": True}, "use_sliding_window is True"),
    (DREAM, {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
    (MDLM, {"layer_types": ["sliding_attention"] * 2}, "layer_types has"),
    (ILLADA, {"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05"),
    (ILLADA, {"mlp_bias": True}, "mlp_bias is True"),
    (MDLM, {"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'; expected true or false"),
    (STABLE, {"mask_token_id": 300}, r"mask_token_id is 300.*\[0, 288\)"),
    ("RND1-Base-0910", {"num_experts_per_tok": 9}, "num_experts_per_tok is 9"),
    ("RND1-Base-0910", {"num_experts": "ABSENT", "num_local_experts": "ABSENT"}, "num_experts"),
]


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_other_values_are_refused_by_name(tmp_path, name, changes, message):
    directory = write_kind(tmp_path, name)
    config = json.loads((directory / "config.json").read_text()) | changes
    config = {field: value for field, value in config.items() if value != "ABSENT"}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=message):
        models.load(directory)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("+mask", r"followed by 'mask': expected NAME=VALUE"),
        ("+musk=5", "unknown .* 'musk'.*mask"),
        ("+mask=5+mask=6", "mask was given twice"),
        ("+shift=2", "shift is 2"),
        ("+block=-1", "block is '?-1"),
        ("+anchor=response", "anchor is 'response' and shift 1.*not implemented together"),
    ],
)
def test_what_is_said_wrongly(tmp_path, source, message):
    directory = write_kind(tmp_path, DREAM)
    extra = "+block=8" if "anchor" in source else ""
    with pytest.raises(InputError, match=message):
        models.load(f"{directory}{source}{extra}")


def test_embedded_models_and_other_families_need_nothing_said(tmp_path):
    from builders import write_checkpoint

    with pytest.raises(InputError, match=r"'tiny' comes with the package.*leave out mask"):
        models.load("tiny+mask=5")
    write_checkpoint(tmp_path, "llada")
    with pytest.raises(InputError, match=r"shift is 1.*LLaDAModelLM.*leave shift out"):
        models.load(tmp_path, shift=1)
    assert models.load(tmp_path, max_length=64).max_length == 64
