"""What a steady step costs beside arithmetic: waits of the host, copies, launches. Exact, no clock.

A step is steady if no row joined, left or began a block shortly before it, nor ends one with it.
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


def steady_steps(model, decoder: str, batch: int, **options) -> list[Counts]:
    """The counts of every steady step of a batch of equal rows; each takes all of its budget.

    The two steps after a row joins or begins a block still read its context anew.
    """
    engine = Engine(model, decoder=decoder, chat=False, gen_length=LENGTH, **options)
    steps, seen = engine.steps([PROMPT] * batch), []
    while not seen or not seen[-1][0].finished:
        with counting() as counts:
            step = next(steps)
        seen.append((step, counts))
    places = [(tuple(step.rows), step.positions.tolist()) for step, _ in seen]
    return [seen[i][1] for i in range(2, len(seen) - 1) if places[i - 2 : i + 2] == [places[i]] * 4]


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
def test_a_steady_step_waits_at_most_twice(device, model_on, decoder, batch):
    for counts in steady_steps(model_on("llada", device), decoder, batch):
        assert counts.syncs <= 2, counts


@pytest.mark.parametrize("batch", [1, 8])
def test_so_does_one_with_a_sampled_policy(device, model_on, batch):
    options = {"policy_temperature": 1.0, "policy": "learned:tiny"}
    found = steady_steps(model_on("llada", device), "flow", batch, **options)
    for counts in found:
        assert counts.syncs <= 2, counts


def test_waits_do_not_grow_with_layers_or_rows(device, model_on):
    dense, experts = (model_on(family, device) for family in ("llada", "llada2"))
    found = [
        max(steady_steps(model, "flow:constant:1/64", batch), key=lambda counts: counts.syncs)
        for model in (dense, experts)
        for batch in (1, 8)
    ]
    assert len({counts.syncs for counts in found}) == 1, found


def test_the_steps_that_are_counted_exist(device, model_on):
    """So that a bound over them means something."""
    for family in ("llada", "llada2"):
        found = steady_steps(model_on(family, device), "flow:constant:1/64", 2, budget=LENGTH)
        assert len(found) >= 2
        assert all(counts.launches > 0 for counts in found)


def test_the_learned_policy_takes_few_launches(device):
    policy = make_policy("learned:tiny")
    top = torch.tensor([[[0.5, 0.2, 0.1, 0.1]] * LENGTH]).to(device)
    tokens = torch.zeros(1, LENGTH, 4, dtype=torch.long).to(device)
    signals = Signals(top, tokens, top[..., 0] * 0, top[..., 0] * 0)
    info = StepInfo(torch.tensor([1], device=device), torch.tensor([8], device=device), (0,))
    progress = torch.full((1, LENGTH), 0.5, device=device)
    policy(signals, progress, info)  # the network is moved to the device once
    with counting() as counts:
        policy(signals, progress, info)
    assert counts.launches <= 30, counts
