"""A foreign module as a model: rows aligned, padding hidden, logits shifted, all at the edge."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.attention import visible
from xpredflow.models.base import MaskedDiffusionModel
from xpredflow.types import Cache

FAR = torch.iinfo(torch.long).max


class Wrapped(MaskedDiffusionModel):
    """Somebody else's module; its rows begin in the first column, so that it counts for itself.

    `masks`: it takes an attention mask, 4-D if `full_mask`. `head` makes logits of what `hidden`
    returns; None where the module does more than that at its end.
    """

    family = "wrapped"
    shadows = False  # a foreign module cannot hide a position from its own query

    def __init__(
        self, module: nn.Module, table: nn.Embedding, shift: int, block_size: int | None
    ) -> None:
        nn.Module.__init__(self)
        config = getattr(module, "config", None)
        to_dict = getattr(config, "to_dict", dict)
        self.config: dict[str, Any] = to_dict()
        self.module, self.shift, self.block_size = module, shift, block_size
        parameters = inspect.signature(module.forward).parameters.values()
        self.arguments = {p.name: p.default is p.empty for p in parameters}  # and if it is needed
        self.takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.table_name = self.name_of(table)
        self.head_name: str | None = None
        self.masks, self.full_mask = self.accepts("attention_mask"), False

    @property
    def embedding(self) -> Float[Tensor, "V E"]:
        """The input embedding table W_e."""
        table = self.module.get_submodule(self.table_name)
        assert isinstance(table, nn.Embedding)
        return table.weight

    @property
    def head(self) -> nn.Module | None:
        """What makes logits of hidden states, where there is such a layer."""
        return None if self.head_name is None else self.module.get_submodule(self.head_name)

    def name_of(self, part: nn.Module) -> str:
        """The name of a part of the module, which stays right when the module is copied."""
        return next(name for name, found in self.module.named_modules() if found is part)

    def accepts(self, name: str) -> bool:
        """Whether the module may be called with this argument."""
        return name in self.arguments or self.takes_any

    def logits(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Unshifted logits at the `columns` of `inputs`; see `xpredflow.types.Model`."""
        if self.head is None:
            return self._read(inputs, positions, columns, self.run)
        return self.head(self._read(inputs, positions, columns, self.run_to_head))

    def hidden(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N H"]:
        """What the head makes logits of."""
        self.trunk()
        return self._read(inputs, positions, columns, self.run_to_head)

    @property
    def separate_head(self) -> None:
        """None: a foreign module may do more to its logits than its head says."""
        return None

    def trunk(self) -> tuple[Iterable[nn.Module], nn.Module, nn.Module]:
        """The parts beside the head, nothing, and the head, which must be one plain matrix."""
        head = self.head
        if not isinstance(head, nn.Linear) or head.bias is not None:
            what = "none was found" if head is None else "it is no linear layer without a bias"
            raise InputError(
                f"{self.name!r} cannot be aligned: alignment reads softmax(h·Wᵀ) in pieces and"
                f" needs the head's matrix from get_output_embeddings(), but {what}"
            )
        parts = [child for child in self.module.children() if head not in child.modules()]
        return parts, nn.Identity(), head

    @property
    def checkpointing(self) -> bool:
        """Whether activations are computed again in the backward pass."""
        return bool(getattr(self.module, "is_gradient_checkpointing", False))

    @checkpointing.setter
    def checkpointing(self, on: bool) -> None:
        if on == self.checkpointing:
            return
        switch = f"gradient_checkpointing_{'enable' if on else 'disable'}"
        if not hasattr(self.module, switch):
            raise InputError(f"{self.name!r} has no gradient checkpointing: leave it off")
        getattr(self.module, switch)()

    def write(self, directory: Path) -> None:
        """The module's own files, without the tokenizer's."""
        if not hasattr(self.module, "save_pretrained"):
            raise InputError(
                f"{self.name!r} wraps a {type(self.module).__name__}, which has no"
                " save_pretrained: save model.module.state_dict() by yourself"
            )
        self.module.save_pretrained(str(directory))  # type: ignore[operator]

    def convert(self, dtype: torch.dtype) -> None:
        """Change every tensor's dtype."""
        self.module.to(dtype)

    def new_cache(self, slots: int, length: int) -> None:
        """A foreign module has no cache that we could write to."""
        return None

    def _read(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        run: Callable[[Tensor, Tensor], Tensor],
    ) -> Float[Tensor, "B N D"]:
        """What `run` gives for the positions in these columns; padding is moved behind the rows."""
        if bool((positions < -1).any()):
            raise no_shadows(self.name)
        order = positions.masked_fill(positions < 0, FAR).argsort(dim=-1, stable=True)
        inputs = inputs.gather(1, order.unsqueeze(-1).expand_as(inputs))
        positions, filled = positions.gather(1, order), positions.gather(1, order) >= 0
        counted = torch.arange(positions.shape[1], device=positions.device)
        if not bool((positions == counted)[filled].all()):
            raise ValueError("a wrapped model reads rows from position 0 on, without gaps")
        inputs = inputs.to(self.embedding.dtype)
        if self.masks or bool(filled.all()):
            out = run(inputs, positions)
        else:
            out = _length_by_length(inputs, positions, run)
        # the logits of a position stand `shift` columns before it; the first has none before it
        at = (order.argsort(dim=-1).gather(1, columns) - self.shift).clamp(min=0)
        return out.gather(1, at.unsqueeze(-1).expand(-1, -1, out.shape[-1]))

    def run(
        self, inputs: Float[Tensor, "B L E"], positions: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B L V"]:
        """One call of the module: its logits everywhere."""
        arguments: dict[str, Any] = {"inputs_embeds": inputs}
        filled = positions >= 0
        if self.full_mask:
            arguments["attention_mask"] = self._full_mask(positions, inputs.dtype)
        elif self.masks and not bool(filled.all()):
            arguments["attention_mask"] = filled.long()
        if self.arguments.get("position_ids"):  # others count from the first column by themselves
            arguments["position_ids"] = positions.clamp(min=0)
        if "use_cache" in self.arguments:
            arguments["use_cache"] = False
        return logits_of(self.module(**arguments))

    def _full_mask(
        self, positions: Int[Tensor, "B L"], dtype: torch.dtype
    ) -> Float[Tensor, "B 1 L L"]:
        """Added to the attention scores: 0 where a query sees a key, else the lowest number."""
        batch, length = positions.shape
        seen = visible(positions, positions, self.block_size)
        mask = torch.zeros(batch, length, length, dtype=dtype, device=positions.device)
        if seen is not None:
            mask = mask.masked_fill(~seen, torch.finfo(dtype).min)
        return mask.unsqueeze(1)

    def run_to_head(
        self, inputs: Float[Tensor, "B L E"], positions: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B L H"]:
        """One call that ends where the head would begin: it is run on few of the positions only."""

        def stop(_: nn.Module, given: tuple[Tensor, ...]) -> None:
            raise _HeadReached(given[0])

        assert self.head is not None
        hook = self.head.register_forward_pre_hook(stop)
        try:
            self.run(inputs, positions)
        except _HeadReached as reached:
            return reached.hidden
        finally:
            hook.remove()
        raise ValueError(f"{self.name!r} did not call its head")


class _HeadReached(Exception):
    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden


def _length_by_length(
    inputs: Float[Tensor, "B L E"],
    positions: Int[Tensor, "B L"],
    run: Callable[[Tensor, Tensor], Tensor],
) -> Float[Tensor, "B L D"]:
    """Rows of one length at a time, for a module that knows no padding."""
    lengths = (positions >= 0).sum(-1)
    out: Tensor | None = None
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero().squeeze(-1)
        part = run(inputs[rows, :length], positions[rows, :length])
        if out is None:
            out = part.new_zeros(*positions.shape, part.shape[-1])
        out = out.index_put((rows.unsqueeze(-1), positions[rows, :length]), part)
    assert out is not None
    return out


def logits_of(output: Any) -> Tensor:
    """The logits in what a module returned."""
    if isinstance(output, Mapping):
        output = output.get("logits", output)
    found = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not isinstance(found, Tensor):
        raise InputError(
            f"the module returned {type(output).__name__}: expected a tensor of logits, or an"
            " object with .logits; give the model with its language modelling head"
        )
    return found


def no_shadows(name: str) -> InputError:
    """Why a decoder that reads shadows cannot be used."""
    return InputError(
        f"the decoder reads shadows (a second look at each position that does not see its own"
        f" token, as WINO does), but {name!r} is a wrapped module and its attention cannot hide"
        " them: choose another decoder, such as threshold"
    )
