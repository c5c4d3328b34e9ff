"""A progress bar over many rows: how many are done and how long the rest may take."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Step


class BarView:
    """Handed every Step; counts in passes, whose number the rows' budgets bound."""

    def __init__(self, rows: list[Row], console: Console) -> None:
        self.left = {row.number: sum(row.budgets) for row in rows}
        self.rows = len(rows)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f} passes at most"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> "BarView":
        self.task = self.bar.add_task(self._title(), total=max(sum(self.left.values()), 1))
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def add(self, step: Step) -> None:
        """Advance by one step per row; a row that ends early gives back what it did not need."""
        used = len(step.rows)
        for row in step.rows:
            self.left[row] -= 1
        for done in step.finished:
            used += self.left.pop(done.row)
        self.bar.update(self.task, advance=used, description=self._title())

    def _title(self) -> str:
        return f"{self.rows - len(self.left)} of {self.rows} prompts"
