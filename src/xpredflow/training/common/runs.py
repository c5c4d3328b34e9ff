"""A training run's directory: run.toml, the state to go on from, and a JSONL log."""

import errno
import math
import os
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from xpredflow.errors import InputError, Recovered
from xpredflow.files import is_finite, make_directory, replacing
from xpredflow.jsonl import JsonLines, read_lines, write_lines
from xpredflow.processes import Share, gathered
from xpredflow.training.common.run_file import NAME, OLD_NAME, RunFile

if TYPE_CHECKING:  # takes a second to import, which few need
    from xpredflow.training.common.sharded_states import ShardedStates

T = TypeVar("T")
LAST, BEFORE, MANIFEST = "state", "state.before", "state.json"  # a state in shards


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


class Diverged(InputError):
    """Training left the finite numbers; its text says what was kept."""

    def __init__(self, directory: Path, update: int, what: str, kept: int | None) -> None:
        state = "nothing was saved yet"
        if kept is not None:
            state = f"{str(directory)!r} keeps the last good state, after update {kept}"
        super().__init__(
            f"the training diverged: {what} at update {update}; {state}. Start anew with a smaller"
            " lr (resuming would diverge again)"
        )


class Run:
    """`run.toml`, `log.jsonl` and the state, `state.pt` or `state/`, below one directory.

    A run that is started again goes on where its last state was saved; log lines that were
    written after that state are dropped, so that a killed run leaves the same log as another. The
    state before the last one is kept as well, for the case that the last one gets damaged. Of
    several processes the first one writes; the state alone is written by all of them, in shards.
    """

    def __init__(
        self,
        directory: Path,
        about: RunFile,
        resume: bool,
        may_change: tuple[str, ...] = (),
        share: Share = Share(),  # noqa: B008  (immutable)
    ) -> None:
        self.directory, self.about, self.share = directory, about, share
        self.writes = share.rank == 0
        self.log_path = directory / "log.jsonl"
        self._log: JsonLines | None = None  # opened with the first line that is written
        self._state_path, self._before_path = directory / "state.pt", directory / "state.before.pt"
        self._shards: ShardedStates | None = None  # made with the first state in shards
        self.kept: int | None = None  # the update whose state is on disk
        make_directory(directory)
        self.begun = bool(self._states())
        if self.begun:
            self._check(resume, may_change)
        if share.world > 1:
            dist.barrier()  # nobody looks for a run that the first one has just begun
        if self.writes:
            about.write(directory)

    def _states(self) -> list[Path]:
        """What holds a state, the last one first; there is one kind, unless a kill came between."""
        files = [path for path in (self._state_path, self._before_path) if path.is_file()]
        shards = [self.directory / name for name in (LAST, BEFORE)]
        shards = [path for path in shards if (path / MANIFEST).is_file()]
        newest = [
            max((path.stat().st_mtime for path in kind), default=0) for kind in (files, shards)
        ]
        return files + shards if newest[0] > newest[1] else shards + files

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
            self.wait()
            raise Stopped(self.directory, update(), self.kept) from interrupt
        finally:
            torch.set_flush_denormal(False)

    def load_state(self) -> dict[str, Any] | None:
        """The last saved state, tensors and plain values only; None at the beginning."""
        if not self.begun:
            if self.writes:
                self.log_path.unlink(missing_ok=True)
            return None
        state = self._whole_state()
        self.kept = state["step"]
        if not self.writes:
            return state
        kept = [line for line in read_log(self.log_path) if line["step"] <= state["step"]]
        write_lines(self.log_path, kept)
        return state

    def _whole_state(self) -> dict[str, Any]:
        """The last state, or the one before it where the last one is damaged."""
        damaged: list[str] = []
        for path in self._states():
            try:
                state = self._read(path)
            except InputError as error:
                damaged.append(str(error))
                continue
            if damaged:
                note = f"{damaged[0]}; going on from the one before it, of update {state['step']}"
                warnings.warn(note, Recovered, stacklevel=2)
            return state
        raise InputError(f"{'; '.join(damaged)}: start anew in another directory")

    def _read(self, path: Path) -> dict[str, Any]:
        if path.is_file():
            return read_state(path)
        from xpredflow.training.common.sharded_states import read_values

        return {**read_values(path, self.share), "shards": path}

    def save_state(self, state: dict[str, Any]) -> None:
        """Replace the last state; a kill at any moment leaves either the old or the new one."""
        if not self.writes:
            return
        if broken := _not_finite(state):
            raise Diverged(self.directory, state["step"], f"{broken} is not finite", self.kept)
        with replacing(self._state_path, *self._what_is_kept()) as temporary:
            _save(state, temporary)
            if self._state_path.is_file():
                os.replace(self._state_path, self._before_path)
        self.kept = state["step"]
        for name in (LAST, BEFORE):  # of several processes, before there was only one
            shutil.rmtree(self.directory / name, ignore_errors=True)

    def save_shards(self, values: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """The same for several processes, which all call it, while the training goes on."""
        from xpredflow.models.spread import own_part
        from xpredflow.training.common.sharded_states import ShardedStates

        own = {name: own_part(tensor) for name, tensor in tensors.items()}
        if broken := gathered(self.share, [name for name in [_not_finite(own)] if name]):
            raise Diverged(self.directory, values["step"], f"{broken[0]} is not finite", self.kept)
        self.wait()
        if self._shards is None:
            self._shards = ShardedStates(self.directory, self.share)

        def done() -> None:
            self.kept = values["step"]
            if self.writes:  # of one process, before there were several
                for path in (self._state_path, self._before_path):
                    path.unlink(missing_ok=True)

        self._shards.save(values, tensors, done)

    def wait(self) -> None:
        """Until the state that is being written is on disk."""
        if self._shards is not None:
            self._shards.wait(*self._what_is_kept())

    def _what_is_kept(self) -> tuple[str, str]:
        """For who cannot write: what is there, and how to go on."""
        if self.kept is None:
            return "nothing was saved yet", ""
        then = "give the same command with --resume to go on from there"
        return f"the state after update {self.kept} is kept", then

    def log(self, **values: Any) -> None:
        """One line; `step` must be among the values. A loss that is not finite ends the run."""
        for name in ("loss", "gradient_norm"):
            value = values.get(name)
            if isinstance(value, float) and not math.isfinite(value):
                raise Diverged(self.directory, values["step"], f"{name} is {value}", self.kept)
        if not self.writes:
            return
        if self._log is None:
            self._log = JsonLines(self.log_path)
        self._log.append(values)


def read_state(path: Path) -> dict[str, Any]:
    """A saved state whose checksums are right (CRC-32 of every record); InputError otherwise."""
    if not path.is_file():
        raise InputError(f"no state {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as records:
            bad = records.testzip()
        if bad is not None:
            raise InputError(f"the state {str(path)!r} is damaged (checksum of {bad!r})")
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        if not isinstance(state, dict) or type(state.get("step")) is not int:
            raise InputError(f"{str(path)!r} is no state of a training")
    except InputError:
        raise
    except Exception as error:  # zipfile and torch raise a dozen kinds on damaged bytes
        kind = type(error).__name__
        raise InputError(f"the state {str(path)!r} is damaged ({kind})") from error
    return state


def _not_finite(value: Any, name: str = "the state") -> str | None:
    """The first tensor in there that holds NaN or infinity, by name."""
    if is_traceable_wrapper_subclass(value):  # such as a packed moment: by its parts
        return _not_finite([getattr(value, part) for part in value.__tensor_flatten__()[0]], name)
    if isinstance(value, torch.Tensor):
        return None if is_finite(value) else name
    if isinstance(value, dict | list | tuple):
        parts = value.items() if isinstance(value, dict) else ((name, part) for part in value)
        return next((bad for key, part in parts if (bad := _not_finite(part, f"{key}"))), None)
    return None


def _save(state: dict[str, Any], path: Path) -> None:
    """By way of our own file: torch, asked for a path, hides what the system said."""
    with path.open("wb") as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            cause = error.__context__ or error
            raise (
                cause if isinstance(cause, OSError) else OSError(errno.EIO, str(error))
            ) from None


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, each of some update; one that a kill cut short is passed over."""
    lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        if type(line.get("step")) is not int:
            raise InputError(
                f"{path}, line {number} names no step: it is no log of a training; delete that"
                " line, or choose another directory"
            )
    return lines
