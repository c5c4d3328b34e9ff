"""Continuous decoding of masked diffusion language models: x-prediction flow and its peers.

from xpredflow import generate, load

model = load("tiny-aligned")
question = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
print(generate(model, question)[0].text)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xpredflow.decoders import effective_settings, make_decoder
    from xpredflow.engine.engine import Engine
    from xpredflow.engine.loop import decode_steps, generate
    from xpredflow.engine.session import Session
    from xpredflow.engine.steps import Decoded, Frame, Step, StopReason
    from xpredflow.engine.text import Partial, astream, stream
    from xpredflow.errors import InputError, Interrupted
    from xpredflow.evaluation import Evaluation, evaluate
    from xpredflow.experiments.compare import Comparison, compare
    from xpredflow.flow import Flow, Rules
    from xpredflow.flow_extensions import ExtendedFlow, ExtendedRules
    from xpredflow.models import load, save, wrap
    from xpredflow.policies import (
        Confidence,
        Constant,
        Jump,
        LearnedPolicy,
        Power,
        Uniform,
        load_policy,
        make_policy,
    )
    from xpredflow.registry import register
    from xpredflow.tasks import make_task
    from xpredflow.tasks.base import Problem, SimpleTask, Task, Verdict
    from xpredflow.training.align import AlignConfig, Aligned, align
    from xpredflow.training.policy import PolicyConfig, TrainedPolicy, train_policy
    from xpredflow.training.self_generate import self_generate
    from xpredflow.types import (
        Action,
        Canvas,
        Decoder,
        Event,
        Model,
        Policy,
        Signals,
        Space,
        SpecialTokens,
        StepInfo,
    )

__version__ = "0.1.0"

# Names by the module they live in; imported on first use: `xpredflow --help` waits for no torch.
_HOMES = {
    "decoders": ("effective_settings", "make_decoder"),
    "engine.engine": ("Engine",),
    "engine.loop": ("decode_steps", "generate"),
    "engine.session": ("Session",),
    "engine.steps": ("Decoded", "Frame", "Step", "StopReason"),
    "engine.text": ("Partial", "astream", "stream"),
    "errors": ("InputError", "Interrupted"),
    "evaluation": ("Evaluation", "evaluate"),
    "experiments.compare": ("Comparison", "compare"),
    "flow": ("Flow", "Rules"),
    "flow_extensions": ("ExtendedFlow", "ExtendedRules"),
    "models": ("load", "save", "wrap"),
    "policies": (
        *("Confidence", "Constant", "Jump", "LearnedPolicy", "Power", "Uniform"),
        *("load_policy", "make_policy"),
    ),
    "registry": ("register",),
    "tasks": ("make_task",),
    "tasks.base": ("Problem", "SimpleTask", "Task", "Verdict"),
    "training.align": ("AlignConfig", "Aligned", "align"),
    "training.policy": ("PolicyConfig", "TrainedPolicy", "train_policy"),
    "training.self_generate": ("self_generate",),
    "types": (
        *("Action", "Canvas", "Decoder", "Event", "Model", "Policy"),
        *("Signals", "Space", "SpecialTokens", "StepInfo"),
    ),
}
_MODULE = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Action",
    "AlignConfig",
    "Aligned",
    "Canvas",
    "Comparison",
    "Confidence",
    "Constant",
    "Decoded",
    "Decoder",
    "Engine",
    "Evaluation",
    "Event",
    "ExtendedFlow",
    "ExtendedRules",
    "Flow",
    "Frame",
    "InputError",
    "Interrupted",
    "Jump",
    "LearnedPolicy",
    "Model",
    "Partial",
    "Policy",
    "PolicyConfig",
    "Power",
    "Problem",
    "Rules",
    "Session",
    "Signals",
    "SimpleTask",
    "Space",
    "SpecialTokens",
    "Step",
    "StepInfo",
    "StopReason",
    "Task",
    "TrainedPolicy",
    "Uniform",
    "Verdict",
    "align",
    "astream",
    "compare",
    "decode_steps",
    "effective_settings",
    "evaluate",
    "generate",
    "load",
    "load_policy",
    "make_decoder",
    "make_policy",
    "make_task",
    "register",
    "save",
    "self_generate",
    "stream",
    "train_policy",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'xpredflow' has no attribute {name!r}")
    return getattr(import_module(f"xpredflow.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
