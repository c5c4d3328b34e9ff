"""Numbers: agreement with the independent reference, padding, wanted positions, gradients."""

import pytest
import reference
import torch
from builders import CONFIGS, VOCABULARY, weights, write_checkpoint

import xpredflow.models as models
from xpredflow.models.attention import visible
from xpredflow.types import Model, SpecialTokens


def tokens(length, seed=0):
    return torch.randint(0, VOCABULARY, (length,), generator=torch.Generator().manual_seed(seed))


def whole(model, inputs):
    """Logits everywhere, for a batch without padding."""
    columns = torch.arange(inputs.shape[1]).expand(inputs.shape[0], -1)
    with torch.no_grad():
        return model.logits(inputs, columns, columns)


def test_agrees_with_the_reference(family, checkpoint, model):
    _, raw = checkpoint
    # 21 positions: the last block is not full.
    inputs = torch.stack([model.embedding[tokens(21, seed)] for seed in range(2)]).detach()
    expected = [getattr(reference, family)(raw, CONFIGS[family], row) for row in inputs]
    torch.testing.assert_close(whole(model, inputs), torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_in_decoding_the_last_layer_ends_with_what_is_read(model):
    inputs = torch.stack([model.embedding[tokens(21, seed)] for seed in range(2)]).detach()
    positions = torch.arange(21).expand(2, -1)
    columns = torch.tensor([[3, 20, 7], [0, 1, 19]])
    widths = []
    *_, before, last = model.trunk()[0]
    hooks = [
        layer.register_forward_hook(lambda _, args, out: widths.append(out.shape[1]))
        for layer in (before, last)
    ]
    trained = model.logits(inputs, positions, columns)
    with torch.no_grad():
        decoded = model.logits(inputs, positions, columns)
    for hook in hooks:
        hook.remove()
    assert widths == [21, 21, 21, 3]
    torch.testing.assert_close(decoded, trained, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("changes", [{"n_kv_heads": 2}, {"n_kv_heads": 1}])
def test_llada_with_grouped_heads_agrees(tmp_path, changes):
    raw = write_checkpoint(tmp_path, "llada", **changes)
    model = models.load(tmp_path)
    inputs = model.embedding[tokens(9)].detach()
    expected = reference.llada(raw, CONFIGS["llada"] | changes, inputs)
    torch.testing.assert_close(whole(model, inputs[None])[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_group": 1, "topk_group": 1},
        {"n_group": 8, "topk_group": 3, "num_experts_per_tok": 6},
        {"first_k_dense_replace": 0, "num_shared_experts": 2},
        {"partial_rotary_factor": 1.0, "rotary_dim": 16, "block_size": 4},
        {"num_experts_per_tok": 1},
    ],
)
def test_llada2_variants_agree(tmp_path, changes):
    raw = write_checkpoint(tmp_path, "llada2", **changes)
    model = models.load(tmp_path)
    inputs = model.embedding[tokens(13)].detach()
    expected = reference.llada2(raw, CONFIGS["llada2"] | changes, inputs)
    torch.testing.assert_close(whole(model, inputs[None])[0], expected, rtol=1e-4, atol=1e-4)


def test_llada2_rotates_half_of_a_head_unless_told(tmp_path):
    silent = {"partial_rotary_factor": None, "rotary_dim": None}
    raw = write_checkpoint(tmp_path, "llada2", **silent)  # type: ignore[arg-type]
    model = models.load(tmp_path)
    assert model.shape.rotary_dim == 8
    config = {k: v for k, v in CONFIGS["llada2"].items() if k not in silent}
    inputs = model.embedding[tokens(9)].detach()
    expected = reference.llada2(raw, config, inputs)
    torch.testing.assert_close(whole(model, inputs[None])[0], expected, rtol=1e-4, atol=1e-4)


def test_the_expert_bias_changes_who_is_chosen():
    raw = weights("llada2", CONFIGS["llada2"], torch.float32)
    unbiased = {k: v * 0 if k.endswith("expert_bias") else v for k, v in raw.items()}
    row = raw["model.word_embeddings.weight"][tokens(6)]
    config = CONFIGS["llada2"]
    difference = reference.llada2(raw, config, row) - reference.llada2(unbiased, config, row)
    assert difference.abs().max() > 0.01


@pytest.mark.parametrize("left", [True, False])
def test_padding_changes_nothing(model, left):
    rows = [model.embedding[tokens(n, n)].detach() for n in (5, 12, 19)]
    longest = 19
    inputs = torch.randn(3, longest, rows[0].shape[1])
    positions = torch.full((3, longest), -1)
    for i, row in enumerate(rows):
        start = longest - len(row) if left else 0
        inputs[i, start : start + len(row)] = row
        positions[i, start : start + len(row)] = torch.arange(len(row))
    everywhere = torch.arange(longest).expand(3, -1)
    with torch.no_grad():
        got = model.logits(inputs, positions, everywhere)
    assert got.isfinite().all()
    for i, row in enumerate(rows):
        torch.testing.assert_close(
            got[i][positions[i] >= 0], whole(model, row[None])[0], rtol=1e-4, atol=1e-4
        )


def test_no_query_sees_nothing():
    positions = torch.tensor([[-1, 0, 1, 2, 3], [-1, -1, -1, -1, -1]])
    mask = visible(positions, positions, 2)
    assert mask is not None
    first = [[0, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 1, 1], [0, 1, 1, 1, 1]]
    assert torch.equal(mask[0], torch.tensor(first).bool())
    assert mask[1].all()
    both = visible(positions, positions, None)
    assert both is not None
    assert torch.equal(both[0], torch.tensor([[0, 1, 1, 1, 1]] * 5).bool())
    assert both[1].all()
    assert visible(positions[:1, 1:], positions[:1, 1:], None).all()


def test_a_row_of_padding_alone_stays_finite(model):
    positions = torch.tensor([[0, 1, 2], [-1, -1, -1]])
    columns = torch.arange(3).expand(2, -1)
    with torch.no_grad():
        got = model.logits(torch.randn(2, 3, 32), positions, columns)
    assert got.isfinite().all()


def test_wanted_positions_are_slices_of_all(model):
    inputs = torch.stack([model.embedding[tokens(14, seed)] for seed in range(3)]).detach()
    wanted = torch.tensor([[3, 4, 9], [13, 0, 5], [7, 7, 7]])
    columns = torch.arange(14).expand(3, -1)
    with torch.no_grad():
        got = model.logits(inputs, columns, wanted)
    expected = torch.stack([whole(model, inputs)[i, w] for i, w in enumerate(wanted)])
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_the_head_never_sees_the_prompt(model):
    _, _, head = model.trunk()
    seen = []
    hook = head.register_forward_hook(lambda _, args, __: seen.append(args[0].shape))
    columns = torch.arange(14).expand(2, -1)
    with torch.no_grad():
        model.logits(torch.randn(2, 14, 32), columns, columns[:, -3:])
    hook.remove()
    assert seen == [(2, 3, 32)]


def test_blocks_are_causal_and_anchored_at_zero(llada2):
    inputs = torch.randn(1, 20, 32)
    changed = inputs.clone()
    changed[0, 8:] += 1.0  # block size 8: positions 0..7 must not notice
    before, after = whole(llada2, inputs), whole(llada2, changed)
    torch.testing.assert_close(before[0, :8], after[0, :8], rtol=1e-5, atol=1e-5)
    assert (before[0, 8:] - after[0, 8:]).abs().amin(0).max() > 1e-3
    changed = inputs.clone()
    changed[0, 7] += 1.0  # the last of a block is seen by the first
    assert (before[0, 0] - whole(llada2, changed)[0, 0]).abs().max() > 1e-3


def test_it_is_a_model_for_the_engine():
    model: Model = models.build(CONFIGS["llada2"])  # what pyright checks
    assert model.block_size == 8


def test_gradients_reach_every_parameter(family):
    model = models.build(CONFIGS[family], seed=3)
    columns = torch.arange(40).expand(2, -1)
    inputs = model.embedding[torch.stack([tokens(40, 1), tokens(40, 2)])]
    model.logits(inputs, columns, columns).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # Some experts may have had no token; their rows are zero, the others are not.
        assert parameter.grad.abs().sum() > 0, name


def test_low_precision_takes_fp32_inputs(family, checkpoint, model):
    half = models.load(checkpoint[0], dtype="bfloat16")
    inputs = model.embedding[tokens(10)].detach()[None]
    got = whole(half, inputs)
    assert got.dtype == torch.bfloat16
    close = torch.nn.functional.cosine_similarity(got.float(), whole(model, inputs), dim=-1)
    assert close.min() > 0.95


def test_what_the_engine_reads(family, model):
    assert model.special == SpecialTokens(mask=258, eos=257)
    assert model.tokenizer is None
    assert model.max_length == {"llada": 128, "llada2": 256}[family]
    assert model.block_size == {"llada": None, "llada2": 8}[family]
    assert model.embedding.shape == (VOCABULARY, 32)
    assert (model.new_cache(2, 32) is None) == (family == "llada")
