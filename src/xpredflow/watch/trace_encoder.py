"""A trace as lines of JSON, version 2: header, frames, answers, verdicts, end.

The lines are what a trace file holds, what a viewer page carries, and what a server may send while
it decodes: whoever reads them needs no tokenizer. One text may hold several traces, one after
another; a trace without its end line was cut off.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from xpredflow.engine.steps import Decoded, Frame
from xpredflow.tasks.base import Verdict
from xpredflow.watch.deltas import NewPieces, RowColumns, in_parts
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace import Header, Layout, Trace

FORMAT, VERSION = "xpredflow-trace", 2


class TraceEncoder:
    """Makes the lines of one trace, in the order in which its methods are called."""

    def __init__(self, header: Header, text: TokenText) -> None:
        self.header, self.pieces = header, NewPieces(text)
        self.rows = {one.row: RowColumns(one.positions) for one in header.layouts}
        self.frames = self.answers = 0
        self.context = [layout.context for layout in header.layouts if layout.context]

    def begin(self) -> str:
        """The header's line."""
        values = {name: getattr(self.header, name) for name in Header.__dataclass_fields__}
        values["layouts"] = [_layout_line(layout) for layout in self.header.layouts]
        return _line("header", format=FORMAT, version=VERSION, **values)

    def frame(self, frame: Frame) -> str:
        """What a pass changed, and the texts of tokens that it is the first to name."""
        columns = self.rows[frame.row]
        line = columns.line(frame)
        held = [None if token < 0 else token for token in columns.values["tokens"]]
        context = [token for ids in self.context for token in ids]
        self.context = []
        pieces = self.pieces.of(held, [*frame.candidates, *([token] for token in context)])
        self.frames += 1
        return _line("frame", **line, **({"pieces": pieces} if pieces else {}))

    def decoded(self, done: Decoded) -> str:
        """An answer."""
        self.answers += 1
        values = {name: getattr(done, name) for name in Decoded.__dataclass_fields__}
        values |= {"reason": done.reason.name, "progress": list(map(in_parts, done.progress))}
        return _line("decoded", **{name: v for name, v in values.items() if name != "trace"})

    def verdict(self, row: int, verdict: Verdict) -> str:
        """What a grader said."""
        return _line("verdict", row=row, **asdict(verdict))

    def end(self) -> str:
        """Nothing follows; what came before can be counted."""
        return _line("end", frames=self.frames, answers=self.answers)


def encode(trace: Trace) -> Iterator[str]:
    """Every line of a trace."""
    encoder = TraceEncoder(trace.header, trace.text)
    yield encoder.begin()
    yield from map(encoder.frame, trace.frames)
    yield from map(encoder.decoded, trace.decoded)
    for row, verdict in trace.verdicts.items():
        yield encoder.verdict(row, verdict)
    yield encoder.end()


def _line(kind: str, **values: Any) -> str:
    # a setting that JSON does not know is told as text
    return json.dumps(
        {"kind": kind, **values}, ensure_ascii=False, separators=(",", ":"), default=str
    )


def _layout_line(layout: Layout) -> dict[str, Any]:
    runs: list[list[int]] = []
    for position in layout.positions:
        if runs and sum(runs[-1]) == position:
            runs[-1][1] += 1
        else:
            runs.append([position, 1])
    return {**asdict(layout), "positions": runs}
