"""Branches: a row whose tokens are changed after some of its passes, and which goes on from there.

changes = [Change(after=3, position=70, token=None)]
session.submit(question, decoder="flow", changes=changes)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from xpredflow.engine.batch import Batch
from xpredflow.engine.group import Group
from xpredflow.engine.rows import RULED_OUT, Constraint, Row, to_decoded
from xpredflow.engine.state import State, begin_at
from xpredflow.engine.steps import Change, Decoded, StopReason
from xpredflow.errors import InputError
from xpredflow.types import Model


@dataclass(frozen=True)
class Hold:
    """A constraint: these positions hold these tokens, whatever the model thinks of them."""

    tokens: Mapping[int, int]
    beside: Constraint | None = None

    def __call__(
        self, logits: Float[Tensor, "N V"], at: Sequence[int], held: dict[int, int]
    ) -> None:
        """Nothing else is predicted there."""
        if self.beside is not None:
            self.beside(logits, at, held)
        for place, position in enumerate(at):
            if position in self.tokens:
                logits[place] = RULED_OUT
                logits[place, self.tokens[position]] = 0.0


def checked_changes(changes: Iterable[Change], row: Row, model: Model) -> tuple[Change, ...]:
    """Changes in their order, as far as they can be checked before the row is decoded."""
    positions, size = {p for block in row.blocks for p in block}, len(model.embedding)
    found = tuple(sorted(changes, key=lambda change: change.after))
    for change in found:
        if change.after < 1:
            raise InputError(f"a change after pass {change.after}: expected 1 or more")
        if change.position not in positions:
            raise InputError(
                f"a change at position {change.position}: the positions that are decoded are"
                f" {min(positions)} to {max(positions)}"
            )
        token = change.token
        if token is not None and (token == model.special.mask or not 0 <= token < size):
            raise InputError(
                f"a change to token {token}: expected a token id from 0 to {size - 1} that is not"
                " the mask, or none, which opens the position again"
            )
    return found


def state_of(number: int, batches: Iterable[Batch]) -> State:
    """A row after the newest pass, even if that ended it."""
    for group in [group for batch in batches for group in batch.groups]:
        for i, row in enumerate(group.rows):
            if row.number == number and row.used:
                return State.of(group, i)
    raise InputError(f"row {number} has no state: it took no part in the newest pass")


def due_changes(
    model: Model, batches: Iterable[Batch], finished: Sequence[Decoded]
) -> Iterator[tuple[Row, Row | Decoded]]:
    """Rows whose change is due after this pass, with the row that goes on in their place.

    Where it cannot be made, with an answer that says why.
    """
    ended = {done.row: done for done in finished}
    for group in [group for batch in batches for group in batch.groups]:
        for i, row in enumerate(group.rows):
            done = ended.get(row.number)
            if not row.changes or (done is not None and done.failed):
                continue
            if row.changes[0].after == row.used:
                yield row, _goes_on(model, group, i)
            elif done is not None:
                after = row.changes[0].after
                yield row, _refused(model, row, f"it ended after pass {row.used}, before {after}")


def _goes_on(model: Model, group: Group, i: int) -> Row | Decoded:
    row = group.rows[i]
    now = [change for change in row.changes if change.after == row.used]
    try:
        state = State.of(group, i).changed({c.position: c.token for c in now}, group.space)
        following = begin_at(row, state, group.rule.decoder, model)
    except InputError as error:
        return _refused(model, row, str(error))
    hold = row.constraint if isinstance(row.constraint, Hold) else Hold({}, row.constraint)
    tokens = {p: token for p, token in hold.tokens.items() if p not in {c.position for c in now}}
    tokens |= {c.position: c.token for c in now if c.hold and c.token is not None}
    return replace(
        following,
        constraint=Hold(tokens, hold.beside) if tokens else hold.beside,
        changes=row.changes[len(now) :],
    )


def _refused(model: Model, row: Row, why: str) -> Decoded:
    return to_decoded(model, row, StopReason.NOT_CHANGED, f": {why}")
