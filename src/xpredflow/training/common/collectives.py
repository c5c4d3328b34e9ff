"""What training processes tell each other; a process alone says nothing."""

from typing import Any

import torch.distributed as dist

from xpredflow.processes import Share


def gathered(share: Share, mine: list) -> list:
    """Everybody's items, in every process, in the order of the processes."""
    if share.world == 1:
        return mine
    parts: list[list] = [[] for _ in range(share.world)]
    dist.all_gather_object(parts, mine)
    return [item for part in parts for item in part]


def from_first(share: Share, value: Any) -> Any:
    """The first process's value, in every process."""
    if share.world == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]
