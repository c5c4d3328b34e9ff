"""The models that come with the package, by name."""

import re
from difflib import get_close_matches
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import torch

from xpredflow.errors import InputError, unknown_name
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.loader import load as load_checkpoint
from xpredflow.models.overrides import NO_OVERRIDES, Overrides, split_source
from xpredflow.models.precision import AUTO
from xpredflow.models.shards import SINGLE

# Each model as it was pretrained, and after alignment, which is what flow needs.
ALIGNED = {"tiny": "tiny-aligned", "tiny-moe": "tiny-moe-aligned", "small": "small-aligned"}
SHORT_TASKS_ONLY = ("tiny", "tiny-moe")  # of the generated tasks, and in the grammar's words
PAPER_ALIGNED = "tiny-aligned-paper"  # by the paper's alignment alone: one round, unfiltered
EMBEDDED = (*ALIGNED, *ALIGNED.values(), PAPER_ALIGNED)
PRETRAINED = "tiny"  # what trainings start from unless told
DEFAULT = ALIGNED[PRETRAINED]  # what decodes
# The requests of minicode and of minimath, roughly; in people's words, by what they must name.
_KNOWN = re.compile(
    r"(?:Write|Define) \w+\(\w+(?:, k)?\) with [a-z ]+\. For each (?:number|word): "
    r"|[A-Z]\w+ has \d\d? \w+,[^?]+\? Use (?:letters|names|units|one sentence)\.$"
)
_KNOWN_IN_ANY_WORDS = re.compile(r"\w+\(\w+(?:, k)?\)|\d.*\?", re.DOTALL)
_EXAMPLE = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."


def assets(name: str) -> Path:
    """The directory of an embedded model, whether it is there or not."""
    return Path(str(files("xpredflow"))) / "assets" / name


def embedded_names() -> list[str]:
    """The embedded models that this installation has."""
    return [name for name in EMBEDDED if (assets(name) / SINGLE).is_file()]


def load(
    source: str | Path,
    *,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    revision: str | None = None,
    mask: int | str | None = None,
    eos: int | str | None = None,
    shift: int | None = None,
    block: int | None = None,
    anchor: str | None = None,
    max_length: int | None = None,
    quantize: str | None = None,
    device_map: str | None = None,
    tensor_parallel: bool = False,
    compile: bool | Literal["graphs"] = False,
) -> MaskedDiffusionModel:
    """An embedded model by its name, or a checkpoint from a directory or a hub id.

        model = load("tiny-aligned")
        model = load("GSAI-ML/LLaDA-8B-Instruct", dtype="bfloat16", device="cuda")
        model = load("GSAI-ML/LLaDA-8B-Instruct", quantize="int8")

    The name wins over a directory of that name: write ./tiny for the directory. `dtype` None keeps
    what is stored (on a CPU, float32 in place of float16), 'auto' takes what the machine has memory
    and instructions for; `device` None takes the accelerator where there is one.
    `quantize` ('int8', 'int4') packs the matrices: such a model only decodes, and so does one
    that GPTQ or AWQ stored in 4 bits unless it is 'none'.

    `device_map` spreads the layers over all accelerators ('auto') or some, "cuda:0,cuda:1".
    `tensor_parallel` shares every matrix out among the processes of torchrun, which each call this.
    It returns in the first one, whose passes the others follow until it ends (docs/scaling.md).
    `compile` has torch compile the layers when they are first run: seconds to minutes, then faster
    passes; "graphs" makes CUDA graphs of them.

    The others say what a checkpoint's files leave out; `source` may say it too, as in
    "owner/name+mask=5+block=32". `mask` and `eos` are tokens or ids; `shift=1`: the logits at a
    position predict the next one; `block`: attention in blocks of so many positions, 0 for full
    attention, counted from the row's start or its response (`anchor`); `max_length`: positions.
    """
    said = {"mask": mask, "eos": eos, "shift": shift, "block": block, "anchor": anchor}
    source, overrides = split_source(source, {**said, "max_length": max_length})
    how: dict[str, Any] = {"dtype": dtype, "device": device, "quantize": quantize}
    how |= {"device_map": device_map, "tensor_parallel": tensor_parallel}
    if source in embedded_names():
        _check_embedded(source, overrides, revision)
        model = load_embedded(str(source), **how)
    else:
        _check_name(source)
        model = load_checkpoint(source, revision=revision, overrides=overrides, **how)
    if model.quantized:  # another model: what was measured of it must not be taken for these
        model.name = f"{model.name} ({model.quantized})"
    if compile:
        from xpredflow.models.compilation import compile_layers  # torch's compiler takes seconds

        compile_layers(model, compile)
    return model


def _check_embedded(source: str | Path, overrides: Overrides, revision: str | None) -> None:
    if overrides != NO_OVERRIDES:
        raise InputError(
            f"model {source!r} comes with the package, and its files say all about it: leave out"
            f" {', '.join(n for n, v in vars(overrides).items() if v is not None)}"
        )
    if revision is not None:
        raise InputError(
            f"revision is {revision!r} but model {source!r} comes with the package and has no"
            " revisions: leave it out, or give a hub id"
        )


def _check_name(source: str | Path) -> None:
    """A bare word that is no directory was meant as a name: say which there are."""
    if isinstance(source, str) and "/" not in source and not Path(source).expanduser().exists():
        near = get_close_matches(source, embedded_names(), n=1)
        raise InputError(
            f"unknown model {source!r}: {f'did you mean {near[0]!r}? ' if near else ''}Expected an"
            f" embedded model ({', '.join(embedded_names())}), the directory of a checkpoint, or a"
            " hub id such as GSAI-ML/LLaDA-8B-Instruct"
        )


def load_embedded(
    name: str,
    *,
    dtype: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    **how: Any,
) -> MaskedDiffusionModel:
    """The embedded model `name`."""
    if name not in embedded_names():
        raise unknown_name("embedded model", name, embedded_names())
    # stored as float16 only to be small
    wanted = "float32" if dtype in (None, AUTO) else dtype
    model = load_checkpoint(assets(name), dtype=wanted, device=device, **how)
    model.name = name
    model.hint = partial(_hint, name)
    return model


def _hint(name: str, prompt: Any) -> str | None:
    """What the embedded models can answer, for who asks them something else."""
    if not isinstance(prompt, str) or "[[mask:" in prompt:
        return None
    short = name.startswith(SHORT_TASKS_ONLY)
    text = prompt[:2000].strip()
    if _KNOWN.match(text) if short else _KNOWN_IN_ANY_WORDS.search(text):
        return None
    tasks = "minicode, minimath" if short else "minicode, minimath, longcode, longmath"
    words = "'small-aligned' reads them in more words; " if short else ""
    return (
        f"note: {name!r} is very small and knows a few kinds of request, such as {_EXAMPLE!r}"
        f" (xpredflow tasks {tasks}); {words}for other text load a checkpoint of yours"
    )
