"""Experts: the same ones under autocast, and the same sums however rows are grouped."""

import pytest
import torch

from xpredflow.models import experts
from xpredflow.models.expert_blocks import Blocks
from xpredflow.models.experts import Experts, Router, Routing, one_by_one

ROUTING = Routing(experts=32, chosen=4, groups=4, kept_groups=2, scale=2.5)


def lively(module, seed=0):
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            tensor.copy_(torch.randn(tensor.shape, generator=draw) / tensor.shape[-1] ** 0.5)
    return module


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
def test_autocast_chooses_the_same_experts(stored):
    """Scores in bf16 would send about a tenth of the tokens elsewhere."""
    router = lively(Router(64, ROUTING)).to(stored)
    x = torch.randn(500, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    chosen, weights = router(x)
    with torch.autocast("cpu", torch.bfloat16):
        again, same = router(x)
    assert torch.equal(chosen, again)
    assert torch.equal(weights, same)
    assert weights.dtype == torch.float32
    rough = torch.sigmoid(x @ router.weight.bfloat16().T).float()
    assert not torch.equal(router.choose(rough + router.expert_bias.float()), chosen)


@pytest.mark.parametrize(
    ("rows", "count"), [(1, 4), (7, 16), (300, 4), (33, 3), (64, 256), (1500, 40)]
)
def test_blocks_multiply_as_one_by_one(rows, count):
    draw = torch.Generator().manual_seed(rows)
    chosen = torch.randint(0, count, (rows,), generator=draw).sort().values
    ends = torch.searchsorted(chosen, torch.arange(count), right=True, out_int32=True)
    weight = torch.randn(count, 8, 12, generator=draw)
    x = torch.randn(rows, 12, generator=draw)
    counts = chosen.bincount(minlength=count).tolist()
    got = Blocks.of(chosen, ends).multiply(x, weight)
    torch.testing.assert_close(got, one_by_one(x, weight, counts), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("expert", [0, 2, 3])
def test_blocks_when_all_rows_have_one_expert(expert):
    chosen = torch.full((50,), expert)
    ends = torch.searchsorted(chosen, torch.arange(4), right=True, out_int32=True)
    weight, x = torch.randn(4, 8, 12), torch.randn(50, 12)
    got = Blocks.of(chosen, ends).multiply(x, weight)
    torch.testing.assert_close(got, x @ weight[expert].T, rtol=1e-5, atol=1e-5)


def test_a_layer_is_the_same_by_blocks_gradients_too(monkeypatch):
    layer, router = lively(Experts(16, 24, 32)), lively(Router(16, ROUTING))
    x = torch.randn(21, 16, generator=torch.Generator().manual_seed(2))

    def outcome():
        layer.zero_grad()
        out = layer(x, *router(x))
        out.square().sum().backward()
        gradients = (p.grad for p in layer.parameters())
        return out.detach(), *(g.clone() for g in gradients if g is not None)

    plain = outcome()

    def by_blocks(_, chosen, ends, packed):
        return Blocks.of(chosen, ends).multiply

    monkeypatch.setattr(experts, "_multiplication", by_blocks)
    for a, b in zip(outcome(), plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_layer_is_the_same_by_a_grouped_product(monkeypatch):
    layer, router = lively(Experts(16, 24, 32)), lively(Router(16, ROUTING))
    x = torch.randn(21, 16, generator=torch.Generator().manual_seed(2))
    plain = layer(x, *router(x))
    monkeypatch.setattr(experts, "has_grouped_mm", lambda *_: True)
    torch.testing.assert_close(layer(x, *router(x)), plain, rtol=1e-4, atol=1e-5)
    with torch.autocast("cpu", torch.bfloat16):  # in training, beside weights in fp32
        torch.testing.assert_close(layer(x, *router(x)), plain, rtol=0.05, atol=0.05)
