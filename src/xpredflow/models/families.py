"""Which class implements which architecture: one more family is one more registered class.

    @FAMILIES.register("MyModelLM")  # an entry of config.json's `architectures`
    class MyModel(MaskedDiffusionModel): ...

Another package's family is found by its entry point in the group `xpredflow.models`.
"""

import re
from typing import Any

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.variants import architecture_of
from xpredflow.registry import FAMILIES

Family = type[MaskedDiffusionModel]

# Published models of other kinds, known here by a part of their name so that none is misread.
REFUSED = {
    "diffusiongemma": "DiffusionGemma starts from random tokens and has no mask token",
    "nemotronlabsdiffusion": "Nemotron-Labs-Diffusion has an encoder and a head of its own",
    "wedlm": "WeDLM is causal and reorders its positions",
    "gfusion": "GFusion attends by latent vectors (MLA)",
    "lfm2bidirectional": "LFM2 diffusion models are made of convolutions for the most part",
    "bd3lm": "BD3-LM attends to its clean copy of the text by cross-attention",
    "mdlm": "MDLM is a diffusion transformer with conditioned norms",
    "refusion": "ReFusion decodes slots of tokens autoregressively",
}


def family_of(config: dict[str, Any]) -> Family:
    """The family that config.json names, by `architectures` first and `model_type` second."""
    architectures = config.get("architectures") or []
    model_type = config.get("model_type")
    if (dense := architecture_of(config)) is not None:
        return _checked(dense)
    for architecture in architectures:
        if architecture in FAMILIES:
            return _checked(architecture)
    for architecture, entry in FAMILIES.entries().items():
        if not architectures and model_type and entry.item.model_type == model_type:
            return _checked(architecture)
    names = [re.sub(r"\W|_", "", str(name)).lower() for name in (*architectures, model_type)]
    for part, reason in REFUSED.items():
        if any(name.startswith(part) for name in names):
            raise InputError(
                f"config.json has architectures = {architectures!r}, which is not supported:"
                f" {reason}. Supported: {_known()}. Load it with code that you trust and wrap it:"
                " xpredflow.wrap(module, tokenizer, mask=...)"
            )
    raise InputError(
        f"unknown architecture: config.json has architectures = {architectures!r} and "
        f"model_type = {model_type!r}. Supported: {_known()}. A module of your own is wrapped:"
        " xpredflow.wrap(module, tokenizer, mask=...)"
    )


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
