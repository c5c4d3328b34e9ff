"""Weights that come with the package: rounded to few digits, near what they were."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from shipping import LEVELS, rounded


@given(st.integers(0, 1000), st.floats(-20, 10))
def test_rows_are_whole_multiples_of_a_power_of_two_and_hardly_moved(
    seed: int, size: float
) -> None:
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(3, 40, generator=draw) * torch.tensor([[2.0**size], [1.0], [0.0]])
    kept = rounded(matrix)
    largest = matrix.abs().amax(-1, keepdim=True)
    assert ((kept - matrix).abs() <= largest / LEVELS + 1e-30).all()
    for row, before in zip(kept[:2], matrix[:2], strict=True):
        unit = 2.0 ** torch.ceil(torch.log2(before.abs().max() / LEVELS))
        multiples = row / unit
        assert torch.equal(multiples, multiples.round())
        assert multiples.abs().max() <= LEVELS
    assert not kept[2].any()


def test_what_is_rounded_stays_as_it_is() -> None:
    matrix = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    once = rounded(matrix)
    assert torch.equal(rounded(once), once)
    assert torch.equal(once.half().float(), once)  # float16 has digits enough
    assert float((once - matrix).norm() / matrix.norm()) == pytest.approx(0, abs=0.01)
