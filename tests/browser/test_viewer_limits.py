"""The viewer's page under traces that are hostile, long, of several prompts, or with gaps."""

from pathlib import Path
from typing import Any

from recorded import made_up, toy_trace

from xpredflow.watch.trace import Trace
from xpredflow.watch.viewer import write_page

PASS = "#pass"


def tokens(page: Any) -> Any:
    return page.locator(".answer .token")


EVIL = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    '"><svg onload=alert(3)>',
    "%TRACE%",
    "\u202egnp.exe",
]


def test_nothing_in_a_trace_is_obeyed(tab: Any, tmp_path: Path) -> None:
    evil = made_up(3, 5, words=EVIL * 2, title=EVIL[0], prompt=EVIL[1])
    header = evil.header
    rules = {"decoder": EVIL[2], EVIL[0]: EVIL[1]}
    trace = Trace(
        type(header)(**{**header.__dict__, "rules": rules, "model": EVIL[1]}),
        *(evil.frames, evil.decoded, evil.verdicts, evil.text),
    )
    page = tab.open(write_page(tmp_path / "page.html", [trace], title=EVIL[1] + "%SCRIPT%"))
    tokens(page).nth(1).click()
    assert page.locator("img, svg, #columns script, #details script").count() == 0
    assert page.locator("script").count() == 2
    assert EVIL[1] in page.inner_text("#prompt")
    assert EVIL[1] in page.title()
    assert "%TRACE%" in "".join(page.locator(".answer").all_inner_texts()) + str(evil.frames[-1])


def test_the_page_obeys_no_other_script(tab: Any, tmp_path: Path) -> None:
    file = write_page(tmp_path / "page.html", [made_up(3, 5)])
    spoilt = file.read_text().replace("</body>", "<script>window.bad = true</script></body>")
    file.write_text(spoilt)
    page = tab.open(file)
    assert page.evaluate("window.bad") is None
    assert any("Content Security Policy" in problem for problem in tab.problems)
    tab.problems.clear()


def test_a_long_answer_is_a_small_file_that_opens_at_once(tab: Any, tmp_path: Path) -> None:
    file = write_page(tmp_path / "page.html", [made_up(128, 512)])
    assert file.stat().st_size < 2_000_000
    page = tab.open(file)
    assert page.inner_text(PASS) == "pass 128 of 128"
    assert tokens(page).count() == 512


def test_ten_thousand_passes_can_be_scrubbed(tab: Any, tmp_path: Path) -> None:
    page = tab.open(write_page(tmp_path / "page.html", [made_up(10_000, 8)]))
    assert page.inner_text(PASS) == "pass 10000 of 10000"
    page.locator("#scrub").fill("5000")
    assert page.inner_text(PASS) == "pass 5000 of 10000"
    assert page.locator("canvas").first.evaluate("e => e.height") <= 10_000


def test_several_prompts_are_chosen_from_a_list(tab: Any, tmp_path: Path) -> None:
    trace, other = toy_trace("flow"), toy_trace("mask")
    page = tab.open(write_page(tmp_path / "page.html", [trace, other]))
    assert page.locator("#prompts option").count() == 3
    assert page.locator("article").count() == 2
    page.select_option("#prompts", "2")
    assert page.inner_text("#prompt") == str(trace.header.prompts[2]).replace(" ", "")


def test_a_gap_is_filled_in_between_its_context(tab: Any, tmp_path: Path) -> None:
    trace = toy_trace(asked=[[1, -1, 3, -1]])
    page = tab.open(write_page(tmp_path / "page.html", [trace]))
    assert page.locator(".answer .context").all_inner_texts() == ["1 ", "3 "]
    assert tokens(page).count() == 2
