"""Sessions: rows with options of their own join, move, are cancelled and end, each by itself."""

import pytest
import torch
from toy import MASK, ToyModel, prompts

from xpredflow import Engine, InputError, StopReason, generate, load
from xpredflow.engine.session import Session
from xpredflow.engine.steps import Decoded

REQUESTS = [
    {"decoder": "threshold:0.9", "gen_length": 12},
    {"decoder": "mask", "gen_length": 9, "seed": 3, "temperature": 0.8},
    {"decoder": "flow", "gen_length": 16, "budget": "1/2", "rules": "paper"},
    {"decoder": "flow:learned:tiny+policy_temperature=1.0", "gen_length": 10, "seed": 5},
    {"decoder": "wino:0.3", "gen_length": 7, "logits_eos_inf": True},
    {"decoder": "klass", "gen_length": 14, "block_length": 5},
    {"decoder": "credit", "gen_length": 6, "confidence_eos_eot_inf": True},
    {"decoder": "remdm", "gen_length": 11, "seed": 2, "first_row": 4},
    {"decoder": "threshold:0.9", "gen_length": 3},
    {"decoder": "soft", "gen_length": 8, "budget": 3},
]


def alone(model, prompt, options: dict) -> tuple[list[int], int]:
    [done] = generate(model, [prompt], **options)
    return done.all_ids, done.passes


def drained(session: Session) -> dict[int, Decoded]:
    found = {}
    while (step := session.step()) is not None:
        found |= {done.row: done for done in step.finished}
    return found


@pytest.mark.parametrize("max_batch", [1, 3, 16])
def test_rows_of_all_decoders_are_those_decoded_alone(max_batch: int) -> None:
    session = Engine(ToyModel()).session(max_batch=max_batch)
    asked = list(zip(prompts(len(REQUESTS)), REQUESTS, strict=True))
    tickets = [session.submit(prompt, **options) for prompt, options in asked]
    found = drained(session)
    for ticket, (prompt, options) in zip(tickets, asked, strict=True):
        done = found[ticket]
        assert (done.all_ids, done.passes) == alone(ToyModel(), prompt, options), options


def test_they_share_their_forward_passes() -> None:
    model = ToyModel()
    session = Session(model, max_batch=4)
    for decoder in ("mask", "threshold:0.5", "flow:confidence+rules=paper", "eb"):
        session.submit([1, 2, 3], decoder=decoder, gen_length=8)
    step = session.step()
    assert step is not None
    assert (model.passes, len(step.rows), session.running) == (1, 4, 4)
    assert step.canvas.progress.shape == step.event.signals.confidence.shape == (4, 8)
    assert {frame.row for frame in step.frames()} == {0, 1, 2, 3}
    assert all(MASK not in frame.tokens for frame in step.frames())


def test_rows_join_and_are_cancelled_at_any_pass() -> None:
    asked = list(zip(prompts(len(REQUESTS), 1), REQUESTS, strict=True))
    session = Session(ToyModel(1), max_batch=4)
    found: dict[int, Decoded] = {}
    tickets: list[int] = []
    cancelled = set()
    for number in range(200):
        if number % 2 == 0 and len(tickets) < len(asked):
            prompt, options = asked[len(tickets)]
            tickets.append(session.submit(prompt, **options))
        if number in (3, 6):  # one that runs, and the newest
            victim = [t for t in tickets if t not in found][0 if number == 3 else -1]
            assert session.cancel(victim)
            assert not session.cancel(victim)
            cancelled.add(victim)
        if (step := session.step()) is not None:
            assert not cancelled & set(step.rows)
            found |= {done.row: done for done in step.finished}
    assert (session.waiting, session.running, session.step()) == (0, 0, None)
    assert found.keys() | cancelled == set(tickets)
    for ticket in found:
        prompt, options = asked[ticket]
        expected = alone(ToyModel(1), prompt, options)
        assert (found[ticket].all_ids, found[ticket].passes) == expected


def test_a_cancelled_row_frees_its_place() -> None:
    session = Session(ToyModel(), max_batch=1)
    first, second = (session.submit([1, 2], decoder="mask", gen_length=8) for _ in range(2))
    assert (session.waiting, session.running) == (2, 0)
    session.step()
    assert (session.waiting, session.running) == (1, 1)
    assert session.cancel(first)
    assert (session.waiting, session.running) == (1, 0)
    step = session.step()
    assert step is not None
    assert list(step.rows) == [second]
    assert not session.cancel(99)


def test_a_block_causal_model_makes_room_for_longer_rows() -> None:
    """Its cache grows while rows run, in slots and in length."""
    model = load("tiny-moe")
    asked = [
        ("Zoe has 25 pens, loses 7.", {"gen_length": 24, "decoder": "threshold:0.9"}),
        ("Ann has 3 cups, buys 4. How many cups now?", {"gen_length": 70, "decoder": "mask"}),
        ("Write get_box(xs) with lists.", {"gen_length": 40, "decoder": "flow"}),
        ("Tom has 9.", {"gen_length": 33, "decoder": "threshold:0.7"}),
    ]
    session = Session(model, max_batch=4)
    found: dict[int, Decoded] = {}
    for prompt, options in asked:
        session.submit(prompt, budget="1/4", **options)
        for _ in range(3):
            if (step := session.step()) is not None:
                found |= {done.row: done for done in step.finished}
    found |= drained(session)
    for ticket, (prompt, options) in enumerate(asked):
        expected = alone(model, prompt, {**options, "budget": "1/4"})
        assert (found[ticket].all_ids, found[ticket].passes) == expected


def test_equal_requests_are_moved_together() -> None:
    session = Session(ToyModel(), max_batch=8)
    for decoder in ("threshold:0.9", "threshold:0.9", "threshold:0.8"):
        session.submit([1, 2], decoder=decoder, gen_length=8)
    session.step()
    [batch] = session._batches
    assert [len(group.rows) for group in batch.groups] == [2, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"treshold": 0.5, "decoder": "threshold"}, "did you mean 'threshold'"),
        ({"gen_length": 0}, "gen_length is 0"),
        ({"max_batch": 3}, "max_batch is 3 for one row of a session: give it to the session"),
        ({"trace": True}, "trace is True"),
        ({"gen_length": 400}, "too long"),
    ],
)
def test_bad_requests_are_refused_when_they_come(options: dict, message: str) -> None:
    session = Session(ToyModel())
    with pytest.raises(InputError, match=message):
        session.submit([1, 2], **options)
    assert session.step() is None
    with pytest.raises(InputError, match="max_batch is 0"):
        Session(ToyModel(), max_batch=0)


class Small(ToyModel):
    """Has memory for so many positions in one pass."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.refused = room, 0

    def logits(self, inputs, positions, columns, cache=None, slots=None):
        if positions.numel() > self.room:
            self.refused += 1
            raise torch.OutOfMemoryError("simulated")
        return super().logits(inputs, positions, columns)


def test_a_batch_that_does_not_fit_is_halved_and_nothing_is_lost() -> None:
    several = prompts(9)
    model = Small(3 * 24)
    done = generate(model, several, decoder="threshold:0.6", gen_length=12, max_batch=8)
    whole = generate(ToyModel(), several, decoder="threshold:0.6", gen_length=12)
    assert [(d.all_ids, d.passes) for d in done] == [(d.all_ids, d.passes) for d in whole]
    assert 1 <= model.refused <= 3  # the smaller batch is kept to, not found out in every pass


def test_a_row_that_never_fits_ends_alone() -> None:
    asked = [[1, 2], [3] * 40, [4, 5]]
    done = generate(Small(40), asked, decoder="mask", gen_length=8)
    assert [d.failed for d in done] == [False, True, False]
    assert done[1].reason is StopReason.OUT_OF_MEMORY
    assert "row 1 of 48 positions" in done[1].stop_reason
    healthy = generate(ToyModel(), asked, decoder="mask", gen_length=8)
    assert [done[i].all_ids for i in (0, 2)] == [healthy[i].all_ids for i in (0, 2)]


def test_rows_that_differ_in_seed_and_length_only_are_moved_together() -> None:
    session = Session(ToyModel(), max_batch=8, decoder="mask+temperature=1")
    for seed in range(4):
        session.submit([1, 2, 3], seed=seed, gen_length=4 + seed)
    session.submit([1, 2, 3], decoder="mask+temperature=0.5", gen_length=4)
    assert session.step() is not None
    assert [len(group.rows) for group in session._batches[0].groups] == [4, 1]
