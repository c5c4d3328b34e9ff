"""A row on its way, as the server follows it: its text after each pass, and its answer."""

from typing import NamedTuple

from xpredflow.engine.prompts import Prompt, decode, encode, plain_ids
from xpredflow.engine.rows import Row, before_end
from xpredflow.engine.session import Session
from xpredflow.engine.steps import Decoded, Step, StopReason
from xpredflow.engine.text import split_settled
from xpredflow.errors import InputError
from xpredflow.serve.commitments import Commitments
from xpredflow.serve.feed import Mailbox
from xpredflow.serve.jobs import Filled, Finished, Job, RowFailed, Update
from xpredflow.serve.tracing import Tracing, changes_of
from xpredflow.slots.fill import Filling
from xpredflow.types import Model


class Bounds(NamedTuple):
    """Tokens that a row may have."""

    prompt: int = 2**31
    answer: int = 2**31


class Track:
    """A job in a session, and the mailbox that hears of it."""

    def __init__(self, session: Session, job: Job, mailbox: Mailbox, bounds: Bounds) -> None:
        self.model, self.job, self.mailbox = session.model, job, mailbox
        self.filling: Filling | None = None
        prompt = self._prompt(session.model, job)
        chat = {} if isinstance(prompt, list) or self.filling else {"chat": False}
        options = {**chat, **job.options}
        changes = changes_of(job.changes, session.model)
        if job.suffix is not None or self.filling is not None:
            options.pop("gen_length", None)  # the gaps say how long the answer is
        if self.filling is not None:
            options["constraint"] = self.filling
        self.ticket = session.submit(prompt, decoder=job.decoder, changes=changes, **options)  # type: ignore[arg-type]
        self.row: Row = session.row(self.ticket)
        asked = sum(map(len, self.row.blocks))
        self.prompt_tokens = self.row.length - asked
        for what, found, most in (
            ("the prompt has", self.prompt_tokens, bounds.prompt),
            ("the answer would have", asked, bounds.answer),
        ):
            if found > most:
                session.cancel(self.ticket)
                raise InputError(f"{what} {found} tokens: this server takes at most {most}")
        decoder = self.row.rule.decoder if self.row.rule is not None else None
        self.revises = getattr(decoder, "revises", True)
        self.commitments = None if job.logprobs is None else Commitments(self.model, job.logprobs)
        self.tracing: Tracing | None = None
        if job.trace:
            settings, _ = session.resolved(job.decoder, options)
            self.tracing = Tracing(session.model, job, self.row, settings, changes)
        lines = () if self.tracing is None else (self.tracing.begin(),)
        mailbox.put(Update(0, "", "", 0, self.prompt_tokens, lines=lines))

    def _prompt(self, model: Model, job: Job) -> Prompt:
        """What the session takes: gaps of a suffix or a template become open positions."""
        if job.template is not None:
            before = encode(model, job.prompt, chat=None if _is_chat(job) else False, system=None)
            if before.has_gaps:
                raise InputError("a prompt with [[mask:n]] gaps has no response_format beside it")
            self.filling = Filling(model, before.ids, job.template)
            return self.filling.ids
        if job.suffix is not None:
            assert isinstance(job.prompt, str)
            length = job.options.get("gen_length") or self._default_length(model)
            ids = plain_ids(model, job.prompt)
            return [*ids, *[-1] * length, *plain_ids(model, job.suffix)]
        return job.prompt

    @staticmethod
    def _default_length(model: Model) -> int:
        return getattr(getattr(model, "defaults", None), "gen_length", None) or 16

    def follow(self, step: Step, i: int, *, ended: bool) -> None:
        """The i-th row of a Step is this one: say what can be said of it now."""
        if self.commitments is not None:
            self.commitments.add(step, i)
        if self.tracing is not None:
            lines = (self.tracing.frame(step, i),)
            self.mailbox.put(Update(self.row.used, "", "", 0, self.prompt_tokens, lines=lines))
            return
        if ended or not self.job.partial or self.mailbox.closed:
            return  # a row that has ended is hardened already: `finish` says the rest
        self.mailbox.put(self._partial(step, i))

    def _partial(self, step: Step, i: int) -> Update:
        row, job = self.row, self.job
        places = step.positions[i].tolist()
        # a block that has just ended is part of the row already
        width = len(row.open) if places[: len(row.open)] == row.open else 0
        found = split_settled(
            self.model,
            row,
            step.canvas.tokens[i, :width].tolist(),
            step.canvas.progress[i, :width].tolist(),
            self.revises,
        )
        settled, draft, count = found.text, found.draft, found.tokens
        if self.filling is not None:
            settled, count = self.filling.settled(self._final(step, i, width))
            filled = row.response() if row.progress else []
            behind = [*filled, *step.canvas.tokens[i, :width].tolist()][count:]
            draft = decode(self.model, before_end(behind, self.model.special.ends))
        elif row.infill and job.suffix is None:
            settled, draft = "", settled + draft  # its text is put together at the end
        shown = draft if job.drafts else ""
        return Update(row.used, settled, shown, count, self.prompt_tokens)

    def _final(self, step: Step, i: int, width: int) -> list[int | None]:
        """The tokens of the gaps, None where they may still change."""
        done = self.row.response() if self.row.progress else []
        now: list[int | None] = []
        if not self.revises:
            held = step.canvas.tokens[i, :width].tolist(), step.canvas.progress[i, :width].tolist()
            now = [token if t >= 1 else None for token, t in zip(*held, strict=True)]
        behind = sum(map(len, self.row.blocks)) - len(done) - len(now)
        return [*done, *now, *[None] * behind]

    def finish(self, done: Decoded) -> None:
        """The row's answer, or why there is none."""
        if done.reason is StopReason.NOT_CHANGED:
            self.mailbox.put(InputError(done.stop_reason))
            return
        if done.failed:
            self.mailbox.put(RowFailed(done.stop_reason))
            return
        ends, slots, text = self.model.special.ends, None, done.text
        ids = before_end(done.all_ids, ends)
        if self.filling is not None:
            text, filled = self.filling.finish(done.all_ids)
            slots, ids = [Filled(*slot) for slot in filled], done.all_ids
        elif self.job.suffix is not None:
            text = decode(self.model, ids)
        ended = done_early(done, ends) or self.row.infill
        committed = None
        if self.commitments is not None:
            positions = [p for block in self.row.blocks for p in block]
            committed = self.commitments.of(positions[: len(ids)], ids)
        answer = Finished(text, len(ids), done.passes, done.stop_reason, ended, committed, slots)
        lines = () if self.tracing is None else self.tracing.finish(done)
        self.mailbox.put(Update(done.passes, text, "", len(ids), self.prompt_tokens, answer, lines))


def done_early(done: Decoded, ends: tuple[int, ...]) -> bool:
    """Whether the text ended before its last position."""
    return any(token in ends for token in done.all_ids)


def _is_chat(job: Job) -> bool:
    return isinstance(job.prompt, list)
