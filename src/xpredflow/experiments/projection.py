"""Times and memory of published models on devices that nobody here has: computed, never measured.

Data sheets say what a device can do at most. What of it is reached, and what the host takes to
start a kernel, are assumptions (`ASSUMED`); replace them by measurements where there are any.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from xpredflow.engine.capacity import row_bytes
from xpredflow.experiments.cost_model import (
    Architecture,
    Part,
    PassShape,
    Rates,
    parts_of,
    seconds_of,
)
from xpredflow.models.base import MaskedDiffusionModel, on_meta
from xpredflow.models.families import family_of
from xpredflow.models.precision import Format
from xpredflow.models.quantize import Quantize

BF16, FP32 = 2, 4
TRAINED_BYTES = 16  # of a trained weight: itself, its gradient and two moments, all in fp32
BACKWARD = 3  # products of a forward and a backward pass, in forward passes; with checkpointing 4

LLADA_8B: dict[str, Any] = {
    "architectures": ["LLaDAModelLM"],
    "model_type": "llada",
    "d_model": 4096,
    "n_heads": 32,
    "n_kv_heads": 32,
    "n_layers": 32,
    "mlp_hidden_size": 12288,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_sequence_length": 4096,
    "vocab_size": 126464,
    "embedding_size": 126464,
    "mask_token_id": 126336,
    "eos_token_id": 126081,
}
LLADA2_MINI: dict[str, Any] = {
    "architectures": ["LLaDA2MoeModelLM"],
    "model_type": "llada2_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 20,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 5120,
    "first_k_dense_replace": 1,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "num_shared_experts": 1,
    "n_group": 8,
    "topk_group": 4,
    "routed_scaling_factor": 2.5,
    "rope_theta": 600000,
    "rms_norm_eps": 1e-6,
    "vocab_size": 157184,
    "max_position_embeddings": 32768,
}
PUBLISHED = {"LLaDA-8B": LLADA_8B, "LLaDA2.0-mini": LLADA2_MINI}


@dataclass(frozen=True)
class Device:
    """A data sheet: bytes, dense bf16 products and bytes of memory a second, bytes to a peer."""

    name: str
    memory: float
    flops: float
    bandwidth: float
    link: float


RTX_4090 = Device("RTX 4090, 24 GB", 24e9, 165.2e12, 1008e9, 32e9)
H100 = Device("H100 SXM, 80 GB", 80e9, 989.4e12, 3350e9, 450e9)


class Assumptions(NamedTuple):
    """Shares of a data sheet that are reached, and seconds of the host."""

    products: float = 0.5
    memory: float = 0.8
    link: float = 0.7
    launch: float = 5e-6
    sync: float = 2e-5
    message: float = 2e-5


ASSUMED = Assumptions()


def published(name: str) -> MaskedDiffusionModel:
    """A published shape in bf16, without memory behind it."""
    config = PUBLISHED[name]
    model = on_meta(family_of(config), config)
    model.name = name
    return model.to(torch.bfloat16)


def rates_of(device: Device, assumed: Assumptions = ASSUMED) -> Rates:
    """What the device is taken to do."""
    return Rates(
        flops=assumed.products * device.flops,
        bytes=assumed.memory * device.bandwidth,
        launch=assumed.launch,
        sync=assumed.sync,
        overlaps=True,
    )


@dataclass(frozen=True)
class Decoding:
    """Rows of one batch, their lengths, and the passes that each takes in all."""

    rows: int
    prompt: int
    gen_length: int
    passes: int


def pass_shape(model: MaskedDiffusionModel, job: Decoding) -> PassShape:
    """Of a pass in the middle of a job: a block-causal model reads its block alone."""
    whole = job.prompt + job.gen_length
    if model.block_size is None:
        return PassShape(job.rows, whole, job.gen_length, whole)
    block = min(model.block_size, job.gen_length)
    return PassShape(job.rows, block, block, job.prompt + (job.gen_length + block) // 2)


def pass_seconds(
    model: MaskedDiffusionModel,
    job: Decoding,
    device: Device,
    together: int = 1,
    assumed: Assumptions = ASSUMED,
) -> float:
    """A pass on one device, or on several that hold the model together (tensor parallelism)."""
    arch, shape = Architecture.of(model), pass_shape(model, job)
    parts = parts_of(arch, shape, BF16)
    if together > 1:
        parts = {name: _shared(name, part, together) for name, part in parts.items()}
    return seconds_of(parts, rates_of(device, assumed)) + _messages(
        arch, shape, device, together, assumed
    )


def _shared(name: str, part: Part, together: int) -> Part:
    """What one of several does of a part: its products; norms and signals are not shared out."""
    if name == "after the head":
        return part
    moved = part.moved if name == "layers" else part.moved / together
    return part._replace(flops=part.flops / together, weights=part.weights / together, moved=moved)


def _messages(
    arch: Architecture, shape: PassShape, device: Device, together: int, assumed: Assumptions
) -> float:
    """Two sums per layer over all devices, and everybody's logits to the first."""
    if together == 1:
        return 0.0
    share, rate = (together - 1) / together, assumed.link * device.link
    sums = 2 * arch.layers * (2 * share * shape.positions * arch.width * BF16 / rate)
    logits = share * shape.rows * shape.read * arch.vocabulary * BF16 / rate
    return sums + logits + (2 * arch.layers + shape.rows + 2) * assumed.message


def decoding_bytes(
    model: MaskedDiffusionModel, job: Decoding, together: int = 1, quantize: Quantize | None = None
) -> int:
    """Weights and rows on one device; of several that hold a model, each has the whole table."""
    table = model.embedding.numel()
    weights = table + (Architecture.of(model).weights - table) // together
    shape = pass_shape(model, job)
    rows = job.rows * row_bytes(model, shape.read, job.prompt + job.gen_length)
    return Format(torch.bfloat16, quantize).size(weights, table) + rows


class Training(NamedTuple):
    """An update: seconds, and bytes on each device."""

    seconds: float
    bytes: float


def alignment(
    model: MaskedDiffusionModel,
    device: Device,
    devices: int,
    *,
    rows: int,
    length: int,
    lora_rank: int = 0,
    assumed: Assumptions = ASSUMED,
) -> Training:
    """An update with recomputed activations, half of the positions masked, sharded if several.

    Sharded weights are gathered three times in bf16 while others are computed with.
    """
    arch = Architecture.of(model)
    shape = PassShape(rows, length, length // 2, length)
    parts = parts_of(arch, shape, BF16)
    forward = parts["layers"].flops + parts["attention"].flops
    # with adapters the backward pass needs no products for the gradients of the weights
    backward = BACKWARD - 1 if lora_rank else BACKWARD
    flops = (backward + 1) * forward + backward * parts["head"].flops
    compute = flops / (assumed.products * device.flops * devices)
    gathered = 3 * BF16 * arch.weights * (devices - 1) / devices / (assumed.link * device.link)
    table = model.embedding.numel()
    # rank·(O + I) for a matrix of O·I weights, roughly; stacked experts have no adapters
    adapters = 2 * lora_rank * arch.dense / arch.width
    state = TRAINED_BYTES * (adapters if lora_rank else arch.weights - table)
    frozen = BF16 * (arch.weights if lora_rank else table)
    mine = rows * length / devices
    # the input of every layer, what one layer holds, and a chunk of logits
    kept = BF16 * mine * (arch.layers * arch.width + 8 * (arch.width + arch.inner))
    return Training(max(compute, gathered), (state + frozen) / devices + kept + FP32 * 2**28)


def rollouts_seconds(
    model: MaskedDiffusionModel,
    job: Decoding,
    device: Device,
    devices: int,
    rollouts: int,
    assumed: Assumptions = ASSUMED,
) -> float:
    """The rollouts of a GRPO update: each device has a model and takes whole batches.

    The policy's own update needs recorded signals only and is left out.
    """
    rows = max(1, min(job.rows, rollouts // devices))
    batches = -(-rollouts // (rows * devices))
    one = pass_seconds(model, replace(job, rows=rows), device, 1, assumed)
    return batches * job.passes * one
