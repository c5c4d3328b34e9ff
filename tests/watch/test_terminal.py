import io

import pytest
from byte_tokenizer import byte_tokenizer
from rich.console import Console
from rich.text import Text
from toy import EOS, EOT, ToyModel

from xpredflow.engine import loop as engine
from xpredflow.engine.prompts import Encoded
from xpredflow.engine.rows import make_row
from xpredflow.engine.steps import Frame
from xpredflow.watch.picture import COMMITTED, DIM, REEDITED, shade, summary
from xpredflow.watch.terminal import Column, LiveView, SideBySide
from xpredflow.watch.text import END, OPEN, TokenText, visible


def console(**options):
    return Console(
        file=io.StringIO(), force_terminal=True, width=80, height=24, **options, _environ={}
    )


def view_of(length=4, ids=(1, 2), model=None, screen=None, **options):
    model = model or ToyModel()
    row = make_row(model, 0, Encoded(list(ids)), gen_length=length, budget=None, block_length=None)
    return LiveView(model, row, "the prompt", screen or console(), **options)


def picture_of(**options):
    return view_of(**options).picture


def frame(tokens, progress, *, at=2, reedited=(), committed=(), step=0):
    places = range(len(tokens))
    return Frame(
        row=0,
        step=step,
        positions=[at + i for i in places],
        tokens=list(tokens),
        progress=list(progress),
        confidence=[0.5] * len(tokens),
        reedited=[i in reedited for i in places],
        committed=[i in committed for i in places],
    )


def styles(text: Text) -> dict[str, object]:
    return {text.plain[span.start : span.end]: span.style for span in text.spans}


def test_nothing_decoded_yet_is_all_open():
    assert picture_of().response().plain == OPEN * 4


def test_tokens_are_shaded_and_marked():
    picture = picture_of()
    picture.take(frame([10, 11, 12, 13], [0.0, 0.5, 0.3, 1.0], reedited=[2], committed=[3]))
    marks = styles(picture.response())
    assert marks["10 "] == shade(0.0)
    assert marks["11 "] == shade(0.5)
    assert marks["12 "] == REEDITED
    assert marks["13 "] == COMMITTED
    assert shade(0.2) != shade(0.8)
    assert not shade(1.0)


def test_status_line_counts():
    picture = picture_of()
    picture.take(frame([1, 2, 3, 4], [0.2, 0.4, 0.6, 1.0], reedited=[0, 1]))
    picture.take(frame([1, 2, 3, 4], [0.3, 0.5, 1.0, 1.0], reedited=[0], step=1))
    assert picture.status() == (
        "pass 2/4, progress 0.70 (min 0.30), conf 0.50, re-edits 3, 1.0 tok/pass"
    )


def test_steps_faster_than_the_terminal_lose_no_marks():
    steps = engine.decode_steps(ToyModel(), [[1, 2]], gen_length=4, policy="constant:1/2")
    now = [0.0]
    with view_of(clock=lambda: now[0]) as view:
        view.drawn_at = 0.0
        view.add(next(steps))
        view.add(next(steps))
        assert len(view.picture.committed) == 2
        now[0] = 1.0
        view.add(next(steps))
        assert not view.picture.committed


def test_rendering_on_a_terminal():
    screen = console(color_system="truecolor", record=True)
    with view_of(screen=screen) as view:
        for step in engine.decode_steps(ToyModel(), [[1, 2]], gen_length=4):
            view.add(step)
    shown = screen.export_text()
    assert "the prompt" in shown
    assert "pass 0/4" in shown
    assert "tok/pass" in shown
    # the last picture stays: the text itself and why it ended
    done = step.finished[0]
    assert shown.rstrip().endswith(summary(done))
    assert shown.count(done.text.strip()) >= 1


def test_a_delay_shows_every_pass_for_so_long():
    slept = []
    with view_of(delay=0.25, sleep=slept.append, clock=lambda: 0.0) as view:
        for step in engine.decode_steps(ToyModel(), [[1, 2]], gen_length=4):
            view.add(step)
            assert not view.picture.committed  # drawn at once, however little time has passed
    assert slept == [0.25] * (step.index[0] + 1)


def test_a_finished_text_is_shown_whole_whatever_the_room():
    view = view_of(length=90, model=Long())
    view.console = Console(file=io.StringIO(), force_terminal=True, width=10, height=12)
    for step in engine.decode_steps(Long(), [[1, 2]], gen_length=90, decoder="mask", budget=2):
        view.picture.add(step)
    text = view.render().renderables[-3].plain  # type: ignore[attr-defined]
    assert text.split() == [str(token) for token in step.finished[0].ids]


def columns():
    """Two decoders on one row: one needs a single pass, the other four."""
    made = []
    for title, budget in (("short", 1), ("long", 4)):
        [done] = engine.generate(
            ToyModel(), [[1, 2]], gen_length=4, decoder="mask", budget=budget, trace=True
        )
        frames = done.trace or []
        made.append(Column(title, picture_of(), frames, done, Text(f"verdict on {title}")))
    return made


def test_columns_advance_together_a_pass_at_a_time():
    slept = []
    screen = console(color_system="truecolor", record=True)
    SideBySide(columns(), screen, delay=0.5, sleep=slept.append).play()
    shown = screen.export_text()
    assert slept == [0.5] * 4
    # after the first pass one is done and the other is not
    assert any(
        "1 pass: verdict on short" in line and "pass 1" in line.split("│")[2]
        for line in shown.splitlines()
    )
    assert shown.index("1 pass: verdict on short") < shown.index("4 passes: verdict on long")


def test_without_a_terminal_only_the_end_is_printed():
    screen = Console(file=io.StringIO(), width=80)
    SideBySide(columns(), screen, sleep=lambda _: pytest.fail("nobody watches")).play()
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("short") == 2
    assert "pass 1" not in shown.replace("1 pass:", "")


def test_a_reedit_is_underlined_red_on_the_wire():
    screen = console(color_system="standard")
    view = view_of(screen=screen)
    view.picture.take(frame([10, 11, 12, 13], [0.5] * 4, reedited=[1]))
    screen.print(view.render())
    assert "\x1b[4;31m11 \x1b[0m" in screen.file.getvalue()  # type: ignore[attr-defined]


def test_without_colours_dim_tells_guesses_from_text():
    screen = console(no_color=True)
    view = view_of(screen=screen)
    view.picture.take(frame([10, 11, 12, 13], [0.1, 0.95, 1.0, 0.5], reedited=[3]))
    screen.print(view.render())
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[2m10 \x1b[0m11 12 \x1b[4m13 \x1b[0m" in shown


def test_the_tail_of_end_tokens_is_hidden():
    picture = picture_of(length=5)
    picture.take(frame([7, EOT, EOS, EOS, EOS], [1.0] * 5))
    text = picture.response()
    assert text.plain == f"7 {END}"
    assert styles(text)[END] == DIM
    picture.take(frame([7, EOS, 8, EOS, EOS], [1.0] * 5))
    assert picture.response().plain == f"7 {END}8 "


def test_blocks_to_come_stay_open():
    picture = picture_of(length=4)
    picture.take(frame([7, 8], [1.0, 1.0]))
    assert picture.response().plain == f"7 8 {OPEN}{OPEN}"


def test_an_infilled_text_shows_its_context():
    view = view_of(ids=(1, -1, 3))
    assert view.picture.response().plain == f"1 {OPEN}3 "
    assert "the prompt" not in [line.plain for line in view.render().renderables]  # type: ignore[attr-defined]


def test_a_text_longer_than_the_terminal_is_followed():
    view = view_of(length=90, model=Long())
    view.picture.take(frame([7] * 80, [1.0] * 80))
    view.picture.take(frame([5] * 10, [0.1] * 10, at=82))
    view.console = Console(file=io.StringIO(), force_terminal=True, width=10, height=12)
    lines = [line.plain for line in view.render().renderables]  # type: ignore[attr-defined]
    assert len(lines) <= 12
    assert any("5" in line for line in lines)


class Long(ToyModel):
    max_length = 200


@pytest.fixture(scope="module")
def text():
    return TokenText(byte_tokenizer())


def test_split_characters_stay_whole(text):
    euro = list("€".encode())
    assert text.pieces([97, *euro, 98]) == ["a", "€", "", "", "b"]
    assert text.pieces([euro[0], None, 98]) == ["\ufffd", OPEN, "b"]
    assert text.pieces([0xFF, 97]) == ["\ufffd", "a"]
    assert text.pieces([]) == []


def test_unsettled_line_breaks_do_not_break_the_line():
    class Bytes(ToyModel):
        tokenizer = byte_tokenizer()

    picture = picture_of(length=2, model=Bytes())
    picture.take(frame([10, 10], [0.2, 1.0]))
    assert picture.response().plain == "↵\n"


def test_control_characters_are_shown_and_not_obeyed():
    assert visible("a\x1b[2Jb\r\n\tc\x7f\x9b\u202e") == "a␛[2Jb␍\n\tc␡\ufffd\ufffd"


def test_summary_says_why_it_ended():
    done = engine.generate(ToyModel(), [[1]], gen_length=3, budget=1, stop_at_eos=False)[0]
    assert summary(done).startswith("1 pass · ")
    assert done.stop_reason in summary(done)
