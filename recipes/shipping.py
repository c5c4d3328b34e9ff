"""Make a checkpoint small enough to come with the package.

    python recipes/shipping.py runs/small/model src/xpredflow/assets/small

Every row of a matrix is rounded to multiples of a power of two, 511 of them at most, and stored as
float16 in the published layout as before. Such numbers have few digits: a wheel, which is a zip
file, then takes 1.3 bytes for each weight in place of 1.9. What is shipped is what is measured:
figures are of the rounded weights.
"""

import argparse
import shutil
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.models import save
from xpredflow.models.embedded import assets, load

LEVELS = 255  # on either side of zero


def rounded(matrix: Float[Tensor, "*R C"]) -> Float[Tensor, "*R C"]:
    """Each row in multiples of the smallest power of two that reaches its largest number."""
    largest = matrix.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    unit = torch.exp2(torch.ceil(torch.log2(largest / LEVELS)))
    return (matrix / unit).round() * unit


@torch.no_grad()
def ship(checkpoint: str, out: Path) -> None:
    """Write the rounded weights to a directory.

    The description of the tokenizer is that of `tiny`, which has the same special tokens:
    transformers 5 writes another, which version 4 does not read.
    """
    model = load(checkpoint, dtype="float32")
    for weight in model.parameters():
        if weight.ndim > 1:  # experts are stacked
            weight.copy_(rounded(weight))
    model.convert(torch.float16)
    save(model, out)
    for extra in ("generation_config.json", "alignment.json"):
        if (Path(checkpoint) / extra).is_file():
            shutil.copy(Path(checkpoint) / extra, out / extra)
    shutil.copy(assets("tiny") / "tokenizer_config.json", out)
    (out / "chat_template.jinja").unlink(missing_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage="python recipes/shipping.py CHECKPOINT OUT")
    parser.add_argument("checkpoint")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    ship(given.checkpoint, given.out)
