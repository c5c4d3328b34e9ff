"""Which class implements which architecture: one more family is one more registered class."""

from collections.abc import Callable
from typing import Any

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel

Family = type[MaskedDiffusionModel]

FAMILIES: dict[str, Family] = {}

# Published architectures that are known here only so that they are never misread as another.
PLANNED = {
    "LLaDAMoEModel": "LLaDA-MoE",
    "LLaDAMoEModelLM": "LLaDA-MoE",
    "DreamModel": "Dream",
}


def register(architecture: str) -> Callable[[Family], Family]:
    """Class decorator: the class implements this entry of config.json's `architectures`."""

    def add(family: Family) -> Family:
        FAMILIES[architecture] = family
        return family

    return add


def family_of(config: dict[str, Any]) -> Family:
    """The family that config.json names, by `architectures` first and `model_type` second."""
    architectures = config.get("architectures") or []
    model_type = config.get("model_type")
    planned = next((PLANNED[a] for a in architectures if a in PLANNED), None)
    # LLaDA-MoE shares its model_type with the dense LLaDA; only its fields tell it apart.
    if planned is None and model_type == "llada" and config.get("num_experts"):
        planned = "LLaDA-MoE"
    if planned is None and model_type == "Dream":
        planned = "Dream"
    if planned is not None:
        raise InputError(f"{planned} checkpoints are not supported yet. Supported: {_known()}")
    for architecture in architectures:
        if architecture in FAMILIES:
            return FAMILIES[architecture]
    for family in FAMILIES.values():
        if not architectures and family.model_type == model_type:
            return family
    raise InputError(
        f"unknown architecture: config.json has architectures = {architectures!r} and "
        f"model_type = {model_type!r}. Supported: {_known()}"
    )


def _known() -> str:
    return ", ".join(sorted(FAMILIES))
