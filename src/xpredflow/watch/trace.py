"""A recorded decode: what was asked, every Frame, every answer, and what a grader said of it.

trace = record(load("tiny-aligned"), question, decoder="threshold:0.9")
for recording in trace.recordings():
    print(recording.title, recording.decoded.passes)
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Unpack

from xpredflow.decoders import effective_settings
from xpredflow.engine.branch import checked_changes
from xpredflow.engine.loop import decode_rows, make_rows
from xpredflow.engine.prompts import Prompts, numbered
from xpredflow.engine.request import DecodeOptions, Options, resolve
from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Change, Decoded, Frame, Step, StopReason
from xpredflow.errors import InputError
from xpredflow.models.wrap import check_model
from xpredflow.tasks.base import Verdict
from xpredflow.types import Decoder, Model
from xpredflow.watch.text import TokenText, prompt_text


@dataclass(frozen=True)
class Layout:
    """One row: where it is open, its cap on passes, and of an infilled text all of its tokens."""

    row: int
    positions: list[int]
    budget: int
    context: list[int] | None = None

    @classmethod
    def of(cls, row: Row) -> "Layout":
        """As the engine is about to decode it."""
        return cls(
            row=row.number,
            positions=[position for block in row.blocks for position in block],
            budget=sum(row.budgets),
            context=row.ids[: row.length].tolist() if row.infill else None,
        )


@dataclass(frozen=True)
class Header:
    """What was decoded, by what and how: `prompts` and `layouts` go together.

    `options` are the engine's and the decoder's, `rules` the decoder's effective settings.
    """

    model: str
    decoder: str
    seed: int
    prompts: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=dict)
    layouts: list[Layout] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    title: str = ""

    @classmethod
    def of(
        cls,
        model: Model,
        rows: Sequence[Row],
        prompts: Sequence[Any],
        decoder: Decoder,
        settings: Options,
        *,
        name: str = "",
        title: str = "",
        options: dict[str, Any] | None = None,
    ) -> "Header":
        """Of rows that are about to be decoded; `name` is the decoder as the user wrote it."""
        rules = effective_settings(decoder)
        return cls(
            model=model.name,
            decoder=name or str(rules["decoder"]),
            seed=settings.seed,
            prompts=list(prompts),
            options={**(options or {}), **asdict(settings)},
            rules=rules,
            layouts=[Layout.of(row) for row in rows],
            ends=list(model.special.ends),
            title=title,
        )


@dataclass(frozen=True)
class Recording:
    """One row of a trace with all that is needed to show it; None: it did not end."""

    header: Header
    layout: Layout
    prompt: Any
    frames: list[Frame]
    decoded: Decoded | None
    verdict: Verdict | None
    text: TokenText

    @property
    def title(self) -> str:
        """As it was titled, else the decoder."""
        return self.header.title or self.header.decoder

    @property
    def passes(self) -> int:
        """Forward passes used; more than frames where a step takes several."""
        return len(self.frames) if self.decoded is None else self.decoded.passes

    @property
    def prompt_text(self) -> str:
        """The prompt as one string."""
        return prompt_text(self.prompt)


@dataclass(frozen=True)
class Trace:
    """Everything that one decoder did; `decoded` carry no frames of their own."""

    header: Header
    frames: list[Frame]
    decoded: list[Decoded]
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    text: TokenText = field(default_factory=lambda: TokenText(None), compare=False)

    @classmethod
    def of(
        cls,
        header: Header,
        steps: Iterable[Step],
        text: TokenText,
        changes: Sequence[Change] = (),
    ) -> "Trace":
        """Drain the steps; `changes` are those of its rows."""
        frames: list[Frame] = []
        decoded: list[Decoded] = []
        for step in steps:
            frames += [with_changes(frame, changes) for frame in step.frames()]
            decoded += step.finished
        return cls(header, frames, sorted(decoded, key=lambda done: done.row), {}, text)

    @property
    def complete(self) -> bool:
        """False where decoding was interrupted."""
        return len(self.decoded) == len(self.header.prompts)

    def judged(self, verdicts: dict[int, Verdict]) -> "Trace":
        """The same with what a grader said, by row."""
        return replace(self, verdicts=verdicts)

    def recordings(self) -> list[Recording]:
        """Row by row, in the order of the prompts."""
        frames: dict[int, list[Frame]] = {}
        for frame in self.frames:
            frames.setdefault(frame.row, []).append(frame)
        ended = {done.row: done for done in self.decoded}
        return [
            Recording(
                header=self.header,
                layout=layout,
                prompt=prompt,
                frames=frames.get(layout.row, []),
                decoded=ended.get(layout.row),
                verdict=self.verdicts.get(layout.row),
                text=self.text,
            )
            for layout, prompt in zip(self.header.layouts, self.header.prompts, strict=True)
        ]

    def only(self, row: int) -> "Trace":
        """One of its rows."""
        at = [i for i, layout in enumerate(self.header.layouts) if layout.row == row]
        header = replace(
            self.header,
            layouts=[self.header.layouts[i] for i in at],
            prompts=[self.header.prompts[i] for i in at],
        )
        return Trace(
            header,
            [frame for frame in self.frames if frame.row == row],
            [done for done in self.decoded if done.row == row],
            {number: verdict for number, verdict in self.verdicts.items() if number == row},
            self.text,
        )


def record(
    model: Model,
    prompts: Prompts,
    *,
    decoder: str | Decoder | None = None,
    title: str = "",
    changes: Sequence[Change] = (),
    **options: Unpack[DecodeOptions],
) -> Trace:
    """Decode and keep every pass; options are those of `generate`.

    After the pass of each of the `changes`, every row goes on from its changed state.
    """
    settings, rules = resolve(decoder, dict(options), check_model(model))
    check_model(model, rules)
    rows = make_rows(model, prompts, settings)
    for row in rows:
        row.changes = checked_changes(changes, row, model)
    asked = list(numbered(prompts, settings.first_row).values())
    name = decoder if isinstance(decoder, str) else ""
    header = Header.of(model, rows, asked, rules, settings, name=name, title=title)
    steps = decode_rows(model, rows, rules, settings)
    trace = Trace.of(header, steps, TokenText(model.tokenizer), changes)
    for done in trace.decoded:
        if done.reason is StopReason.NOT_CHANGED:
            raise InputError(done.stop_reason)
    return trace


def with_changes(frame: Frame, changes: Sequence[Change]) -> Frame:
    """A pass as it is left when its changes are made: a token is committed, or open again."""
    tokens, progress, committed = list(frame.tokens), list(frame.progress), list(frame.committed)
    due = [change for change in changes if change.after == frame.step + 1]
    for change in due:
        if change.position in frame.positions:
            place = frame.positions.index(change.position)
            tokens[place] = tokens[place] if change.token is None else change.token
            progress[place] = float(change.token is not None)
            committed[place] = change.token is not None
    return frame._replace(tokens=tokens, progress=progress, committed=committed) if due else frame
