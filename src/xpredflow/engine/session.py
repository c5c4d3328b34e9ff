"""The one decoding loop: rows wait, join a running batch at any pass, move, and end.

Every row has its own decoder, budget, length, seed and rules; it is the same whatever its
neighbours are. `generate`, `decode_steps`, evaluation, rollouts and a server all drive a Session.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Unpack

import torch

from xpredflow.engine.batch import Batch
from xpredflow.engine.branch import checked_changes, due_changes, state_of
from xpredflow.engine.cache_slots import Slots
from xpredflow.engine.capacity import fitting_batch, reclaim
from xpredflow.engine.group import Part
from xpredflow.engine.intake import make_rows
from xpredflow.engine.merge import Settled, merged, nothing
from xpredflow.engine.prompts import Prompt
from xpredflow.engine.request import ALIASES, DecodeOptions, Options, resolve, say_once
from xpredflow.engine.rows import Constraint, Row, Rule, finished_block, to_decoded
from xpredflow.engine.state import State, begin_at
from xpredflow.engine.steps import Change, Decoded, Step, StopReason
from xpredflow.errors import InputError
from xpredflow.models.machine import keep_freed_memory
from xpredflow.models.wrap import check_model
from xpredflow.settings import option_names
from xpredflow.types import Decoder, Model

REMEMBERED = 256  # requests whose decoder is kept, so that equal ones are moved together
_OF_THE_LOOP = {*option_names(Options), *ALIASES}
# Options of a whole run: a row cannot have its own.
OF_THE_RUN = {"max_batch": "give it to the session", "trace": "read Step.frames() of every step"}


class Session:
    """Rows in flight, and those that wait for a place.

    session = Engine(load("tiny-aligned")).session(max_batch=8)
    ticket = session.submit(question, decoder="threshold:0.9", gen_length=64, seed=3)
    while (step := session.step()) is not None:
        print([done.text for done in step.finished if done.row == ticket])
    """

    def __init__(
        self,
        model: Model,
        *,
        decoder: str | Decoder | None = None,
        **options: Unpack[DecodeOptions],
    ) -> None:
        self.model = check_model(model)
        if model.embedding.device.type == "cpu":
            keep_freed_memory()
        settings, _ = resolve(decoder, dict(options))  # what is wrong with them is said now
        self.capacity = settings.max_batch  # none: measured when the first rows are known
        self._decoder = decoder
        self._options = {name: given for name, given in options.items() if name not in OF_THE_RUN}
        self._decoders: dict[Any, Decoder] = {}
        self._tickets = count()
        self._queue: deque[Row] = deque()
        self._slots = Slots(model)
        self._batches: list[Batch] = []
        self._leaving: list[Row] = []
        self._advancing: list[Row] = []

    @property
    def waiting(self) -> int:
        """Rows without a place yet."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Rows that take part in the next pass, as far as they are known now."""
        return sum(len(batch.rows) for batch in self._batches) - len(self._leaving)

    def submit(
        self,
        prompt: Prompt,
        *,
        decoder: str | Decoder | None = None,
        constraint: Constraint | None = None,
        start: State | None = None,
        changes: Iterable[Change] = (),
        **options: Unpack[DecodeOptions],
    ) -> int:
        """Queue a prompt with options of its own; the number by which Steps call its row.

        The row joins with the next pass that has a place. Its answer is that of `generate` with the
        same options: its draws depend on `seed` and `first_row`, not on the number it gets here.
        It begins at a recorded state if there is one to `start` from, and goes on from its changed
        state after the pass of each of its `changes`.
        """
        for name, instead in OF_THE_RUN.items():
            if name in options:
                raise InputError(f"{name} is {options[name]!r} for one row of a session: {instead}")
        settings, rules = self.resolved(decoder, dict(options))
        [row] = make_rows(self.model, {next(self._tickets): prompt}, settings, finished_of)
        row.drawn_as, row.constraint = settings.first_row, constraint
        row.changes = checked_changes(changes, row, self.model)
        if start is not None:
            row = begin_at(row, start, rules, self.model)
        self.add(row, rules, settings)
        return row.number

    def add(self, row: Row, decoder: Decoder, options: Options) -> None:
        """Queue a row that is made already."""
        row.rule = Rule(
            decoder, options.logits_eos_inf, options.confidence_eos_eot_inf, options.cfg_scale
        )
        row.seed, row.stop_at_eos, row.cache = options.seed, options.stop_at_eos, options.cache
        self._queue.append(row)

    def row(self, ticket: int) -> Row:
        """A row that waits or runs."""
        running = (row for batch in self._batches for row in batch.rows)
        return next(row for row in (*reversed(self._queue), *running) if row.number == ticket)

    def state(self, ticket: int) -> State:
        """A row after the newest pass, even if that ended it: another may start from there."""
        return state_of(ticket, self._batches)

    def cancel(self, ticket: int) -> bool:
        """Give a row up before the next pass, its place is free; False if it is not there."""
        for row in self._queue:
            if row.number == ticket:
                self._queue.remove(row)
                return True
        for batch in self._batches:
            for row in batch.rows:
                if row.number == ticket and row not in self._leaving:
                    self._leaving.append(row)
                    return True
        return False

    def step(self) -> Step | None:
        """One forward pass of everything in flight; None if there is nothing."""
        self._admit()
        if not self._batches:
            return None
        advanced = [self._advance(batch) for batch in list(self._batches)]
        settled = [part for parts, _ in advanced for part in parts]
        finished = [done for _, ended in advanced for done in ended]
        return merged(settled, self._with_changes(finished))

    def _with_changes(self, finished: list[Decoded]) -> list[Decoded]:
        """Rows whose change is due leave, even if they ended, and go on from the changed state."""
        for row, following in list(due_changes(self.model, self._batches, finished)):
            finished = [done for done in finished if done.row != row.number]
            if row not in self._leaving:
                self._leaving.append(row)
            if isinstance(following, Row):
                self._queue.appendleft(following)
            else:
                finished.append(following)
        return finished

    def _admit(self) -> None:
        """Who ended or was cancelled leaves, who waits joins, who has a next block begins it."""
        if not (self._queue or self._leaving or self._advancing):
            return
        for row in self._leaving:
            self._slots.release(row)
        running = [row for batch in self._batches for row in batch.rows]
        staying = [row for row in running if row not in self._leaving]
        if self.capacity is None and self._queue:
            self.capacity = fitting_batch(self.model, self._queue)
        joining = []
        while self._queue and len(staying) + len(joining) < (self.capacity or 1):
            joining.append(self._queue.popleft())
        if joining and self._slots.reserve(staying, joining, self._queue, self.capacity or 1):
            for batch in self._batches:
                batch.rebuild()
        if joining and not self._batches:
            self._batches = [Batch(self.model, self._slots)]
        if not self._batches or not (joining or self._leaving or self._advancing):
            return
        smallest = min(self._batches, key=lambda batch: len(batch.rows))
        for batch in self._batches:
            advancing = [row for row in self._advancing if row in batch.rows]
            advancing = [row for row in advancing if row not in self._leaving]
            batch.change(self._leaving, advancing + (joining if batch is smallest else []))
        self._batches = [batch for batch in self._batches if batch.groups]
        self._leaving, self._advancing = [], []

    def _advance(self, batch: Batch) -> tuple[list[Settled], list[Decoded]]:
        """One pass of a batch; where memory does not suffice, of its halves one by one."""
        try:
            parts = batch.advance()
        except torch.OutOfMemoryError:
            parts = None  # what the failed pass held must be free before the next attempt
        if parts is not None:
            return self._settle(batch, parts)
        reclaim(self.model.embedding.device)
        if len(batch.rows) == 1:
            return self._give_up(batch)
        halves = batch.halves()
        self.capacity = len(halves[0].rows)
        say_once(
            f"note: {len(batch.rows)} rows do not fit into memory; max_batch is {self.capacity} now"
        )
        at = self._batches.index(batch)
        self._batches[at : at + 1] = halves
        (first, ended), (second, ended_too) = (self._advance(half) for half in halves)
        return first + second, ended + ended_too

    def _give_up(self, batch: Batch) -> tuple[list[Settled], list[Decoded]]:
        """A row that does not fit by itself ends, and no other with it."""
        [row] = batch.rows
        detail = f": row {row.number} of {len(row.ids)} positions in pass {row.used + 1}"
        self._slots.release(row)
        self._batches.remove(batch)
        return [nothing(batch.space)], [
            to_decoded(self.model, row, StopReason.OUT_OF_MEMORY, detail)
        ]

    def _settle(self, batch: Batch, parts: list[Part]) -> tuple[list[Settled], list[Decoded]]:
        """Accept a pass; the one copy from the device says which rows it ended."""
        found = [part.outcome for part in parts]
        outcomes = (found[0] if len(found) == 1 else torch.cat(found)).tolist()
        batch.accept(parts)
        settled: list[Settled] = []
        finished: list[Decoded] = []
        for part in parts:
            group = part.group
            mine, outcomes = outcomes[: len(group.rows)], outcomes[len(group.rows) :]
            finished += self._retire(part, mine)
            # a Step may be kept: what a decoder remembers does not go with it
            canvas = group.canvas.update(memory={}) if group.canvas.memory else group.canvas
            rows, steps = [row.number for row in group.rows], [row.used - 1 for row in group.rows]
            settled.append(Settled(rows, steps, group.positions, canvas, part.event))
        return settled, finished

    def _retire(self, part: Part, outcomes: list[list[bool]]) -> list[Decoded]:
        """Rows whose block is done go on to the next one or become Decoded."""
        group, finished = part.group, []
        over = [
            i
            for i, (row, (bad, converged, *_)) in enumerate(zip(group.rows, outcomes, strict=True))
            if bad or converged or row.step >= row.budget
        ]
        if not over:
            return []
        for i, tokens, progress in zip(over, *group.finish(over), strict=True):
            row, (bad, converged, stalled, exited) = group.rows[i], outcomes[i]
            reason = StopReason.CONVERGED if converged else StopReason.BUDGET
            if converged and (stalled or exited):
                reason = StopReason.EARLY_EXIT if exited else StopReason.STALLED
            where = part.bad[i] if bad and part.bad is not None else None
            done = finished_block(self.model, row, tokens, progress, where, reason)
            if done is None:
                self._advancing.append(row)
            else:
                finished.append(done)
                self._leaving.append(row)
        return finished

    def resolved(
        self, decoder: str | Decoder | None, options: dict[str, Any]
    ) -> tuple[Options, Decoder]:
        """Options and decoder of a request; requests with equal rules share the decoder.

        Their seeds, lengths and budgets may differ: rows of one decoder are moved together.
        """
        decoder, options = decoder or self._decoder, {**self._options, **options}
        settings, made = resolve(decoder, options, self.model)
        named = {"decoder": decoder, **options}
        rules = {name: value for name, value in named.items() if name not in _OF_THE_LOOP}
        if not all(isinstance(value, str | int | float | None) for value in rules.values()):
            check_model(self.model, made)
            return settings, made
        key = tuple(sorted((name, repr(value)) for name, value in rules.items()))
        if key not in self._decoders:
            check_model(self.model, made)
            if len(self._decoders) >= REMEMBERED:
                self._decoders.pop(next(iter(self._decoders)))
            self._decoders[key] = made
        return settings, self._decoders[key]


def decode_rows(
    model: Model, rows: list[Row], decoder: Decoder, options: Options
) -> Iterator[Step]:
    """A session with these rows alone, until all have ended."""
    session = Session(model, decoder=decoder, max_batch=options.max_batch)
    for row in rows:
        session.add(row, decoder, options)
    while (step := session.step()) is not None:
        yield step


def finished_of(
    model: Model, rows: list[Row], decoder: Decoder, options: Options
) -> Iterator[Decoded]:
    """The same, answers only."""
    for step in decode_rows(model, rows, decoder, options):
        yield from step.finished
