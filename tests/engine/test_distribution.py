"""Reading logits: chunks, resolution near 1, ties, what is kept."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from xpredflow.decoders.discrete import predict, top_ranked
from xpredflow.engine import distribution
from xpredflow.engine.distribution import Distribution, likeliest
from xpredflow.engine.signals import mixture, read
from xpredflow.types import Signals, SpecialTokens, StepInfo

SPECIAL = SpecialTokens(mask=3, eos=4, eot=5)


def nearly_sure(positions: int = 64, tokens: int = 2000, top: float = 18.0, lead: float = 14.0):
    """A first pass of a trained model: top logits near 18, everything else far below."""
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(1, positions, tokens, generator=draw) - 12
    best = torch.randint(6, tokens, (1, positions, 2), generator=draw)
    jitter = torch.rand(1, positions, generator=draw)
    logits.scatter_(-1, best[..., :1], (top + jitter).unsqueeze(-1))
    logits.scatter_(-1, best[..., 1:], (top - lead + 3 * jitter).unsqueeze(-1))
    return logits


def test_a_runner_up_14_below_is_seen() -> None:
    logits = torch.full((1, 2, 100), -60.0)
    logits[..., 7], logits[0, 0, 8], logits[0, 1, 8] = 18.0, 4.0, 3.9
    seen = read(logits, SPECIAL)
    assert (seen.confidence < 1).all()
    torch.testing.assert_close(seen.log_odds, torch.tensor([[14.0, 14.1]]))
    torch.testing.assert_close(seen.log_total, torch.full((1, 2), 18.0), atol=1e-5, rtol=0)


def test_positions_that_are_nearly_sure_do_not_tie() -> None:
    seen = read(nearly_sure(lead=24.0), SPECIAL)
    assert seen.confidence.unique().numel() < 64  # fp32 probabilities do
    assert seen.log_odds.unique().numel() == 64


@pytest.mark.parametrize("lead", [6.0, 14.0, 24.0])
def test_the_order_is_that_of_float64_probabilities(lead: float) -> None:
    """LLaDA's generate.py: softmax in float64, gathered at the argmax, the top k of it."""
    logits = nearly_sure(lead=lead)
    p = logits.index_fill(-1, torch.tensor([SPECIAL.mask]), -torch.inf).double().softmax(-1)
    x0 = p.argmax(-1)
    confidence = p.gather(-1, x0.unsqueeze(-1)).squeeze(-1)
    seen = read(logits, SPECIAL)
    assert torch.equal(seen.tokens, x0)
    everywhere = torch.ones(1, 64, dtype=torch.bool)
    for k in (1, 5, 20, 63):
        ours = top_ranked(seen.log_odds, everywhere, torch.tensor([k]))
        theirs = torch.zeros_like(ours).scatter(-1, confidence.topk(k).indices, True)
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("tokens", [23, 1000, 1025, 5000])
def test_the_likeliest_are_those_of_a_sort(tokens: int) -> None:
    draw = torch.Generator().manual_seed(tokens)
    z = torch.randn(40, tokens, generator=draw)
    expected = z.sort(-1, descending=True)
    values, chosen = likeliest(z)
    assert torch.equal(values, expected.values[:, :4])
    assert torch.equal(chosen, expected.indices[:, :4])


def test_of_equal_logits_the_lowest_token_is_predicted() -> None:
    z = torch.zeros(3, 4000)
    z[1, 2000:] = 1.0
    z[2, 3999] = z[2, 129] = 2.0
    assert likeliest(z)[1][:, 0].tolist() == [0, 2000, 129]
    assert torch.equal(z.argmax(-1), likeliest(z)[1][:, 0])


def summaries(seen: Signals) -> list[torch.Tensor]:
    table = torch.randn(2000, 8, generator=torch.Generator().manual_seed(1))
    info = StepInfo(torch.tensor([0] * 3), torch.tensor([9] * 3), rows=(0, 1, 2), seed=4)
    return [
        *(seen.top_probs, seen.top_tokens, seen.log_total, seen.log_odds, seen.entropy),
        *predict(seen, 0.7, info),
        seen.probability(seen.top_tokens[..., 2]),
        *(mixture(seen, table, k) for k in (1, 3, 9, None)),
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("last", [False, True])
def test_chunks_are_as_good_as_the_whole(monkeypatch, dtype: torch.dtype, last: bool) -> None:
    draw = torch.Generator().manual_seed(2)
    logits = (4 * torch.randn(3, 11, 2000, generator=draw)).to(dtype)
    whole = summaries(read(logits, SPECIAL, rank_ends_last=last))
    for chunk in (1, 5 * 8000, 25 * 8000):  # one position, some of a row, two rows
        monkeypatch.setitem(distribution.CHUNK_BYTES, "cpu", chunk)
        parts = summaries(read(logits, SPECIAL, rank_ends_last=last))
        for a, b in zip(whole, parts, strict=True):
            torch.testing.assert_close(a, b)


def test_summaries_are_those_of_float64() -> None:
    draw = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(2, 9, 500, generator=draw)
    p = logits.index_fill(-1, torch.tensor([SPECIAL.mask, SPECIAL.eos]), -torch.inf)
    p = p.double().softmax(-1)
    seen = read(logits, SPECIAL, forbid_eos=True)
    torch.testing.assert_close(seen.top_probs.double(), p.topk(4).values, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        seen.entropy.double(), torch.special.entr(p).sum(-1), atol=1e-5, rtol=1e-5
    )
    assert (seen.probability(torch.full((2, 9), SPECIAL.eos)) == 0).all()


def test_tokens_that_are_last_come_before_nothing_else() -> None:
    logits = torch.zeros(1, 3, 20)
    logits[0, 0, SPECIAL.eos], logits[0, 1, 9], logits[0, 2, 9] = 9.0, 1.0, 2.0
    seen = read(logits, SPECIAL, rank_ends_last=True)
    assert seen.log_odds.argsort(descending=True).tolist() == [[2, 1, 0]]
    # a closed position has no rank at all: an end token must still come before it
    closed = torch.tensor([[True, False, False]])
    assert top_ranked(seen.log_odds, closed, torch.tensor([1])).tolist() == closed.tolist()


class Allocations(TorchDispatchMode):
    """Bytes of the largest tensor that any operation made."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple) else (made,):
            if isinstance(one, torch.Tensor) and not func.is_view:
                self.largest = max(self.largest, one.nbytes)
        return made


def test_no_copy_of_all_logits_is_ever_made() -> None:
    logits = torch.randn(2, 300, 8000).bfloat16()  # 9.6 MB, in fp32 twice that
    with Allocations() as seen:
        read(logits, SPECIAL, rank_ends_last=True).probability(torch.zeros(2, 300).long())
    assert seen.largest <= 2**22
    with Allocations() as seen:
        _ = Distribution(logits, (3,)).entropy()
    assert seen.largest <= 2**22


def test_what_is_kept_of_a_pass_has_no_logits() -> None:
    kept = read(torch.randn(1, 2, 30), SPECIAL).summary()
    with pytest.raises(ValueError, match="the pass is over"):
        _ = kept.entropy
