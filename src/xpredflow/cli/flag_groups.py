"""Flags that several commands take together, handed over as one value.

@expanded
def command(out: ..., decoding: DecodingFlags, json: shared.Json = False): ...

A parameter whose type is a dataclass stands for all flags that it declares, in that place.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

import typer

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import given, merged, of_file

if TYPE_CHECKING:
    from xpredflow.processes import Share


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the flags of its groups instead of the groups."""
    groups: dict[str, tuple[type, list[str]]] = {}
    flags: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        group: type = parameter.annotation
        if not is_dataclass(group):
            flags[name] = parameter
            continue
        added = inspect.signature(group).parameters  # type: ignore[arg-type]
        groups[name] = (group, list(added))
        flags |= added

    def called(**values: Any) -> Any:
        for name, (group, parts) in groups.items():
            values[name] = group(**{part: values.pop(part) for part in parts})
        return command(**values)

    keyword, rest = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    called.__doc__, called.__name__ = command.__doc__, command.__name__
    called.__module__ = command.__module__
    called.__annotations__ = {name: flag.annotation for name, flag in flags.items()}
    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [flag if flag.kind is rest else flag.replace(kind=keyword) for flag in flags.values()]
    )
    return called


@dataclass(frozen=True)
class DecodingFlags:
    """Who decodes and how, as the user wrote it."""

    model: shared.Model = None
    decoder: shared.Decoder = None
    policy: shared.Policy = None
    budget: shared.Budget = None
    seed: shared.Seed = None
    cache: shared.Cache = None
    option: shared.Option = None
    dtype: shared.Dtype = None
    quantize: shared.Quantize = None
    device: shared.Device = None
    device_map: shared.DeviceMap = None
    tensor_parallel: shared.TensorParallel = False
    compile: shared.Compile = False
    cuda_graphs: shared.CudaGraphs = False

    def source(self, **more: Any) -> dict[str, Any]:
        """What `load` is called with."""
        named = {"source": self.model, "dtype": self.dtype, "quantize": self.quantize}
        where = {"device": self.device, "device_map": self.device_map}
        compiled = "graphs" if self.cuda_graphs else self.compile
        switches = {"tensor_parallel": self.tensor_parallel, "compile": compiled}
        on = {name: value for name, value in switches.items() if value}
        return given({**named, **where, **on, **more})

    def share(self) -> "Share":
        """This process's share of the work under torchrun; which kind it is, is said once."""
        from xpredflow.processes import Share, join_processes

        if self.tensor_parallel:  # `load` returns in the first process alone, and says so
            return Share()
        share = join_processes()
        if share.world > 1 and share.rank == 0:
            typer.echo(
                f"note: {share.world} processes share the prompts out, with a model each"
                " (--tensor-parallel: they hold one together)",
                err=True,
            )
        return share

    def options(self, example: str = "tau=0.95", **more: Any) -> dict[str, Any]:
        """Options of the engine and the decoder by name."""
        named = {"policy": self.policy, "budget": self.budget, "seed": self.seed}
        named |= {"cache": self.cache, **more}
        return merged(given(named), self.option, example=example)


@dataclass(frozen=True)
class FileFlags:
    """How a file of one's own is read and graded, and where programs may run."""

    column: shared.Column = None
    grader: shared.Grader = None
    response_length: shared.ResponseLength = None
    unsafe: shared.Unsafe = False

    def of_file(self) -> dict[str, Any]:
        """As `make_task` takes it."""
        return of_file(self.column, self.grader, self.response_length)


@dataclass(frozen=True)
class TaskFlags:
    """The tasks that are asked, minicode and minimath unless others were named."""

    task: shared.Tasks = None
    draw: shared.Draw = 0
    data: shared.Data = None
    template: shared.Template = None
    column: shared.Column = None
    grader: shared.Grader = None
    response_length: shared.ResponseLength = None
    unsafe: shared.Unsafe = False

    def tasks(self) -> list[Any]:
        """The tasks themselves."""
        files = merged({}, self.data, "--data", "mbpp=mbpp.jsonl")

        from xpredflow.tasks import make_tasks

        names = self.task or ["minicode", "minimath"]
        own = of_file(self.column, self.grader, self.response_length)
        return make_tasks(names, data=files, template=self.template, draw=self.draw, **own)
