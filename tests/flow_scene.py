"""A few positions of one row, where they stand and what is predicted there."""

from math import log

import torch
from toy import EOS, EOT, MASK, VOCABULARY, WIDTH

from xpredflow.engine.signals import read
from xpredflow.flow import Rules
from xpredflow.types import Canvas, Space, SpecialTokens, StepInfo

SPACE = Space(
    torch.randn(VOCABULARY, WIDTH, generator=torch.Generator().manual_seed(1)),
    SpecialTokens(mask=MASK, eos=EOS, eot=EOT),
)
BARE = Rules(reedit_margin=None, commit="off")


def info(step: int = 0, budget: int = 10) -> StepInfo:
    return StepInfo(torch.tensor([step]), torch.tensor([budget]), rows=(0,))


def canvas(progress: list[float], tokens: list[int]) -> Canvas:
    """States on the straight line from the mask to the given tokens."""
    t = torch.tensor([progress])
    clean = SPACE.embed(torch.tensor([tokens]))
    state = t.unsqueeze(-1) * clean + (1 - t).unsqueeze(-1) * SPACE.mask
    frozen = torch.zeros_like(t, dtype=torch.bool)
    return Canvas(state, t, torch.tensor([tokens]), frozen)


def predictions(tokens: list[int], confidence: list[float]):
    """Signals whose argmax and confidence are as given; the rest is spread evenly."""
    logits = torch.zeros(1, len(tokens), VOCABULARY)
    for i, (token, c) in enumerate(zip(tokens, confidence, strict=True)):
        logits[0, i] = log((1 - c) / (VOCABULARY - 2))
        logits[0, i, token] = log(c)
    return read(logits, SPACE.special)
