"""How a checkpoint is decoded unless told otherwise: generation_config.json beside its weights.

The file is the ecosystem's own; what is not ours in it is left alone. Ours are gen_length,
block_length, steps (the budget), decoder, policy, rules, and alignment, which says that the weights
were aligned for the flow.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.files import read_object, write_atomically
from xpredflow.settings import Field, checked, settings

FILE, REPORT = "generation_config.json", "alignment.json"
BUDGET = "steps"  # as LLaDA's own code calls the cap on passes


@settings
class Defaults:
    """What a checkpoint says about its own decoding; None where it says nothing."""

    gen_length: int | None = Field(None, ge=1, description="positions of the response")
    block_length: int | None = Field(None, ge=1, description="positions of a block")
    steps: int | str | None = Field(None, description="budget: passes, or a share such as 1/4")
    decoder: str | None = Field(None, description="a decoder as it is written")
    policy: str | None = Field(None, description="the flow's step-size policy")
    rules: dict[str, Any] | None = Field(None, description="the flow's rules under that policy")
    alignment: dict[str, Any] | None = Field(None, description="how the weights were aligned")

    @property
    def aligned(self) -> bool:
        """Whether the weights were aligned for the flow."""
        return self.alignment is not None


NO_DEFAULTS = Defaults()


def aligned_defaults(before: Defaults) -> Defaults:
    """What weights that have just been aligned say of themselves, until a policy is trained."""
    return replace(
        before,
        policy=before.policy or "power:8",
        rules=before.rules or {"max_idle_passes": 3},
        alignment={"report": REPORT},
    )


def read_defaults(directory: Path) -> Defaults:
    """What a checkpoint's directory says; one that was aligned long ago has only its report."""
    found = _read(directory / FILE)
    own = {name: found[name] for name in Defaults.__dataclass_fields__ if name in found}
    if own.get("alignment") is True:
        own["alignment"] = {}
    try:
        defaults = Defaults(**checked(Defaults, own))
    except InputError as error:
        raise InputError(f"{directory / FILE}: {error}") from None
    if not defaults.aligned and (directory / REPORT).is_file():
        defaults = replace(defaults, alignment={"report": REPORT})
    return replace(defaults, policy=_beside(defaults.policy, directory))


def write_defaults(defaults: Defaults, directory: Path) -> None:
    """Into generation_config.json, beside whatever else stands there."""
    said = {name: value for name, value in vars(defaults).items() if value is not None}
    own = {name: said[name] for name in Defaults.__dataclass_fields__ if name in said}
    if not own:
        return
    kept = {n: v for n, v in _read(directory / FILE).items() if n not in own}
    write_atomically(directory / FILE, json.dumps({**kept, **own}, indent=2) + "\n")


def _read(file: Path) -> dict[str, Any]:
    return read_object(file, "mend or remove it") if file.is_file() else {}


def _beside(policy: str | None, directory: Path) -> str | None:
    """A learned policy that lies in the checkpoint's own directory, by its whole path."""
    kind, _, name = (policy or "").partition(":")
    if kind == "learned" and name and (directory / name).with_suffix(".safetensors").is_file():
        return f"learned:{directory / name}"
    return policy
