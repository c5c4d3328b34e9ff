"""A training run's directory: run.toml, the state to go on from, and a JSONL log."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch

from xpredflow.errors import InputError
from xpredflow.jsonl import JsonLines, read_lines, write_lines
from xpredflow.training.common.run_file import NAME, OLD_NAME, RunFile

T = TypeVar("T")


def follow(
    training: Iterable[T], watch: Callable[[T], None] | None, stoppable: AbstractContextManager
) -> None:
    """Train to the end, with every update shown to whoever watches."""
    with stoppable:
        for now in training:
            if watch is not None:
                watch(now)


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a training; its text says what was kept and how to go on."""

    def __init__(self, directory: Path, update: int, kept: int | None) -> None:
        where = f"stopped after update {update}"
        if kept is None:
            super().__init__(f"{where}; nothing was saved yet: give the same command again")
        else:
            super().__init__(
                f"{where}; {str(directory)!r} keeps the state after update {kept}: give the same"
                " command with --resume to go on from there"
            )
        self.update, self.kept = update, kept


class Run:
    """`run.toml`, `state.pt` and `log.jsonl` below one directory.

    A run that is started again goes on where its last state was saved; log lines that were
    written after that state are dropped, so that a killed run leaves the same log as another. Of
    several processes in one run, a single one `writes`; the others only read.
    """

    def __init__(
        self,
        directory: Path,
        about: RunFile,
        resume: bool,
        may_change: tuple[str, ...] = (),
        writes: bool = True,
    ) -> None:
        self.directory, self.about, self.writes = directory, about, writes
        self.log_path = directory / "log.jsonl"
        self._log: JsonLines | None = None  # opened with the first line that is written
        self._state_path = directory / "state.pt"
        self.kept: int | None = None  # the update whose state is on disk
        directory.mkdir(parents=True, exist_ok=True)
        if self._state_path.is_file():
            self._check(resume, may_change)
        if writes:
            about.write(directory)

    def _check(self, resume: bool, may_change: tuple[str, ...]) -> None:
        where = repr(str(self.directory))
        if not resume:
            raise InputError(
                f"{where} already holds a run: pass --resume to go on with it, or choose another"
                " directory"
            )
        if not any((self.directory / name).is_file() for name in (NAME, OLD_NAME)):
            raise InputError(
                f"{where} holds a state but no {NAME}: nobody knows what it belongs to; choose"
                " another directory"
            )
        changed = self.about.changed_since(self.directory, may_change)
        if changed is not None:
            name, then, now = changed
            raise InputError(
                f"{name} is {now!r} but the run in {where} was started with {then!r}: resume with"
                " the same value or start anew"
            )

    @contextmanager
    def stoppable(self, update: Callable[[], int]) -> Iterator[None]:
        """Turns Ctrl-C into Stopped; `update` says how many updates are done."""
        torch.set_flush_denormal(True)  # decayed moments turn denormal: very slow on CPUs
        try:
            yield
        except KeyboardInterrupt as interrupt:
            raise Stopped(self.directory, update(), self.kept) from interrupt
        finally:
            torch.set_flush_denormal(False)

    def load_state(self) -> dict[str, Any] | None:
        """The last saved state, tensors and plain values only; None at the beginning."""
        if not self._state_path.is_file():
            if self.writes:
                self.log_path.unlink(missing_ok=True)
            return None
        state = torch.load(self._state_path, map_location="cpu", weights_only=True, mmap=True)
        self.kept = state["step"]
        if not self.writes:
            return state
        kept = [line for line in read_log(self.log_path) if line["step"] <= state["step"]]
        write_lines(self.log_path, kept)
        return state

    def save_state(self, state: dict[str, Any]) -> None:
        """Replace the last state; a kill at any moment leaves either the old or the new one."""
        if not self.writes:
            return
        temporary = self._state_path.with_suffix(".tmp")
        torch.save(state, temporary)
        os.replace(temporary, self._state_path)
        self.kept = state["step"]

    def log(self, **values: Any) -> None:
        """One line; `step` must be among the values."""
        if not self.writes:
            return
        if self._log is None:
            self._log = JsonLines(self.log_path)
        self._log.append(values)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; one that a kill cut short is passed over."""
    return read_lines(path)
