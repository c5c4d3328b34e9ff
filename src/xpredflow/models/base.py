"""The model as the engine sees it; a family adds its layers, its names and its checks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from xpredflow.errors import InputError
from xpredflow.models.attention import Pass, Shape, at
from xpredflow.models.cache import BlockCache
from xpredflow.models.defaults import NO_DEFAULTS, Defaults
from xpredflow.models.frozen_cache import FrozenCache
from xpredflow.models.shards import Stored
from xpredflow.models.shift import BlockEnds, read_before
from xpredflow.models.split import Cut
from xpredflow.types import Cache

if TYPE_CHECKING:
    from xpredflow.models.team import Team


class Place(NamedTuple):
    """Where a checkpoint's tensor lives: one of our tensors, or one row of it."""

    name: str
    row: int | None = None


class MaskedDiffusionModel(nn.Module):
    """Embeddings in, logits at some columns out: implements `xpredflow.types.Model`.

    `config` is config.json as it was read. A layer is called as layer(hidden, shared, index).
    """

    defaults: Defaults = NO_DEFAULTS  # how it is decoded unless told otherwise
    narrow_dtype: torch.dtype | None = None  # of the files, where it is not computed in
    quantized: str | None = None  # int8 or int4, where matrices were packed: it only decodes then
    chosen_because: str | None = None  # where dtype='auto' was asked for: what it became, and why
    unread: Mapping[str, Stored] | None = None  # of a model on the meta device: its files' tensors
    team: "Team | None" = None  # the processes that hold its matrices together
    layer_devices: list[torch.device] | None = None  # where layers are on several
    placed: str | None = None  # where its parts are, if not all on one device: a line for the user
    family: ClassVar[str]
    model_type: ClassVar[str]
    # The token that ends a turn, where the tokenizer has it.
    end_of_turn: ClassVar[str]
    # Regular expressions over tensor names: harmless extras of published checkpoints; matrices
    # that write to the residual stream; tensors that are never stored in less than their precision.
    ignored: ClassVar[str] = r"\.inv_freq$"
    residual: ClassVar[str]
    precise: ClassVar[str] = r"(?!)"
    # whether layers ask a Pass what to read behind their attention, so that the last may end early
    reads_at_the_end: bool = False
    # How several processes share its matrices out, by patterns of their names, and the modules
    # whose results are then parts of a sum.
    cuts: ClassVar[Mapping[str, Cut]] = MappingProxyType({})
    summed: ClassVar[str] = r"(?!)"
    # What the chat template is told beside the messages.
    chat_options: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, config: dict[str, Any], shape: Shape) -> None:
        super().__init__()
        self.config = config
        self.shape = shape
        self.name = self.family
        self.special = shape.special
        self.max_length = shape.max_length
        self.block_size = shape.block_size
        # Blocks begin with the response; else they are counted from the row's first position.
        self.anchored_at_response = shape.anchor == "response"
        # A shadow hides the input at its own place; shifted logits are read at another one.
        self.shadows = shape.shift == 0
        self.tokenizer: Any = None
        # In training: compute a layer's activations again in the backward pass, do not keep them.
        self.checkpointing = False
        # Layers are compiled; to CUDA graphs: what the last pass left in them may be written over.
        self.compiled = self.replays = False

    @property
    def embedding(self) -> Float[Tensor, "V E"]:
        """The input embedding table W_e."""
        raise NotImplementedError

    @property
    def stored_dtype(self) -> torch.dtype:
        """What the weights had in their files, where a CPU computes in a wider one."""
        return self.narrow_dtype or self.embedding.dtype

    def trunk(self) -> tuple[Iterable[nn.Module], nn.Module, nn.Module]:
        """The layers, the final norm and the head."""
        raise NotImplementedError

    @property
    def separate_head(self) -> nn.Module | None:
        """What makes logits of `hidden`, for positions of one's choice; none in a team."""
        return self.trunk()[2] if self.team is None else None

    def places(self) -> dict[str, Place]:
        """Every tensor of a checkpoint of this family, by its upstream name.

        Published checkpoints hold one tensor per expert; each is a row of our stack.
        """
        places: dict[str, Place] = {}
        for name, tensor in self.state_dict().items():
            stacked = re.fullmatch(r"(.*\.experts)\.(\w+_proj)", name)
            if stacked is None:
                places[name] = Place(name)
                continue
            for row in range(tensor.shape[0]):
                places[f"{stacked[1]}.{row}.{stacked[2]}.weight"] = Place(name, row)
        return places

    def copies(self) -> dict[str, str]:
        """Tensors that a checkpoint may hold once more, and what each must be equal to."""
        return {}

    def attach(self, tokenizer: Any) -> None:
        """Set the tokenizer, and the end-of-turn token if it has one."""
        self.tokenizer = tokenizer
        eot = None if tokenizer is None else tokenizer.get_vocab().get(self.end_of_turn)
        if eot not in (None, self.special.eos, self.special.mask):
            self.special = self.special._replace(eot=eot)

    def hint(self, prompt: Any) -> str | None:
        """A line for the user where a prompt is nothing that the model was trained for."""
        return None

    def logits(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Unshifted logits at the `columns` of `inputs`; see `xpredflow.types.Model`."""
        if self.team is None:
            return self.read(inputs, positions, columns, cache, slots)
        with self.team.told(inputs, positions, columns, cache, slots):
            return self.read(inputs, positions, columns, cache, slots)

    def read(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N _"]:
        """The same by this process; of a team, all but the first get their part of it only."""
        _, _, head = self.trunk()
        # The head is the widest matrix: it sees the wanted positions only, never the prompt.
        return head(self.hidden(inputs, positions, columns, cache, slots))

    def hidden(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N E"]:
        """What the head makes logits of, for those who cannot hold all logits at once."""
        layers, norm, _ = self.trunk()
        if self.replays:
            torch.compiler.cudagraph_mark_step_begin()
        shared = Pass.begin(positions, self.shape, cast(BlockCache | None, cache), slots)
        # In decoding the last layer ends with what is read. Elsewhere all layers are alike: a
        # compiled one would need a second graph, and trainings are repeated number by number.
        alike = torch.is_grad_enabled() or self.compiled or self.shape.shift
        ends_early = self.reads_at_the_end and not (alike or self.layer_devices)
        if ends_early:
            shared = replace(shared, columns=columns, last=self.shape.layers - 1)
        hidden = inputs.to(self.embedding.dtype)
        for index, layer in enumerate(layers):
            if self.checkpointing:  # nothing in a layer is random
                layer = partial(checkpoint, layer, use_reentrant=False, preserve_rng_state=False)
            hidden = layer(hidden, shared, index)
        hidden = hidden.to(inputs.device)  # where layers are on several
        if self.shape.shift:
            return norm(read_before(hidden, positions, columns, cache, slots))
        return norm(hidden if ends_early else at(hidden, columns))

    def convert(self, dtype: torch.dtype) -> None:
        """Change every tensor's dtype, except that `precise` ones keep theirs."""
        for name, tensor in [*self.named_parameters(), *self.named_buffers()]:
            if not re.search(self.precise, name):
                tensor.data = tensor.data.to(dtype)

    def resize(self, shape: Shape) -> None:
        """The layers have become smaller: they hold so many heads now."""
        self.shape = shape

    def new_cache(self, slots: int, length: int) -> BlockCache | None:
        """Room for `slots` rows of `length` positions; None for a bidirectional model."""
        if self.block_size is None:
            return None
        cache = self.own_cache(slots, length)
        if self.team is not None:
            self.team.share_cache(cache, slots, length)
        return cache

    def own_cache(self, slots: int, length: int) -> BlockCache:
        """The same for the heads of this process alone."""
        assert self.block_size is not None
        table = self.embedding
        room = (slots, length, self.shape.kv_heads, self.shape.head_dim)
        devices = self.layer_devices or [table.device] * self.shape.layers
        cache = BlockCache(room, devices, table.dtype)
        if self.anchored_at_response:  # a row begins inside its first block
            cache.latest_start = self.block_size - 1
        if self.shape.shift:
            cache.block_ends = BlockEnds(slots, length, self.block_size, table)
        return cache

    def new_frozen_cache(self, slots: int, length: int) -> FrozenCache | None:
        """The same for an approximate cache, which only a bidirectional model has a use for."""
        if self.block_size is not None:
            return None
        if self.team is not None:
            raise InputError(
                "cache is set, but several processes hold the model together (tensor_parallel),"
                " which decode without one: leave out one of the two"
            )
        table = self.embedding
        room = (slots, length, self.shape.kv_heads, self.shape.head_dim)
        devices = self.layer_devices or [table.device] * self.shape.layers
        return FrozenCache(room, devices, table.dtype, self.shape.shift)


class _Uninitialised(TorchFunctionMode):
    """Leaves out the random initialisation that layers begin with: weights are to follow.

    On the meta device it costs far more than nothing: torch computes it by a slow detour.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == nn.init.__name__ or func in _DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


_DRAWS = (Tensor.normal_, Tensor.uniform_)


def on_meta(family: type[MaskedDiffusionModel], config: dict[str, Any]) -> MaskedDiffusionModel:
    """The family's module without memory behind its tensors, and without values for them."""
    with torch.device("meta"), _Uninitialised():
        return family(config)  # type: ignore[call-arg]
