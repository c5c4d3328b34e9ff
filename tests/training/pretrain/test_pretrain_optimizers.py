"""The optimisers of pretraining: which matrices each has, its steps, rate and moving average."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_run import SHAPE, SMALL, begin

from xpredflow.models import build
from xpredflow.training.pretrain.batches import chunk
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.pretrain.optimizers import Muon, make_optimizers, orthogonalise


@pytest.mark.parametrize("shape", [(3, 24, 24), (2, 16, 40), (2, 40, 16)])
def test_muon_orthogonalises(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert 0.8 < values.median() < 1.2
    assert values.max() < 1.3
    # a singular value near 0 stays small: a random square matrix has some, the others have none
    assert values.min() > (0.05 if shape[1] == shape[2] else 0.6)


def test_the_rate_warms_up_stays_and_falls_to_zero() -> None:
    config = PretrainConfig(updates=100, warmup=4, lr=1.0, decay_share=0.4)
    rates = [config.rate(step) for step in range(101)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert set(rates[4:61]) == {1.0}
    assert rates[60:] == [pytest.approx((100 - step) / 40) for step in range(60, 101)]


def test_every_update_has_the_rate_of_its_number(tmp_path: Path) -> None:
    training = begin(replace(SMALL, decay_share=0.5), tmp_path / "run")
    for step in (0, 30, 47):
        training.step = step
        training._train_on(training._batches()[0])
        for optimizer in training.optimizers:
            assert {group["lr"] for group in optimizer.param_groups} == {training.config.rate(step)}
    assert training.config.rate(47) < training.config.rate(30) < training.config.rate(10)


def test_the_average_follows_the_weights_with_its_decay(tmp_path: Path) -> None:
    training = begin(replace(SMALL, ema=0.9), tmp_path)
    for step, decay in ((0, 1 / 10), (50, 51 / 60), (1000, 0.9)):
        training.step = step
        # far from the weights, so that a wrong share of them shows
        before = {name: value.add_(1.0).clone() for name, value in training.average.items()}
        batch = chunk(training.mixture, 0, 4, 0.0)[0]
        training._train_on(batch)
        for name, value in training.model.named_parameters():
            expected = decay * before[name] + (1 - decay) * value
            torch.testing.assert_close(training.average[name], expected.detach())
    written = training.averaged().state_dict()
    assert all(torch.equal(written[name], value) for name, value in training.average.items())


@pytest.mark.parametrize("shape", [(24, 24), (16, 64), (64, 16), (3, 16, 40)])
def test_a_step_of_muon_has_the_size_of_adams(shape: tuple[int, ...]) -> None:
    """Root mean square 0.2 per entry at rate 1, whatever the shape (Moonlight)."""
    draw = torch.Generator().manual_seed(0)
    matrix = torch.zeros(shape, requires_grad=True)
    matrix.grad = torch.randn(shape, generator=draw)
    Muon([matrix], lr=1.0, momentum=0.95, weight_decay=0.0).step()
    assert matrix.detach().square().mean().sqrt() == pytest.approx(0.2, rel=0.15)
    half = torch.zeros(shape, requires_grad=True)
    half.grad = matrix.grad * 7  # the gradient's size does not count
    Muon([half], lr=0.5, momentum=0.95, weight_decay=0.0).step()
    torch.testing.assert_close(half.detach(), matrix.detach() / 2, rtol=1e-3, atol=1e-4)


def test_muon_takes_the_matrices_of_the_layers_and_adam_the_rest() -> None:
    model = build(SHAPE)
    muon, adam = make_optimizers(model, 1e-3, 0.05)
    matrices = {id(p) for group in muon.param_groups for p in group["params"]}
    others = {id(p) for group in adam.param_groups for p in group["params"]}
    inner = {id(p) for layer in model.trunk()[0] for p in layer.parameters() if p.ndim > 1}
    assert matrices == inner
    assert others == {id(p) for p in model.parameters()} - inner
