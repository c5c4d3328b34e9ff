"""Bars: what advances them, what they say, and that only a terminal sees one."""

import io
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from toy import ToyModel

from xpredflow.cli import progress
from xpredflow.cli.progress import Bar, BenchBar, PassesBar, UpdatesBar, terminal
from xpredflow.engine import loop as engine


def screen() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, _environ={})


def shown(bar: Bar) -> Any:
    """The one line of a bar that is open."""
    assert bar.progress is not None
    [task] = bar.progress.tasks
    return task


def decoded(decoder: str, count: int):
    """Rows of four passes at most, and their steps."""
    settings, rules = engine.resolve(decoder, {"gen_length": 4})
    rows = engine.make_rows(ToyModel(), [[1, 2]] * count, settings)
    return rows, engine.decode_rows(ToyModel(), rows, rules, settings)


def step_of(rows: list[int], finished: list[int] | None = None) -> Any:
    """What a bar reads of a Step."""
    done = [SimpleNamespace(row=row) for row in finished or []]
    return SimpleNamespace(rows=rows, finished=done)


def test_a_bar_of_rows_moves_with_passes_and_ends_full():
    rows, steps = decoded("threshold:0", 3)
    with PassesBar.of_rows(rows, console=screen()) as bar:
        assert (shown(bar).completed, shown(bar).total) == (0, 12)
        assert shown(bar).description == "0 of 3 prompts"
        for step in steps:
            bar.add(step)
        # rows that settle in one pass of four give back the other three
        assert shown(bar).completed == 12
        assert shown(bar).description == "3 of 3 prompts"


def test_it_does_not_jump_before_a_row_is_done():
    rows, steps = decoded("mask", 1)
    seen = []
    with PassesBar.of_rows(rows, console=screen()) as bar:
        for step in steps:
            bar.add(step)
            seen.append(shown(bar).completed)
    assert seen == [1, 2, 3, 4]


def test_an_evaluation_counts_its_answers_and_each_phase_begins_at_nothing():
    with PassesBar("minicode", console=screen()) as bar:
        bar.begin(2, 4)
        for step in decoded("threshold:0", 2)[1]:
            bar.step(step)
        assert (shown(bar).completed, shown(bar).total) == (8, 8)
        for passed in (True, False):
            bar.sample(SimpleNamespace(passed=passed))
        assert shown(bar).description == "minicode: 2 answers, 1 right"
        bar.begin(1, 16)
        assert (shown(bar).completed, shown(bar).total) == (0, 16)
        bar.step(step_of([7]))
        assert shown(bar).completed == 1
        # a row that fails before its first pass gives back all of them
        bar.step(step_of([], finished=[8]))
        assert shown(bar).completed == 17
        bar.sample(SimpleNamespace(solved=None))
        assert shown(bar).description == "minicode: 3 answers"


def test_a_comparison_says_which_trial_goes_on(capsys):
    bar = BenchBar(screen())
    bar.trials(2)
    for title in ("mask", "flow"):
        with bar.trial(title, 1, 4):
            bar.sample(SimpleNamespace(passed=True))
            last = shown(bar).description
        assert bar.progress is None
    assert last == "2 of 2: flow: 1 answers, 1 right"
    assert bar.kept == 2
    bar.say("flow: 100 % in 3 passes")
    assert capsys.readouterr().err == "flow: 100 % in 3 passes\n"


def test_a_training_shows_updates_and_keeps_warnings_on_the_screen():
    console = screen()
    with UpdatesBar(4, console=console) as bar:
        bar.show(3, "loss 0.5 [m]", warning="look [out]")
        assert bar.progress is not None
        bar.progress.refresh()
    assert isinstance(console.file, io.StringIO)
    seen = console.file.getvalue()
    assert "3 of 4 updates" in seen
    assert "loss 0.5 [m]" in seen
    assert "warning: look [out]" in seen


def test_elsewhere_a_training_says_a_line_per_update_in_its_first_process(capsys):
    for first in (True, False):
        with UpdatesBar(4, shown=first) as bar:
            bar.show(3, "loss 0.5", warning="look out")
            bar.note("a note")
    assert capsys.readouterr().err == "update 3/4, loss 0.5\nwarning: look out\na note\n"


def test_only_a_terminal_sees_a_bar(capsys, monkeypatch: pytest.MonkeyPatch):
    with Bar("further problems", 2) as bar:
        bar.advance()
        bar.describe("nobody reads this")
        assert bar.progress is None
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "terminal", lambda stream: screen())
    with Bar("further problems", 2) as bar:
        bar.advance()
        assert (shown(bar).completed, shown(bar).description) == (1, "further problems")
    with Bar("another process", 2, shown=False) as bar:
        assert bar.progress is None


def test_a_dumb_terminal_is_none(monkeypatch: pytest.MonkeyPatch):
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "dumb")
    assert terminal(Tty()) is None
    monkeypatch.setenv("TERM", "xterm")
    assert terminal(Tty()) is not None
    assert terminal(io.StringIO()) is None


def test_bars_do_not_wait_for_torch():
    code = "import sys, xpredflow.cli.progress; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
