"""Frames as the lines of a trace: numbers in thousandths, and only what a pass has changed.

A line speaks of the row's open positions by their place among them. A column is `[at, values]`:
new values at these places, or at all places of the `span` that the pass decoded where `at` is null.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from xpredflow.engine.steps import Frame
from xpredflow.errors import InputError
from xpredflow.watch.text import TokenText, visible

PARTS = 1000
TOP = 4
# Values per place; all begin at -1, which no pass can mean.
COLUMNS = {
    "tokens": 1,
    "progress": 1,
    "confidence": 1,  # only where there are no candidates: it is the first one's probability
    "step_size": 1,
    "candidates": TOP,
    "probabilities": TOP,
}
Line = dict[str, Any]


def in_parts(value: float) -> int:
    """A number from 0 to 1 in thousandths; only 1 itself is all of them."""
    if not 0 <= value <= 1:  # not finite either
        return 0
    return min(round(value * PARTS), PARTS - (value < 1))


class RowColumns:
    """Every column of a row as the last line left it; one side writes lines, the other reads."""

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = list(positions)
        self.place = {position: i for i, position in enumerate(positions)}
        self.values = {name: [-1] * (len(positions) * n) for name, n in COLUMNS.items()}
        self.span = (0, 0)

    def line(self, frame: Frame) -> Line:
        """What the frame changes."""
        first, count = self.place[frame.positions[0]], len(frame.positions)
        line: Line = {"row": frame.row, "step": frame.step}
        if (first, count) != self.span:
            self.span = (first, count)
            line["span"] = [first, count]
        for name, values in _columns(frame):
            changed = self._changed(name, values)
            if changed:
                line[name] = changed
        for name in ("reedited", "committed"):
            marked = [first + i for i, mark in enumerate(getattr(frame, name)) if mark]
            if marked:
                line[name] = marked
        return line

    def _changed(self, name: str, values: list[int]) -> list[Any] | None:
        width, (first, count) = COLUMNS[name], self.span
        mine = self.values[name]
        at = [
            i
            for i in range(count)
            if values[i * width : (i + 1) * width]
            != mine[(first + i) * width : (first + i + 1) * width]
        ]
        mine[first * width : (first + count) * width] = values
        if not at:
            return None
        if len(at) == count:
            return [None, values]
        flat = [value for i in at for value in values[i * width : (i + 1) * width]]
        return [[first + i for i in at], flat]

    def frame(self, line: Line) -> Frame:
        """The frame that a line was made of, to a thousandth."""
        if line.get("span") is not None:
            first, count = line["span"]
            if not (first >= 0 and count >= 1 and first + count <= len(self.positions)):
                raise InputError(f"span {line['span']} of {len(self.positions)} open positions")
            self.span = (first, count)
        if not self.span[1]:
            raise InputError("the first frame of a row names no span")
        for name in COLUMNS:
            if line.get(name) is not None:
                self._apply(name, *line[name])
        return self._frame(line)

    def _apply(self, name: str, at: list[int] | None, values: list[int]) -> None:
        width, (first, count) = COLUMNS[name], self.span
        places = range(first, first + count) if at is None else at
        if len(values) != len(places) * width:
            raise InputError(f"{name} has {len(values)} values for {len(places)} positions")
        most = None if name in ("tokens", "candidates") else PARTS
        if any(value < 0 or (most is not None and value > most) for value in values):
            raise InputError(f"{name} has a value below 0 or above {most or 'any token'}")
        self._check(name, places)
        for i, place in enumerate(places):
            mine = slice(place * width, (place + 1) * width)
            self.values[name][mine] = values[i * width : (i + 1) * width]

    def _check(self, name: str, places: Sequence[int]) -> None:
        first, count = self.span
        if any(not first <= place < first + count for place in places):
            raise InputError(f"{name} has a place outside {first} to {first + count - 1}")

    def _frame(self, line: Line) -> Frame:
        first, count = self.span
        own = {
            name: self.values[name][first * n : (first + count) * n] for name, n in COLUMNS.items()
        }
        if -1 in own["tokens"] or -1 in own["progress"]:
            raise InputError("a position is decoded that no line has given a token and progress")
        candidates = _grouped(own["candidates"]) if -1 not in own["candidates"] else []
        probabilities = [_shares(group) for group in _grouped(own["probabilities"])]
        sure = [group[0] for group in probabilities] if candidates else _shares(own["confidence"])
        marks = {}
        for name in ("reedited", "committed"):
            self._check(name, line.get(name) or ())
            marked = set(line.get(name) or ())
            marks[name] = [place in marked for place in range(first, first + count)]
        return Frame(
            row=line["row"],
            step=line["step"],
            positions=self.positions[first : first + count],
            tokens=own["tokens"],
            progress=_shares(own["progress"]),
            confidence=sure,
            candidates=candidates,
            probabilities=probabilities if candidates else [],
            step_size=None if -1 in own["step_size"] else _shares(own["step_size"]),
            **marks,
        )


class NewPieces:
    """Texts of tokens that no line has told yet."""

    def __init__(self, text: TokenText) -> None:
        self.text, self.told = text, 0

    def of(self, tokens: Sequence[int | None], candidates: Sequence[list[int]]) -> dict[str, str]:
        """By ids with blanks between them: single tokens, and runs that make up a character."""
        self.text.pieces(tokens)
        for token in {token for group in candidates for token in group}:
            self.text.pieces([token])
        if len(self.text.known) == self.told:
            return {}
        new = list(self.text.known.items())[self.told :]
        self.told = len(self.text.known)
        return {" ".join(map(str, run)): visible(text) for run, text in new}


def _columns(frame: Frame) -> Iterator[tuple[str, list[int]]]:
    yield "tokens", frame.tokens
    yield "progress", [in_parts(value) for value in frame.progress]
    if frame.step_size is not None:
        yield "step_size", [in_parts(value) for value in frame.step_size]
    if not frame.candidates:
        yield "confidence", [in_parts(value) for value in frame.confidence]
        return
    yield "candidates", [token for group in frame.candidates for token in group]
    yield "probabilities", [in_parts(value) for group in frame.probabilities for value in group]


def _grouped(values: list[int]) -> list[list[int]]:
    return [values[i : i + TOP] for i in range(0, len(values), TOP)]


def _shares(values: Sequence[int]) -> list[float]:
    return [max(value, 0) / PARTS for value in values]
