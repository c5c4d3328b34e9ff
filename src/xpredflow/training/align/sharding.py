"""One training run over several processes: parameters sharded by FSDP2, from the files on.

Where a checkpoint can be read in parts, no process ever holds all of it: the model is made on the
meta device, sharded there, and each process reads its own rows.
"""

import re
from collections.abc import Mapping

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from xpredflow.models import MaskedDiffusionModel
from xpredflow.models.base import Place
from xpredflow.models.spread import materialise
from xpredflow.processes import Share
from xpredflow.training.align.objective import XPrediction
from xpredflow.training.common.start import Start

# Inputs are not cast: states and recorded predictions are to stay what they are.
EXACT = MixedPrecisionPolicy(cast_forward_inputs=False)


class Placement:
    """Where the weights of a run lie: whole in one process, or in shards over all of them."""

    def __init__(self, start: Start, share: Share) -> None:
        self.start, self.share = start, share
        self._mesh: DeviceMesh | None = None

    def open(self) -> MaskedDiffusionModel:
        """The model that the run starts from; on the meta device where it is read in parts."""
        if self.share.world > 1:
            shell = self.start.shell()
            if shell is not None and shell.unread is not None:
                return shell
        return self.start.load()

    def device(self, model: MaskedDiffusionModel) -> torch.device:
        """Where a model of this run is computed."""
        table = model.embedding
        return self.start.device if table.is_meta and self.start.device else table.device

    def put(
        self,
        objective: XPrediction,
        places: Mapping[str, Place],
        products: torch.dtype | None = None,
        trained: bool = False,
    ) -> None:
        """Spread the parameters over all processes, layer by layer, and read what is unread.

        `products` is what matrices are multiplied in: parameters travel in it where they are kept
        in fp32, and gradients are summed up in fp32. Nothing to do for one process.
        """
        if self.share.world == 1:
            return
        model = objective.model
        device = self.device(model)
        mesh = self._mesh = self._mesh or init_device_mesh(device.type, (self.share.world,))
        mixed = EXACT
        if products not in (None, torch.float32):
            mixed = MixedPrecisionPolicy(products, torch.float32, cast_forward_inputs=False)
        for module in _precise(model):  # routers decide in fp32, as they do in decoding
            fully_shard(module, mesh=mesh, mp_policy=EXACT)
        for layer in model.trunk()[0]:
            fully_shard(layer, mesh=mesh, mp_policy=mixed)
        # Training needs embedding and head again at once, in the backward pass; others do not.
        fully_shard(objective, mesh=mesh, mp_policy=mixed, reshard_after_forward=not trained)
        materialise(objective, model, places, device)


def _precise(model: MaskedDiffusionModel) -> list[nn.Module]:
    """The modules whose own parameters never lose precision."""
    return [
        module
        for name, module in model.named_modules()
        if any(
            re.search(model.precise, f"{name}.{leaf}")
            for leaf, _ in module.named_parameters(recurse=False)
        )
    ]
