"""Foreign models: any torch module that maps `inputs_embeds` to logits decodes, trains, evaluates.

from xpredflow import generate, wrap

model = wrap(AutoModelForMaskedLM.from_pretrained(DIR), tokenizer, eos="[SEP]")
print(generate(model, "The capital of France is", decoder="threshold")[0].text)

What the module does is found out before the first prompt, by calling it on four positions.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.models.foreign import Wrapped, no_shadows
from xpredflow.models.shift import shifted_shadows
from xpredflow.types import Model, SpecialTokens

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
    model = Wrapped(module.eval(), _embedding_layer(module), shift, block)
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
    longest = max_length or _longest(config, tokenizer)
    model.max_length = longest - longest % (block or 1)  # the last block is always a whole one
    if not model.max_length:
        raise InputError(f"block is {block} but the module takes {longest} positions at most")
    _examine(model)
    return model


def check_model(model: Any, decoder: Any = None) -> Model:
    """Refuse what is no model, and a decoder that this model cannot serve; else return it."""
    if isinstance(model, str):
        raise InputError(f"model is {model!r}, a text: load it first, load({model!r})")
    if not isinstance(model, Model):
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


def _longest(config: Any, tokenizer: Any) -> int:
    """How many positions the module or its tokenizer say that it takes."""
    stated = [
        getattr(config, "max_position_embeddings", None),
        getattr(tokenizer, "model_max_length", None),
    ]
    known = [int(value) for value in stated if value is not None and 0 < value < LONGEST]
    if not known:
        raise InputError(
            "max_length is unknown: neither the module's config nor the tokenizer states it; pass"
            " max_length=, the number of positions the module takes"
        )
    return min(known)


@torch.no_grad()
def _examine(model: Wrapped) -> None:
    """Find out what the module does with masks, and whether its head can be run by itself."""
    table = model.embedding
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(len(table), (2, 4), generator=draw).to(table.device)
    tokens[1] = (tokens[0] + 1) % len(table)  # another token everywhere
    inputs = table[tokens]
    _check_logits(model, inputs)
    block, model.block_size = model.block_size, model.block_size and 2
    model.full_mask = block is not None
    # row i: which positions change when position i holds another token
    reach = _reach(model, inputs)
    if block is None and reach[0, 3] and not reach[3, 0]:  # causal, unless it is told otherwise
        model.full_mask = model.masks
        reach = _reach(model, inputs)
        if not reach[3, 0]:
            raise InputError(
                f"{model.name!r} is causal: no position sees a later one, and it takes no 4-D"
                " attention_mask that would change it; masked diffusion needs both directions"
            )
    if block is not None and not (reach[1, 0] and reach[0, 3] and not reach[2:, :2].any()):
        raise InputError(
            f"block is {block} but {model.name!r} does not follow a 4-D attention_mask of shape"
            " (rows, 1, positions, positions) that is added to its scores: leave block out"
        )
    model.block_size = block
    model.masks = model.masks and _knows_padding(model, inputs)
    model.head_name = _head_name(model, inputs)


def _check_logits(model: Wrapped, inputs: Float[Tensor, "2 4 E"]) -> None:
    if not model.accepts("inputs_embeds"):
        raise InputError(
            f"{type(model.module).__name__} takes no inputs_embeds: decoding in the space of"
            " embeddings needs a module that reads them in place of token ids"
        )
    try:
        logits = model.run(inputs, _places(inputs))
    except InputError:
        raise
    except Exception as error:  # a foreign module may raise anything
        raise InputError(
            f"{type(model.module).__name__} failed on inputs_embeds of shape"
            f" {tuple(inputs.shape)} ({type(error).__name__}: {error})"
        ) from error
    expected = (*inputs.shape[:2], len(model.embedding))
    if tuple(logits.shape) != expected:
        raise InputError(
            f"{type(model.module).__name__} gives logits of shape {tuple(logits.shape)}; expected"
            f" {expected}: one for each row of its embedding table, at every position"
        )


def _places(inputs: Float[Tensor, "B L E"]) -> Int[Tensor, "B L"]:
    return torch.arange(inputs.shape[1], device=inputs.device).expand(len(inputs), -1)


def _reach(model: Wrapped, inputs: Float[Tensor, "2 4 E"]) -> Bool[Tensor, "4 4"]:
    """At [i, j]: the logits at position j change with the input at position i."""
    rows = inputs[:1].repeat(5, 1, 1)
    rows[range(4), range(4)] = inputs[1]
    try:
        logits = model.run(rows, _places(rows)).float()
    except Exception:  # what it makes of a 4-D mask is its own affair
        if not model.full_mask:
            raise
        return torch.zeros(4, 4, dtype=torch.bool)
    moved = (logits[:4] - logits[4]).abs().amax(-1)
    return (moved > 1e-5 * logits[4].abs().max()).cpu()


def _knows_padding(model: Wrapped, inputs: Float[Tensor, "2 4 E"]) -> bool:
    """Whether a row is the same with masked padding behind it."""
    places = _places(inputs).clone()
    alone = model.run(inputs[:, :2], places[:, :2]).float()
    places[:, 2:] = -1
    padded = model.run(inputs, places).float()[:, :2]
    return bool((alone - padded).abs().max() <= 1e-3 * alone.abs().max())


def _head_name(model: Wrapped, inputs: Float[Tensor, "2 4 E"]) -> str | None:
    """The name of the head, if it alone makes the module's logits of its last hidden states."""
    head = getattr(model.module, "get_output_embeddings", lambda: None)()
    if not isinstance(head, nn.Module):
        return None
    logits = model.run(inputs, _places(inputs))
    model.head_name = model.name_of(head)
    try:
        same = head(model.run_to_head(inputs, _places(inputs)))
    except ValueError:
        return None
    return model.head_name if torch.equal(same.float(), logits.float()) else None
