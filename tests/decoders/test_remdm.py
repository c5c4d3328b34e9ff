"""ReMDM: the rates of its four strategies, and that draws follow them."""

from math import exp
from typing import Any

import pytest
import torch
from scene import SPACE, at, believing, canvas_of, sure
from toy import ToyModel, prompts

from xpredflow import generate
from xpredflow.decoders.discrete import committed_positions
from xpredflow.decoders.remdm import ReMDM

MANY = 4000


def rates(decoder: ReMDM, step: int, budget: int) -> tuple[float, float]:
    """σ, and the rate at which a mask becomes a token."""
    span = decoder.span(at(step, budget))
    canvas = canvas_of(0, None)
    sigma = decoder.sigma(canvas, committed_positions(canvas), span)[0, 0]
    unmask = (span.alpha_s - (1 - sigma) * span.alpha_t) / (1 - span.alpha_t)
    return sigma.item(), unmask.item()


@pytest.mark.parametrize(
    ("strategy", "step", "sigma", "unmask"),
    [  # budget 4: α runs 0, 1/4, 1/2, 3/4, 1 and σ_max is 1, 1, 1/2, 0
        ("cap", 1, 0.008, (0.5 - 0.992 * 0.25) / 0.75),
        ("cap", 3, 0.0, 1.0),
        ("rescale", 1, 0.015, (0.5 - 0.985 * 0.25) / 0.75),
        ("rescale", 2, 0.0075, (0.75 - 0.9925 * 0.5) / 0.5),
    ],
)
def test_sigma_follows_the_schedule(strategy, step, sigma, unmask) -> None:
    assert rates(ReMDM(strategy=strategy), step, 4) == pytest.approx((sigma, unmask), abs=1e-6)


@pytest.mark.parametrize(
    ("step", "sigma", "unmask"),
    [  # budget 10: up to α = 0.9 at t = 0.55, level in the loop, 1 at the end
        (2, 0.0, (0.6 - 0.4) / 0.6),
        (5, 0.02, 0.02 * 0.9 / 0.1),
        (8, 0.02, 0.02 * 0.9 / 0.1),
        (9, 0.0, 1.0),
    ],
)
def test_a_loop_remasks_at_a_level_share(step, sigma, unmask) -> None:
    assert rates(ReMDM(strategy="loop"), step, 10) == pytest.approx((sigma, unmask), abs=1e-5)


def test_conf_remasks_the_unsure_more() -> None:
    decoder, canvas = ReMDM(strategy="conf"), canvas_of(0, 1, None, commitment=[0.9, 0.5, 0.0])
    sigma = decoder.sigma(canvas, committed_positions(canvas), decoder.span(at(2, 4)))
    a, b = exp(-0.9), exp(-0.5)
    expected = [0.5 * a / (a + b), 0.5 * b / (a + b), 0.0]  # σ_max is 1/2
    assert sigma[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_without_remasking_an_even_share_is_committed_per_pass_as_in_mask_prediction() -> None:
    decoder, canvas = ReMDM(eta=0.0), canvas_of(*[None] * MANY)
    seen = believing(*[sure(0, 0.5)] * MANY)
    for step, share in enumerate((0.25, 0.5, 0.75, 1.0)):
        canvas, event = decoder.step(canvas, seen, at(step, 4), SPACE)
        assert not event.reedited.any()
        assert canvas.progress.mean().item() == pytest.approx(share, abs=0.03)
    assert (canvas.tokens == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)  # drawn
    assert decoder.stop(canvas).tolist() == [True]


def test_committed_tokens_are_masked_again_at_sigma() -> None:
    seen = believing(*[sure(0, 0.5)] * MANY)
    canvas, event = ReMDM(eta=1.0).step(canvas_of(*[0] * MANY), seen, at(2, 4), SPACE)
    assert event.reedited.float().mean().item() == pytest.approx(0.5, abs=0.03)
    torch.testing.assert_close(canvas.progress, 1 - event.reedited.float())
    assert (canvas.tokens == 0).all()  # committed tokens are kept or masked, never redrawn


def test_the_schedule_takes_the_whole_budget_unless_nothing_can_be_masked_again() -> None:
    shared: dict[str, Any] = {"gen_length": 10, "budget": 10}
    assert all(d.passes == 10 for d in generate(ToyModel(), prompts(2), decoder="remdm", **shared))
    frozen = generate(ToyModel(), prompts(6), decoder="remdm", eta=0.0, **shared)
    assert any(d.passes < 10 for d in frozen)


def test_one_greedy_pass_is_mask_prediction() -> None:
    shared: dict[str, Any] = {"gen_length": 10, "budget": 1}
    greedy = generate(ToyModel(), prompts(2), decoder="remdm", temperature=0.0, **shared)
    mask = generate(ToyModel(), prompts(2), decoder="mask", **shared)
    assert [d.all_ids for d in greedy] == [d.all_ids for d in mask]
