"""Progress on a terminal: how much is done, how long the rest may take. Silent anywhere else.

with Bar("further problems", total=96, unit="answers") as bar:
    bar.advance()
with PassesBar.of_rows(rows) as bar:                     # forward passes, which budgets bound
    bar.add(step)
with PassesBar("minicode") as bar:                       # an `evaluation.Watch`
    evaluate(model, "minicode", watch=bar)
BenchBar()                                               # an `experiments.bench.Watch`
with UpdatesBar(400) as bar:                             # a training
    bar.show(update, "loss 0.5", warning)
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:  # these need torch
    from xpredflow.engine.rows import Row
    from xpredflow.engine.steps import Step
    from xpredflow.types import Model


def terminal(stream: Any) -> Console | None:
    """A console on a terminal that can redraw lines; None for a pipe, a file or a dumb one."""
    if not stream.isatty():
        return None
    console = Console(file=stream, highlight=False)
    return None if console.is_dumb_terminal else console


class Bar(AbstractContextManager):
    """A bar, its count, the time left and a title; `shown` is off in all processes but the first.

    The title stands last: it may grow without moving the bar.
    """

    unit = ""

    def __init__(
        self,
        title: str = "",
        total: float | None = None,
        *,
        unit: str | None = None,
        console: Console | None = None,
        shown: bool = True,
    ) -> None:
        self.title, self.total, self.shown = title, total, shown
        self.unit = self.unit if unit is None else unit
        self.console = console or (terminal(sys.stderr) if shown else None)
        self.progress: Progress | None = None

    def __enter__(self) -> Self:
        if self.console is not None:
            self.progress = Progress(
                BarColumn(bar_width=24),
                TextColumn(f"{{task.completed:.0f}} of {{task.total:.0f}} {self.unit}".rstrip()),
                TimeRemainingColumn(),
                TextColumn("{task.description}", markup=False),
                console=self.console,
                transient=True,
            )
            self.task = self.progress.add_task(self.title, total=self.total or 1)
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None

    def restart(self, total: float) -> None:
        """Nothing is done yet, and there is so much to do."""
        self.total = total
        if self.progress is not None:
            self.progress.reset(self.task, total=total or 1, description=self.title)

    def advance(self, amount: float = 1) -> None:
        """So much more is done."""
        if self.progress is not None:
            self.progress.update(self.task, advance=amount)

    def reach(self, completed: float) -> None:
        """So much is done in all."""
        if self.progress is not None:
            self.progress.update(self.task, completed=completed)

    def describe(self, title: str) -> None:
        """What stands behind the bar from now on."""
        if self.progress is not None:
            self.progress.update(self.task, description=title)

    def note(self, text: str) -> None:
        """A line that stays, above the bar; it is said where there is no terminal, too."""
        if self.progress is not None:
            self.progress.console.print(text, soft_wrap=True, markup=False, highlight=False)
        elif self.shown:
            typer.echo(text, err=True)


class PassesBar(Bar):
    """An `evaluation.Watch` that moves with every forward pass and counts the answers.

    Budgets bound the passes: a row that ends early gives back what it had left.
    """

    unit = "passes at most"

    def __init__(
        self, title: str = "", *, console: Console | None = None, shown: bool = True
    ) -> None:
        super().__init__(title, console=console, shown=shown)
        self.judged = self.right = 0
        self.cap = 0
        self.left: dict[int, int] = {}  # passes that rows may still take
        self.rows = 0  # how many there are, where that is known from the start

    @classmethod
    def of_rows(cls, rows: "Iterable[Row]", *, console: Console | None = None) -> Self:
        """For rows that are there already, each with budgets of its own."""
        bar = cls(console=console)
        bar.left = {row.number: sum(row.budgets) for row in rows}
        bar.rows, bar.total = len(bar.left), sum(bar.left.values())
        bar.title = bar._prompts()
        return bar

    def begin(self, left: int, passes: int) -> None:
        """A phase: so many answers, of so many passes each at most."""
        self.cap, self.left = passes, {}
        self.restart(left * passes)

    def step(self, step: "Step") -> None:
        """One pass of a batch."""
        moved = 0
        for row in step.rows:
            before = self.left.get(row, self.cap)
            self.left[row] = max(before - 1, 0)
            moved += before > 0
        for done in step.finished:
            moved += self.left.pop(done.row, self.cap)
        self.advance(moved)

    def add(self, step: "Step") -> None:
        """The same, as whatever shows the steps of `generate` is told of them."""
        self.step(step)
        if step.finished:
            self.describe(self._prompts())

    def sample(self, sample: Any) -> None:
        """One answer was judged, or kept where nothing judges."""
        passed = getattr(sample, "passed", getattr(sample, "solved", None))
        self.judged, self.right = self.judged + 1, self.right + bool(passed)
        told = f"{self.judged} answers" + ("" if passed is None else f", {self.right} right")
        self.describe(f"{self.title}: {told}")

    def _prompts(self) -> str:
        return f"{self.rows - len(self.left)} of {self.rows} prompts"


class BenchBar(PassesBar):
    """An `experiments.bench.Watch`: a line per finished trial, a bar while one goes on."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console=console)
        self.count = self.begun = 0
        self.kept = 0  # answers in all trials

    def say(self, line: str) -> None:
        """What has been done."""
        self.note(line)

    def loading(self, source: str) -> AbstractContextManager[Any]:
        """Shown while a model is loaded."""
        return self.console.status(f"loading {source}") if self.console else nullcontext()

    def trials(self, count: int) -> None:
        """So many trials will follow."""
        self.count = count

    @contextmanager
    def trial(self, title: str, answers: int, cap: int) -> Iterator[None]:
        """A bar for this trial alone."""
        self.begun += 1
        of = f"{self.begun} of {self.count}: " if self.count else ""
        self.title, self.judged, self.right = f"{of}{title}", 0, 0
        with self:
            self.begin(answers, cap)
            yield

    def sample(self, sample: Any) -> None:
        """One answer was judged and kept."""
        self.kept += 1
        super().sample(sample)


class UpdatesBar(Bar):
    """A training: a bar on a terminal, a line per update elsewhere."""

    unit = "updates"

    def __init__(self, updates: int, *, console: Console | None = None, shown: bool = True) -> None:
        super().__init__("starting", updates, console=console, shown=shown)
        self.updates = updates

    def show(self, update: int, line: str, warning: str | None = None) -> None:
        """One update, and a warning that stays on the screen."""
        if self.progress is not None:
            self.reach(update)
            self.describe(line)
        else:
            self.note(f"update {update}/{self.updates}, {line}")
        if warning:
            self.note(f"warning: {warning}")


def load_fitting(source: dict[str, Any]) -> "Model":
    """The model in what the machine has room for, unless --dtype or --quantize was given."""
    named = {"dtype", "quantize"} & source.keys()
    return load_model(source if named else {**source, "dtype": "auto"})


def load_model(source: dict[str, Any]) -> "Model":
    """The model, on the accelerator where there is one; a terminal is told that it is loading.

    What dtype='auto' came to is said in a line, and so is where the parts of a model went.
    """
    from xpredflow.models import embedded

    arguments = {"source": embedded.DEFAULT, "device": None, **source}
    console = terminal(sys.stderr)
    # a hub model shows the bars of its download, over which a spinner would write
    is_local = arguments["source"] in embedded.EMBEDDED or Path(arguments["source"]).exists()
    said = f"loading {arguments['source']}"
    waiting = console.status(said) if console is not None and is_local else nullcontext()
    with waiting:
        model = embedded.load(**arguments)
    for what in ("chosen_because", "placed"):  # a plug-in's model need not know of them
        if note := getattr(model, what, None):
            typer.echo(f"note: {note}", err=True)
    return model
