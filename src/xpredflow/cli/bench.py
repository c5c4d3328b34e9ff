"""What `compare` and `reproduce` share: flags, handed over as one value; how Ctrl-C ends them."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.options import merged, of_file

if TYPE_CHECKING:
    from xpredflow.cli.progress import BenchBar


@dataclass(frozen=True)
class BenchFlags:
    """What is measured on which tasks, as the user wrote it."""

    task: shared.Tasks = None
    draw: shared.Draw = 0
    option: shared.Option = None
    json: shared.Json = False
    column: shared.Column = None
    grader: shared.Grader = None
    response_length: shared.ResponseLength = None
    data: shared.Data = None
    template: shared.Template = None
    dtype: shared.Dtype = None
    device: shared.Device = None
    unsafe: shared.Unsafe = False

    def options(self) -> dict[str, Any]:
        """Options of the engine and the decoders by name."""
        return merged({}, self.option, example="gen_length=64")

    def tasks(self) -> list[Any]:
        """The tasks themselves, minicode and minimath unless others were named."""
        files = merged({}, self.data, "--data", "mbpp=mbpp.jsonl")

        from xpredflow.tasks import make_tasks

        names = self.task or ["minicode", "minimath"]
        own = of_file(self.column, self.grader, self.response_length)
        return make_tasks(names, data=files, template=self.template, draw=self.draw, **own)


def takes_bench_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these flags behind its own; its parameter `flags` gets their values."""
    shown = dict(inspect.signature(command).parameters)
    del shown["flags"]
    added = inspect.signature(BenchFlags).parameters

    def called(**values: Any) -> None:
        flags = BenchFlags(**{name: values.pop(name) for name in added})
        command(**values, flags=flags)

    every = {**shown, **added}
    called.__doc__, called.__name__ = command.__doc__, command.__name__
    called.__module__ = command.__module__
    called.__annotations__ = {name: given.annotation for name, given in every.items()}
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [given.replace(kind=inspect.Parameter.KEYWORD_ONLY) for given in every.values()]
    )
    return called


@contextmanager
def stoppable(bar: "BenchBar", out: Path) -> Iterator[None]:
    """Ctrl-C says what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        answers = "1 new answer is" if bar.kept == 1 else f"{bar.kept} new answers are"
        bar.note(f"stopped: {answers} kept in {out / 'samples'}; the same command goes on there")
        raise typer.Exit(130) from None
