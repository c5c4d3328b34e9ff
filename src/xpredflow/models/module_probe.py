"""What a foreign module does, found out by calling it: masks, padding, direction, its head."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.module_adapter import Wrapped


@torch.no_grad()
def examine(model: Wrapped) -> None:
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
