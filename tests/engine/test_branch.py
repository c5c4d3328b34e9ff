"""Rows that start from a recorded state, and rows whose tokens are changed on their way."""

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import write_checkpoint
from toy import MASK, CachedToy, ToyModel

from xpredflow import InputError, StopReason, load
from xpredflow.decoders import DECODERS
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.engine.session import Session
from xpredflow.engine.steps import Change, Decoded, Frame
from xpredflow.types import Space

PROMPT = [3, 1, 4]
# A decoder for everything that rows remember: counts, flags, distributions, soft states.
CASES: list[dict[str, Any]] = [
    {"decoder": "credit"},
    {"decoder": "klass"},
    {"decoder": "wino"},
    {"decoder": "saber"},
    {"decoder": "remdm", "seed": 2},
    {"decoder": "dmax"},
    {"decoder": "evotoken"},
    {"decoder": "editing"},
    {"decoder": "flow:learned:tiny+policy_temperature=1.0+max_idle_passes=4", "seed": 5},
    {"decoder": "mask", "temperature": 0.8, "block_length": 4, "seed": 3},
    {"decoder": "threshold:0.9", "early_exit": "linear", "cfg_scale": 0.5},
]


def drained(session: Session) -> tuple[list[Frame], dict[int, Decoded]]:
    frames, found = [], {}
    while (step := session.step()) is not None:
        frames += step.frames()
        found |= {done.row: done for done in step.finished}
    return frames, found


def space(model: Any) -> Space:
    return Space(model.embedding, model.special)


def test_rows_of_every_decoder_go_on_from_their_recorded_state() -> None:
    model = ToyModel()
    size: dict[str, Any] = {"gen_length": 10}
    session = Session(model, max_batch=32)
    tickets = [session.submit(PROMPT, **size, **options) for options in CASES]
    session.step()
    session.step()
    states = [session.state(ticket) for ticket in tickets]
    rest, found = drained(session)
    # beside rows that begin: what each remembers stays its own
    again = Session(model, max_batch=32)
    for options, state in zip(CASES, states, strict=True):
        again.submit(PROMPT, start=state, **size, **options)
        again.submit([5, *PROMPT], **{**size, "gen_length": 11}, **options)
    frames, ended = drained(again)
    for number, (ticket, options) in enumerate(zip(tickets, CASES, strict=True)):
        done, then = found[ticket], ended[2 * number]
        assert (then.all_ids, then.passes) == (done.all_ids, done.passes), options
        mine = [(frame.step, frame.tokens) for frame in frames if frame.row == 2 * number]
        assert mine == [(frame.step, frame.tokens) for frame in rest if frame.row == ticket]


def test_a_state_of_a_block_causal_model_reads_its_context_again(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "llada2")
    options: dict[str, Any] = {"decoder": "threshold:0.9", "gen_length": 16, "stop_at_eos": False}
    session = Session(load(tmp_path), max_batch=2)
    ticket = session.submit(PROMPT, **options)
    while session.row(ticket).block == 0:
        session.step()
    session.step()
    state = session.state(ticket)
    assert (state.block, len(state.progress)) == (1, state.open[0] - len(PROMPT))
    _, found = drained(session)
    again = session.submit(PROMPT, start=state, **options)
    assert drained(session)[1][again].all_ids == found[ticket].all_ids


def test_a_change_fills_an_approximate_cache_again() -> None:
    options: dict[str, Any] = {"decoder": "mask", "gen_length": 12, "block_length": 4}
    options |= {"stop_at_eos": False, "changes": [Change(6, 8, token=7)]}
    session = Session(CachedToy(), max_batch=2)  # whose cache is exact
    cached, plain = (
        session.submit(PROMPT, cache="dual", **options),
        session.submit(PROMPT, **options),
    )
    _, found = drained(session)
    assert (found[cached].all_ids, found[cached].all_ids[5]) == (found[plain].all_ids, 7)


def test_every_decoder_takes_changes_and_keeps_a_held_token() -> None:
    session = Session(ToyModel(), max_batch=64)
    pairs = {}
    for name in DECODERS:
        options: dict[str, Any] = {"decoder": name, "gen_length": 6, "budget": 4}
        changes = [Change(1, 6, token=7), Change(2, 4)]
        plain = session.submit(PROMPT, **options)
        pairs[name] = plain, session.submit(PROMPT, changes=changes, **options)
    frames, found = drained(session)
    for name, (plain, held) in pairs.items():
        done = found[held]
        assert not done.failed, (name, done.stop_reason)
        assert (done.all_ids[3], MASK in done.all_ids) == (7, False), name
        assert done.passes <= 4
        first = [next(f.tokens for f in frames if f.row == row) for row in (plain, held)]
        assert first[0] == first[1]


def test_what_is_not_held_may_be_revised_and_what_is_opened_is_decoded_again() -> None:
    model = ToyModel()
    options: dict[str, Any] = {"decoder": "flow:confidence+rules=paper", "gen_length": 8}
    session = Session(model, max_batch=3)
    session.submit(PROMPT, **options)
    let = session.submit(PROMPT, changes=[Change(2, 6, token=7, hold=False)], **options)
    opened = session.submit(PROMPT, changes=[Change(2, 6)], **options)
    frames, _ = drained(session)
    third = {frame.row: frame for frame in frames if frame.step == 2}
    assert third[let].reedited[3]
    assert third[opened].progress[3] < 1


def test_a_row_that_ended_goes_on_where_it_is_opened_again() -> None:
    session = Session(ToyModel(), max_batch=2)
    ticket = session.submit(PROMPT, decoder="threshold:0.1", gen_length=6)
    last = drained(session)[1][ticket].passes
    again = session.submit(PROMPT, decoder="threshold:0.1", gen_length=6, changes=[Change(last, 5)])
    done = drained(session)[1][again]
    assert (done.passes, done.reason) == (last + 1, StopReason.CONVERGED)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Change(99, 5), "it ended after pass 8, before 99"),
        (Change(8, 8), "the budget is used up after pass 8"),
        (Change(2, 9), "position 9 is not decoded in pass 2: its block has the positions 3 to 6"),
    ],
)
def test_a_change_that_cannot_be_made_ends_its_row_alone(change: Change, why: str) -> None:
    options: dict[str, Any] = {"decoder": "mask", "gen_length": 8, "block_length": 4, "budget": 8}
    session = Session(ToyModel(), max_batch=2)
    plain = session.submit(PROMPT, **options)
    bad = session.submit(PROMPT, changes=[change], **options)
    _, found = drained(session)
    assert not found[plain].failed
    assert found[bad].reason is StopReason.NOT_CHANGED
    assert why in found[bad].stop_reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Change(0, 5, 1), "after pass 0: expected 1 or more"),
        (Change(1, 2, 1), "positions that are decoded are 3 to 8"),
        (Change(1, 5, MASK), "from 0 to 22 that is not the mask"),
        (Change(1, 5, 23), "a change to token 23"),
    ],
)
def test_changes_are_checked_before_anything_is_decoded(change: Change, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Session(ToyModel()).submit(PROMPT, gen_length=6, decoder="mask", changes=[change])


def test_a_state_fits_its_own_request_only() -> None:
    model = ToyModel()
    session = Session(model)
    ticket = session.submit(PROMPT, decoder="mask", gen_length=6)
    with pytest.raises(InputError, match="took no part in the newest pass"):
        session.state(ticket)
    session.step()
    state = session.state(ticket)
    cases: tuple[tuple[list[int], dict[str, Any], str], ...] = (
        (PROMPT, {"decoder": "threshold:0.9"}, "the state is of decoder 'mask'"),
        ([3, 1, 5], {"decoder": "mask"}, "of another prompt or length"),
        (PROMPT, {"decoder": "mask", "gen_length": 7}, "of another prompt or length"),
        (PROMPT, {"decoder": "mask", "budget": 1}, "the budget is used up after pass 1"),
    )
    for prompt, options, why in cases:
        asked: dict[str, Any] = {"gen_length": 6, **options}
        with pytest.raises(InputError, match=why):
            session.submit(prompt, start=state, **asked)
    with pytest.raises(InputError, match="position 2 is not decoded"):
        state.changed({2: 1}, space(model))
    other = state.changed({4: 7, 5: None}, space(model)).canvas
    assert torch.equal(other.state[0, 1], model.embedding[7])
    assert torch.equal(other.state[0, 2], model.embedding[MASK])
    assert other.progress[0, 1:3].tolist() == [1, 0]


def test_a_decoder_that_cannot_go_on_refuses_by_name() -> None:
    class Forgetful(MaskPrediction):
        resumes = False

    session = Session(ToyModel())
    ticket = session.submit(PROMPT, decoder=Forgetful(), gen_length=6, changes=[Change(1, 4)])
    done = drained(session)[1][ticket]
    assert "decoder 'forgetful' cannot start from a recorded state" in done.stop_reason
