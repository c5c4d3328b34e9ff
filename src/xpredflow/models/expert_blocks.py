"""Products of rows with their experts' matrices where nothing may be asked of the device.

How many rows an expert has is known on the device alone. Its rows are therefore spread over blocks
of equal height, and how many blocks there can be at most follows from shapes: P rows of X experts
fill at most P/b + X blocks of height b.

Dimension names are those of experts.py; K blocks, b their height.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from xpredflow.models.quantize import PackedWeight

LOWEST = 16  # below this height matrix units are not filled
AT_ONCE = 64  # blocks whose matrices are held beside the weights


@dataclass(frozen=True)
class Blocks:
    """Which expert each block belongs to, and which place each row has in the blocks."""

    experts: Int[Tensor, " K"]
    places: Int[Tensor, " P"]
    height: int

    @classmethod
    def of(cls, experts: Int[Tensor, " P"], ends: Int[Tensor, " X"]) -> "Blocks":
        """For rows sorted by expert; those of expert x end at `ends[x]`."""
        rows, count = len(experts), len(ends)
        # As high as an expert has rows on average: there are then at most twice as many blocks as
        # experts, and at most three times the rows.
        height = max(LOWEST, 1 << max(rows // count - 1, 0).bit_length())
        ends = ends.long()
        starts = torch.cat((ends.new_zeros(1), ends[:-1]))
        last_blocks = ((ends - starts + height - 1) // height).cumsum(0)
        first_blocks = torch.cat((ends.new_zeros(1), last_blocks[:-1]))
        at_most = rows // height + min(rows, count)
        numbers = torch.arange(at_most, device=experts.device)
        # Blocks that stay empty behind the last one multiply zeros by the last expert.
        owners = torch.searchsorted(last_blocks, numbers, right=True).clamp(max=count - 1)
        within = torch.arange(rows, device=experts.device) - starts[experts]
        return cls(owners, first_blocks[experts] * height + within, height)

    def multiply(
        self, rows: Float[Tensor, "P I"], weight: Float[Tensor, "X O I"] | PackedWeight
    ) -> Float[Tensor, "P O"]:
        """Each row times the matrix of its expert, a few blocks at a time."""
        padded = rows.new_zeros(len(self.experts) * self.height, rows.shape[1])
        padded = padded.index_copy(0, self.places, rows).unflatten(0, (-1, self.height))
        pieces = zip(padded.split(AT_ONCE), self.experts.split(AT_ONCE), strict=True)
        out = torch.cat([torch.bmm(x, weight[owner].transpose(-2, -1)) for x, owner in pieces])
        return out.flatten(0, 1)[self.places]
