"""Every decoder by name, built from a spec such as `threshold:0.9+temperature=0.5` and options.

A decoder registers itself where it is defined; importing its module here is all it takes:

    @DECODERS.register("threshold", summary="commits what is sure enough", main="threshold")
    @settings
    class Threshold: ...

`main` is the option that the value behind the colon sets. What is registered is called with the
options; where it is a function, `options` is the class that declares them.
"""

from dataclasses import asdict, fields, is_dataclass
from importlib import import_module
from typing import Any

from xpredflow.decoders.early_exit import EarlyExit
from xpredflow.decoders.spec import parse_spec, with_options
from xpredflow.errors import InputError, checked_instance, unknown_name
from xpredflow.policies import POLICIES, describe_policy, make_policy
from xpredflow.registry import DECODERS
from xpredflow.settings import checked, option_names
from xpredflow.types import Decoder

__all__ = [
    "DECODERS",
    "POLICIES",
    "effective_settings",
    "make_decoder",
    "make_policy",
    "option_owner",
]

# In the order in which they are listed; importing a module registers what it defines.
for _module in (
    *("flow_entry", "mask", "threshold", "entropy", "klass", "dinfer", "wino", "lopa", "saber"),
    *("editing", "llada21", "remdm", "soft", "evotoken", "remix", "dmax"),
):
    import_module(f"xpredflow.decoders.{_module}")


def option_owner(decoder: str | Decoder) -> type | None:
    """The class that declares a decoder's options; None for a decoder built by hand."""
    return _options(parse_spec(decoder).name) if isinstance(decoder, str) else None


def make_decoder(decoder: str | Decoder, options: dict[str, Any] | None = None) -> Decoder:
    """A decoder from a spec, `NAME[:VALUE][+OPTION=VALUE]...`, and options; or as it is.

    make_decoder("threshold:0.9+temperature=0.5")
    make_decoder("flow", {"policy": "constant:1/16", "tau": 0.5})
    """
    if not isinstance(decoder, str):
        return _built(decoder, options)
    spec = parse_spec(decoder)
    entry, declared = DECODERS.entry(spec.name), option_names(_options(spec.name))
    if spec.value is not None:
        main = entry.about.get("main")
        if main is None:
            names = f"; its options are {', '.join(declared)}" if declared else ""
            raise InputError(f"decoder {decoder!r}: {spec.name!r} takes no value{names}")
        if main in spec.options:
            raise InputError(f"decoder {decoder!r}: {main} is given twice; give it once")
        spec = spec._replace(options={main: spec.value, **spec.options})
    given = with_options(spec, options or {})
    for name in given:
        if name not in declared:
            raise unknown_name("option", name, declared, f" for decoder {decoder!r}")
    return _check(entry.item(**checked(_options(spec.name), given)), spec.name)


def _options(name: str) -> type:
    """The class that declares a registered decoder's options: its own, or the builder's."""
    entry = DECODERS.entry(name)
    declared = entry.about.get("options", entry.item)
    return declared if isinstance(declared, type) else object  # a function that takes none


def _built(decoder: Decoder, options: dict[str, Any] | None) -> Decoder:
    if options:
        raise InputError(
            f"options {sorted(options)} were given beside a decoder that is already built:"
            " set them where it is built, or give the decoder by name"
        )
    return _check(decoder, "decoder")


def _check(decoder: Any, name: str) -> Decoder:
    expected = "a decoder with step, stop and finish, or a name such as 'threshold:0.9'"
    return checked_instance(decoder, Decoder, name, expected)


def effective_settings(decoder: Decoder) -> dict[str, Any]:
    """A built decoder's name and every setting in force, as plain values for records and tables.

    effective_settings(make_decoder("threshold:0.8"))
    # {"decoder": "threshold", "temperature": 0.0, "threshold": 0.8}
    """
    if isinstance(decoder, EarlyExit):
        return effective_settings(decoder.decoder) | asdict(decoder.rule)
    found: dict[str, Any] = {"decoder": _name(decoder)}
    for setting in fields(decoder) if is_dataclass(decoder) else ():
        value = getattr(decoder, setting.name)
        if setting.name == "policy":
            found |= describe_policy(value)
        elif is_dataclass(value) and not isinstance(value, type):  # the flow's rules
            found |= {name: _plain(rule) for name, rule in asdict(value).items()}
        else:
            found[setting.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    """A value that JSON can hold; what it cannot is described."""
    return value if isinstance(value, str | int | float | None) else str(value)


def _name(decoder: Decoder) -> str:
    """As it is registered, else as its class calls itself."""
    own = getattr(decoder, "name", type(decoder).__name__.lower())
    return DECODERS.name_of(type(decoder)) or own
