"""What a forward pass costs: arithmetic, bytes, kernels, waits of the host; and the time of it all.

The counts follow from an architecture and the shape of a pass. Rates belong to a machine: measured
ones (benchmarks/cost_model.py) or those of a data sheet (projection.py). Times are computed from
both; no constant here was solved from the time of a pass.

Kernels and waits are those that the simulated accelerator of the tests counts, where a test holds
the numbers below.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from xpredflow.engine.distribution import BLOCK, KEPT
from xpredflow.models.base import MaskedDiffusionModel

# Kernels of a layer, of the last norm and the head, and of what follows: signals and the flow.
LAYER_KERNELS, EXPERT_KERNELS, CACHED_KERNELS = 44, 120, 56
END_KERNELS, AFTER_KERNELS = 8, 67
SYNCS = 1  # of a step in which no row joins or leaves
# Tensors as wide as the model that a layer reads or writes outside its products: two norms (7
# each) and two sums (3 each); the copies around attention; those that are rotated; those of the
# MLP, between its products.
WIDE_PASSES, COPIED_PASSES, ROTATED_PASSES, INNER_PASSES = 20, 8, 10, 3
# Reads and writes of all logits after the head, in fp32 and beside one softmax; of the canvas.
LOGIT_PASSES, STATE_PASSES = 6, 20
# Logits of which the best are looked for, four blocks of them where there are more.
CANDIDATES = KEPT * BLOCK


@dataclass(frozen=True)
class Architecture:
    """Sizes of a model. `dense` are the weights of layers that every position is multiplied by."""

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    weights: int
    dense: int
    inner: int  # width of what a position has inside an MLP, experts taken together
    cached: bool
    expert: int = 0  # weights of one expert
    expert_layers: int = 0
    experts: int = 0
    chosen: int = 0

    @classmethod
    def of(cls, model: MaskedDiffusionModel) -> "Architecture":
        """Of a model, which may be on the meta device."""
        layers = model.trunk()[0]
        names = {
            id(tensor) for layer in layers for tensor in layer.state_dict(keep_vars=True).values()
        }
        tensors = model.state_dict(keep_vars=True)
        inside = {name: tensor for name, tensor in tensors.items() if id(tensor) in names}
        stacks = [tensor for tensor in inside.values() if tensor.ndim == 3]
        routings: list[Any] = [m.routing for m in model.modules() if hasattr(m, "routing")]
        chosen = max((routing.chosen for routing in routings), default=0)
        dense = [tensor for tensor in inside.values() if tensor.ndim == 2]
        inner = [t.shape[0] for name, t in inside.items() if name.endswith("up_proj.weight")]
        routed = [
            chosen * stack.shape[1]
            for name, stack in inside.items()
            if name.endswith("experts.up_proj")
        ]
        table, shape = model.embedding, model.shape
        return cls(
            name=model.name,
            layers=shape.layers,
            width=table.shape[1],
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            vocabulary=table.shape[0],
            weights=sum(tensor.numel() for tensor in tensors.values()),
            dense=sum(tensor.numel() for tensor in dense),
            inner=(sum(inner) + sum(routed)) // shape.layers,
            cached=model.block_size is not None,
            expert=sum(stack[0].numel() for stack in stacks) // max(1, len(stacks) // 3),
            expert_layers=len(stacks) // 3,
            experts=stacks[0].shape[0] if stacks else 0,
            chosen=chosen,
        )

    @property
    def active(self) -> int:
        """Weights of layers that one position is multiplied by."""
        return self.dense + self.expert_layers * self.chosen * self.expert

    def touched(self, positions: int) -> float:
        """Weights of layers that a pass reads: experts that nobody chose are not."""
        if not self.experts:
            return float(self.dense)
        share = 1 - (1 - self.chosen / self.experts) ** positions
        return self.dense + self.expert_layers * self.experts * share * self.expert


@dataclass(frozen=True)
class PassShape:
    """A pass of so many rows: inputs of each, positions whose logits are read, keys it sees."""

    rows: int
    inputs: int
    read: int
    keys: int

    @property
    def positions(self) -> int:
        """Inputs of all rows."""
        return self.rows * self.inputs


class Part(NamedTuple):
    """A part of a pass: `moved` bytes are of activations, `weights` bytes of weights.

    Some of the activations are `copied` in another order, `rotated`, or `gated` by an MLP. A CPU
    does that at other rates than a norm, and exponentials and ranked logits take time of their own
    there; on an accelerator the bytes hide them.
    """

    flops: float = 0.0
    weights: float = 0.0
    moved: float = 0.0
    copied: float = 0.0
    rotated: float = 0.0
    gated: float = 0.0
    exps: float = 0.0
    ranked: float = 0.0
    kernels: int = 0
    syncs: int = 0


@dataclass(frozen=True)
class Rates:
    """What a machine does in a second, and the seconds that starting a kernel and a wait take.

    Where work overlaps, the slowest of products, memory and the host decides; on a CPU one comes
    after the other, and `flops` is measured with weights that come from memory. What is copied,
    rotated and gated goes at the rate of other bytes where it has none.
    """

    flops: float
    bytes: float
    copied: float | None = None
    rotated: float | None = None
    gated: float | None = None
    exps: float = float("inf")
    ranked: float = float("inf")
    launch: float = 0.0
    sync: float = 0.0
    overlaps: bool = False

    def seconds(self, part: Part) -> float:
        """The time of a part."""
        products, host = part.flops / self.flops, part.kernels * self.launch
        if self.overlaps:
            moved = part.moved + part.copied + part.rotated + part.gated
            memory = (part.weights + moved) / self.bytes
            return max(products, memory, host) + part.syncs * self.sync
        moving = part.moved / self.bytes
        for name in ("copied", "rotated", "gated"):
            moving += getattr(part, name) / (getattr(self, name) or self.bytes)
        after = part.exps / self.exps + part.ranked / self.ranked
        return products + moving + after + host


def parts_of(arch: Architecture, shape: PassShape, itemsize: int) -> dict[str, Part]:
    """A pass of the flow, part by part; the last layer as if it did not end with what is read."""
    positions, read = shape.positions, shape.rows * shape.read
    heads, groups = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    activations = itemsize * arch.layers * positions
    plain = CACHED_KERNELS if arch.cached else LAYER_KERNELS
    kernels = plain * (arch.layers - arch.expert_layers) + EXPERT_KERNELS * arch.expert_layers
    pairs = shape.rows * shape.inputs * shape.keys
    return {
        "layers": Part(
            flops=2 * arch.active * positions,
            weights=itemsize * arch.touched(positions),
            moved=activations * WIDE_PASSES * arch.width,
            copied=activations * COPIED_PASSES * arch.width,
            rotated=activations * ROTATED_PASSES * (heads + groups),
            gated=activations * INNER_PASSES * arch.inner,
            kernels=kernels,
        ),
        "attention": Part(
            flops=4 * arch.layers * heads * pairs,
            moved=2 * itemsize * arch.layers * groups * shape.rows * shape.keys,
        ),
        "head": Part(
            flops=2 * arch.vocabulary * arch.width * read,
            weights=itemsize * arch.vocabulary * arch.width,
            moved=itemsize * arch.vocabulary * read,
            kernels=END_KERNELS,
        ),
        "after the head": Part(
            moved=4 * read * (LOGIT_PASSES * arch.vocabulary + STATE_PASSES * arch.width),
            exps=arch.vocabulary * read,
            ranked=candidates(arch.vocabulary) * read,
            kernels=AFTER_KERNELS,
            syncs=SYNCS,
        ),
    }


def candidates(vocabulary: int) -> int:
    """Logits of a position among which the likeliest are looked for."""
    return vocabulary if vocabulary <= 2 * CANDIDATES else CANDIDATES + vocabulary % BLOCK


def seconds_of(parts: Mapping[str, Part], rates: Rates | Mapping[str, Rates]) -> float:
    """The time of a pass, with one machine's rates or with some for every part."""
    each = rates if isinstance(rates, Mapping) else dict.fromkeys(parts, rates)
    return sum(each[name].seconds(part) for name, part in parts.items())
