"""Answers on standard output: plain text, JSON lines, or for a terminal; what decided them."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from xpredflow.cli.prompts import Given, label
from xpredflow.engine.rows import Row
from xpredflow.engine.steps import Decoded
from xpredflow.watch.picture import summary
from xpredflow.watch.text import visible


@dataclass
class Answers:
    """Finished rows, printed in the order of their prompts as soon as their turn has come.

    Plain text and JSON go out while later rows are still being decoded; a terminal, which shows
    the decoding itself, gets them at the end, or has `shown` them already.
    """

    prompts: list[Given]
    about: dict[str, Any]
    style: str = "plain"  # or json, terminal, shown
    first_row: int = 0
    budgets: dict[int, dict[str, float]] = field(default_factory=dict)
    waiting: dict[int, Decoded] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    failed: bool = False
    printed: int = 0

    def add(self, finished: Iterable[Decoded]) -> None:
        """Take in rows; those already known are left alone."""
        for done in finished:
            if done.row not in self.seen:
                self.seen.add(done.row)
                self.waiting[done.row] = done
        while self.style != "terminal" and (turn := self.first_row + self.printed) in self.waiting:
            self._print(self.waiting.pop(turn))

    def close(self) -> None:
        """Print what is left: after Ctrl-C, rows whose predecessors never finished."""
        for row in sorted(self.waiting):
            self._print(self.waiting.pop(row))

    def _print(self, done: Decoded) -> None:
        number = done.row - self.first_row
        self.printed += 1
        if self.style == "json":
            _write(json.dumps(self._record(done, self.prompts[number]), ensure_ascii=False))
        elif not done.failed and self.style != "shown":
            self._print_text(done, self.prompts[number])
        if done.failed:
            self.failed = True
            typer.echo(f"error: prompt {number}: {done.stop_reason}", err=True)

    def _print_text(self, done: Decoded, prompt: Given) -> None:
        several = len(self.prompts) > 1
        if self.style == "plain":
            _write(("\n" if several and self.printed > 1 else "") + done.text)
            return
        if several:
            _whisper(f"> {visible(label(prompt))}")
        _write(visible(done.text))
        _whisper(summary(done) + ("\n" if several else ""))

    def _record(self, done: Decoded, prompt: Given) -> dict[str, Any]:
        """One row as a JSON object."""
        progress = done.progress
        return {
            "row": done.row,
            "prompt": prompt,
            "text": done.text,
            "ids": done.ids,
            "passes": done.passes,
            "budget": self.budgets.get(done.row),
            "reason": done.reason.name.lower(),
            "stop_reason": done.stop_reason,
            "failed": done.failed,
            "tokens_per_forward": done.tokens_per_forward,
            "shadow_positions": done.shadow_positions,
            "mean_progress": sum(progress) / len(progress) if progress else None,
            **self.about,
        }


def budget_of(row: Row) -> dict[str, float]:
    """The cap on a row's passes, and which share of its open positions that is."""
    steps = sum(row.budgets)
    return {"share": steps / sum(map(len, row.blocks)), "passes": steps * row.step_passes}


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _whisper(text: str) -> None:
    Console().print(Text(text, style="dim"), soft_wrap=True)
