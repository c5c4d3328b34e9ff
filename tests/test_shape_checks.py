"""Shapes are checked in the tests, also after many calls that were right."""

import os

import pytest
import torch
from jaxtyping import TypeCheckError
from shape_checks import ENOUGH, NOW_AND_THEN

from xpredflow.engine.signals import jointly_sure


def ask(entropy: int, open_: int, dtype: torch.dtype = torch.bool) -> None:
    jointly_sure(torch.ones(2, entropy), torch.ones(2, open_, dtype=dtype), 0.5)


def test_a_wrong_shape_is_found_after_many_right_ones() -> None:
    for _ in range(3 * NOW_AND_THEN):
        ask(5, 5)
    with pytest.raises(TypeCheckError, match="open_"):
        ask(5, 1)
    with pytest.raises(TypeCheckError, match="open_"):
        ask(5, 5, torch.int64)


@pytest.mark.skipif("ALL_SHAPES" in os.environ, reason="every call is checked")
def test_the_same_call_is_checked_some_times_and_then_now_and_then() -> None:
    found = []
    for call in range(1, 2 * NOW_AND_THEN + 1):
        with pytest.raises((TypeCheckError, RuntimeError)) as raised:
            ask(5, 1)
        if raised.type is TypeCheckError:
            found.append(call)
    assert found == [*range(1, ENOUGH + 1), NOW_AND_THEN, 2 * NOW_AND_THEN]
