"""What a steady step costs beside arithmetic: waits of the host, copies, launches. Exact, no clock.

A step is steady if no row joined before it and none left.
"""

import pytest
import torch
from counts import Counts, counting

from xpredflow import Engine
from xpredflow.decoders import DECODERS
from xpredflow.policies import make_policy
from xpredflow.types import Signals, StepInfo

LENGTH = 8
PROMPT = [65, 66, 67, 68]
AT_MOST_TWO = pytest.mark.xfail(
    strict=False, reason="the loop still asks the device several times per step"
)
VECTORISED = pytest.mark.xfail(
    strict=False, reason="the learned policy still sums its expectation term by term"
)


def steady_steps(model, decoder: str, batch: int, **options) -> list[Counts]:
    """The counts of every steady step of a batch of equal rows; each takes all of its budget."""
    engine = Engine(model, decoder=decoder, chat=False, gen_length=LENGTH, **options)
    steps = engine.steps([PROMPT] * batch)
    found, last = [], next(steps)
    while not last.finished:
        with counting() as counts:
            step = next(steps)
        if not step.finished and step.rows == last.rows:
            found.append(counts)
        last = step
    return found[1:]  # the first may follow a change of windows


@pytest.mark.parametrize("family", ["llada", "llada2"])
def test_a_pass_of_positions_seen_before_never_waits(device, model_on, family):
    """Neither in a layer nor before the first: whatever the number of layers, experts and rows."""
    model = model_on(family, device)
    width = 8
    positions = torch.arange(width).expand(3, -1).contiguous().to(device)
    inputs = torch.randn(3, width, 32).to(device)
    slots = torch.arange(3).to(device)
    cache = model.new_cache(3, 16)

    def run():
        with torch.no_grad(), counting() as counts:
            model.logits(inputs, positions, positions, cache, slots if cache else None)
        return counts

    first, again = run(), run()
    assert first.syncs == 1, first
    assert (again.syncs, again.copies) == (0, 0), again


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_experts_without_a_grouped_product_never_wait(device, model_on, dtype):
    layer = model_on("llada2", device, dtype).model.layers[1].mlp
    x = torch.randn(2, 40, 32).to(device, layer.experts.gate_proj.dtype)
    with torch.no_grad(), counting() as counts:
        layer(x)
    assert (counts.syncs, counts.copies) == (0, 0), counts


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("decoder", [*DECODERS, "flow:learned:tiny", "flow:constant:1/64"])
@AT_MOST_TWO
def test_a_steady_step_waits_at_most_twice(device, model_on, decoder, batch):
    for counts in steady_steps(model_on("llada", device), decoder, batch):
        assert counts.syncs <= 2, counts


@pytest.mark.parametrize("batch", [1, 8])
@AT_MOST_TWO
def test_so_does_one_with_a_sampled_policy(device, model_on, batch):
    options = {"policy_temperature": 1.0, "policy": "learned:tiny"}
    found = steady_steps(model_on("llada", device), "flow", batch, **options)
    for counts in found:
        assert counts.syncs <= 2, counts


@AT_MOST_TWO
def test_waits_do_not_grow_with_layers_or_rows(device, model_on):
    dense, experts = (model_on(family, device) for family in ("llada", "llada2"))
    found = [
        max((c.syncs for c in steady_steps(model, "flow:constant:1/64", batch)), default=0)
        for model in (dense, experts)
        for batch in (1, 8)
    ]
    assert len(set(found)) == 1, found


def test_the_steps_that_are_counted_exist(device, model_on):
    """So that a bound over them means something."""
    for family in ("llada", "llada2"):
        found = steady_steps(model_on(family, device), "flow:constant:1/64", 2, budget=LENGTH)
        assert len(found) >= 2
        assert all(counts.launches > 0 for counts in found)


@VECTORISED
def test_the_learned_policy_takes_few_launches(device):
    policy = make_policy("learned:tiny")
    top = torch.tensor([[[0.5, 0.2, 0.1, 0.1]] * LENGTH]).to(device)
    tokens = torch.zeros(1, LENGTH, 4, dtype=torch.long).to(device)
    signals = Signals(torch.zeros(1, LENGTH, 9).to(device), top[..., 0] * 0, top, tokens)
    info = StepInfo(torch.tensor([1], device=device), torch.tensor([8], device=device), (0,))
    progress = torch.full((1, LENGTH), 0.5, device=device)
    policy(signals, progress, info)  # the network is moved to the device once
    with counting() as counts:
        policy(signals, progress, info)
    assert counts.launches <= 30, counts
