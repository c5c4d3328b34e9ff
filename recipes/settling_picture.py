"""The README's picture: an answer settles under flow and under threshold decoding, pass by pass.

    python recipes/settling_picture.py --out docs/pictures/settling.svg       a few seconds

The embedded model answers one validation problem twice, by its own defaults (flow with the learned
policy) and by threshold decoding at 0.9. Every forward pass becomes a row of token boxes, shaded by
progress. The problem was chosen because the difference shows on it, at a threshold of 0.85 (where
the flow commits) and of 0.8 too; it is no average: docs/results/compare.md has those.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from xpredflow import Decoded, Model, Problem, Task, generate, load, make_task
from xpredflow.files import write_atomically
from xpredflow.watch.picture import passes
from xpredflow.watch.text import BREAK, END, TokenText

MODEL, TASK, NUMBER = "tiny-aligned", "minimath", 327
DECODERS = {"flow": None, "threshold 0.9": "threshold:0.9"}  # None: what the checkpoint says
SPACE = "·"

# Pixels. GitHub shows a README about 880 wide: an answer of about 30 tokens fits there twice.
MARGIN, GUTTER, GAP = 16, 22, 26  # around all, for the numbers of passes, between the panels
CHARACTER, PADDING, BOX, ROW = 7.6, 4, 20, 27
HEAD, FOOT = 96, 62  # above the first row, below the last

WHITE, FULL = (255, 255, 255), (130, 182, 240)  # boxes at progress 0 and 1
FAINT, INK = (125, 133, 144), (22, 27, 34)  # their letters
STYLE = """
text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #161b22 }
.token { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  text-anchor: middle }
.caption { font-size: 16px; font-weight: 600 }
.quiet { fill: #59636e }
rect { stroke: #c5ccd6; stroke-width: 1 }
.committed { stroke: #1a7f37; stroke-width: 1.6 }
.reedited { stroke: #d9480f; stroke-width: 1.6 }
.card { fill: #f6f8fa; stroke: #d1d9e0 }
""".strip()


@dataclass(frozen=True)
class Box:
    """A token after a pass; `mark` says what that pass did to it, if anything."""

    text: str
    progress: float
    mark: str = ""


@dataclass(frozen=True)
class Panel:
    """One decoder's way to its answer: a row of boxes per pass."""

    caption: str
    rows: list[list[Box]]
    stop_reason: str

    def widths(self) -> list[float]:
        """Of each position, whose token may have been longer in an earlier pass."""
        lengths = [max(len(box.text) for box in column) for column in zip(*self.rows, strict=True)]
        return [max(length, 1) * CHARACTER + PADDING for length in lengths]

    def width(self) -> float:
        return GUTTER + sum(width + 1 for width in self.widths())


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the README's picture.")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/settling.svg"))
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    panels, text = picture()
    write_atomically(out, text)
    print(f"{out}: {'; '.join(panel.caption for panel in panels)}")


def picture() -> tuple[list[Panel], str]:
    """Both decodes, and the SVG that shows them."""
    model, task = load(MODEL), make_task(TASK)
    problem = task.problem("validation", NUMBER)
    panels = [panel(model, task, problem, name) for name in DECODERS]
    return panels, drawn(
        panels,
        f"{TASK}, validation problem {NUMBER}, chosen because the difference shows",
        str(problem.prompt),
    )


def panel(model: Model, task: Task, problem: Problem, name: str) -> Panel:
    """Decode, grade, and turn the trace into rows."""
    [done] = generate(
        model,
        problem.prompt,
        decoder=DECODERS[name],
        gen_length=task.response_length,
        trace=True,
    )
    verdict = "right" if task.score(problem, done.text, None).passed else "wrong"
    caption = f"{name}: {passes(done.passes)}, {verdict}"
    return Panel(caption, list(rows(model, done)), done.stop_reason)


def rows(model: Model, done: Decoded) -> Iterator[list[Box]]:
    """The answer's positions after every pass; the end tokens behind the text are left out."""
    text, length = TokenText(model.tokenizer), len(done.ids)
    for frame in done.trace or []:
        pieces = text.pieces(frame.tokens[:length])
        yield [
            Box(
                END if token in model.special.ends else shown(piece),
                progress,
                # a token may be both: that it was changed is the rarer thing
                "reedited" if reedited else "committed" if committed else "",
            )
            for piece, token, progress, reedited, committed in zip(
                pieces,
                frame.tokens[:length],
                frame.progress[:length],
                frame.reedited[:length],
                frame.committed[:length],
                strict=True,
            )
        ]


def shown(piece: str) -> str:
    """A token with its blanks made visible."""
    return piece.replace("\n", BREAK).replace(" ", SPACE)


def drawn(panels: list[Panel], title: str, prompt: str) -> str:
    """The SVG's text: card, request, panels side by side, legend."""
    width = round(2 * MARGIN + GAP * (len(panels) - 1) + sum(panel.width() for panel in panels))
    height = HEAD + ROW * max(len(panel.rows) for panel in panels) + FOOT
    svg = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=str(width),
        height=str(height),
        role="img",
    )
    SubElement(svg, "title").text = "; ".join(panel.caption for panel in panels)
    SubElement(svg, "style").text = STYLE
    rectangle(svg, 0.5, 0.5, width - 1, height - 1, "card", rx="8")
    write(svg, MARGIN, 27, title, "quiet")
    write(svg, MARGIN, 47, prompt)
    x = float(MARGIN)
    for each in panels:
        draw_panel(group(svg, x, HEAD, "panel"), each)
        x += each.width() + GAP
    draw_legend(group(svg, MARGIN, height - FOOT + 26, "legend"))
    ElementTree.indent(svg, "")
    return ElementTree.tostring(svg).decode("ascii") + "\n"


def draw_panel(parent: Element, panel: Panel) -> None:
    """The caption, a row per pass with its number, and why decoding ended."""
    write(parent, 0, -14, panel.caption, "caption")
    widths = panel.widths()
    for number, boxes in enumerate(panel.rows, start=1):
        row, x = group(parent, 0, (number - 1) * ROW, "pass"), float(GUTTER)
        write(row, 4, 14.5, str(number), "quiet")
        for box, width in zip(boxes, widths, strict=True):
            draw_box(row, x, width, box)
            x += width + 1
    write(parent, GUTTER, len(panel.rows) * ROW + 14.5, panel.stop_reason, "quiet")


def draw_box(parent: Element, x: float, width: float, box: Box) -> None:
    # a thick outline goes inwards, so that it does not touch the neighbours
    inset = 0.8 if box.mark else 0.5
    rectangle(
        parent,
        *(x + inset, inset, width - 2 * inset, BOX - 2 * inset),
        box.mark,
        rx="2",
        fill=mixed(WHITE, FULL, box.progress),
    )
    letters = mixed(FAINT, INK, box.progress)
    write(parent, x + width / 2, 14.5, box.text, "token", **style_of(letters))


def style_of(letters: str) -> dict[str, str]:
    """Settled tokens are most of the picture: their colour stands once, in the style sheet."""
    return {} if letters == mixed(FAINT, INK, 1.0) else {"style": f"fill:{letters}"}


def draw_legend(parent: Element) -> None:
    """What shades and outlines mean."""
    x = 0.0
    write(parent, x, 14.5, "progress 0", "quiet")
    x += 78
    for tenths in (0, 2, 4, 6, 8, 10):
        rectangle(parent, x, 0.5, 14, BOX - 1, "", rx="2", fill=mixed(WHITE, FULL, tenths / 10))
        x += 15
    write(parent, x + 5, 14.5, "1", "quiet")
    x += 44
    for mark, words in (
        ("committed", "committed in this pass"),
        ("reedited", "re-edited in this pass"),
    ):
        rectangle(parent, x, 0.8, 14, BOX - 1.6, mark, rx="2", fill=mixed(WHITE, FULL, 0.6))
        write(parent, x + 22, 14.5, words, "quiet")
        x += 190
    write(parent, x, 14.5, f"{BREAK} new line", "quiet")
    write(parent, x + 90, 14.5, f"{SPACE} space", "quiet")


def group(parent: Element, x: float, y: float, kind: str) -> Element:
    return SubElement(parent, "g", {"class": kind, "transform": f"translate({x:g} {y:g})"})


def rectangle(
    parent: Element, x: float, y: float, width: float, height: float, kind: str, **more: str
) -> None:
    place = {"x": x, "y": y, "width": width, "height": height}
    values = {name: f"{value:.4g}" for name, value in place.items()}
    SubElement(parent, "rect", {**({"class": kind} if kind else {}), **values, **more})


def write(parent: Element, x: float, y: float, text: str, kind: str = "", **more: str) -> None:
    values = {**({"class": kind} if kind else {}), "x": f"{x:.4g}", "y": f"{y:.4g}", **more}
    SubElement(parent, "text", values).text = text


def mixed(start: tuple[int, ...], end: tuple[int, ...], share: float) -> str:
    """A colour between two."""
    return "#" + "".join(
        f"{round(a + (b - a) * share):02x}" for a, b in zip(start, end, strict=True)
    )


if __name__ == "__main__":
    main()
