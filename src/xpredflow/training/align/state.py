"""What a run goes on from: trained parameters and AdamW's moments, whole or in shards.

One process writes them as they are, a tensor at a time. Several processes write shards, in which
moments go by the names of their parameters. Each can read what the other wrote.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from xpredflow.models.spread import own_part, own_rows
from xpredflow.processes import Share
from xpredflow.training.common.sharded_states import read_tensors

Parameters = dict[str, torch.nn.Parameter]
MOMENTS = ("exp_avg", "exp_avg_sq")


def file_state(parameters: Parameters, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """For one process; tensors are brought to the host one by one, while they are written."""
    values = {"parameters": dict(parameters), "optimizer": optimizer.state_dict()}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach()
        return value if type(value) is Tensor else value.cpu()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def shard_state(
    parameters: Parameters, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """For several processes: how many steps each parameter's moments have seen, and the tensors."""
    tensors = {f"parameters.{name}": p.detach() for name, p in parameters.items()}
    steps = {}
    for name, parameter in parameters.items():
        if entry := optimizer.state.get(parameter):
            steps[name] = float(entry["step"])
            tensors |= {f"{moment}.{name}": entry[moment].detach() for moment in MOMENTS}
    return steps, tensors


@torch.no_grad()
def restore(
    state: dict[str, Any], parameters: Parameters, optimizer: torch.optim.Optimizer, share: Share
) -> None:
    """Go on from a state of either kind."""
    if "shards" in state:
        _from_shards(state["shards"], state["steps"], parameters, optimizer, share)
        return
    for name, parameter in parameters.items():
        own_part(parameter).copy_(_own_rows_of(state["parameters"][name], parameter))
    saved, known = state["optimizer"], list(parameters.values())
    moments = {
        number: {name: _like(value, known[number]) for name, value in entry.items()}
        for number, entry in saved["state"].items()
    }
    optimizer.load_state_dict({**saved, "state": moments})


def _from_shards(
    path: Path,
    steps: dict[str, float],
    parameters: Parameters,
    optimizer: torch.optim.Optimizer,
    share: Share,
) -> None:
    tensors = {f"parameters.{name}": p.detach() for name, p in parameters.items()}
    for name, step in steps.items():
        parameter = parameters[name]
        entry = {moment: torch.zeros_like(parameter) for moment in MOMENTS}
        optimizer.state[parameter] = {"step": torch.tensor(step), **entry}
        tensors |= {f"{moment}.{name}": entry[moment] for moment in MOMENTS}
    read_tensors(path, tensors, share)


def _own_rows_of(value: Tensor, parameter: Tensor) -> Tensor:
    """Of a whole value, which is read from its file where it is needed."""
    return value[own_rows(parameter)] if isinstance(parameter, DTensor) else value


def _like(value: Tensor, parameter: Tensor) -> Tensor:
    """A moment, sharded as its parameter is; a count of steps is no shard."""
    if not isinstance(parameter, DTensor) or value.ndim == 0:
        return value.to(value.device, copy=True)
    part = _own_rows_of(value, parameter).to(parameter.device, copy=True)
    return DTensor.from_local(
        part,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )
