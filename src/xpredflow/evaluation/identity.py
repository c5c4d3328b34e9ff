"""What samples are samples of, by contents and not by names: what goes on is what was begun.

Two evaluations may share samples if their models have the same weights in the same dtype, their
decoders the same rules and policy, their problems the same prompts and right answers, and the
package is the same version. Where one differs, it is named.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from xpredflow import __version__
from xpredflow.decoders import effective_settings
from xpredflow.models.digests import model_digest, short, tensors_digest
from xpredflow.tasks import prompt_of
from xpredflow.tasks.base import Problem, Task
from xpredflow.types import Decoder, Model

Identity = dict[str, Any]


def identity(model: Model, decoder: Decoder, problems: str) -> Identity:
    """Of samples that a model and a built decoder give on problems with this digest."""
    return {
        "version": __version__,
        "dtype": str(model.embedding.dtype).removeprefix("torch."),
        "weights": model_digest(model),
        "rules": effective_settings(decoder),
        "policy": policy_digest(getattr(decoder, "policy", None)),
        "problems": problems,
    }


def policy_digest(policy: Any) -> str:
    """Of a learned policy's weights; nothing for one that has none."""
    network = getattr(policy, "network", None)
    return "" if network is None else tensors_digest(network.state_dict())


def problems_digest(task: Task, split: str, count: int) -> str:
    """Of prompts and what grades them: a file of problems may change under its old name."""
    return digest_of(task.problem(split, number) for number in range(count))


def digest_of(problems: Iterable[Problem]) -> str:
    """Of problems, each with everything that it is asked and graded by."""
    return short(
        *(
            f"{p.id}\0{prompt_of(p)}\0{json.dumps(p.meta, sort_keys=True, default=str)}"
            for p in problems
        )
    )


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Every name under which two descriptions differ, with both values; empty where none does."""
    found = []
    for name in {**now, **then}:
        before, after = then.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            found += [differences(before, after)]
        elif before != after:
            found += [f"{name} was {_shown(before)} and is {_shown(after)}"]
    return "; ".join(filter(None, found))


def _shown(value: Any) -> str:
    return "not recorded" if value in (None, {}) else f"{value!r:.60}"
