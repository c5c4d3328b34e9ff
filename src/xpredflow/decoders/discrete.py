"""What the discrete decoders share: positions are open or committed, nothing in between."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.distribution import Distribution
from xpredflow.engine.randomness import numpy_generator, torch_generator
from xpredflow.engine.signals import ranked
from xpredflow.settings import Field, settings
from xpredflow.types import Canvas, Event, Signals, Space, StepInfo

Number = TypeVar("Number", int, Tensor)  # of one row on the host, or of all in a tensor


class Prediction(NamedTuple):
    """The token each position would be committed to, and how sure it is.

    Thresholds look at the confidence; positions are ordered by log-odds, which do not tie near 1.
    """

    tokens: Int[Tensor, "B N"]
    confidence: Float[Tensor, "B N"]
    log_odds: Float[Tensor, "B N"]


class Draft(NamedTuple):
    """What a pass predicts, and the open positions where that is committed."""

    prediction: Prediction
    chosen: Bool[Tensor, "B N"]


@settings
class Discrete(ABC):
    """A decoder that commits some open positions per pass; subclasses say which."""

    revises: ClassVar[bool] = False  # whether a committed position may still change
    whole_distribution: ClassVar[bool] = False  # whether a pass keeps all logits for the next
    temperature: float = Field(0.0, ge=0, description="of the token draw; 0 is greedy")

    @abstractmethod
    def choose(
        self, canvas: Canvas, prediction: Prediction, signals: Signals, info: StepInfo
    ) -> Bool[Tensor, "B N"]:
        """Which of the open positions to commit in this pass."""

    def draft(self, canvas: Canvas, signals: Signals, info: StepInfo) -> Draft:
        """What `choose` names; in the last pass, everything that is still open."""
        prediction = predict(signals, self.temperature, info)
        chosen = self.choose(canvas, prediction, signals, info)
        if not info.is_followed:
            chosen = chosen | info.is_last.unsqueeze(-1)
        return Draft(prediction, open_positions(canvas) & chosen)

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """Commit the draft."""
        draft = self.draft(canvas, signals, info)
        event = Event(signals, torch.zeros_like(draft.chosen), draft.chosen)
        return commit(canvas, draft, space), event

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """A row is done when nothing is open."""
        return ~open_positions(canvas).any(-1)

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """The committed tokens."""
        return canvas.tokens


def greedy(decoder: Discrete) -> bool:
    """Nothing is drawn: `summaries_only` of rules that ask for no more themselves."""
    return decoder.temperature == 0


def open_positions(canvas: Canvas) -> Bool[Tensor, "B N"]:
    """Positions that still wait for their token."""
    return canvas.open


def committed_positions(canvas: Canvas) -> Bool[Tensor, "B N"]:
    """Positions that hold a token."""
    return ~canvas.frozen & (canvas.progress >= 1)


def commit(canvas: Canvas, draft: Draft, space: Space) -> Canvas:
    """The chosen positions hold their token; the other open ones show their prediction."""
    shown = torch.where(open_positions(canvas), draft.prediction.tokens, canvas.tokens)
    return canvas.update(
        state=torch.where(draft.chosen.unsqueeze(-1), space.embed(shown), canvas.state),
        progress=canvas.progress.masked_fill(draft.chosen, 1.0),
        tokens=shown,
    )


def write(
    canvas: Canvas, where: Bool[Tensor, "B N"], tokens: Int[Tensor, "B N"], space: Space
) -> Canvas:
    """These tokens and their embeddings at some positions."""
    return canvas.update(
        state=torch.where(where.unsqueeze(-1), space.embed(tokens), canvas.state),
        tokens=torch.where(where, tokens, canvas.tokens),
    )


def remember(canvas: Canvas, **memory: Tensor) -> Canvas:
    """Carry these tensors to the next pass, rows in front."""
    return canvas.update(memory=canvas.memory | memory)


def recall(canvas: Canvas, name: str) -> Float[Tensor, "B N"]:
    """A number per position from earlier passes; 0 where there was none."""
    return canvas.memory.get(name, torch.zeros_like(canvas.progress))


OF_THE_PASS = ("logits", "log_total")  # names of what is remembered of a pass, not of a position


def kept_distribution(signals: Signals) -> dict[str, Tensor]:
    """What `kept_divergence` needs of this pass in the next: logits in the head's own dtype."""
    return {"logits": signals.whole.logits, "log_total": signals.log_total}


def kept_divergence(
    divergence: Callable[[Tensor, Tensor], Tensor], canvas: Canvas, signals: Signals
) -> Float[Tensor, "B N"]:
    """A divergence of this pass's log-probabilities from the last one's, 0 in the first pass."""
    whole, total = signals.whole, signals.log_total
    before = canvas.memory.get("logits", whole.logits)
    total_before = canvas.memory.get("log_total", total)

    def of_chunk(z: Tensor, old: Tensor, now: Tensor, then: Tensor) -> tuple[Tensor]:
        old = whole.close(old.to(torch.float32, copy=True)) - then.unsqueeze(-1)
        return (divergence(z - now.unsqueeze(-1), old),)

    return whole.map(of_chunk, before, total, total_before)[0]


def predict(signals: Signals, temperature: float, info: StepInfo) -> Prediction:
    """Argmax, or at a temperature LLaDA's Gumbel draw in float64; ranked by its probability."""
    if temperature == 0:
        return Prediction(signals.tokens, *ranked(signals))
    drawn = _draw(signals.whole, temperature, info)
    return Prediction(drawn, *ranked(signals, drawn))


def _draw(whole: Distribution, temperature: float, info: StepInfo) -> Int[Tensor, "B N"]:
    """A few positions at a time: each row's noise comes in the same order whatever their number."""
    device = whole.logits.device
    drawn = []
    for i in range(len(whole.logits)):
        source = torch_generator(info, i, device)

        def draw(z: Tensor, source: torch.Generator = source) -> tuple[Tensor]:
            noise = torch.rand(z.shape, generator=source, dtype=torch.float64, device=device)
            return ((z.double() - temperature * (-noise.log()).log()).argmax(-1),)

        drawn.append(whole.row(i).map(draw)[0])
    return torch.cat(drawn)


def uniform_draws(canvas: Canvas, info: StepInfo) -> Float[Tensor, "B N"]:
    """A number from [0, 1) for every position; independent of the row's neighbours and padding."""
    n = canvas.progress.shape[1]
    draws = [numpy_generator(info, i).random(n) for i in range(len(info.rows))]
    return torch.from_numpy(np.stack(draws)).to(canvas.progress)


def top_ranked(
    rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"], quota: int | Int[Tensor, " B"]
) -> Bool[Tensor, "B N"]:
    """The `quota` best-ranked open positions of each row, or of all; ties go to the left."""
    if isinstance(quota, int) and quota == 1:  # nothing needs to be sorted
        return surest(rank, open_)
    quota = quota if isinstance(quota, int) else quota.unsqueeze(-1)
    order = torch.where(open_, rank, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    first = torch.arange(rank.shape[1], device=rank.device) < quota
    return torch.empty_like(open_).scatter_(-1, order, first.expand_as(order)) & open_


def surest(rank: Float[Tensor, "B N"], open_: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """The best-ranked open position of each row; of equal ones the leftmost."""
    best = torch.where(open_, rank, -torch.inf).argmax(-1, keepdim=True)
    return torch.zeros_like(open_).scatter_(-1, best, True) & open_


def even_quota(
    frozen: Bool[Tensor, "B N"], info: StepInfo, least: int = 0
) -> int | Int[Tensor, " B"]:
    """How many positions this pass commits when the budget is spread evenly, remainder first.

    One number where the host knows that it is the same for all rows.
    """
    if info.lengths:
        rows = zip(info.lengths, info.passes, info.budgets, strict=True)
        quotas = {max(least, _rest_per_pass(*row)) for row in rows}
        if len(quotas) == 1:
            return quotas.pop()
    return _rest_per_pass((~frozen).sum(-1), info.step, info.budget).clamp(min=least)


def _rest_per_pass(total: Number, step: Number, budget: Number) -> Number:
    """(total − step)/budget, rounded up."""
    return -((step - total) // budget)
