"""A run's state over several processes: each writes its own shards, beside the training.

OUT/state is made by torch.distributed.checkpoint, as safetensors files of every process and
state.json, which holds the plain values and a checksum of each file; OUT/state.before is the state
before it. Nobody holds the whole state, and another number of processes may go on with it.
"""

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

from xpredflow.errors import InputError, WriteError
from xpredflow.files import read_object, write_atomically, writing
from xpredflow.processes import Share, gathered
from xpredflow.training.common.runs import BEFORE, LAST, MANIFEST

DRAFT = "state.tmp"
FILE_BYTES = 1_000_000_000  # of a process's files: one is held once more while it is written
_READ = 2**20


class ShardedStates:
    """Saves states one after the other; a kill at any moment leaves the last or the one before."""

    def __init__(self, directory: Path, share: Share) -> None:
        self.directory, self.share = directory, share
        # of its own: the training talks over the other one at the same time
        self._group: Any = dist.new_group(backend="gloo")
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def save(
        self, values: dict[str, Any], tensors: dict[str, Tensor], done: Callable[[], None]
    ) -> None:
        """Copy the tensors to the host, then write them while the training goes on.

        `values` are plain ones; `done` is called when the state is complete. All processes call it.
        """
        self.wait()
        draft = self.directory / DRAFT
        if self.share.rank == 0:
            shutil.rmtree(draft, ignore_errors=True)
        dist.barrier(self._group)
        files = _files(tensors, FILE_BYTES * self.share.world)
        storage = _storage().HuggingFaceStorageWriter(str(draft), files, save_distributed=True)
        saving = async_save(tensors, storage_writer=storage, process_group=self._group)
        self._pending = self._thread.submit(self._commit, saving, values, done)

    def _commit(self, saving: Any, values: dict[str, Any], done: Callable[[], None]) -> None:
        saving.result()
        draft, share = self.directory / DRAFT, self.share
        mine = {f.name: _checksum(f) for f in draft.glob(f"shard-{share.rank + 1:05d}-*")}
        parts: list[dict[str, int]] = [{} for _ in range(share.world)]
        dist.all_gather_object(parts, mine, group=self._group)
        failure: list[Exception | None] = [None]
        if share.rank == 0:
            files = {name: found for part in parts for name, found in part.items()}
            try:
                text = json.dumps({**values, "files": files}, indent=1) + "\n"
                write_atomically(draft / MANIFEST, text)
                _rotate(self.directory)
            except (OSError, WriteError) as error:
                failure = [error]
        dist.broadcast_object_list(failure, src=0, group=self._group)
        if failure[0] is not None:
            raise failure[0]
        done()

    def wait(self, kept: str = "", then: str = "") -> None:
        """Until nothing is being written any more; what could not be written is told here."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        with writing(self.directory / LAST, kept, then):
            try:
                pending.result()
            except CheckpointException as error:
                causes = [cause for cause, _ in error.failures.values()]
                found = next((cause for cause in causes if isinstance(cause, OSError)), None)
                raise found or OSError(str(causes[0])) from error


def read_values(path: Path, share: Share) -> dict[str, Any]:
    """The plain values of a state whose checksums are right; InputError otherwise.

    Each process reads some of the files.
    """
    found = read_object(path / MANIFEST, "the state is damaged")
    files = found.pop("files", None)
    if type(found.get("step")) is not int or not isinstance(files, dict):
        raise InputError(f"{str(path)!r} is no state of a training")
    mine = sorted(files)[share.rank :: share.world]
    bad = gathered(share, [name for name in mine if _differs(path / name, files[name])])
    if bad:
        raise InputError(f"the state {str(path)!r} is damaged (checksum of {bad[0]!r})")
    return found


def read_tensors(path: Path, tensors: dict[str, Tensor], share: Share) -> None:
    """Read a state into tensors, sharded or not, by name; each process reads its own rows."""
    reader = _storage().HuggingFaceStorageReader(str(path))
    group: Any = dist.new_group(backend="gloo") if share.world > 1 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is one process only
        try:
            load(tensors, storage_reader=reader, process_group=group, no_dist=share.world == 1)
        except CheckpointException as error:
            cause = next(iter(error.failures.values()))[0]
            raise InputError(
                f"the state {str(path)!r} cannot be read ({cause}): start anew in another directory"
            ) from error


def _storage() -> Any:
    """torch's own way to keep shards in safetensors files, without pickles."""
    try:
        from torch.distributed.checkpoint import hf_storage
    except ImportError:
        hf_storage = None
    if not hasattr(hf_storage, "HuggingFaceStorageWriter"):
        raise InputError(
            f"torch is {torch.__version__}, but the states of several processes need 2.8:"
            " pip install 'torch>=2.8', or train in one process"
        )
    return hf_storage


def _files(tensors: Mapping[str, Tensor], limit: int) -> dict[str, int]:
    """The number of the file that each tensor goes to, from 1; the same in every process."""
    files, number, size = {}, 1, 0
    for name, tensor in tensors.items():
        bytes_of_all = tensor.numel() * tensor.element_size()
        if size and size + bytes_of_all > limit:
            number, size = number + 1, 0
        files[name], size = number, size + bytes_of_all
    return files


def _rotate(directory: Path) -> None:
    last, before, draft = (directory / name for name in (LAST, BEFORE, DRAFT))
    if last.is_dir():
        if before.is_dir():
            shutil.rmtree(before)
        os.rename(last, before)
    os.rename(draft, last)


def _differs(path: Path, checksum: int) -> bool:
    try:
        return _checksum(path) != checksum
    except OSError:
        return True


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while part := file.read(_READ):
            found = zlib.crc32(part, found)
    return found
