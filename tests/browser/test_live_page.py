"""The page at / of a server: decoding live, side by side, branching, on a phone, at night, abused.

XPREDFLOW_SCREENSHOTS=docs/images makes the pictures of docs/view.md in the same run.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from page_reading import answer, contrast, keep, tokens, until
from running_server import PENS, Running, running

from xpredflow import Engine, generate, load

PASS, DONE = "#pass", "#stop[hidden]"
EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>%TRACE%"
TOKEN = "a-long-secret"


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(Engine(load("tiny-aligned"), gen_length=24)) as served:
        yield served


@pytest.fixture
def page(tab: Any, server: Running) -> Any:
    return tab.open(server.url)


def decode(page: Any, *decoders: str, prompt: str = PENS) -> None:
    page.fill("#question", prompt)
    for number in range(4):
        name = decoders[number] if number < len(decoders) else ""
        page.locator("#decoders input").nth(number).fill(name)
    page.click("#decode")
    until(
        page,
        f"live.columns.recordings.filter((one) => one.decoded).length === {len(decoders) or 1}",
    )
    done(page)


def done(page: Any) -> None:
    """Nothing is decoded any more, and what was is shown: with the next picture of the screen."""
    page.wait_for_selector(DONE, state="attached")
    until(page, "!live.due")


def branch(page: Any, label: str, count: int = 2) -> None:
    page.click(f".branch button:text-is('{label}')")
    until(page, f"live.columns.recordings.filter((one) => one.decoded).length === {count}")
    done(page)


def test_decoders_side_by_side_are_the_offline_decodes(page: Any, server: Running) -> None:
    decoders = ("flow", "threshold:0.9", "mask+budget=6")
    decode(page, *decoders)
    found = [
        generate(server.engine.model, PENS, decoder=name, gen_length=24)[0] for name in decoders
    ]
    for column, done in enumerate(found):
        assert answer(page, column) == done.text.strip()
        status = page.locator("article").nth(column).locator(".status").inner_text()
        assert status == f"{done.passes} passes: {done.stop_reason}"
    last = max(done.passes for done in found)
    assert page.inner_text(PASS) == f"pass {last} of {last}"
    page.locator("#scrub").fill("3")
    assert page.locator(".heat .cursor").count() == 3
    assert "ifference after this pass" in page.inner_text("#difference")
    keep(page, "live")


def test_a_token_is_changed_and_decoded_on_beside_the_original(page: Any) -> None:
    decode(page, "flow")
    before = answer(page)
    page.locator("#scrub").fill("2")
    tokens(page).nth(3).click()
    other = page.locator(".branch button").nth(1).inner_text()
    keep(page, "live-branch-form")
    branch(page, other)
    assert page.locator("article").nth(1).locator("h2").inner_text() == "flow, changed after pass 2"
    recordings = "live.columns.recordings"
    held = page.evaluate(
        f"[0, 1].map((i) => JSON.stringify({recordings}[i].piece({recordings}[i].token(99, 3))))"
    )
    assert held[1] == other != held[0]
    assert answer(page, 0) == before
    page.locator("#scrub").fill("1")
    assert page.inner_text("#difference") == "No difference after this pass."
    page.locator("#scrub").fill("2")
    assert "token 4 of the answer" in page.inner_text("#difference")
    keep(page, "live-branch")


def test_branches_of_branches_and_what_gives_way_to_them(tab: Any, page: Any) -> None:
    decode(page, "threshold:0.9", "mask+budget=6")
    for count, (column, label) in enumerate(((0, "re-mask"), (1, "re-mask")), start=3):
        page.locator("#scrub").fill("2")
        tokens(page, column).nth(count).click()
        branch(page, label, count)
    requests = page.evaluate("live.columns.recordings.map((one) => one.request.changes.length)")
    assert requests == [0, 1, 2, 0]  # each stands right of the one that it was made from
    page.locator("#scrub").fill("1")
    tokens(page, 3).nth(5).click()
    page.uncheck(".branch input[type=checkbox]")
    page.fill(".branch input[type=text]", "several words here")
    page.click(".branch button:text-is('this text')")
    page.wait_for_selector("#news.failed")
    assert "a position holds one" in page.inner_text("#news")
    page.click(".branch button:text-is('re-mask')")
    until(page, "live.columns.recordings[2].header.decoder === 'mask+budget=6'")
    assert page.evaluate("live.columns.recordings[2].request.changes[0].hold") is False
    done(page)
    page.click("[aria-label='Remove mask+budget=6']")
    assert page.locator("article").count() == 3
    assert all("400" in problem for problem in tab.problems)
    tab.problems.clear()


def test_what_is_wrong_is_told_and_the_rest_goes_on(tab: Any, page: Any) -> None:
    page.fill("#question", PENS)
    for number, name in enumerate(("flo", "threshold:0.9")):
        page.locator("#decoders input").nth(number).fill(name)
    page.click("#decode")
    page.wait_for_selector("#news.failed")
    assert "unknown decoder 'flo'" in page.inner_text("#news")
    until(page, "live.columns.recordings[0]?.decoded")
    assert page.locator("article h2").all_inner_texts() == ["threshold:0.9"]
    assert all("400" in problem for problem in tab.problems)
    tab.problems.clear()


def test_typing_is_no_command_and_stopping_keeps_what_is_there(page: Any) -> None:
    page.focus("#question")
    page.keyboard.type("a b+1")
    assert page.input_value("#question") == "a b+1"
    assert page.inner_text("#play") == "Play"
    page.fill("#question", PENS)
    page.fill("#length", "400")
    page.locator("#decoders input").nth(0).fill("mask")
    page.locator("#decoders input").nth(1).fill("")
    page.click("#decode")
    until(page, "live.columns.recordings[0]?.passes > 1")
    page.click("#stop")
    done(page)
    assert page.locator(".status").inner_text().endswith("stopped")


def test_nothing_that_is_typed_or_decoded_is_obeyed(page: Any) -> None:
    decode(page, "flow", prompt=EVIL)
    assert page.inner_text("#prompt") == EVIL
    decode(page, "flow")
    tokens(page).nth(0).click()
    page.fill(".branch input[type=text]", EVIL)
    page.evaluate(
        "(text) => { const one = live.columns.recordings[0];"
        " one.pieces.set(String(one.token(99, 0)), text); player.go(99); }",
        EVIL,
    )
    assert EVIL in page.locator(".answer").inner_text()
    assert page.locator("img, article script").count() == 0
    assert page.locator("script").count() == 1


def test_a_server_with_a_token_asks_for_it(tab: Any, server: Running) -> None:
    with running(server.engine, token=TOKEN) as guarded:
        page = tab.open(guarded.url)
        assert "token" in page.inner_text("#news")
        page.fill("#key", TOKEN)
        page.locator("#key").blur()
        page.wait_for_selector("#decoders input >> nth=3")
        decode(page, "threshold:0.9")
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert [problem for problem in tab.problems if "401" not in problem] == []
    tab.problems.clear()


def test_a_phone_at_night_shows_it_all(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 360, "height": 740})
    decode(page, "flow", "threshold:0.9")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    boxes = [page.locator("article").nth(i).bounding_box() for i in range(2)]
    assert boxes[0]["y"] < boxes[1]["y"]
    tokens(page).nth(2).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for part in ("#question", "#decode", "#news", ".branch button", "article h2"):
        pair = page.locator(part).first.evaluate(
            "e => { let at = e; while (getComputedStyle(at).backgroundColor === 'rgba(0, 0, 0, 0)')"
            " at = at.parentElement; return [getComputedStyle(at).backgroundColor,"
            " getComputedStyle(e).color]; }"
        )
        assert contrast(*pair) > 4.5, part
    for part in page.locator("button, input, select, textarea").all():
        named = part.evaluate(
            "e => e.labels?.length || e.textContent || e.title || e.getAttribute('aria-label')"
        )
        assert named
    keep(page, "live-phone")
