"""The likelihood bound against what can be counted by hand."""

from itertools import combinations
from pathlib import Path

import pytest
import torch
from stand_in import checkpoint
from toy import VOCABULARY, ToyModel

from xpredflow.errors import InputError
from xpredflow.harness.likelihood import Pair, estimate, fit, is_greedy, patterns
from xpredflow.models import load
from xpredflow.types import Model

CONTEXT = [3, 1, 4, 1, 5]


@torch.no_grad()
def log_probability(model: Model, ids: list[int], hidden: list[int]) -> float:
    """Of the tokens at the hidden positions, in one pass of a single row."""
    seen = torch.tensor([model.special.mask if i in hidden else t for i, t in enumerate(ids)])
    where = torch.arange(len(ids)).unsqueeze(0)
    logits = model.logits(model.embedding[seen].unsqueeze(0), where, torch.tensor([hidden]))
    truth = torch.tensor([ids[i] for i in hidden])
    return float(logits[0].log_softmax(-1)[torch.arange(len(hidden)), truth].sum())


def bound(model: Model, context: list[int], continuation: list[int]) -> float:
    """The expectation over every way to hide tokens."""
    ids, length = context + continuation, len(continuation)
    total = 0.0
    for k in range(1, length + 1):
        ways = list(combinations(range(len(context), len(ids)), k))
        found = [log_probability(model, ids, list(way)) for way in ways]
        total += (length / k) * sum(found) / len(ways) / length
    return total


def test_one_token_is_exact_and_its_probabilities_sum_to_one() -> None:
    model = ToyModel()
    pairs = [Pair(CONTEXT, [token]) for token in range(VOCABULARY)]
    found = estimate(model, pairs, samples=1)
    assert torch.tensor(found).exp().sum() == pytest.approx(1, abs=1e-5)
    assert found[7] == pytest.approx(log_probability(model, [*CONTEXT, 7], [5]), abs=1e-5)


def test_short_continuations_are_counted_out_and_long_ones_estimated() -> None:
    model = ToyModel()
    pair = Pair(CONTEXT, [2, 7, 1, 8, 2])
    exact = bound(model, pair.context, pair.continuation)
    assert estimate(model, [pair], samples=31)[0] == pytest.approx(exact, abs=1e-4)
    runs = [estimate(model, [pair], samples=30, seed=seed)[0] for seed in range(40)]
    spread = torch.tensor(runs).std().item() / 40**0.5
    assert sum(runs) / 40 == pytest.approx(exact, abs=4 * spread)
    assert len(set(runs)) > 1


def test_every_token_counts_once_on_average() -> None:
    hidden, weights = patterns(4, 15, seed=0)
    assert torch.allclose((hidden * weights.unsqueeze(-1)).sum(0), torch.ones(4))
    drawn = [patterns(9, 32, seed) for seed in range(60)]
    shares = torch.stack([(h * w.unsqueeze(-1)).sum(0) for h, w in drawn]).mean(0)
    assert torch.allclose(shares, torch.ones(9), atol=0.15)
    assert all((h.sum(-1) >= 1).all() for h, _ in drawn)


def test_a_pairs_estimate_does_not_depend_on_the_others() -> None:
    model = ToyModel()
    pairs = [Pair(CONTEXT[:n], list(range(1, n + 2))) for n in (5, 2, 4)]
    together = estimate(model, pairs, samples=8, seed=3, max_batch=5)
    alone = [estimate(model, [pair], samples=8, seed=3)[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=1e-4)


def test_greedy_is_what_mask_prediction_writes() -> None:
    model = ToyModel()
    tokens = torch.arange(VOCABULARY - 1)
    first = max(tokens.tolist(), key=lambda t: estimate(model, [Pair(CONTEXT, [t])], samples=1)[0])
    pairs = [Pair(CONTEXT, [first]), Pair(CONTEXT, [(first + 1) % 20]), Pair(CONTEXT, [])]
    assert is_greedy(model, pairs) == [True, False, True]


def test_a_block_causal_model_is_asked_block_by_block(tmp_path: Path) -> None:
    model = load(checkpoint(tmp_path, "llada2"))
    context, continuation = list(range(65, 72)), [80, 81, 82]  # positions 7 | 8 and 9
    whole = estimate(model, [Pair(context, continuation)], samples=8)[0]
    mask, ids = model.special.mask, context + continuation
    first = log_probability(model, ids[:8], [7])
    block = [*ids, *[mask] * 6]
    second = [log_probability(model, block, way) for way in ([8], [9], [8, 9])]
    expected = first + (second[0] + second[1]) / 2 + second[2] / 2
    assert whole == pytest.approx(expected, abs=1e-3)


def test_context_is_cut_from_the_left_and_a_continuation_never() -> None:
    model = ToyModel()
    pair = fit(model, Pair(list(range(20)) * 10, [1, 2, 3]))
    assert len(pair.context) == model.max_length - 3
    assert pair.context[-1] == 19
    assert fit(model, Pair([1], [2] * model.max_length)).context == []
    with pytest.raises(InputError, match="a continuation has 97 tokens"):
        fit(model, Pair([], [1] * 97))
