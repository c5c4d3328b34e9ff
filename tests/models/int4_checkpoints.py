"""Checkpoints in the 4-bit layouts of GPTQ and AWQ, packed word by word as they are described.

Nothing is shared with the code that reads them. Numbers, zero points and scales are drawn, not
found by quantising: what a matrix means is then known exactly.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from builders import CONFIGS, weights, write_weights
from torch import Tensor

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # which of eight rows stands at which place, lowest bits first
SAID: dict[str, dict[str, Any]] = {
    "gptq": {"quant_method": "gptq", "bits": 4, "desc_act": False, "sym": False},
    "gptq_v2": {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"},
    "gptq_act": {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq", "desc_act": True},
    "awq": {"quant_method": "awq", "bits": 4, "version": "GEMM", "zero_point": True},
}
KINDS = tuple(SAID)


class Quantised(NamedTuple):
    """The tensors in the place of a weight, and the weight that they mean."""

    tensors: dict[str, Tensor]
    weight: Tensor


def word(numbers: list[int]) -> int:
    """Eight numbers of 4 bits, the first in the lowest bits."""
    return sum(int(number) << (4 * place) for place, number in enumerate(numbers))


def as_int32(words: list[list[int]]) -> Tensor:
    wrapped = [
        [(w & 0xFFFFFFFF) - (1 << 32 if w & 0x80000000 else 0) for w in row] for row in words
    ]
    return torch.tensor(wrapped, dtype=torch.int32)


def by_rows(numbers: np.ndarray, order: tuple[int, ...], less: int = 0) -> Tensor:
    """(A, O) numbers: eight neighbours of the last dimension in a word."""
    starts = range(0, numbers.shape[1], 8)
    return as_int32(
        [[word([line[s + o] for o in order]) - less for s in starts] for line in numbers.tolist()]
    )


def quantised(
    kind: str, rows: int, columns: int, group: int, draw: np.random.Generator
) -> Quantised:
    group = columns if group < 0 else group
    count = columns // group
    numbers = draw.integers(0, 16, (rows, columns))
    zeros = draw.integers(0, 16, (count, rows))
    scales = torch.from_numpy(draw.uniform(0.01, 0.05, (count, rows))).half()
    groups = np.arange(columns) // group
    if kind == "gptq_act":
        groups = draw.permutation(groups)
    whole = scales.double().numpy()[groups].T * (numbers - zeros[groups].T)
    weight = torch.from_numpy(whole).float()
    if kind == "awq":
        made = {
            "qweight": by_rows(numbers.T, AWQ_ORDER),
            "qzeros": by_rows(zeros, AWQ_ORDER),
            "scales": scales,
        }
        return Quantised(made, weight)
    lines = range(0, columns, 8)
    qweight = [[word(numbers[row, c : c + 8].tolist()) for row in range(rows)] for c in lines]
    less = 0 if kind == "gptq_v2" else 0x11111111
    made = {
        "qweight": as_int32(qweight),
        "qzeros": by_rows(zeros, tuple(range(8)), less),
        "scales": scales,
        "g_idx": torch.from_numpy(groups).int(),
    }
    return Quantised(made, weight)


def write_int4(
    directory: Path, family: str, kind: str, group: int = 8, **said: Any
) -> dict[str, Tensor]:
    """A checkpoint whose layers are quantised, head and routers are not; what it means is told."""
    config = {**CONFIGS[family], "torch_dtype": "float32"}
    tensors, meant = {}, {}
    draw = np.random.default_rng(5)
    for key, tensor in weights(family, config, torch.float32).items():
        meant[key] = tensor
        if not re.search(
            r"(blocks|layers)\.\d+\..*(proj|attn_out|ff_out|value|dense)\.weight$", key
        ):
            tensors[key] = tensor
            continue
        rows, columns = tensor.shape
        packed = quantised(kind, rows, columns, group, draw)
        meant[key] = packed.weight
        layer = key.removesuffix("weight")
        tensors |= {layer + part: t for part, t in packed.tensors.items()}
    write_weights(directory, tensors)
    about = {**SAID[kind], "group_size": group, **said}
    (directory / "config.json").write_text(json.dumps({**config, "quantization_config": about}))
    return meant
