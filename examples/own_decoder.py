"""A decoder of one's own: written in Python, registered by name, used like any other.

    python examples/own_decoder.py

It commits from left to right, so many positions per pass.
"""

import torch

from xpredflow import generate, load, register
from xpredflow.decoders.discrete import Discrete, open_positions, top_ranked
from xpredflow.settings import Field, settings


@settings
class LeftToRight(Discrete):
    """Commit the leftmost open positions; what is shared with other decoders is inherited."""

    width: int = Field(2, ge=1, description="positions per pass")

    def choose(self, canvas, prediction, signals, info):
        """True where a position is committed in this pass."""
        from_left = -torch.arange(canvas.progress.shape[1]).expand_as(canvas.progress).float()
        return top_ranked(from_left, open_positions(canvas), torch.full_like(info.step, self.width))


# `main` is the option that stands behind the colon: left-to-right:4
register("decoder", "left-to-right", LeftToRight, summary="from left to right", main="width")

if __name__ == "__main__":
    model = load("tiny")
    prompt = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
    for decoder in ("left-to-right:1", "left-to-right:4", "threshold:0.9"):
        [answer] = generate(model, prompt, decoder=decoder, gen_length=32)
        print(f"{decoder:>15} {answer.passes:>3} passes: {answer.text!r}")
