"""What `compare` and `reproduce` share: their flags, and how Ctrl-C ends them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import merged
from xpredflow.cli.flag_groups import TaskFlags

if TYPE_CHECKING:
    from xpredflow.cli.progress import BenchBar


@dataclass(frozen=True)
class BenchFlags(TaskFlags):
    """What is measured on which tasks, as the user wrote it."""

    option: shared.Option = None
    json: shared.Json = False
    dtype: shared.Dtype = None
    quantize: shared.Quantize = None
    device: shared.Device = None

    def options(self) -> dict[str, Any]:
        """Options of the engine and the decoders by name."""
        return merged({}, self.option, example="gen_length=64")


@contextmanager
def stoppable(bar: "BenchBar", out: Path) -> Iterator[None]:
    """Ctrl-C says what was kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        answers = "1 new answer is" if bar.kept == 1 else f"{bar.kept} new answers are"
        bar.note(f"stopped: {answers} kept in {out / 'samples'}; the same command goes on there")
        raise typer.Exit(130) from None
