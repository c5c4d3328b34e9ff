"""Continuous decoding of masked diffusion language models: x-prediction flow and its peers.

from xpredflow import generate, load

model = load("tiny")
print(generate(model, "Write a function.", decoder="flow", budget="1/4")[0].text)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xpredflow.decoders import make_decoder
    from xpredflow.engine.loop import generate, stream
    from xpredflow.engine.steps import Decoded, Step, StopReason
    from xpredflow.errors import InputError, Interrupted
    from xpredflow.flow import Flow, Rules
    from xpredflow.models import load, save
    from xpredflow.policies import make_policy

__version__ = "0.1.0"

# Names are imported on first use, so that `xpredflow --help` does not wait for torch.
_HOMES = {
    "Decoded": "engine.steps",
    "Flow": "flow",
    "InputError": "errors",
    "Interrupted": "errors",
    "Rules": "flow",
    "Step": "engine.steps",
    "StopReason": "engine.steps",
    "generate": "engine.loop",
    "load": "models",
    "make_decoder": "decoders",
    "make_policy": "policies",
    "save": "models",
    "stream": "engine.loop",
}

__all__ = [
    "Decoded",
    "Flow",
    "InputError",
    "Interrupted",
    "Rules",
    "Step",
    "StopReason",
    "generate",
    "load",
    "make_decoder",
    "make_policy",
    "save",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'xpredflow' has no attribute {name!r}")
    return getattr(import_module(f"xpredflow.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
