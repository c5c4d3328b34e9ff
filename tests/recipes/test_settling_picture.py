"""The README's picture: well-formed, true to the decodes it shows, and up to date."""

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from settling_picture import MODEL, NUMBER, SPACE, TASK, Box, Panel, drawn, picture

from xpredflow import generate, load, make_task
from xpredflow.watch.text import BREAK

SVG = "{http://www.w3.org/2000/svg}"
COMMITTED = Path(__file__).parents[2] / "docs" / "pictures" / "settling.svg"


@pytest.fixture(scope="module")
def made() -> tuple[list[Panel], str]:
    return picture()


def texts(svg: Element) -> list[str]:
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


def answers(svg: Element) -> list[str]:
    """What the last row of each panel reads."""
    last = [panel.findall(f"{SVG}g[@class='pass']")[-1] for panel in panels(svg)]
    tokens = [
        "".join(t.text or "" for t in row.iterfind(f"{SVG}text[@class='token']")) for row in last
    ]
    return [text.replace(BREAK, "\n").replace(SPACE, " ") for text in tokens]


def panels(svg: Element) -> list[Element]:
    return svg.findall(f"{SVG}g[@class='panel']")


def test_it_shows_both_answers_and_a_row_for_each_of_their_passes(
    made: tuple[list[Panel], str],
) -> None:
    svg, task = ElementTree.fromstring(made[1]), make_task(TASK)
    model, problem = load(MODEL), task.problem("validation", NUMBER)
    flow, threshold = (
        generate(model, problem.prompt, decoder=decoder)[0] for decoder in (None, "threshold:0.9")
    )
    assert answers(svg) == [flow.text, threshold.text]
    assert all(task.score(problem, text, None).passed for text in answers(svg))
    captions = [
        f"flow: {flow.passes} passes, right",
        f"threshold 0.9: {threshold.passes} passes, right",
    ]
    assert [panel.findtext(f"{SVG}text[@class='caption']") for panel in panels(svg)] == captions
    counts = [len(panel.findall(f"{SVG}g[@class='pass']")) for panel in panels(svg)]
    assert counts == [flow.passes, threshold.passes]
    assert flow.passes + 3 <= threshold.passes <= 12  # else the picture tells nothing
    assert problem.prompt in texts(svg)


def test_the_committed_picture_is_the_one_that_the_recipe_writes(
    made: tuple[list[Panel], str],
) -> None:
    """Shades may differ in a digit on another machine; texts, passes and marks may not."""
    now, then = ElementTree.fromstring(made[1]), ElementTree.fromstring(COMMITTED.read_text())
    assert texts(then) == texts(now)
    marks = [[rect.get("class") for rect in svg.iter(f"{SVG}rect")] for svg in (then, now)]
    assert marks[0] == marks[1]
    assert COMMITTED.stat().st_size < 60_000


def test_it_asks_for_nothing_from_outside(made: tuple[list[Panel], str]) -> None:
    rest = made[1].replace("http://www.w3.org/2000/svg", "")
    assert not any(
        word in rest for word in ("http", "url(", "@import", "href", "<image", "<script")
    )


def test_shades_follow_progress_and_text_is_escaped() -> None:
    rows = [
        [Box("<&", 0.0), Box("]]>", 1.0)],
        [Box("a", 0.5, "reedited"), Box('"', 1.0, "committed")],
    ]
    svg = ElementTree.fromstring(drawn([Panel("a < b", rows, "done & over")], "t", "p"))
    assert {"<&", "]]>", '"', "a < b", "done & over"} <= set(texts(svg))
    boxes = [rect for row in panels(svg)[0].iterfind(f"{SVG}g") for rect in row.iter(f"{SVG}rect")]
    white, full, half, again = (rect.get("fill", "") for rect in boxes)
    assert white == "#ffffff"
    assert full == again
    assert full < half < white  # each channel grows paler towards progress 0
    assert [rect.get("class") for rect in boxes] == [None, None, "reedited", "committed"]
    # a position is as wide as its longest token, whatever stands there in a pass
    assert boxes[1].get("x") != boxes[3].get("x")
    assert float(boxes[3].get("width", 0)) > 20
