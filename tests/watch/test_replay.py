import io
import os
import sys
import termios
from xml.etree import ElementTree

import pytest
from recorded import ByteModel, made_up, toy_trace
from rich.console import Console

from xpredflow.watch.animation import HOLD, draw
from xpredflow.watch.replay import FASTEST, Keyboard, Replay
from xpredflow.watch.slides import MOST_SLIDES, WIDTHS, make_show
from xpredflow.watch.terminal import Column


def console(terminal=True):
    return Console(file=io.StringIO(), force_terminal=terminal, width=80, height=24, _environ={})


def recordings(*decoders, **options):
    return [toy_trace(one, ByteModel(), [[1, 2]], **options).recordings()[0] for one in decoders]


def columns(*decoders, **options):
    return [Column.of(one) for one in recordings(*decoders, **options)]


def replayed(keys, **options):
    """A replay under these keys, one after another, and where it stood after each."""
    waits, stood = [], []
    rest = iter([*keys, "quit"])
    made = Replay(columns("mask", "threshold", budget=4), console(), **options)

    def key(wait):
        stood.append((made.passes, made.playing))
        waits.append(wait)
        return next(rest)

    made.keys = key
    made.run()
    return stood, waits


def test_it_plays_pass_by_pass_and_waits_at_the_end():
    stood, waits = replayed([None] * 4)
    assert stood == [(0, True), (1, True), (2, True), (3, True), (4, False)]
    assert waits == [0.25] * 4 + [None]


def test_keys_pause_step_and_change_the_speed():
    stood, waits = replayed(
        ["play", "forth", "forth", "back", "last", "first", "back", "faster", "play", None, "x"]
    )
    assert [passes for passes, _ in stood] == [0, 0, 1, 2, 1, 4, 0, 0, 0, 0, 1, 1]
    assert [playing for _, playing in stood][-3:] == [True] * 3
    assert waits[-1] == 0.125
    assert waits[1:9] == [None] * 8


def test_the_speed_has_an_end_and_play_begins_again():
    made = Replay(columns("mask", budget=2), console(), speed=FASTEST)
    made.act("faster")
    assert made.speed == FASTEST
    made.act("last")
    made.act("play")
    assert (made.passes, made.playing) == (0, True)


def test_without_keys_it_ends_by_itself_and_without_a_terminal_only_the_end_is_shown():
    slept = []
    screen = console()
    Replay(columns("mask", budget=3), screen, speed=2, sleep=slept.append).run()
    assert slept == [0.125] * 3
    quiet = console(terminal=False)
    Replay(columns("mask", budget=3), quiet, sleep=lambda _: pytest.fail("nobody watches")).run()
    assert quiet.file.getvalue().count("3 passes") == 1  # type: ignore[attr-defined]


def test_going_back_shows_what_was_there():
    [column] = columns("mask", budget=4)
    column.show(1)
    early = column.picture.response()
    column.show(4)
    assert column.picture.done is not None
    assert column.picture.response() != early
    column.show(1)
    assert column.picture.response() == early


def test_slides_keep_to_the_grid():
    show = make_show(recordings("flow", "mask"))
    boxes = [box for slide in show.slides for panel in slide for box in panel.boxes]
    assert all(box.x >= 0 and box.x + len(box.text) <= WIDTHS[2] for box in boxes)
    assert show.lines == 1 + max(box.y for box in boxes)
    assert [panel.title for panel in show.slides[0]] == ["flow", "mask"]
    assert "pass" in show.slides[-1][0].status


def test_a_long_recording_is_thinned_but_ends_with_its_end():
    show = make_show(made_up(1000, 3).recordings())
    assert len(show.slides) == MOST_SLIDES
    assert show.slides[0][0].status == "pass 0"
    assert show.slides[-1][0].status == "1000 passes, right"


def test_an_animated_svg_has_a_slide_per_pass_and_says_what_is_in_it(tmp_path):
    words = ["<script>alert(1)</script>", "&amp;", "\x07"]
    shown = made_up(4, 3, words=words * 2, prompt="<b>").recordings()
    draw(shown, svg=tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    slides = [group for group in root.iter(f"{name}g")]
    assert len(slides) == 5
    assert [group.get("class") for group in slides].count("slide last") == 1
    assert not list(root.iter(f"{name}script"))
    written = {text.text for text in root.findall(f"{name}text")}  # outside of the slides
    assert {"green frame: committed", "orange frame: taken back"} < written
    assert root.find(f"{name}title").text == "<b>"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["a.gif", "a.webp"])
def test_a_moving_picture_has_a_frame_per_pass(tmp_path, name):
    Image = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    shown = recordings("mask", "threshold", budget=4)
    assert draw(shown, gif=tmp_path / name, speed=2.5) == [tmp_path / name]
    with Image.open(tmp_path / name) as picture:
        passes = max(len(one.frames) for one in shown)
        assert picture.n_frames == passes + 1
        picture.seek(passes)
        picture.load()
        assert picture.info["duration"] == 100 * (HOLD + 1)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_keys_are_read_as_they_are_pressed_and_the_terminal_is_as_before(monkeypatch):
    ours, theirs = os.openpty()
    with open(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        before = termios.tcgetattr(theirs)
        with Keyboard() as keyboard:
            assert keyboard.read(0.0) is None
            for sent, meant in ((b" ", "play"), (b"\x1b[D", "back"), (b"z", "other")):
                os.write(ours, sent)
                assert keyboard.read(5.0) == meant
        assert termios.tcgetattr(theirs) == before
    os.close(ours)
