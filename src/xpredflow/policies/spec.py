"""Step-size policies of the flow by name, built from a spec such as `constant:1/16`.

What is registered is called with the value behind the colon as its first argument, converted to
the type that is declared for it. One that draws its actions is registered with `sampled=True` and
takes a `temperature` as well.
"""

import inspect
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from xpredflow.errors import InputError, checked_instance
from xpredflow.policies.beta import LearnedPolicy, embedded_policies, load_policy
from xpredflow.policies.heuristic import Confidence, Constant, Jump, Power, Uniform
from xpredflow.registry import POLICIES
from xpredflow.settings import convert
from xpredflow.types import Policy

__all__ = [
    "POLICIES",
    "Confidence",
    "Constant",
    "Jump",
    "LearnedPolicy",
    "Power",
    "Uniform",
    "describe_policy",
    "load_policy",
    "make_policy",
]

POLICIES.register(
    "learned",
    summary="a trained network, saved or embedded: learned:FILE, learned:tiny",
    sampled=True,
)(load_policy)


def make_policy(policy: str | Policy, temperature: float | None = None) -> Policy:
    """A policy from `constant:1/16`, `confidence`, ..., `learned:FILE`, or as it is.

    Flow(make_policy("power:8"))
    """
    if not isinstance(policy, str):
        return _check(policy, "policy")
    name, _, value = policy.partition(":")
    entry = POLICIES.entry(name)
    arguments = [_value(name, entry.item, value)] if value else []
    if entry.about.get("sampled"):
        if not value and name == "learned":
            raise InputError(
                "policy 'learned' needs the file it was saved to, learned:FILE, or the name of one"
                f" that comes with the package: {', '.join(embedded_policies())}"
            )
        return _check(entry.item(*arguments, temperature=temperature), name)
    if temperature is not None:
        raise InputError(
            f"policy_temperature is {temperature} but policy {policy!r} is not sampled:"
            " only a learned policy (learned:FILE) is"
        )
    return _check(entry.item(*arguments), name)


def _value(name: str, item: Any, text: str) -> Any:
    """The value of a spec as its policy's first parameter declares it."""
    first = next(iter(inspect.signature(item).parameters.values()), None)
    if first is None:
        raise InputError(f"policy {name + ':' + text!r}: {name!r} takes no value; write {name!r}")
    plain_class = isinstance(item, type) and not is_dataclass(item)
    hints = get_type_hints(item.__init__ if plain_class else item)
    return convert(f"policy {name!r}", text, hints.get(first.name, Any))


def _check(policy: Any, name: str) -> Policy:
    expected = "a function of signals, progress and step, or a name such as 'constant:1/16'"
    return checked_instance(policy, Policy, name, expected)


def describe_policy(policy: Policy) -> dict[str, Any]:
    """A policy as the flow's options would name it, for records: {"policy": "constant:0.0625"}."""
    if isinstance(policy, LearnedPolicy):
        name = f"learned:{policy.source}" if policy.source else "learned"
        return {"policy": name, "policy_temperature": policy.temperature}
    own = getattr(policy, "name", getattr(policy, "__name__", type(policy).__name__))
    name = POLICIES.name_of(type(policy)) or own
    values = [getattr(policy, f.name) for f in fields(policy)] if is_dataclass(policy) else []
    value = "" if not values or values[0] is None else f":{values[0]}"
    return {"policy": f"{name}{value}"}
