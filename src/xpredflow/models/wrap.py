"""Foreign models: any torch module that maps `inputs_embeds` to logits decodes, trains, evaluates.

from xpredflow import generate, wrap

model = wrap(AutoModelForMaskedLM.from_pretrained(DIR), tokenizer, eos="[SEP]")
print(generate(model, "The capital of France is", decoder="threshold")[0].text)

What the module does is found out before the first prompt, by calling it on four positions.
"""

from typing import Any, TypeVar

import torch
from torch import nn

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.module_adapter import Wrapped, no_shadows
from xpredflow.models.module_probe import examine
from xpredflow.models.shift import shifted_shadows
from xpredflow.types import Model, SpecialTokens

W = TypeVar("W", bound=Wrapped)
LONGEST = 1_000_000  # tokenizers without a limit state one beyond this


def wrap(
    module: Any,
    tokenizer: Any = None,
    *,
    mask: int | str | None = None,
    eos: int | str | None = None,
    eot: int | str | None = None,
    shift: int = 0,
    block: int | None = None,
    name: str | None = None,
    max_length: int | None = None,
) -> Wrapped:
    """A masked diffusion model out of a torch module or a loaded transformers model.

        model = wrap(AutoModelForMaskedLM.from_pretrained(DIR), tokenizer, eos="[SEP]")

    The module is called as module(inputs_embeds=..., attention_mask=...) and returns logits or an
    object with `.logits`; it is put into evaluation mode. It must see in both directions: one that
    is causal by itself gets a 4-D mask that shows everything, and is refused if it ignores it.

    `mask`, `eos` and `eot` are token ids or tokens; the tokenizer or the module's config knows most
    of them. `shift=1`: the logits at a position predict the next one, as in Dream. `block=32`: the
    attention is block-causal in blocks of 32, which takes a module that honours 4-D masks.
    """
    return adapt(
        Wrapped,
        module,
        tokenizer,
        mask=mask,
        eos=eos,
        eot=eot,
        shift=shift,
        block=block,
        name=name,
        max_length=max_length,
    )


def adapt(
    kind: type[W],
    module: Any,
    tokenizer: Any,
    *,
    mask: int | str | None = None,
    eos: int | str | None = None,
    eot: int | str | None = None,
    shift: int = 0,
    block: int | None = None,
    name: str | None = None,
    max_length: int | None = None,
) -> W:
    """The same as a model of this kind, after everything that can be wrong was looked at."""
    if not isinstance(module, nn.Module):
        raise InputError(
            f"module is {module!r}: expected a torch module or a loaded transformers model; a"
            " checkpoint's directory, hub id or embedded name is loaded with xpredflow.load"
        )
    if isinstance(module, MaskedDiffusionModel):
        raise InputError(f"{module.name!r} is a model already: pass it on as it is")
    if type(shift) is not int or shift not in (0, 1):
        raise InputError(f"shift is {shift!r}: give 0, or 1 where logits predict the next position")
    for option, value in (("block", block), ("max_length", max_length)):
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{option} is {value!r}: give a whole number ≥ 1")
    model = kind(module.eval(), _embedding_layer(module), shift, block)
    rows, config = len(model.embedding), getattr(module, "config", None)
    special = SpecialTokens(
        mask=_token("mask", mask, tokenizer, config, rows),
        eos=_token("eos", eos, tokenizer, config, rows),
        eot=None if eot is None else _token("eot", eot, tokenizer, config, rows),
    )
    if special.mask in special.ends:
        raise InputError(f"mask and an end token are both {special.mask}: give the mask's own id")
    model.special, model.tokenizer = special, tokenizer
    model.name = name or getattr(config, "_name_or_path", "") or type(module).__name__
    longest = max_length or _longest(module, tokenizer)
    model.max_length = longest - longest % (block or 1)  # the last block is always a whole one
    if not model.max_length:
        raise InputError(f"block is {block} but the module takes {longest} positions at most")
    examine(model)
    return model


def check_model(model: Any, decoder: Any = None) -> Model:
    """Refuse what is no model, and a decoder that this model cannot serve; else return it."""
    if isinstance(model, str):
        raise InputError(f"model is {model!r}, a text: load it first, load({model!r})")
    # our own are known by their class: asking for each attribute of the protocol takes longer
    if not isinstance(model, MaskedDiffusionModel | Model):
        fix = "expected what load() or wrap() returns"
        if isinstance(model, nn.Module):
            fix = "wrap it first, wrap(module, tokenizer, mask=...)"
        raise InputError(f"model is a {type(model).__name__}, which cannot decode: {fix}")
    if getattr(decoder, "shadows", False) and not getattr(model, "shadows", True):
        if not isinstance(model, Wrapped):
            raise shifted_shadows(model.name)
        raise no_shadows(model.name)
    return model


def _embedding_layer(module: nn.Module) -> nn.Embedding:
    """The layer that looks tokens up: what the module says, or the only one that it has."""
    try:
        found = module.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        tables = [part for part in module.modules() if isinstance(part, nn.Embedding)]
        found = tables[0] if len(tables) == 1 else None
    if not isinstance(found, nn.Embedding):
        raise InputError(
            f"{type(module).__name__} has no embedding table that can be told: give it a method"
            " get_input_embeddings() that returns its nn.Embedding of tokens"
        )
    some = torch.arange(min(4, len(found.weight)), device=found.weight.device)
    with torch.no_grad():
        if not torch.equal(found(some), found.weight[some]):
            raise InputError(
                f"the embedding layer of {type(module).__name__} does more than look tokens up (it"
                " scales them?): states between tokens would be read wrongly; move that into the"
                " module's forward"
            )
    return found


def _token(role: str, given: Any, tokenizer: Any, config: Any, rows: int) -> int:
    """A token's id as it was given, or as the tokenizer or the config knows it; never guessed."""
    if given is None:
        given = getattr(tokenizer, f"{role}_token_id", None)
    if given is None:
        given = getattr(config, f"{role}_token_id", None)
        given = given[0] if isinstance(given, list) and given else given
    if given is None:
        raise InputError(
            f"{role} is unknown: neither the tokenizer nor the module's config names its"
            f" {role} token; pass {role}=ID or {role}='TOKEN'"
        )
    number = given
    if isinstance(given, str):
        if tokenizer is None:
            raise InputError(f"{role} is {given!r} but there is no tokenizer: give the token's id")
        number = tokenizer.get_vocab().get(given)
    if type(number) is not int or not 0 <= number < rows:
        raise InputError(
            f"{role} is {given!r}: expected a token, or its id from 0 to {rows - 1} (the rows of"
            " the embedding table)"
        )
    return number


def _longest(module: nn.Module, tokenizer: Any) -> int:
    """How many positions the module or its tokenizer say that it takes."""
    stated = [
        getattr(getattr(module, "config", None), "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),
        *_counted_behind_padding(module),
    ]
    known = [int(value) for value in stated if value is not None and 0 < value < LONGEST]
    if not known:
        raise InputError(
            "max_length is unknown: neither the module's config nor the tokenizer states it; pass"
            " max_length=, the number of positions the module takes"
        )
    return min(known)


def _counted_behind_padding(module: nn.Module) -> list[int]:
    """Positions of tables that count from behind their padding row, as RoBERTa's does."""
    return [
        part.num_embeddings - part.padding_idx - 1
        for name, part in module.named_modules()
        if isinstance(part, nn.Embedding)
        and part.padding_idx is not None
        and name.endswith("position_embeddings")
    ]
