"""Bars: what advances them, what they say, and that only a terminal sees one."""

import io

import pytest
from rich.console import Console
from toy import ToyModel

from xpredflow.cli import progress
from xpredflow.cli.progress import Bar, CountBar, terminal
from xpredflow.engine import loop as engine


def screen() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, _environ={})


def decode(bar: Bar, count: int = 3) -> None:
    settings, rules = engine.resolve("threshold:0", {"gen_length": 4})
    rows = engine.make_rows(ToyModel(), [[1, 2]] * count, settings)
    for step in engine.decode_rows(ToyModel(), rows, rules, settings):
        bar.add(step)


def rows_of(count: int = 3):
    settings, _ = engine.resolve("threshold:0", {"gen_length": 4})
    return engine.make_rows(ToyModel(), [[1, 2]] * count, settings)


def test_a_bar_of_rows_moves_with_passes_and_ends_full():
    with Bar.of_rows(rows_of(), "minimath", console=screen()) as bar:
        assert bar.progress.tasks[0].total == 12
        assert bar.progress.tasks[0].description == "minimath 0 of 3 prompts"
        decode(bar)
        # rows that settle in one pass of four give back the other three
        assert bar.progress.tasks[0].completed == 12
        bar.answer(True)
        bar.answer(False)
        assert bar.progress.tasks[0].description == "minimath 3 of 3 prompts 1/2 right"
        assert bar.progress.tasks[0].completed == 12


def test_it_does_not_jump_before_a_row_is_done():
    settings, rules = engine.resolve("mask", {"gen_length": 4})
    rows = engine.make_rows(ToyModel(), [[1, 2]], settings)
    seen = []
    with Bar.of_rows(rows, console=screen()) as bar:
        for step in engine.decode_rows(ToyModel(), rows, rules, settings):
            bar.add(step)
            seen.append(bar.progress.tasks[0].completed)
    assert seen == [1, 2, 3, 4]


def test_a_bar_of_answers_counts_the_right_ones():
    with Bar("minicode", total=4, console=screen()) as bar:
        for right in (True, False, True):
            bar.answer(right)
        assert bar.progress.tasks[0].completed == 3
        assert bar.progress.tasks[0].description == "minicode 2/3 right"


def test_a_resumed_run_begins_where_it_was():
    with Bar("align", total=10, completed=4, console=screen()) as bar:
        bar.advance(1, "align, loss 0.5")
        assert bar.progress.tasks[0].completed == 5
        assert bar.progress.tasks[0].description == "align, loss 0.5"


def test_only_a_terminal_sees_a_bar(capsys, monkeypatch: pytest.MonkeyPatch):
    with CountBar("minicode", 2, bool) as count:
        count(1)
        count(0)
    assert (count.seen, count.right) == (2, 1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "terminal", lambda stream: screen())
    with CountBar("minicode", 2, bool) as count:
        count(1)
        assert count.progress.tasks[0].description == "minicode 1/1 right"


def test_a_dumb_terminal_is_none(monkeypatch: pytest.MonkeyPatch):
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    assert terminal(Tty()) is None
    monkeypatch.setenv("TERM", "xterm")
    assert terminal(Tty()) is not None
    assert terminal(io.StringIO()) is None
