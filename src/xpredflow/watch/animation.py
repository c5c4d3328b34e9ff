"""Slides as an animated SVG, GIF or WebP, without a browser: for a README or a talk."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from xpredflow.errors import InputError
from xpredflow.files import replacing, write_atomically
from xpredflow.watch.replay import PASSES_PER_SECOND
from xpredflow.watch.slides import GAP, Box, Panel, Show, make_show
from xpredflow.watch.trace import Recording

SIZE, ADVANCE, LINE = 14, 8.4, 22  # pixels: letters, from one to the next, from line to line
MARGIN = 14
HOLD = 6  # the last slide stays for so many passes
GROUND, INK, QUIET, EMPTY, FULL = "#ffffff", "#1b1f24", "#57606a", "#eef1f4", "#8fbdf2"
FAINT = "#7d8590"
OUTLINES = {"committed": "#1a7f37", "reedited": "#c4500b"}
# What the looks of a token mean, in the last line.
LEGEND = (
    ("darker: further", QUIET),
    ("green frame: committed", OUTLINES["committed"]),
    ("orange frame: taken back", OUTLINES["reedited"]),
)


def draw(
    recordings: Sequence[Recording],
    *,
    gif: Path | None = None,
    svg: Path | None = None,
    speed: float = 1.0,
) -> list[Path]:
    """Draw recordings of one prompt side by side; the files that were written."""
    show, seconds = make_show(recordings), 1 / (PASSES_PER_SECOND * speed)
    if gif is not None:
        write_gif(show, gif, seconds)
    if svg is not None:
        write_svg(show, svg, seconds)
    return [path for path in (gif, svg) if path is not None]


def write_svg(show: Show, path: Path, seconds: float) -> None:
    """Every slide in one file, each shown for so long by CSS; without animation, the last one."""
    width, height = size(show)
    count = len(show.slides)
    svg = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=str(width),
        height=str(height),
        role="img",
    )
    SubElement(svg, "title").text = " ".join(show.prompt)
    SubElement(svg, "style").text = _style(count, seconds)
    SubElement(svg, "rect", width="100%", height="100%", fill=GROUND)
    for i, line in enumerate(show.prompt):
        _write(svg, MARGIN, MARGIN + (i + 0.7) * LINE, line, INK)
    for x, y, text, colour in _legend(show):
        _write(svg, x, y + 0.7 * LINE, text, colour)
    for i, slide in enumerate(show.slides):
        # a negative delay puts each slide at its own place of the common round
        delay = f"animation-delay:{(i - count - HOLD) * seconds:.3f}s"
        kind = "slide last" if i == count - 1 else "slide"
        group = SubElement(svg, "g", {"class": kind, "style": delay})
        for column, panel in enumerate(slide):
            _panel(group, panel, _left(show, column), _top(show), show.lines)
    write_atomically(path, ElementTree.tostring(svg, encoding="unicode") + "\n")


def _style(count: int, seconds: float) -> str:
    total = count + HOLD
    one, rest = 100 / total, 100 * (HOLD + 1) / total
    font = f'{SIZE}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace'
    return (
        f"text {{ font: {font}; white-space: pre }}\n"
        f".slide {{ visibility: hidden; animation: slide {total * seconds:.3f}s infinite }}\n"
        f".last {{ visibility: visible; animation-name: last }}\n"
        f"@keyframes slide {{ 0% {{ visibility: visible }} {one:.4f}%, 100% {{ visibility: hidden"
        " } }\n"
        f"@keyframes last {{ 0% {{ visibility: visible }} {rest:.4f}%, 100% {{ visibility: hidden"
        " } }\n"
        "@media (prefers-reduced-motion: reduce) { .slide { animation: none } }"
    )


def _panel(parent: Element, panel: Panel, left: float, top: float, lines: int) -> None:
    _write(parent, left, top + 0.7 * LINE, panel.title, INK, **{"font-weight": "bold"})
    for box in panel.boxes:
        x, y = left + box.x * ADVANCE, top + (box.y + 1.2) * LINE
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{_width(box):.1f}"}
        look = {"height": str(LINE - 3), "rx": "2", "fill": mixed(EMPTY, FULL, box.progress)}
        outline = {"stroke": OUTLINES[box.mark]} if box.mark in OUTLINES else {}
        SubElement(parent, "rect", place | look | outline)
        if box.text.strip():
            _write(parent, x, y + 14, box.text, _ink(box), textLength=f"{_width(box):.1f}")
    _write(parent, left, top + (lines + 2) * LINE, panel.status, QUIET)


def _write(parent: Element, x: float, y: float, text: str, fill: str, **more: str) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "fill": fill}
    SubElement(parent, "text", place | more).text = text


def write_gif(show: Show, path: Path, seconds: float) -> None:
    """The same as a GIF, or a WebP where the name says so."""
    font, bold = _fonts()
    from PIL import Image, ImageDraw

    pictures = []
    for slide in show.slides:
        picture = Image.new("RGB", size(show), GROUND)
        draw = ImageDraw.Draw(picture)
        for i, line in enumerate(show.prompt):
            draw.text((MARGIN, MARGIN + i * LINE), line, INK, font)
        for x, y, text, colour in _legend(show):
            draw.text((x, y), text, colour, font)
        for column, panel in enumerate(slide):
            left, top = _left(show, column), _top(show)
            draw.text((left, top), panel.title, INK, bold)
            for box in panel.boxes:
                _draw_box(draw, box, left, top, font)
            draw.text((left, top + (show.lines + 1.4) * LINE), panel.status, QUIET, font)
        pictures.append(picture if path.suffix == ".webp" else picture.quantize(64))
    each = max(round(seconds * 1000), 20)
    durations = [each] * (len(pictures) - 1) + [each * (HOLD + 1)]
    how: dict[str, Any] = {"lossless": True} if path.suffix == ".webp" else {"optimize": False}
    with replacing(path) as temporary:
        pictures[0].save(
            temporary,
            format=path.suffix[1:].upper(),
            save_all=True,
            append_images=pictures[1:],
            duration=durations,
            loop=0,
            **how,
        )


def _draw_box(draw: Any, box: Box, left: float, top: float, font: Any) -> None:
    x, y = left + box.x * ADVANCE, top + (box.y + 1.2) * LINE
    fill = mixed(EMPTY, FULL, box.progress)
    corners = (x, y, x + _width(box), y + LINE - 3)
    draw.rounded_rectangle(corners, 2, fill, OUTLINES.get(box.mark))
    for i, letter in enumerate(box.text):  # on the grid, whatever the font's own widths
        draw.text((x + i * ADVANCE, y + 1), letter, _ink(box), font)


def _fonts() -> tuple[Any, Any]:
    """A font of one width with many glyphs, which matplotlib brings along."""
    if find_spec("PIL") is None or find_spec("matplotlib") is None:
        raise InputError(
            "a GIF or WebP is drawn with Pillow and matplotlib's font: pip install"
            " 'xpredflow[plot]', or write an SVG, which needs neither"
        )
    from matplotlib import get_data_path
    from PIL import ImageFont

    folder = Path(get_data_path()) / "fonts" / "ttf"
    names = ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
    plain, bold = (ImageFont.truetype(str(folder / name), SIZE) for name in names)
    return plain, bold


def size(show: Show) -> tuple[int, int]:
    """Width and height in pixels."""
    lines = len(show.prompt) + show.lines + 4.6
    return round(2 * MARGIN + show.across * ADVANCE), round(2 * MARGIN + lines * LINE)


def _legend(show: Show) -> Iterator[tuple[float, float, str, str]]:
    """Where each part of the legend stands, what it says and its colour."""
    x, y = float(MARGIN), size(show)[1] - MARGIN - LINE
    for text, colour in LEGEND:
        yield x, y, text, colour
        x += (len(text) + GAP) * ADVANCE


def _left(show: Show, column: int) -> float:
    return MARGIN + column * (show.width + GAP) * ADVANCE


def _top(show: Show) -> float:
    return MARGIN + (len(show.prompt) + 0.6) * LINE


def _width(box: Box) -> float:
    return len(box.text) * ADVANCE - 1


def _ink(box: Box) -> str:
    return QUIET if box.mark in ("context", "end") else mixed(FAINT, INK, box.progress)


def mixed(start: str, end: str, share: float) -> str:
    """A colour between two."""
    pairs = [(int(start[i : i + 2], 16), int(end[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
