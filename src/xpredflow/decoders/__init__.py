"""Every decoder by name, built from a spec such as `threshold:0.9` and options."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xpredflow.beta_policy import load_policy
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.decoders.soft import SoftMasking
from xpredflow.decoders.threshold import Factor, Threshold
from xpredflow.errors import InputError, unknown_name
from xpredflow.flow import Flow, Rules
from xpredflow.options import checked, convert, option_names
from xpredflow.policy import Confidence, Constant, Jump, Power, Uniform
from xpredflow.types import Decoder, Policy


@dataclass(frozen=True)
class FlowOptions(Rules):
    """The flow's rules, its step-size policy and, for a sampled one, the temperature τ."""

    policy: str | Policy = "confidence"
    policy_temperature: float | None = None  # None: the expected action


@dataclass(frozen=True)
class Entry:
    """A decoder in the registry: its options are the fields of a dataclass, `main` the spec's."""

    summary: str
    options: type
    build: Callable[..., Decoder]
    main: str | None = None


def _flow(policy: str | Policy = "confidence", policy_temperature=None, **rules: Any) -> Flow:
    return Flow(make_policy(policy, policy_temperature), Rules(**rules))


DECODERS: dict[str, Entry] = {
    "flow": Entry(
        "continuous state per position, moved towards the prediction by a step-size policy",
        FlowOptions,
        _flow,
        "policy",
    ),
    "mask": Entry(
        "mask prediction: an even share of the response is committed per pass (LLaDA)",
        MaskPrediction,
        MaskPrediction,
        "remasking",
    ),
    "threshold": Entry(
        "commits everything whose confidence reaches a threshold, at least one (Fast-dLLM)",
        Threshold,
        Threshold,
        "threshold",
    ),
    "factor": Entry(
        "commits the n surest for the largest n with c ≥ 1 − f/(n+1) (Fast-dLLM)",
        Factor,
        Factor,
        "factor",
    ),
    "soft": Entry(
        "mask prediction whose open positions carry a soft hint of the prediction (SM)",
        SoftMasking,
        SoftMasking,
        "k",
    ),
}

POLICIES: dict[str, tuple[type, str]] = {
    "constant": (Constant, "the same fraction of the rest everywhere: constant:1/16"),
    "confidence": (Confidence, "progress becomes confidence, t ← max(t, c)"),
    "uniform": (Uniform, "the same Δt everywhere, 1/T or as given: uniform:1/32"),
    "jump": (Jump, "all the way where c ≥ θ, else stay: jump:0.9"),
    "power": (Power, "a = c^n: power:8"),
}


def option_owner(decoder: str | Decoder) -> type | None:
    """The dataclass that declares a decoder's options; None for a decoder built by hand."""
    return _entry(decoder)[1].options if isinstance(decoder, str) else None


def make_decoder(decoder: str | Decoder, options: dict[str, Any] | None = None) -> Decoder:
    """A decoder from its name, `name:value`, or as it is; options are those of its dataclass."""
    options = dict(options or {})
    if not isinstance(decoder, str):
        if options:
            raise InputError(
                f"options {sorted(options)} were given beside a decoder that is already built:"
                " set them where it is built, or give the decoder by name"
            )
        return decoder
    value, entry = _entry(decoder)
    if value is not None and entry.main is not None:
        options.setdefault(entry.main, value)
    for name in options:
        if name not in option_names(entry.options):
            where = f" for decoder {decoder!r}"
            raise unknown_name("option", name, option_names(entry.options), where)
    return entry.build(**checked(entry.options, options))


def make_policy(policy: str | Policy, temperature: float | None = None) -> Policy:
    """A policy from `constant:1/16`, `confidence`, ..., `learned:FILE`, or as it is."""
    if not isinstance(policy, str):
        return policy
    name, _, value = policy.partition(":")
    if name == "learned":
        if not value:
            raise InputError("policy 'learned' needs the file it was saved to: learned:FILE")
        return load_policy(Path(value), temperature)
    if temperature is not None:
        raise InputError(
            f"policy_temperature is {temperature} but policy {policy!r} is not sampled:"
            " only a learned policy (learned:FILE) is"
        )
    if name not in POLICIES:
        raise unknown_name("policy", name, [*POLICIES, "learned"])
    cls, _ = POLICIES[name]
    if not value:
        return cls()
    if not option_names(cls):
        raise InputError(f"policy {policy!r}: {name!r} takes no value; write {name!r}")
    return cls(convert(f"policy {name!r}", value, float))


def _entry(decoder: str) -> tuple[str | None, Entry]:
    name, _, value = decoder.partition(":")
    if name not in DECODERS:
        raise unknown_name("decoder", name, DECODERS)
    return value or None, DECODERS[name]
