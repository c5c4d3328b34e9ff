"""The processes that torchrun starts: which of them this is, and how many there are."""

import os
from typing import NamedTuple


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
    return share


def leave_processes() -> None:
    """The end of what `join_processes` began."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()
