"""A canvas of a few positions with exactly known probabilities, to check decoders by hand."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor
from toy import ToyModel, prompts

from xpredflow import generate
from xpredflow.engine.signals import read
from xpredflow.types import Canvas, Decoder, Signals, Space, SpecialTokens, StepInfo

VOCABULARY, MASK = 8, 7
SPACE = Space(
    torch.randn(VOCABULARY, 4, generator=torch.Generator().manual_seed(1)),
    SpecialTokens(mask=MASK, eos=6),
)


def believing(*positions: dict[int, float]) -> Signals:
    """Signals of one row with these probabilities; each position's must add up to 1."""
    logits = torch.full((1, len(positions), VOCABULARY), -torch.inf)
    for i, chances in enumerate(positions):
        assert abs(sum(chances.values()) - 1) < 1e-6
        for token, p in chances.items():
            logits[0, i, token] = log(p)
    return read(logits, SPACE.special)


def log_probs(signals: Signals) -> Float[Tensor, "N V"]:
    """log p of every token at every position of the row."""
    return signals.whole.map(lambda z: (z.log_softmax(-1),))[0][0]


def sure(token: int, c: float) -> dict[int, float]:
    """Confidence c in a token, the rest on one other."""
    return {token: c, (token + 1) % 6: 1 - c}


def canvas_of(*tokens: int | None, **memory: list[float] | float) -> Canvas:
    """One row: a committed token at each position, or None where it is open."""
    blank = Canvas.blank(torch.zeros(1, len(tokens), dtype=torch.bool), SPACE)
    placed = torch.tensor([[token is not None for token in tokens]])
    ids = torch.tensor([[MASK if token is None else token for token in tokens]])
    return blank.update(
        state=SPACE.embed(ids),
        progress=placed.float(),
        tokens=ids,
        memory={name: torch.tensor([value]) for name, value in memory.items()},
    )


def at(step: int, budget: int = 100) -> StepInfo:
    return StepInfo(torch.tensor([step]), torch.tensor([budget]), rows=(0,))


def committed(canvas: Canvas) -> list[int]:
    """The positions that hold a token."""
    return (canvas.progress[0] == 1).nonzero().flatten().tolist()


def assert_same_decoding(one: str | Decoder, other: str | Decoder, **options) -> None:
    """Token by token and pass by pass, with the whole response as one block and with blocks."""
    for block_length in (None, 5):
        shared = {"gen_length": 12, "block_length": block_length, "trace": True, **options}
        left = generate(ToyModel(1), prompts(3, 1), decoder=one, **shared)
        right = generate(ToyModel(1), prompts(3, 1), decoder=other, **shared)
        for a, b in zip(left, right, strict=True):
            assert (a.all_ids, a.passes) == (b.all_ids, b.passes)
            assert [f.committed for f in a.trace or ()] == [f.committed for f in b.trace or ()]
