"""A disk that fails at the k-th write, for each k, under each command that writes.

Everything that writes below the output directory is counted: opening for writing, writes, mkdir,
rename, and the libraries that write by themselves. The k-th of them and all that
follow fail as on a full disk; then the disk has room again and the same command must go on.
"""

import builtins
import errno
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import safetensors.torch
from builders import write_checkpoint
from own_answers import own_answers, write_answers
from recorded import toy_trace
from typer.testing import CliRunner

from battery.outcome import Tally, Wrong
from xpredflow.cli import app
from xpredflow.models.publication import DRAFT
from xpredflow.policies.beta import BetaNetwork, save_policy
from xpredflow.watch.trace_file import write_traces

ROWS = '{"prompt": "2+3=", "answer": 5, "grader": "number"}\n' * 3
SHORT = "-o gen_length=4 -o budget=2 -o chat=off"
TRAINED = "--updates 2 --batch 2 --save-every 1"
COMMANDS = {
    "eval": f"eval -m M -t T --split all -d mask {SHORT} --out OUT",
    "compare": f"compare -m M -t T --split all -d mask -b 1 {SHORT.replace('-o budget=2', '')}"
    " --out OUT",
    "self-generate": f"self-generate -m M --data P {SHORT} --out OUT/own.jsonl",
    "generate": "generate hi -m M --gen-length 4 --no-chat --trace OUT/t.jsonl",
    "view": "view V -o OUT/page.html",
    "replay": "replay V --row 0 --svg OUT/x.svg --gif OUT/x.gif",
    "average": "average OUT/mean M N",
    "reproduce": "reproduce consistency -m M --aligned N -t minimath --limit 2 --split validation"
    f" {SHORT.replace('-o budget=2', '')} --out OUT",
    "align": f"align OUT -m M --answers A {TRAINED} --holdout 2",
    "softmask": f"train-softmask OUT -m M --answers A {TRAINED} --holdout 2",
    "pretrain": "pretrain OUT -t minimath --shape S --updates 2 --batch 2 --probe-every 0"
    " --vocabulary 320 --tokenizer-examples 50",
    "push": "push OUT you/mine --license mit --policy Q --card-only",
    "train-policy": "train-policy OUT -m M -t minimath --updates 2 --prompts 2 --group 2"
    " --budget 2 --gen-length 4 --init-prompts 2 --init-fits 2 --validate-every 0",
}
RESUMED = ("align", "softmask", "pretrain", "train-policy")


class Disk:
    """Counts what is written below `place`; from the `fails_at`-th on it is full."""

    def __init__(self, place: Path, fails_at: int | None = None) -> None:
        self.place, self.fails_at, self.writes = str(place), fails_at, 0

    def touch(self, path: Any) -> None:
        if isinstance(path, int) or not os.fspath(path).startswith(self.place):
            return
        self.writes += 1
        if self.fails_at is not None and self.writes >= self.fails_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))

    @contextmanager
    def mounted(self) -> Iterator[None]:
        real = io.open

        def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if not set(mode) & set("wax+"):
                return real(file, mode, *args, **kwargs)
            self.touch(file)
            return _Counted(real(file, mode, *args, **kwargs), lambda: self.touch(file))

        def before(function: Callable[..., Any], place: int = 0) -> Callable[..., Any]:
            def counted(*args: Any, **kwargs: Any) -> Any:
                self.touch(args[place])
                return function(*args, **kwargs)

            return counted

        save = safetensors.torch.save_file
        with (
            patch.object(io, "open", opened),
            patch.object(builtins, "open", opened),
            patch.object(os, "replace", before(os.replace, 1)),
            patch.object(os, "mkdir", before(os.mkdir)),
            patch.object(safetensors.torch, "save_file", before(save, 1)),
        ):
            yield


class _Counted:
    """A file whose first write is counted, and then one in a hundred: torch makes hundreds."""

    def __init__(self, file: Any, touch: Callable[[], None]) -> None:
        self._file, self._touch, self._writes = file, touch, 0

    def write(self, data: Any) -> int:
        if self._writes % 100 == 0:
            self._touch()
        self._writes += 1
        return self._file.write(data)

    def __enter__(self) -> "_Counted":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _blank(_: object, picture: Path, **__: object) -> None:
    picture.write_bytes(b"a picture")


class Workshop:
    """A small checkpoint, problems, prompts and answers, and the commands on them."""

    def __init__(self, place: Path) -> None:
        self.place, self.runner = place, CliRunner()
        for name in "MN":
            write_checkpoint(place / name, "llada", tokenizer=True, max_sequence_length=512)
        write_traces(place / "V.jsonl", [toy_trace()])
        shape = json.loads((place / "M" / "config.json").read_text())
        (place / "S.json").write_text(json.dumps(shape))
        (place / "T.jsonl").write_text(ROWS)
        (place / "P.jsonl").write_text('{"prompt": "2+3="}\n' * 3)
        write_answers(place / "A.jsonl", own_answers(8))
        save_policy(BetaNetwork(), place / "Q", {"config": {"budget": 4}})

    def prepare(self, name: str, out: Path) -> None:
        """What a command finds there: a place for its file, or the checkpoint that it publishes."""
        if name == "push":
            shutil.copytree(self.place / "M", out)
        elif name in ("generate", "view", "replay"):
            out.mkdir()

    def words(self, name: str, out: Path) -> list[str]:
        """The command line; it goes on where there is a state to go on from."""
        resumed = " --resume" if name in RESUMED and any(out.glob("state*.pt")) else ""
        files = {
            "M": "M",
            "N": "N",
            "Q": "Q",
            "S": "S.json",
            **{name: f"{name}.jsonl" for name in "TPAV"},
        }
        words = [
            str(self.place / files[w]) if w in files else w
            for w in (COMMANDS[name] + resumed).split()
        ]
        return [word.replace("OUT", str(out)) for word in words]

    def run(self, words: list[str]) -> tuple[int, str]:
        """The exit code and what was said; Wrong where that is a traceback or no line."""
        # drawing is most of what a small training computes, and no part of what is tried
        with patch("matplotlib.figure.Figure.savefig", _blank):
            done = self.runner.invoke(app, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        said = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        said += [line for line in done.stderr.splitlines() if line.startswith("Error:")]
        if done.exit_code == 2 and len(said) != 1:
            raise Wrong(f"exit code 2, but standard error is {done.stderr[-300:]!r}")
        return done.exit_code, said[0] if said else ""


def try_faults(names: tuple[str, ...] = tuple(COMMANDS), every: int = 1) -> Tally:
    """Each command on a disk that fails at each `every`-th write."""
    tally = Tally("faults")
    with tempfile.TemporaryDirectory() as directory:
        shop = Workshop(Path(directory))
        for name in names:
            whole = Disk(Path(directory) / name)
            shop.prepare(name, Path(whole.place))
            with whole.mounted():
                code, said = shop.run(shop.words(name, Path(whole.place)))
            if code:
                raise Wrong(f"{name} does not work at all: {said}")
            for k in range(1, whole.writes + 1, every):
                out = Path(directory) / f"{name}-{k}"
                tally.run(f"{name} at write {k}", lambda n=name, o=out, k=k: _fails(shop, n, o, k))
    return tally


def _fails(shop: Workshop, name: str, out: Path, k: int) -> None:
    shop.prepare(name, out)
    disk = Disk(out, k)
    with disk.mounted():
        code, said = shop.run(shop.words(name, out))
    if code == 0:
        raise Wrong(f"the disk was full at write {k} of {disk.writes}, and nothing was said")
    if code != 2 or "No space left" not in said:
        raise Wrong(f"exit code {code}: {said!r}")
    if left := [*out.rglob("*.tmp"), *out.rglob(f"{DRAFT}*")]:
        raise Wrong(f"left behind: {left}")
    code, said = shop.run(shop.words(name, out))
    if code:
        raise Wrong(f"the same command does not go on: {said}")
