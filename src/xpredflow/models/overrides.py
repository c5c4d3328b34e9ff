"""What a user says about a checkpoint that its files leave out: mask, eos, shift, block, ...

In Python `load(source, mask=5)`; wherever a model is named, on the command line too,
`source+mask=5+block=32`. It becomes part of the config, and so of what is saved.
"""

from pathlib import Path
from typing import Any, Literal

from xpredflow.errors import InputError
from xpredflow.models.source import stored_id
from xpredflow.models.variants import OWN, VARIANTS, architecture_of
from xpredflow.settings import Field, configured, settings

_OF_DENSE = ("shift", "anchor", "max_length", "block")


@settings
class Overrides:
    """Facts about a checkpoint; None where its files say them."""

    mask: int | str | None = Field(None, description="the mask token or its id")
    eos: int | str | None = Field(None, description="the token that ends a text, or its id")
    shift: Literal[0, 1] | None = Field(
        None, description="1: the logits at a position predict the next one"
    )
    block: int | None = Field(
        None, ge=0, description="attention in blocks of so many positions; 0: full attention"
    )
    anchor: Literal["start", "response"] | None = Field(
        None, description="where blocks are counted from"
    )
    max_length: int | None = Field(None, ge=1, description="positions that it can take")


NO_OVERRIDES = Overrides()


def split_source(source: str | Path, given: dict[str, Any]) -> tuple[str | Path, Overrides]:
    """A model's name without its `+NAME=VALUE`, and all that was said."""
    said = {name: value for name, value in given.items() if value is not None}
    if isinstance(source, str) and "+" in source and not Path(source).expanduser().exists():
        source, *pairs = source.split("+")
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals:
                raise InputError(
                    f"model {source!r} is followed by {pair!r}: expected NAME=VALUE, such as"
                    f" {source}+mask=5"
                )
            if name in said:
                raise InputError(f"model {source!r}: {name} was given twice; give it once")
            said[name] = int(value) if value.isdecimal() else value
    return source, configured(Overrides, said, f"model {source}")


def completed(
    config: dict[str, Any], overrides: Overrides, tokenizer: Any, directory: Path, name: str
) -> dict[str, Any]:
    """config.json with what the user, the tokenizer and the checkpoint's name say beside it."""
    config = dict(config)
    for role in ("mask", "eos"):
        field, said = f"{role}_token_id", getattr(overrides, role)
        if said is not None:
            config[field] = _token_id(role, said, tokenizer)
        elif config.get(field) is None:
            token = getattr(tokenizer, f"{role}_token", None)
            known = None if token is None else stored_id(directory, token)
            _check_table(role, known, config)
            if known is not None:
                config[field] = known
    architecture = architecture_of(config)
    if architecture is None:
        return _completed_other(config, overrides)
    told = VARIANTS[architecture].named(name) | (config.get(OWN) or {})
    told |= {n: getattr(overrides, n) for n in _OF_DENSE if getattr(overrides, n) is not None}
    return {**config, OWN: told} if told else config


def _completed_other(config: dict[str, Any], overrides: Overrides) -> dict[str, Any]:
    """Of a family that knows its own shift and blocks, only the length is open."""
    for name in ("shift", "anchor", "block"):
        if getattr(overrides, name) is not None:
            raise InputError(
                f"{name} is {getattr(overrides, name)!r}, but {config.get('architectures')}"
                f" checkpoints have one kind of it: leave {name} out"
            )
    if overrides.max_length is not None:
        for field in ("max_sequence_length", "max_position_embeddings"):
            if field in config:
                config[field] = overrides.max_length
    return config


def _check_table(role: str, known: int | None, config: dict[str, Any]) -> None:
    architecture = architecture_of(config)
    published = VARIANTS[architecture].mask if architecture and role == "mask" else None
    if known is not None and published not in (None, known):
        raise InputError(
            f"the tokenizer's mask token is {known}, but {architecture} checkpoints are published"
            f" with {published}, and config.json has no mask_token_id: say which is right,"
            f" mask={published} or mask={known}"
        )


def _token_id(role: str, said: int | str, tokenizer: Any) -> int:
    if isinstance(said, int):
        return said
    found = None if tokenizer is None else tokenizer.get_vocab().get(said)
    if found is None:
        why = "there is no tokenizer" if tokenizer is None else "the tokenizer has no such token"
        raise InputError(f"{role} is {said!r}, but {why}: give the token's id, {role}=ID")
    return found
