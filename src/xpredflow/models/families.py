"""Which class implements which architecture: one more family is one more registered class.

    @FAMILIES.register("MyModelLM")  # an entry of config.json's `architectures`
    class MyModel(MaskedDiffusionModel): ...

Another package's family is found by its entry point in the group `xpredflow.models`.
"""

from typing import Any

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.registry import FAMILIES

Family = type[MaskedDiffusionModel]

# Published architectures that are known here only so that they are never misread as another.
PLANNED = {
    "LLaDAMoEModel": "LLaDA-MoE",
    "LLaDAMoEModelLM": "LLaDA-MoE",
    "DreamModel": "Dream",
}


def family_of(config: dict[str, Any]) -> Family:
    """The family that config.json names, by `architectures` first and `model_type` second."""
    architectures = config.get("architectures") or []
    model_type = config.get("model_type")
    if (planned := _planned(architectures, model_type, config)) is not None:
        raise InputError(
            f"{planned} checkpoints are not supported yet. Supported: {_known()}. Load one with"
            " code that you trust and wrap it: xpredflow.wrap(module, tokenizer, mask=...)"
        )
    for architecture in architectures:
        if architecture in FAMILIES:
            return _checked(architecture)
    for architecture, entry in FAMILIES.entries().items():
        if not architectures and entry.item.model_type == model_type:
            return _checked(architecture)
    raise InputError(
        f"unknown architecture: config.json has architectures = {architectures!r} and "
        f"model_type = {model_type!r}. Supported: {_known()}"
    )


def _planned(architectures: list[str], model_type: Any, config: dict[str, Any]) -> str | None:
    """What we know to be another family than any registered one."""
    if any(a in FAMILIES and a in PLANNED for a in architectures):  # a plug-in knows it
        return None
    named = next((PLANNED[a] for a in architectures if a in PLANNED), None)
    # LLaDA-MoE shares its model_type with the dense LLaDA; only its fields tell it apart.
    if named is None and model_type == "llada" and config.get("num_experts"):
        return "LLaDA-MoE"
    return "Dream" if named is None and model_type == "Dream" else named


def _checked(architecture: str) -> Family:
    family = FAMILIES[architecture]
    if not (isinstance(family, type) and issubclass(family, MaskedDiffusionModel)):
        raise InputError(
            f"architecture {architecture!r} is registered as {family!r}: expected a subclass of"
            " xpredflow.models.MaskedDiffusionModel"
        )
    return family


def _known() -> str:
    return ", ".join(sorted(FAMILIES))
