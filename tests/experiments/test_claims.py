"""Every table's claims on made-up results: both outcomes, with the figures in the sentence."""

from dataclasses import replace

import pytest
from made_up import found, measured

from xpredflow.experiments import alignment_losses, anchor, clean_consistency
from xpredflow.experiments.appendix_tables import PASSK, POLICY, READOUT_KEYS, TOPK
from xpredflow.experiments.claims import fewer_passes, more_accurate, pass_at
from xpredflow.experiments.decoding_table import pass_at_each_k
from xpredflow.experiments.paper_tables import ABLATIONS, MAIN, SOFTMASK
from xpredflow.training.align.consistency import Consistency


def outcomes(claims, results) -> list[bool]:
    return [claim.judge("here", results).holds for claim in claims]


def test_a_claim_speaks_in_one_sentence_with_its_figures() -> None:
    claim = more_accurate("flow", "mask", "the flow solves more", "the flow does not solve more")
    apart = claim.judge("tiny, minimath", {"flow": found(90), "mask": found(20)})
    assert apart == ("tiny, minimath", True, "the flow solves more (90.0% against 20.0%)")
    near = claim.judge("tiny, minimath", {"flow": found(50), "mask": found(52)})
    expected = "the flow does not solve more (50.0% against 52.0%; the intervals overlap)"
    assert near.sentence == expected
    assert not near.holds
    assert not claim.judge("", {"flow": found(50), "mask": found(50)}).holds


def test_fewer_passes() -> None:
    claim = fewer_passes("a", "b", "fewer", "not fewer")
    assert claim.judge("", {"a": found(1, passes=7), "b": found(1, passes=8)}).sentence == (
        "fewer (7.0 against 8.0 passes)"
    )
    assert not claim.judge("", {"a": found(1, passes=8), "b": found(1, passes=8)}).holds


def test_main() -> None:
    papers = {
        "full": found(46, passes=96),
        "quarter": found(34, passes=24),
        "flow": found(45, passes=14),
        "matched": found(12, passes=14),
        "extended": found(30, passes=24),
        "matched extended": found(34, passes=24),
    }
    assert outcomes(MAIN.claims, papers) == [True] * 4 + [False] * 4
    assert MAIN.claims[3].judge("", papers).sentence.endswith("(+33.0% against +11.0%)")
    swapped = {
        **papers,
        **{"flow": papers["extended"], "matched": papers["matched extended"]},
        **{"extended": papers["flow"], "matched extended": papers["matched"]},
    }
    assert outcomes(MAIN.claims, swapped) == [False] * 4 + [True] * 4
    assert MAIN.claims[4].judge("", swapped).sentence.startswith("the flow with our extensions ")


def test_softmask() -> None:
    papers = {"full": found(45), "mask": found(23), "soft": found(29), "flow": found(38)}
    papers["extended"] = found(10)
    assert outcomes(SOFTMASK.claims, papers) == [True, True, False]
    assert outcomes(SOFTMASK.claims, {**papers, "soft": found(40)}) == [True, False, False]
    assert outcomes(SOFTMASK.claims, {**papers, "extended": found(30)}) == [True, True, True]
    assert outcomes(SOFTMASK.claims, {**papers, "soft": found(20)}) == [False, True, False]


def test_ablations() -> None:
    papers = {
        "full": found(45),
        "commitment": found(41),
        "reediting": found(27),
        "alignment": found(17),
    }
    assert outcomes(ABLATIONS.claims, papers) == [True] * 4
    changed = {**papers, "alignment": found(45)}
    assert outcomes(ABLATIONS.claims, changed) == [True, True, False, False]


def test_policy() -> None:
    papers = {
        "small": found(0, passes=64),
        "large": found(29, passes=60),
        "confidence": found(25, passes=20),
        "learned": found(33, passes=35),
    }
    assert outcomes(POLICY.claims, papers) == [True] * 4
    assert outcomes(POLICY.claims, {**papers, "learned": found(29, passes=61)})[:2] == [False] * 2
    hasty = {**papers, "learned": found(33, passes=10), "small": found(0, passes=50)}
    assert outcomes(POLICY.claims, hasty) == [True, True, False, False]


def test_topk() -> None:
    steps = (35.1, 37.2, 38.1, 38.6, 38.6)
    papers = {
        key: found(right, passes=s)
        for key, right, s in zip(READOUT_KEYS, (33, 30, 30, 29, 29), steps, strict=True)
    }
    assert READOUT_KEYS == ("1", "2", "4", "8", "None")
    assert outcomes(TOPK.claims, papers) == [True, True]
    assert outcomes(TOPK.claims, {**papers, "4": found(34, passes=36)}) == [False, False]
    same = {key: found(30, passes=24) for key in READOUT_KEYS}
    assert outcomes(TOPK.claims, same) == [True, False]


def test_passk() -> None:
    def drawn(one: float, ten: float):
        return found(int(one * 100), pass_at={1: one, 2: one, 5: ten, 10: ten})

    papers = {
        "expected": found(34),
        "sampled 1": drawn(0.33, 0.5),
        "sampled 8": drawn(0.21, 0.51),
        "greedy full": found(41),
        "hot full": drawn(0.01, 0.03),
    }
    assert outcomes(PASSK.claims, papers) == [True] * 5
    assert pass_at(papers["expected"], 10) == 0.34
    shown = pass_at_each_k(replace(measured(0), summary=papers["sampled 1"]))
    assert shown == "33.0 / 33.0 / 50.0 / 50.0, 10.0 of 16 passes"
    equal = dict.fromkeys(papers, drawn(0.3, 0.3))
    assert outcomes(PASSK.claims, equal) == [False] * 5


def test_the_papers_anchor_figures_agree_with_its_claims() -> None:
    assert outcomes(anchor.CLAIMS, anchor.PAPER) == [True] * 4
    flat = {name: [0.9, 0.9, 0.9, 0.9, 0.9] for name in anchor.ENDPOINTS}
    assert outcomes(anchor.CLAIMS, anchor.Recovery(5, flat, flat)) == [False] * 4


def test_consistency() -> None:
    before, after = Consistency(0.965, 0.24, None, None), Consistency(0.99, 0.02, None, None)
    assert outcomes(clean_consistency.CLAIMS, {"before": before, "after": after}) == [True, True]
    worse = {"before": Consistency(0.8, 0.1, None, None), "after": before}
    assert outcomes(clean_consistency.CLAIMS, worse) == [False, False]


@pytest.mark.parametrize(
    ("last", "ce", "expected"), [(0.01, 0.51, [True, True]), (0.3, 0.6, [False, False])]
)
def test_alignment(last: float, ce: float, expected: list[bool]) -> None:
    results: alignment_losses.Ends = {
        "mse_masked": (1.0, 1.0),
        "mse_unmasked": (1.0, last),
        "ce_masked": (0.5, ce),
        "reference_ce_masked": (0.5, 0.5),
    }
    assert outcomes(alignment_losses.CLAIMS, results) == expected
