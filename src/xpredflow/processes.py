"""The processes that torchrun starts: which of them this is, and what they tell each other."""

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class Share(NamedTuple):
    """This process's number among `world`; (0, 1) when there is only one."""

    rank: int = 0
    world: int = 1


def join_processes() -> Share:
    """As torchrun says; with several, the process group is there when this returns."""
    share = Share(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
    if share.world > 1:
        import torch.distributed as dist

        if not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if _has_cuda() else "gloo")
            _share_cores()
    return share


def _share_cores() -> None:
    """An equal share of the machine's cores for each process on it.

    torchrun gives every process one thread, unless OMP_NUM_THREADS says more: that stays.
    """
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if here > 1 and os.environ.get("OMP_NUM_THREADS", "1") == "1":
        import torch

        torch.set_num_threads(max(1, usable_cores() // here))


def usable_cores() -> int:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_LAST_WORDS: list[Callable[[], None]] = []


def before_leaving(last_word: Callable[[], None]) -> None:
    """Call this before the process leaves the others, be it at its very end."""
    if not _LAST_WORDS:
        atexit.register(leave_processes)
    _LAST_WORDS.append(last_word)


def leave_processes() -> None:
    """The end of what `join_processes` began."""
    import torch.distributed as dist

    while _LAST_WORDS:
        _LAST_WORDS.pop()()
    if dist.is_initialized():
        dist.destroy_process_group()


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def gathered(share: Share, mine: list) -> list:
    """Everybody's items, in every process, in the order of the processes."""
    if share.world == 1:
        return mine
    import torch.distributed as dist

    parts: list[list] = [[] for _ in range(share.world)]
    dist.all_gather_object(parts, mine)
    return [item for part in parts for item in part]


def summed(values: "Tensor", share: Share) -> "Tensor":
    """The sum over all processes, in place."""
    if share.world > 1:
        import torch.distributed as dist

        dist.all_reduce(values)
    return values


def from_first(share: Share, value: Any) -> Any:
    """The first process's value, in every process."""
    if share.world == 1:
        return value
    import torch.distributed as dist

    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]
