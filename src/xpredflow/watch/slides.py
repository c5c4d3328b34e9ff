"""Recorded rows as slides, one per pass, on a grid of characters: animations are drawn from it."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from xpredflow.watch.picture import RowPicture, passes
from xpredflow.watch.terminal import Column, verdict_text
from xpredflow.watch.text import visible
from xpredflow.watch.trace import Recording

WIDTHS = {1: 76, 2: 44, 3: 34, 4: 30}  # characters of a column, by how many there are
GAP = 2  # characters between columns
MOST_SLIDES = 150
TAB = "    "


@dataclass(frozen=True)
class Box:
    """A token, or as much of it as fits in a line, at a place of the grid."""

    x: int
    y: int
    text: str
    progress: float
    mark: str


@dataclass(frozen=True)
class Panel:
    """One decoder after a pass."""

    title: str
    boxes: list[Box]
    status: str


@dataclass(frozen=True)
class Show:
    """All slides, and the room they need in characters; the prompt stands above them."""

    prompt: list[str]
    slides: list[list[Panel]]
    width: int  # of a column
    lines: int  # of the longest answer

    @property
    def columns(self) -> int:
        """How many decoders stand side by side."""
        return len(self.slides[0])

    @property
    def across(self) -> int:
        """Characters from the left edge to the right."""
        return self.columns * (self.width + GAP) - GAP


def make_show(recordings: Sequence[Recording]) -> Show:
    """A slide per pass from none on; of a long recording, evenly chosen ones and the last."""
    width = WIDTHS[len(recordings)]
    columns = [Column.of(recording) for recording in recordings]
    last = max(len(column.frames) for column in columns)
    count = min(last + 1, MOST_SLIDES)
    chosen = [round(i * last / max(count - 1, 1)) for i in range(count)]
    slides = [
        [_panel(one, column, at, width) for one, column in zip(recordings, columns, strict=True)]
        for at in chosen
    ]
    lines = 1 + max(
        (box.y for slide in slides for panel in slide for box in panel.boxes), default=0
    )
    across = len(recordings) * (width + GAP) - GAP
    return Show(_wrapped(visible(recordings[0].prompt_text), across)[:4], slides, width, lines)


def _panel(recording: Recording, column: Column, at: int, width: int) -> Panel:
    column.show(at)
    used = len(column.frames)
    if at > used:
        column.picture.drawn()
    status = (
        f"{passes(recording.passes)}, {verdict_text(recording).plain}"
        if at >= used
        else f"pass {at}"
    )
    cut = status if len(status) <= width else status[: width - 1] + "…"
    return Panel(visible(recording.title)[:width], list(_boxes(column.picture, width)), cut)


def _boxes(picture: RowPicture, width: int) -> list[Box]:
    boxes, x, y = [], 0, 0
    for cell in picture.cells():
        for i, part in enumerate(cell.text.replace("\t", TAB).split("\n")):
            if i:
                x, y = 0, y + 1
            while part:
                if x >= width or (x and x + len(part) > width and len(part) <= width):
                    x, y = 0, y + 1
                piece, part = part[: width - x], part[width - x :]
                boxes.append(Box(x, y, piece, cell.progress, cell.mark))
                x += len(piece)
    return boxes


def _wrapped(text: str, width: int) -> list[str]:
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]
    return lines if len(lines) <= 4 else [*lines[:3], lines[3][: width - 1] + "…"]
