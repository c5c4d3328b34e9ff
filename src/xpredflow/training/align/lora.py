"""Low-rank adapters by peft: added in place, switched off for the reference, merged at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from xpredflow.errors import InputError, unknown_name
from xpredflow.models import MaskedDiffusionModel


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


def merge_adapters(model: nn.Module) -> None:
    """Add the adapters to their matrices and remove them: the model is a plain one again."""
    for name, layer in _adapted(model):
        layer.merge()
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, layer.get_base_layer())


def _adapted(model: nn.Module) -> list[tuple[str, Any]]:
    from peft.tuners.lora import LoraLayer

    return [(name, m) for name, m in model.named_modules() if isinstance(m, LoraLayer)]
