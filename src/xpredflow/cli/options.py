"""Options that several commands have, each declared once."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from xpredflow.cli import completion as complete

Offers = Callable[..., complete.Offers]


def _text(*names: str, metavar: str | None = None, help: str, offers: Offers | None = None) -> Any:
    """A flag whose value is handed on as text: where it is used declares its type and default."""
    return typer.Option(*names, metavar=metavar, help=help, autocompletion=offers)


# What decodes
Model = Annotated[
    str | None,
    _text(
        "--model",
        "-m",
        help="An embedded model, a checkpoint's directory or a hub id; default: tiny-aligned, or"
        " tiny where weights are to be trained. +mask=ID behind it, +block=N, ... say what its"
        " files leave out.",
        offers=complete.model_names,
    ),
]
Revision = Annotated[str | None, _text("--revision", help="Branch, tag or commit of a hub model.")]
Dtype = Annotated[
    str | None,
    _text(
        "--dtype",
        help="Load weights as float32, bfloat16 or float16; auto: as this machine has memory and"
        " instructions for, int8 included. Default: as stored; of generate and demo: auto.",
        offers=complete.dtype_names,
    ),
]
Quantize = Annotated[
    str | None,
    _text(
        "--quantize",
        metavar="int8|int4|none",
        help="Keep matrices in so many bits: a half or a third of bfloat16's memory. none unpacks"
        " what GPTQ or AWQ stored in 4 bits.",
        offers=complete.quantize_names,
    ),
]
Compile = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Have torch compile the layers: the first passes take long, all others less.",
    ),
]
CudaGraphs = Annotated[
    bool,
    typer.Option("--cuda-graphs", help="The same, with every layer as one CUDA graph."),
]
Device = Annotated[
    str | None,
    _text(
        "--device",
        help="Where to compute, such as cpu or cuda:1; default: the accelerator if there is one.",
    ),
]
DeviceMap = Annotated[
    str | None,
    _text(
        "--device-map",
        metavar="auto|DEVICES",
        help="Spread the layers over every accelerator, or over those named: cuda:0,cuda:1.",
    ),
]
TensorParallel = Annotated[
    bool,
    typer.Option(
        "--tensor-parallel",
        help="Under torchrun: all processes hold one model together, a part of every matrix each.",
    ),
]
Decoder = Annotated[
    str | None,
    _text(
        "--decoder",
        "-d",
        metavar="NAME[:VALUE][+OPTION=VALUE]",
        help="A decoder, such as threshold:0.8 or flow:learned:tiny+tau=0.95; `xpredflow decoders`"
        " lists them, the default first.",
        offers=complete.decoder_names,
    ),
]
Policy = Annotated[
    str | None,
    _text(
        "--policy",
        help="The flow's step-size policy: confidence, constant:1/16, learned:tiny, learned:FILE.",
        offers=complete.policy_names,
    ),
]
_budget = _text(
    "--budget",
    "-b",
    metavar="N|SHARE",
    help="At most this many forward passes: a number, or a share of the response's length: 1/4, 25%"
    " or full.",
)
Budget = Annotated[str | None, _budget]
Budgets = Annotated[list[str] | None, _budget]  # where it may be repeated
Cache = Annotated[
    str | None,
    _text(
        "--cache",
        metavar="prefix|dual",
        help="Of a bidirectional model: keep what stands before a block (prefix) or around it"
        " (dual) from its first pass on. Faster, approximate.",
        offers=complete.cache_names,
    ),
]
Seed = Annotated[str | None, _text("--seed", metavar="N", help="Seed of everything that is drawn.")]
Option = Annotated[
    list[str] | None,
    _text(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="Any other option of the engine or the decoder, repeatable; `xpredflow decoders NAME`"
        " lists them.",
        offers=complete.option_pairs,
    ),
]

# What is asked, and how it is judged
Tasks = Annotated[
    list[str] | None,
    _text(
        "--task",
        "-t",
        metavar="TASK",
        help="A task: its name (xpredflow tasks lists them), mine.jsonl or mine.py:MyTask;"
        " repeatable, or with commas.",
        offers=complete.task_names,
    ),
]
_limit = typer.Option(
    "--limit", metavar="N", help="At most this many problems of each task, or prompts.", min=1
)
Limit = Annotated[int, _limit]
LimitOrAll = Annotated[int | None, _limit]  # where none is needed
Split = Annotated[
    str,
    _text(
        "--split",
        help="validation while you choose, test once at the end. A file of yours without a column"
        " 'split' is split by its prompts: 80 % train, 10 % validation, 10 % test; all: the whole.",
        offers=complete.split_names,
    ),
]
Draw = Annotated[
    int,
    typer.Option(
        "--draw",
        metavar="SEED",
        help="Of generated tasks: other validation and test problems, disjoint by meaning from"
        " those of every other seed; 0 has the published ones.",
        min=0,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="What a field is called in your file, such as prompt=question; repeatable.",
    ),
]
Grader = Annotated[
    str | None,
    typer.Option(
        help="How your file is graded where its rows do not say: exact, number, choice, regex or"
        " python."
    ),
]
ResponseLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Tokens that answers to your file may take; default: its column, else 256.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TASK=PATH",
        help="File or hub id of a published task; default: its original hub dataset.",
    ),
]
Template = Annotated[
    str | None,
    typer.Option(help="Prompt template of published tasks: llada-instruct, llada-base, ..."),
]
Unsafe = Annotated[
    bool,
    typer.Option(
        "--unsafe-code-execution",
        help="Run generated programs with your own rights where no sandbox is to be had.",
    ),
]
Delay = Annotated[
    float | None,
    typer.Option(
        "--delay", metavar="SECONDS", help="Show each pass for so long on a terminal.", min=0
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]

# What was recorded
Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE...",
        help="Files that --trace wrote; those of one prompt stand side by side.",
        show_default=False,
    ),
]
RowNumber = Annotated[
    int | None,
    typer.Option("--row", metavar="N", help="Only this row of a trace of several prompts.", min=0),
]

# How a run goes
RunDirectory = Annotated[Path, typer.Argument(help="Directory of the run; made if there is none.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="RUN.TOML",
        help="Settings of another run, from its run.toml; whatever else is given wins.",
    ),
]
SettingPairs = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="NAME=VALUE", help="Any setting below by its name."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run that the directory holds.")
]
Updates = Annotated[str | None, _text("--updates", "-n", metavar="N", help="Updates in all.")]
Threads = Annotated[int | None, typer.Option(help="CPU threads; default: one per core.", min=1)]
