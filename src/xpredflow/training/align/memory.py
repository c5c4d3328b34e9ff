"""How much memory a run needs on its device, from a formula.

With P parameters, T of them trained, W processes, N positions in a pass, L layers, a vocabulary of
V, width E, s bytes in a product and c positions of a chunk, a process holds

    weights      4·P/W, or s·P/W beside adapters       reference    s·P/W
    gradients    4·T/W                                 moments      8·T/W, or 2·T in 8 bits

all the time, and in a pass

    kept         what the backward pass needs of the layers: L·N·E of a residual stream where
                 activations are computed again, else L·N·a with a bytes per position and layer
    at work      one layer's N·a where they are computed again, and its parameters: multiplied in
                 s bytes, or put together from all processes
    readout      two tables of c·V, both vocabulary matrices in s bytes, and the head's gradient

`a` counts what torch keeps for a layer: normed inputs, heads, attention's output, and four tensors
of the MLP's inner width; on a CPU attention's are in fp32 whatever s is. Gradients grow as
activations go: with one part per update the larger of the two counts, with several both.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn

from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.experts import Experts
from xpredflow.training.align.config import AlignConfig

FLOAT = 4  # bytes in fp32


@dataclass(frozen=True)
class Footprint:
    """Bytes on the device of one process, part by part."""

    weights: int
    reference: int
    gradients: int
    moments: int
    passing: int  # activations, the layer at work and the readout

    @property
    def total(self) -> int:
        """All of it, at the worst moment."""
        return sum(getattr(self, field.name) for field in fields(self))

    def line(self) -> str:
        """In a line."""
        parts = {**vars(self), "activations": self.passing}
        del parts["passing"]
        named = ", ".join(f"{name} {value / 1e9:.1f}" for name, value in parts.items() if value)
        return f"{self.total / 1e9:.1f} GB ({named})"


def announced(expected: Footprint, device: torch.device, world: int) -> str | None:
    """What a run says before it starts; nothing on a CPU, whose memory is not its own."""
    if device.type == "cpu":
        return None
    where = f"on {device}" if world == 1 else f"on each of {world} devices"
    line = f"expects {expected.line()} {where}"
    room = torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else None
    if room is None or expected.total <= room:
        return line
    return (
        f"{line}, which has {room / 1e9:.1f}: a higher accumulate, checkpointing, lora_rank,"
        " reference_every=0 or more processes need less"
    )


@dataclass(frozen=True)
class Work:
    """What one process does at once: `parts` passes of `positions` per update, over `world`."""

    positions: int
    parts: int
    world: int
    products: torch.dtype
    checkpointing: bool
    float_attention: bool = False  # whatever the products are in


def footprint(model: MaskedDiffusionModel, config: AlignConfig, work: Work) -> Footprint:
    """Of a model as it is trained, adapters included; it may lie on the meta device."""
    s, world = work.products.itemsize, work.world
    every = sum(p.numel() for p in model.parameters())
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    adapters = bool(config.lora_rank)
    weights = s * (every - trained) + FLOAT * trained if adapters else FLOAT * every
    reference = 0 if adapters or not config.reference_every else s * every
    gradients = FLOAT * trained // world
    moments = trained * (2 if config.moments == "8bit" else 8) // world
    begins, ends = _pass(model, config, work)
    # gradients come one after the other, as activations go
    passing = max(begins - gradients, ends) if work.parts == 1 else begins
    return Footprint(weights // world, reference // world, gradients, moments, passing)


def _pass(model: MaskedDiffusionModel, config: AlignConfig, work: Work) -> tuple[int, int]:
    """What is needed when the backward pass begins, and when it ends, beside the gradients."""
    s, count = work.products.itemsize, work.positions
    layers = list(model.trunk()[0])
    vocabulary, width = model.embedding.shape
    adapters = bool(config.lora_rank)
    # sharded weights and those beside adapters are at hand in the products' dtype
    cast = s < FLOAT and not adapters and work.world == 1
    residual = FLOAT if cast else s
    attended = FLOAT if work.float_attention else s
    a = count * max(layer_bytes(model, layer, s, attended, residual, adapters) for layer in layers)
    largest = max(sum(p.numel() for p in layer.parameters()) for layer in layers)
    copies = s * largest if cast else 0
    if work.checkpointing:
        kept, working = len(layers) * count * width * residual, a + copies
        if adapters and s < FLOAT:  # their inputs and their inputs' gradients, in fp32
            working += 2 * FLOAT * count * max(_inner(layer) for layer in layers)
    else:
        kept, working = len(layers) * (a + copies), a // 4
    table = vocabulary * width
    tables = 2 * FLOAT * config.chunk * vocabulary if s == FLOAT else 10 * config.chunk * vocabulary
    if cast:
        tables += 2 * s * table
    head = 0 if adapters else FLOAT * table
    if head and s < FLOAT:
        tables += s * table  # a chunk's product, before it is added
    ends = 3 * count * width * residual
    gathered = 0
    if work.world > 1:  # vocabulary matrices for the whole pass, this layer and the next
        gathered = s * (2 * table + 2 * largest)
        if not adapters:  # gradients of a layer and of the head on their way to their shards
            gathered += (s + FLOAT) * (largest + table)
    begins = kept + head + ends + gathered + max(working, tables)
    return begins, working + gathered


def layer_bytes(
    model: MaskedDiffusionModel,
    layer: nn.Module,
    s: int,
    attended: int,
    residual: int,
    adapters: bool,
) -> int:
    """What torch keeps of a layer for the backward pass, per position."""
    width, shape = model.embedding.shape[1], model.shape
    heads, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    norms = 2 * width * FLOAT  # computed in fp32
    if not adapters:  # to scale the norms' own gradients
        norms += 2 * width * residual
    # in bf16 every matrix casts its input for itself, unless it is at hand
    shared = s == FLOAT or (residual < FLOAT and not adapters)
    inputs = ((2 if shared else 5) * width + heads) * s
    attention = (2 * heads + 2 * kv) * attended
    return norms + inputs + attention + _mlp_bytes(layer, width, s)


def _mlp_bytes(layer: nn.Module, width: int, s: int) -> int:
    """Four tensors of the inner width; experts also keep their inputs, and outputs in fp32."""
    routing: Any = next((m.routing for m in layer.modules() if hasattr(m, "routing")), None)
    of_experts = 0 if routing is None else routing.chosen * width * (s + FLOAT)
    return 4 * _inner(layer) * s + of_experts


def _inner(layer: nn.Module) -> int:
    """The width inside a layer's MLP: of the shared expert and those chosen, where there are any.

    An MLP's last matrix leads back from it.
    """
    named = dict(layer.named_modules())
    experts: Any = next((m for m in named.values() if isinstance(m, Experts)), None)
    mlp = [n for n in named if experts is None or "shared_experts" in n]
    linear: list[Any] = [
        named[n] for n in mlp if isinstance(named[n], nn.Linear) and "lora_" not in n
    ]
    inner = linear[-1].in_features if linear else 0
    if experts is None:
        return inner
    routing: Any = next(m.routing for m in named.values() if hasattr(m, "routing"))
    return inner + routing.chosen * experts.gate_proj.shape[1]
