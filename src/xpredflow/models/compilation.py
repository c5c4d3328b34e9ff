"""torch.compile, one layer at a time: fewer and larger kernels for what stands between products.

Layers and not the whole model: they are alike and share one compiled graph, so that the first pass
waits for one layer's compilation and not for the model's. Shapes are symbolic: a batch that grows,
shrinks or gets longer runs the same graph. The loop around the layers, where rows join and leave,
stays as it is. Layers behind an exact cache have a graph each, for each has keys of its own.

CUDA graphs come with torch's mode "reduce-overhead": a layer's kernels are recorded once for every
shape and started together.
"""

from typing import Any, cast

import torch

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.types import Model

INDUCTOR = "inductor"
GRAPHS = "graphs"
RECOMPILED = 512  # graphs of one layer's code; torch gives up compiling after 8


def compile_layers(
    model: Model, how: str | bool = True, backend: Any = INDUCTOR, whole: bool = False
) -> None:
    """Have every layer compiled when it is first run, as CUDA graphs where `how` is "graphs".

    `backend` is one of torch.compile's; `whole` makes a layer an error that is not one graph.
    """
    if how not in (True, GRAPHS):
        raise InputError(f"compile is {how!r}: give True, or {GRAPHS!r} for CUDA graphs")
    if not isinstance(model, MaskedDiffusionModel):
        raise InputError(
            f"compile is on, but {model.name!r} is a module of its own: compile"
            " it with torch.compile before it is wrapped, and leave this out"
        )
    if model.quantized is not None:
        raise InputError(
            f"compile is on and {model.name!r} is quantized to {model.quantized}, which do not go"
            " together: leave one of the two out"
        )
    device = model.embedding.device
    if how == GRAPHS and device.type != "cuda":
        raise InputError(
            f"compile is {GRAPHS!r}, but {model.name!r} is on {device}, which has no CUDA graphs:"
            " give True"
        )
    model.compiled, model.replays = True, how == GRAPHS
    mode = "reduce-overhead" if model.replays else None
    config = cast(Any, torch)._dynamo.config
    config.recompile_limit = max(config.recompile_limit, RECOMPILED)
    layers, _, _ = model.trunk()
    for layer in layers:
        # as a call of the module itself: parameters keep their names, and it can still be saved
        layer.compile(backend=backend, mode=mode, dynamic=True, fullgraph=whole)
