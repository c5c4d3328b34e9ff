"""The processes that hold one model together: the first one decodes, the others follow its passes.

Only the first process has prompts, rows, a decoder or a server. Before each pass it tells the
others what the pass reads; every process computes its part, and parts are added up where the model
needs their sum. Joins, leaves and cancellations need no messages of their own: what they change is
which inputs and cache slots the next pass has.

Before the logits are gathered all processes say whether they came that far. One that ran out of
memory adds zeros to the sums that are left, so that nobody waits, and says so: the pass has then
failed everywhere, and the first process may try again with fewer rows.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary, finalize, ref

import torch
import torch.distributed as dist
from torch import Tensor, nn

from xpredflow.errors import InputError
from xpredflow.models.split import Split
from xpredflow.processes import (
    Share,
    before_leaving,
    from_first,
    join_processes,
)

if TYPE_CHECKING:
    from xpredflow.models.base import MaskedDiffusionModel

IDLE = timedelta(days=365)  # a server may wait as long for its next request
REMEMBERED = 4  # sets of positions that passes repeat, before the oldest is told anew


class OutOfStep(RuntimeError):
    """A pass ended in the first process only: the others wait for sums that never come."""


class _Tensor(NamedTuple):
    """What a tensor must be to receive another."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def like(cls, tensor: Tensor) -> "_Tensor":
        return cls(tuple(tensor.shape), tensor.dtype)

    def empty(self, device: torch.device) -> Tensor:
        return torch.empty(self.shape, dtype=self.dtype, device=device)


class _NewCache(NamedTuple):
    number: int
    slots: int
    length: int


class _Pass(NamedTuple):
    """`places` are those numbered so; with `new` ones, they follow the inputs."""

    inputs: _Tensor
    places: int
    new: list[_Tensor]
    cache: int | None
    dropped: list[int]  # caches that the first process no longer has


class Team:
    """All processes of torchrun, each with its `split` of the model."""

    def __init__(self) -> None:
        rank, world = join_processes()
        if world == 1:
            raise InputError(
                "tensor_parallel is for several processes, and there is one: start them with"
                " torchrun --nproc_per_node 2 -m xpredflow ..., or leave it out"
            )
        self.split = Split(rank, world)
        self.leads = rank == 0
        # messages go by the host, and may be long in coming
        self._group: Any = dist.new_group(backend="gloo", timeout=IDLE)
        self._lock = threading.Lock()  # one pass at a time, whoever asks for it
        self._broken = False
        self._vocabulary = 0
        self._known: list[tuple[Any, ...]] = [()] * REMEMBERED
        self._next = 0
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._made = 0
        self._dropped: list[int] = []
        self._sums = 0  # of a pass
        self._added = 0  # of them in the pass that is being computed
        self._succeeded: bool | None = None  # whether all came to its logits, once that is known
        before_leaving(self.close)

    def connect(self, model: "MaskedDiffusionModel") -> None:
        """Parts of sums are added up, and the first process gets everybody's logits.

        It alone returns from here.
        """
        for name, module in model.named_modules():
            if re.search(model.summed, name):
                module.register_forward_hook(self._add_up)
                self._sums += 1
        model.trunk()[2].register_forward_hook(self._gather)
        world, self._vocabulary = self.split.world, len(model.embedding)
        self._dtype = model.embedding.dtype
        model.reads_at_the_end = False  # who fails in a layer sends zeros of the shape all have
        if not self.leads:
            self.follow(model)
        model.team = self
        model.placed = f"{world} processes hold one model together, each a part of every matrix"

    def agreed(self, value: Any) -> Any:
        """The first process's value."""
        return from_first(Share(self.split.rank, self.split.world), value)

    def _add_up(self, module: nn.Module, args: Any, part: Tensor) -> Tensor:
        part = part.contiguous()
        dist.all_reduce(part)
        self._added += 1
        return part

    def _gather(self, head: nn.Module, args: Any, part: Tensor) -> Tensor:
        """Row by row: beside the logits there is room for those of one row."""
        each = -(-self._vocabulary // self.split.world)
        part = torch.nn.functional.pad(part, (0, each - part.shape[-1])).contiguous()
        if not self.leads:
            self._agree(succeeded=True)
            for row in part:
                dist.gather(row, dst=0)
            return part
        whole = part.new_empty(*part.shape[:-1], each * self.split.world)
        parts = [torch.empty_like(part[0]) for _ in range(self.split.world)]
        self._agree(succeeded=True)
        for row, place in zip(part, whole, strict=True):
            dist.gather(row, parts, dst=0)
            torch.cat(parts, dim=-1, out=place)
        return whole[..., : self._vocabulary]

    def _agree(self, succeeded: bool) -> None:
        """Everybody says how it went, by the host: out of memory in one is so in all."""
        failures = torch.tensor([not succeeded], dtype=torch.int32)
        dist.all_reduce(failures, group=self._group)
        self._succeeded = not failures.item()
        if not self._succeeded:
            raise torch.OutOfMemoryError("in one of the processes that hold the model together")

    def _keep_step(self, inputs: Tensor) -> None:
        """After a pass that ran out of memory: take part in what the others wait for.

        The inputs are written over, for there may be no memory for anything else.
        """
        if self._succeeded is None:
            nothing = inputs.to(self._dtype).zero_()
            for _ in range(self._sums - self._added):
                dist.all_reduce(nothing)
            with suppress(torch.OutOfMemoryError):
                self._agree(succeeded=False)
        if self._succeeded:  # it ended after all had agreed that it went well
            raise OutOfStep(
                "out of memory while logits were gathered from several processes: start them anew"
                " with a smaller max_batch"
            )

    @contextmanager
    def told(
        self,
        inputs: Tensor,
        positions: Tensor,
        columns: Tensor,
        cache: Any = None,
        slots: Tensor | None = None,
    ) -> Iterator[None]:
        """The others compute their parts of this pass while the block computes ours.

        Out of memory leaves them in step; the inputs are then lost. Any other error does not.
        """
        places = (positions, columns) if slots is None else (positions, columns, slots)
        with self._lock:
            if self._broken:
                raise OutOfStep(
                    "the processes that hold the model together are out of step, because a pass"
                    " failed before: start them anew"
                )
            inputs = inputs.contiguous()
            try:
                self._tell(inputs, places, cache)
                yield
            except BaseException as error:
                self._broken = True
                if isinstance(error, torch.OutOfMemoryError):
                    self._keep_step(inputs)
                    self._broken = False
                raise

    def _tell(self, inputs: Tensor, places: tuple[Tensor, ...], cache: Any) -> None:
        at = next((i for i, known in enumerate(self._known) if _same(known, places)), None)
        is_new = at is None
        if at is None:
            at, self._next = self._next, (self._next + 1) % REMEMBERED
            self._known[at] = tuple((ref(tensor), _version(tensor)) for tensor in places)
        new = [_Tensor.like(tensor) for tensor in places] if is_new else []
        number = None if cache is None else self._numbers[cache]
        self._added, self._succeeded = 0, None
        dropped, self._dropped = self._dropped, []
        self._send(_Pass(_Tensor.like(inputs), at, new, number, dropped))
        for tensor in (inputs, *(places if is_new else ())):
            dist.broadcast(tensor.contiguous(), src=0)

    def share_cache(self, cache: Any, slots: int, length: int) -> None:
        """The others make theirs, and keep it as long as this one lives."""
        with self._lock:
            number, self._made = self._made, self._made + 1
            self._numbers[cache] = number
            finalize(cache, self._drop, number).atexit = False
            self._send(_NewCache(number, slots, length))

    def _drop(self, number: int) -> None:
        self._dropped.append(number)  # told with the next pass: this may be any thread

    def close(self) -> None:
        """No pass follows: the others end. After a failed one they are not listening."""
        if self.leads and not self._broken and self._lock.acquire(timeout=1):
            self._broken = True
            with suppress(RuntimeError):  # they have ended already
                self._send(None)

    def _send(self, message: Any) -> None:
        dist.broadcast_object_list([message], src=0, group=self._group, device=_HOST)

    def _receive(self) -> Any:
        box = [None]
        try:
            dist.broadcast_object_list(box, src=0, group=self._group, device=_HOST)
        except RuntimeError as error:
            raise SystemExit("the first of the processes that hold the model has ended") from error
        return box[0]

    def follow(self, model: "MaskedDiffusionModel") -> NoReturn:
        """Compute this process's part of every pass; with the first process, this one ends too.

        Signals are for the first process, which may have answers to finish.
        """
        if threading.current_thread() is threading.main_thread():
            signal(SIGINT, SIG_IGN)
            signal(SIGTERM, SIG_IGN)
        caches: dict[int, Any] = {}
        known: list[list[Tensor]] = [[] for _ in range(REMEMBERED)]
        device = model.embedding.device
        with torch.no_grad():
            while (message := self._receive()) is not None:
                if isinstance(message, _NewCache):
                    caches[message.number] = model.own_cache(message.slots, message.length)
                    continue
                for number in message.dropped:
                    caches.pop(number, None)
                inputs = _received(message.inputs, device)
                if message.new:
                    known[message.places] = [_received(new, device) for new in message.new]
                positions, columns, *slots = known[message.places]
                cache = None if message.cache is None else caches[message.cache]
                self._added, self._succeeded = 0, None
                try:
                    model.read(inputs, positions, columns, cache, slots[0] if slots else None)
                except torch.OutOfMemoryError:
                    self._keep_step(inputs)
                if not self._succeeded and device.type == "cuda":
                    torch.cuda.empty_cache()
        raise SystemExit(0)


_HOST = torch.device("cpu")


def _received(kind: _Tensor, device: torch.device) -> Tensor:
    tensor = kind.empty(device)
    dist.broadcast(tensor, src=0)
    return tensor


def _same(known: tuple[Any, ...], places: tuple[Tensor, ...]) -> bool:
    """The very same tensors, and unchanged: what follows from them need not be computed again."""
    return len(known) == len(places) and all(
        told() is tensor and version is not None and version == _version(tensor)
        for (told, version), tensor in zip(known, places, strict=True)
    )


def _version(tensor: Tensor) -> int | None:
    """Changes with every write; None where torch does not count them."""
    return None if tensor.is_inference() else tensor._version
