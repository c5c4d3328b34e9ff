"""Text as it is being decoded: what is settled and what is still a draft, apart."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Unpack

from xpredflow.engine.loop import decode_rows, make_rows
from xpredflow.engine.prompts import Prompts, decode
from xpredflow.engine.request import DecodeOptions, resolve
from xpredflow.engine.rows import Row, before_end
from xpredflow.engine.steps import Decoded, Frame
from xpredflow.models.wrap import check_model
from xpredflow.types import Decoder, Model

BROKEN = "\N{REPLACEMENT CHARACTER}"  # a character whose bytes are not all there yet


class Settled(NamedTuple):
    """Text that can no longer change, how many tokens it has, and a draft of what follows."""

    text: str
    tokens: int
    draft: str


@dataclass(frozen=True)
class Partial:
    """A row after one more pass: `settled` only ever grows, `draft` may still change.

    `done` is the finished answer in the row's last Partial; then `settled` is its whole text.
    """

    row: int
    passes: int
    settled: str
    draft: str
    done: Decoded | None = None


def stream(
    model: Model,
    prompts: Prompts,
    *,
    decoder: str | Decoder | None = None,
    **options: Unpack[DecodeOptions],
) -> Iterator[Partial]:
    """Decode and hand on the text after every pass; options are those of `generate`.

    for partial in stream(load("tiny-aligned"), "Write get_box(xs) with lists. ..."):
        print(partial.settled, "|", partial.draft)
    """
    settings, rules = resolve(decoder, dict(options), check_model(model))
    check_model(model, rules)
    rows = {row.number: row for row in make_rows(model, prompts, settings)}
    revises = getattr(rules, "revises", True)

    def partials() -> Iterator[Partial]:
        for step in decode_rows(model, list(rows.values()), rules, settings):
            ended = {done.row: done for done in step.finished}
            for frame in step.frames():
                yield _partial(model, rows[frame.row], frame, ended.get(frame.row), revises)

    return partials()


async def astream(
    model: Model,
    prompts: Prompts,
    *,
    decoder: str | Decoder | None = None,
    **options: Unpack[DecodeOptions],
) -> AsyncIterator[Partial]:
    """The same as an async generator: each pass runs in a thread, the event loop stays free.

    async for partial in astream(model, question):
        await websocket.send(partial.settled)
    """
    partials = stream(model, prompts, decoder=decoder, **options)
    while (partial := await asyncio.to_thread(next, partials, None)) is not None:
        yield partial


def _partial(model: Model, row: Row, frame: Frame, done: Decoded | None, revises: bool) -> Partial:
    if done is not None:
        return Partial(row.number, done.passes, done.text, "", done)
    if row.infill:
        tokens = dict(enumerate(row.ids[: row.length].tolist()))
        tokens.update(zip(frame.positions, frame.tokens, strict=True))
        return Partial(row.number, row.passes, "", decode(model, list(tokens.values())))
    # a block that has just ended is among the row's tokens already
    current = frame.tokens if frame.positions == row.open else []
    found = split_settled(model, row, current, frame.progress, revises)
    return Partial(row.number, row.passes, found.text, found.draft)


def split_settled(
    model: Model, row: Row, tokens: list[int], progress: list[float], revises: bool
) -> Settled:
    """The response so far; `tokens` and their `progress` are those of the block in work."""
    certain = row.response() if row.progress else []
    if not revises:
        count = next((i for i, t in enumerate(progress) if t < 1), len(progress))
        certain, tokens = certain + tokens[:count], tokens[count:]
    ends = model.special.ends
    shown = before_end(certain, ends)
    settled = decode(model, shown).rstrip(BROKEN)
    whole = decode(model, before_end(certain + tokens, ends))
    draft = whole.removeprefix(settled) if whole.startswith(settled) else whole
    return Settled(settled, len(shown), draft)
