"""The viewer's page as a person uses it: played, scrubbed, hovered, by keys, on a phone, at night.

XPREDFLOW_SCREENSHOTS=docs/images makes the pictures of docs/view.md in the same run.
"""

from pathlib import Path
from typing import Any

import pytest
from page_reading import answer, contrast, keep, tokens

from xpredflow import load, make_task
from xpredflow.watch.trace import Trace, record
from xpredflow.watch.viewer import write_page

TASK, NUMBER = "minimath", 92
PASS = "#pass"


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    """Three decoders of the embedded model on a problem on which they differ."""
    model, task = load("tiny-aligned"), make_task(TASK)
    problem = task.problem("validation", NUMBER)
    made = []
    for title, decoder, budget in (
        ("flow", "flow", None),
        ("threshold decoding", "threshold:0.9", None),
        ("mask prediction", "mask", 6),
    ):
        length = task.response_length
        trace = record(
            model, problem.prompt, decoder=decoder, title=title, gen_length=length, budget=budget
        )
        [done] = trace.decoded
        made.append(trace.judged({done.row: task.score(problem, done.text, None)}))
    return made


@pytest.fixture
def shown(tab: Any, traces: list[Trace], tmp_path: Path) -> Any:
    title = "Three decoders on one problem"
    return tab.open(write_page(tmp_path / "page.html", traces, title))


def passes(traces: list[Trace]) -> int:
    return max(len(trace.frames) for trace in traces)


def test_it_opens_with_the_answers_and_what_is_said_of_them(shown: Any, traces: Any) -> None:
    last = passes(traces)
    assert shown.inner_text(PASS) == f"pass {last} of {last}"
    for column, trace in enumerate(traces):
        [recording] = trace.recordings()
        article = shown.locator("article").nth(column)
        assert answer(shown, column) == recording.decoded.text.strip()
        assert recording.decoded.stop_reason in article.locator(".status").inner_text()
        right = "✓ right" if recording.verdict.passed else "✗ wrong"
        assert article.locator(".verdict").inner_text().startswith(right)
    shown.locator("summary").first.click()
    assert "commit_threshold" in shown.locator("article dl").first.inner_text()


def test_playing_begins_anew_and_ends_at_the_end(shown: Any, traces: Any) -> None:
    shown.select_option("#speed", "0.25")
    shown.click("#play")
    assert shown.inner_text("#play") == "Pause"
    shown.select_option("#speed", "16")
    shown.wait_for_selector("#play:text-is('Play')")
    assert shown.inner_text(PASS) == f"pass {passes(traces)} of {passes(traces)}"
    shown.select_option("#speed", "0.25")
    shown.click("#play")
    assert shown.inner_text(PASS).startswith("pass 0")
    shown.click("#play")
    assert shown.get_attribute("#play", "aria-pressed") == "false"


def test_scrubbing_shows_each_pass_shaded_and_marked(shown: Any, traces: Any) -> None:
    shown.locator("#scrub").fill("0")
    assert set(answer(shown)) == {"░"}
    shown.locator("#scrub").fill("1")
    frame = traces[0].frames[0]
    classes = [span.get_attribute("class").split() for span in tokens(shown).all()]
    assert [("committed" in kinds) for kinds in classes] == frame.committed
    first = next(i for i, t in enumerate(frame.progress) if 0.05 < t < 0.95)
    drawn = float(tokens(shown).nth(first).evaluate("e => e.style.getPropertyValue('--t')"))
    assert drawn == pytest.approx(frame.progress[first], abs=0.001)
    colours = [
        tokens(shown).nth(i).evaluate("e => getComputedStyle(e).backgroundColor")
        for i in (first, frame.progress.index(1.0))
    ]
    assert colours[0] != colours[1]


def test_hovering_tells_all_of_a_token_and_history_leads_back(shown: Any, traces: Any) -> None:
    frames = traces[0].frames
    changed = next(i for i in range(64) if len({frame.tokens[i] for frame in frames}) > 1)
    tokens(shown).nth(changed).hover()
    told = shown.inner_text("#details")
    text = traces[0].text
    [held] = text.pieces([frames[-1].tokens[changed]])
    assert held in told
    assert f"{frames[-1].probabilities[changed][0]:.3f}" in told
    assert f"{frames[-1].step_size[changed]:.3f}" in told
    assert shown.locator("#details tbody tr").count() == 4
    assert shown.locator(".history button").count() >= 2
    keep(shown, "viewer-token")
    shown.locator(".history button").first.click()
    assert shown.inner_text(PASS).startswith("pass 1 ")


def test_a_tap_keeps_a_token_until_the_next_one(shown: Any) -> None:
    tokens(shown).nth(0).click()
    tokens(shown, 1).nth(3).hover()
    assert "flow, position" in shown.inner_text("#details h3")
    tokens(shown, 1).nth(3).click()
    assert "threshold decoding, position" in shown.inner_text("#details h3")
    shown.click("#details .close")
    assert shown.locator("#details").is_hidden()


def test_every_control_has_a_key(shown: Any, traces: Any) -> None:
    last, keys = passes(traces), shown.keyboard
    keys.press("Home")
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("ArrowLeft")
    assert shown.inner_text(PASS) == f"pass 1 of {last}"
    keys.press("End")
    assert shown.inner_text(PASS) == f"pass {last} of {last}"
    keys.press("+")
    assert shown.locator("#speed").input_value() == "2"
    keys.press("-")
    keys.press("-")
    assert shown.locator("#speed").input_value() == "0.5"
    keys.press("Space")
    assert shown.inner_text("#play") == "Pause"
    keys.press("Space")
    keys.press("2")
    keys.press("ArrowDown")
    assert "threshold decoding, position" in shown.inner_text("#details h3")
    label = shown.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("position")


def test_the_first_difference_is_marked_in_lock_step(shown: Any, traces: Any) -> None:
    for at in (2, passes(traces)):
        shown.locator("#scrub").fill(str(at))
        held = [trace.frames[min(at, len(trace.frames)) - 1].tokens for trace in traces]
        first = next(i for i, column in enumerate(zip(*held, strict=True)) if len({*column}) > 1)
        assert f"token {first + 1} of" in shown.inner_text("#difference")
        for column in range(3):
            assert "differs" in tokens(shown, column).nth(first).get_attribute("class")
    shown.locator("#scrub").fill("3")
    keep(shown, "viewer")


def test_the_heat_map_follows_and_leads(shown: Any, traces: Any) -> None:
    heat = shown.locator(".heat").first
    box = heat.bounding_box()
    count = len(traces[0].frames)
    heat.hover(position={"x": box["width"] * 0.5, "y": box["height"] * 0.01})
    assert shown.locator(".tip").first.inner_text().startswith("pass 1, position")
    heat.click(position={"x": 3, "y": box["height"] * 0.01})
    assert shown.inner_text(PASS).startswith("pass 1 ")
    top = shown.locator(".heat .cursor").first.evaluate("e => e.style.top")
    assert float(top.rstrip("%")) == pytest.approx(100 / count, abs=0.01)


def test_a_phone_shows_it_all_without_scrolling_sideways(shown: Any) -> None:
    shown.set_viewport_size({"width": 360, "height": 740})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    boxes = [shown.locator("article").nth(i).bounding_box() for i in range(3)]
    assert boxes[0]["y"] < boxes[1]["y"] < boxes[2]["y"]
    assert min(shown.locator(f"#{name}").bounding_box()["height"] for name in ("play", "back")) > 36
    tokens(shown).nth(2).click()
    keep(shown, "viewer-phone")


def test_night_is_dark_and_readable(shown: Any) -> None:
    def colours() -> list[str]:
        return [
            shown.evaluate(f"getComputedStyle(document.body).{name}")
            for name in ("backgroundColor", "color")
        ]

    day = colours()
    shown.emulate_media(color_scheme="dark")
    night = colours()
    assert day[0] == "rgb(255, 255, 255)"
    assert all(contrast(*pair) > 7 for pair in (day, night))
    for at in ("1", "3"):
        shown.locator("#scrub").fill(at)
        for span in tokens(shown).all()[:20]:
            pair = span.evaluate(
                "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
            )
            assert contrast(*pair) > 3
    keep(shown, "viewer-dark")


def test_every_part_has_a_name_for_those_who_listen(shown: Any) -> None:
    for part in shown.locator("button, input, select").all():
        name = part.get_attribute("aria-label") or part.inner_text()
        assert name or part.evaluate("e => e.labels.length")
    assert "Answer of flow after pass" in shown.locator(".answer").first.get_attribute("aria-label")
    assert "64 positions" in shown.locator("canvas").first.get_attribute("aria-label")
