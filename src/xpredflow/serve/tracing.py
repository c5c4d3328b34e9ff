"""A row's passes as lines of a trace, while they come: what the live page reads."""

from xpredflow.decoders import effective_settings
from xpredflow.engine.prompts import plain_ids
from xpredflow.engine.request import Options
from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Change, Decoded, Step
from xpredflow.errors import InputError
from xpredflow.serve.jobs import Job, TokenChange
from xpredflow.types import Model
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace import Header, with_changes
from xpredflow.watch.trace_encoder import TraceEncoder


class Tracing:
    """The lines of one job, in the order of its passes."""

    def __init__(
        self, model: Model, job: Job, row: Row, settings: Options, changes: list[Change]
    ) -> None:
        assert row.rule is not None, "a row is given its rule when it is queued"
        decoder = row.rule.decoder
        name = job.decoder or str(effective_settings(decoder)["decoder"])
        title = f"{name}, changed after pass {changes[-1].after}" if changes else name
        header = Header.of(model, [row], [job.prompt], decoder, settings, name=name, title=title)
        self.changes = changes
        self.encoder = TraceEncoder(header, TokenText(model.tokenizer))

    def begin(self) -> str:
        """The first line."""
        return self.encoder.begin()

    def frame(self, step: Step, i: int) -> str:
        """A pass, as its changes leave it."""
        return self.encoder.frame(with_changes(step.frame(i), self.changes))

    def finish(self, done: Decoded) -> tuple[str, ...]:
        """The answer, and the end."""
        return self.encoder.decoded(done), self.encoder.end()


def changes_of(asked: tuple[TokenChange, ...], model: Model) -> list[Change]:
    """Changes by token id; a text must be one token."""
    return [Change(one.after, one.position, _token(one, model), one.hold) for one in asked]


def _token(change: TokenChange, model: Model) -> int | None:
    if change.text is None:
        return change.token
    ids = plain_ids(model, change.text)
    if len(ids) != 1:
        raise InputError(
            f"text {change.text!r:.40} has {len(ids)} tokens: a position holds one; mind that a"
            " blank in front is part of it"
        )
    return ids[0]
