"""Every decoder by name, built from a spec such as `threshold:0.9` and options."""

from typing import Any

from xpredflow.decoders.registry import DECODERS, Entry
from xpredflow.errors import InputError, unknown_name
from xpredflow.policies.make import POLICIES, make_policy
from xpredflow.settings import checked, option_names
from xpredflow.types import Decoder

__all__ = ["DECODERS", "POLICIES", "make_decoder", "make_policy", "option_owner"]


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


def _entry(decoder: str) -> tuple[str | None, Entry]:
    name, _, value = decoder.partition(":")
    if name not in DECODERS:
        raise unknown_name("decoder", name, DECODERS)
    return value or None, DECODERS[name]
