"""A training run's directory: its config, the state to go on from, and a JSONL log."""

import json
import os
from pathlib import Path
from typing import Any

import torch

from xpredflow.errors import InputError
from xpredflow.files import write_atomically
from xpredflow.jsonl import JsonLines, read_lines, write_lines


class Run:
    """`config.json`, `state.pt` and `log.jsonl` below one directory.

    A run that is started again goes on where its last state was saved; log lines that were
    written after that state are dropped, so that a killed run leaves the same log as another. Of
    several processes in one run, a single one `writes`; the others only read.
    """

    def __init__(
        self,
        directory: Path,
        config: dict[str, Any],
        resume: bool,
        may_change: tuple[str, ...] = (),
        writes: bool = True,
    ) -> None:
        self.directory, self.writes = directory, writes
        self.log_path = directory / "log.jsonl"
        self._log: JsonLines | None = None  # opened with the first line that is written
        self._state_path = directory / "state.pt"
        directory.mkdir(parents=True, exist_ok=True)
        self._check_config(config, resume, may_change)

    def _check_config(
        self, config: dict[str, Any], resume: bool, may_change: tuple[str, ...]
    ) -> None:
        path = self.directory / "config.json"
        if path.is_file() and self._state_path.is_file():
            before = json.loads(path.read_text())
            names = {*before, *config} - {*may_change}
            changed = sorted(k for k in names if before.get(k) != config.get(k))
            if not resume:
                raise InputError(
                    f"{str(self.directory)!r} already holds a run: pass --resume to go on with it,"
                    " or choose another directory"
                )
            if changed:
                name = changed[0]
                raise InputError(
                    f"{name} is {config.get(name)!r} but the run in {str(self.directory)!r} was"
                    f" started with {before.get(name)!r}: resume with the same value or start anew"
                )
        if self.writes:
            write_atomically(path, json.dumps(config, indent=2, default=str) + "\n")

    def load_state(self) -> dict[str, Any] | None:
        """The last saved state, tensors and plain values only; None at the beginning."""
        if not self._state_path.is_file():
            if self.writes:
                self.log_path.unlink(missing_ok=True)
            return None
        state = torch.load(self._state_path, map_location="cpu", weights_only=True, mmap=True)
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
