"""Gaps under an automaton, against all ways to fill them counted one by one."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy import EOS, VOCABULARY, ToyModel

from xpredflow.slots.automaton import FILLER, Automaton, of_choices
from xpredflow.slots.constraint import SlotConstraint

CHOICES = [[3, 4], [3, 5, 6], [7], [5, 4]]


def constraint(length: int = 3) -> SlotConstraint:
    return SlotConstraint(range(10, 10 + length), of_choices(ToyModel(), CHOICES))


def logits(seed: int, length: int = 3) -> torch.Tensor:
    return torch.randn(length, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 3


def ways() -> list[list[int]]:
    return [choice + [EOS] * (3 - len(choice)) for choice in CHOICES]


def weight(way: list[int], p: np.ndarray, automaton: Automaton) -> float:
    """The product of its tokens; the first filler counts as the likeliest content, others 1."""
    used = sorted({token for choice in CHOICES for token in choice})
    total, ended = 1.0, False
    for k, token in enumerate(way):
        if token == EOS:
            total *= 1.0 if ended else p[k, used].max()
            ended = True
        else:
            total *= p[k, token]
    return total


@given(st.integers(0, 10_000))
def test_a_position_is_told_its_share_in_all_valid_ways(seed: int) -> None:
    slot, z = constraint(), logits(seed)
    p = z.double().softmax(-1).numpy()
    slot.apply(z, [10, 11, 12], {})
    found = z.double().softmax(-1).numpy()
    weights = [weight(way, p, slot.automaton) for way in ways()]
    for k, token in product(range(3), range(VOCABULARY)):
        holding = sum(w for way, w in zip(ways(), weights, strict=True) if way[k] == token)
        assert found[k, token] == pytest.approx(holding / sum(weights), abs=1e-5)
    expected = [w / sum(weights) for w in weights]
    assert slot.probabilities(CHOICES) == pytest.approx(expected, abs=1e-9)


def test_what_is_committed_binds_the_others_and_not_itself() -> None:
    slot, z = constraint(), logits(1)
    slot.apply(z, [10, 11, 12], {10: 3})
    assert set(z[1].topk(2).indices.tolist()) == {4, 5}
    assert z[0].argmax() in (3, 5, 7)  # may still change
    slot.apply(z := logits(1), [10, 11, 12], {10: 3, 11: 5})
    assert z[2].argmax() == 6
    slot.apply(z := logits(1), [10, 11, 12], {10: 7, 11: 5})  # contradicts itself: binds nothing
    assert z.isfinite().all()


def test_positions_of_other_blocks_say_nothing_yet() -> None:
    slot, z = constraint(), logits(2, 1)
    slot.apply(z, [11], {10: 3})
    assert set(z[0].topk(2).indices.tolist()) == {4, 5}
    before = logits(3)
    slot.apply(after := before.clone(), [1, 2, 3], {})  # none of its own
    assert torch.equal(before, after)


@given(st.integers(0, 1000), st.lists(st.integers(0, VOCABULARY - 2), min_size=3, max_size=3))
def test_whatever_was_decoded_becomes_one_of_the_choices(seed: int, tokens: list[int]) -> None:
    slot = constraint()
    assert slot.mended(tokens) in ways()  # even if no pass was seen
    slot.apply(logits(seed), [10, 11, 12], {})
    assert slot.mended(tokens) in ways()
    for way in ways():
        assert slot.mended(way) == way


def test_logits_that_are_no_numbers_stay_so() -> None:
    z = torch.full((3, VOCABULARY), torch.nan)
    constraint().apply(z, [10, 11, 12], {})
    assert z.isnan().any(-1).all()


def test_a_short_choice_is_not_at_a_disadvantage() -> None:
    slot, z = constraint(), torch.zeros(3, VOCABULARY)
    z[:, EOS] = -50  # the model would never end its text here
    z[0, 7] = 5
    slot.apply(z, [10, 11, 12], {})
    assert slot.probabilities(CHOICES)[2] > 0.9
    assert int(slot.automaton.classes[EOS]) == FILLER
    assert z.argmax(-1).tolist() == [7, EOS, EOS]
