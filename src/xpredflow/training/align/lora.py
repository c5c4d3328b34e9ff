"""Low-rank adapters by peft: added in place, switched off for the reference, merged at the end.

Dimension names: R the rank, O rows and I columns of a matrix.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.errors import InputError, unknown_name
from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.spread import whole_tensor


def add_adapters(model: MaskedDiffusionModel, rank: int, targets: str, seed: int) -> None:
    """Freeze the model and give its layers' matrices adapters, which start as no change.

    `targets` are names such as q_proj,v_proj; all linear matrices of the layers without any. The
    head is none of them, even where it shares a name with a matrix in the layers.
    """
    if find_spec("peft") is None:
        raise InputError(
            f"lora_rank is {rank} but peft is not installed: pip install 'xpredflow[train]'"
        )
    from peft import LoraConfig, inject_adapter_in_model

    names = _chosen(model, [name.strip() for name in targets.split(",") if name.strip()])
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=names, bias="none")
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # every process starts from the same adapters
        inject_adapter_in_model(config, model)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.requires_grad_()
            parameter.data = parameter.data.float()


def _chosen(model: MaskedDiffusionModel, wanted: list[str]) -> list[str]:
    inside = {id(m) for layer in model.trunk()[0] for m in layer.modules()}
    linear = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and id(module) in inside
    ]
    known = {name.rpartition(".")[2] for name in linear}
    for name in wanted:
        if name not in known:
            raise unknown_name("lora_targets", name, known, f" of {model.name!r}")
    return [name for name in linear if not wanted or name.rpartition(".")[2] in wanted]


@contextmanager
def without_adapters(model: nn.Module) -> Iterator[None]:
    """The model as it was before alignment."""
    layers = [module for _, module in _adapted(model)]
    scales = [dict(layer.scaling) for layer in layers]
    # Not peft's switch: it takes the gradients' flags away, which sharded parameters do not like.
    for layer in layers:
        layer.scaling = dict.fromkeys(layer.scaling, 0.0)
    try:
        yield
    finally:
        for layer, scale in zip(layers, scales, strict=True):
            layer.scaling = scale


class Adapter(NamedTuple):
    """What is added to a matrix: scale · b · a."""

    a: Float[Tensor, "R I"]
    b: Float[Tensor, "O R"]
    scale: float

    def merged(self, matrix: Float[Tensor, "O I"]) -> Float[Tensor, "O I"]:
        """The matrix with the adapter in it, in fp32."""
        return matrix.float() + (self.b @ self.a) * self.scale


def adapters_of(model: nn.Module) -> dict[str, Adapter]:
    """The adapters by the names of their matrices, whole and on the CPU.

    Of several processes that share them all must ask.
    """
    found = {}
    for name, layer in _adapted(model):
        ((key, scale),) = layer.scaling.items()
        a, b = (
            whole_tensor(part[key].weight.detach()).float().cpu()
            for part in (layer.lora_A, layer.lora_B)
        )
        found[f"{name}.weight"] = Adapter(a, b, scale)
    return found


def _adapted(model: nn.Module) -> list[tuple[str, Any]]:
    from peft.tuners.lora import LoraLayer

    return [(name, m) for name, m in model.named_modules() if isinstance(m, LoraLayer)]
