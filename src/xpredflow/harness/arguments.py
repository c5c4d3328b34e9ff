"""--model_args: who declares which of them, checked before a model is loaded."""

from dataclasses import dataclass
from typing import Any

from xpredflow.decoders import option_owner
from xpredflow.engine.request import ALIASES, DEFAULT_DECODER, Options, resolve
from xpredflow.errors import InputError, unknown_name
from xpredflow.settings import checked, option_names

# Engine options that the harness has a flag of its own for, or that make no sense inside it.
RESERVED = {
    "chat": "give --apply_chat_template, or leave it out for plain prompts",
    "system": "give --system_instruction",
    "trace": "record single prompts with `xpredflow generate --trace`",
    "first_row": "requests are numbered in the harness's order",
}


@dataclass(frozen=True)
class Own:
    """The arguments that neither the engine nor the decoder declares; `pretrained` beside them."""

    decoder: str = DEFAULT_DECODER
    dtype: str | None = None
    quantize: str | None = None  # int8 or int4
    device: str | None = None
    revision: str | None = None
    mc_num: int = 128  # masked copies of a continuation whose likelihood is estimated
    is_check_greedy: bool = True  # off: faster, and `is_greedy` is always False
    passes_file: str | None = None  # JSON lines: the forward passes of each answer
    batch_size: int | str | None = None  # the harness's flags of that name
    max_batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.mc_num < 1:
            raise InputError(f"mc_num is {self.mc_num}: give a whole number ≥ 1")


@dataclass(frozen=True)
class Arguments:
    """What was said in --model_args, sorted by owner."""

    own: Own
    options: dict[str, Any]  # of the engine and the decoder: only those that were given
    settings: Options  # of the engine, defaults included

    @classmethod
    def read(cls, given: dict[str, Any]) -> "Arguments":
        """Unknown names are rejected with the nearest valid one, values as the engine does."""
        mine = {name: value for name, value in given.items() if name in option_names(Own)}
        own = Own(**checked(Own, mine))
        options = {name: value for name, value in given.items() if name not in mine}
        _check_names(own.decoder, options)
        options |= _batch(own, options)
        settings, _ = resolve(own.decoder, options)
        return cls(own, {ALIASES.get(name, name): v for name, v in options.items()}, settings)


def _check_names(decoder: str, options: dict[str, Any]) -> None:
    owner = option_owner(decoder)
    theirs = [*option_names(Options), *ALIASES, *(option_names(owner) if owner else [])]
    valid = ["pretrained", *option_names(Own), *(n for n in theirs if n not in RESERVED)]
    for name in options:
        if name in RESERVED:
            raise InputError(f"{name} is not for --model_args: {RESERVED[name]}")
        if name not in valid:
            raise unknown_name("model argument", name, valid, f" for decoder {decoder!r}")


def _batch(own: Own, options: dict[str, Any]) -> dict[str, Any]:
    """--batch_size as the engine's max_batch, unless that is given.

    The harness passes 1 when nothing was said, so 1 means the engine's default; for one row at a
    time say max_batch=1.
    """
    if "max_batch" in options or own.batch_size in (None, 1):
        return {}
    if isinstance(own.batch_size, int):
        return {"max_batch": own.batch_size}
    if own.batch_size.partition(":")[0] != "auto":
        raise InputError(f"batch_size is {own.batch_size!r}: expected a whole number or 'auto'")
    return {} if own.max_batch_size is None else {"max_batch": own.max_batch_size}
