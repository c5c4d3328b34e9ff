"""One training run over several processes: parameters sharded by FSDP2, states saved as a whole.

A saved state does not show how many processes wrote it, so that another number may go on with it.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from xpredflow.processes import Share
from xpredflow.training.align.objective import XPrediction


def shard(objective: XPrediction, share: Share, trained: bool = True) -> None:
    """Spread the parameters over all processes, layer by layer; nothing to do for one process."""
    if share.world == 1:
        return
    device = objective.model.embedding.device
    mesh = init_device_mesh(device.type, (share.world,))
    for layer in objective.model.trunk()[0]:
        fully_shard(layer, mesh=mesh)
    # Training needs embedding and head again at once, in the backward pass; a reference does not.
    fully_shard(objective, mesh=mesh, reshard_after_forward=not trained)


def summed(values: Float[Tensor, " N"], share: Share) -> Float[Tensor, " N"]:
    """The sum over all processes."""
    if share.world > 1:
        dist.all_reduce(values)
    return values


def whole(value: Any, keep: bool = True) -> Any:
    """A state with every sharded tensor put together on the CPU.

    All processes must call it; those that do not `keep` what they see get None for a tensor.
    """
    if isinstance(value, DTensor):
        value = value.full_tensor()
    if isinstance(value, Tensor):
        return value.detach().cpu() if keep else None
    if isinstance(value, Mapping):
        return {key: whole(item, keep) for key, item in value.items()}
    return [whole(item, keep) for item in value] if isinstance(value, list) else value


def put(value: Tensor, parameter: Tensor) -> None:
    """Set a parameter, sharded or not, to a whole value."""
    with torch.no_grad():
        parameter.copy_(_like(value, parameter))


def restore_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load a whole state; moments are sharded as the parameters are that they belong to."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    moments = {
        number: {name: _like(value, parameters[number]) for name, value in entry.items()}
        for number, entry in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": moments})


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    if not isinstance(parameter, DTensor) or value.ndim == 0:  # a count of steps is no shard
        return value.clone()
    here = value.to(parameter.device)
    return distribute_tensor(here, parameter.device_mesh, parameter.placements, src_data_rank=None)
