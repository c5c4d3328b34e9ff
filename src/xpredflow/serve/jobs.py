"""What the server hands to a backend, and what comes back: plain values that may cross processes.

A job is one row: one answer to one prompt. Its result is that of `xpredflow.generate` with the same
prompt, decoder and options.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from xpredflow.slots.template import Template


class TokenChange(NamedTuple):
    """A `Change` as a client may write it: the token by its id or by its text; neither: open."""

    after: int
    position: int
    token: int | None = None
    text: str | None = None
    hold: bool = True


@dataclass(frozen=True)
class Job:
    """One row to decode; `suffix` or `template` make it an infilling."""

    prompt: str | list[dict[str, str]] | list[int]
    decoder: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str | None = None
    template: Template | None = None
    partial: bool = False  # report after every pass, not only at the end
    drafts: bool = False  # with the text that may still change
    logprobs: int | None = None  # likeliest tokens beside the chosen one; None: no probabilities
    trace: bool = False  # with every pass, as lines of a trace
    changes: tuple[TokenChange, ...] = ()


class Candidate(NamedTuple):
    """A token and the log of its probability."""

    token: str
    data: bytes
    logprob: float


class Committed(NamedTuple):
    """A token of the answer with its log-probability when it was committed, and its rivals'."""

    chosen: Candidate
    top: list[Candidate]


@dataclass(frozen=True)
class Filled:
    """A gap of a template as it was filled; `probabilities` where it was a choice."""

    name: str | None
    text: str
    probabilities: dict[str, float] | None = None


@dataclass(frozen=True)
class Finished:
    """A row's answer. `ended` says that the model ended its text within the length."""

    text: str
    tokens: int
    passes: int
    stop_reason: str
    ended: bool
    committed: list[Committed] | None = None
    slots: list[Filled] | None = None


@dataclass(frozen=True)
class Update:
    """A row as of its newest pass: `settled` only ever grows, `draft` may still change.

    The first one comes when the row is accepted, the last one has `done`.
    """

    passes: int
    settled: str
    draft: str
    tokens: int  # of the settled text
    prompt_tokens: int
    done: Finished | None = None
    lines: tuple[str, ...] = ()  # of its trace, since the update before

    def behind(self, earlier: "Update") -> "Update":
        """This update for a reader who has not read the one before: no line is lost."""
        return replace(self, lines=earlier.lines + self.lines) if earlier.lines else self


class RowFailed(Exception):
    """A row that could not be decoded to its end, through no fault of the request."""
