"""What an update of an alignment reports: errors, cross-entropies, and whether they drift."""

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.training.align.on_policy import OnPolicyStates
from xpredflow.training.align.readout import Readout
from xpredflow.training.common.masking import MaskedBatch

WINDOW = 20  # updates that a drift is judged over
LIMIT = 0.05  # of the cross-entropy, from which it is worth a warning
SUMS = (
    *("at_masked", "at_clean", "at_on_policy", "ce", "reference_ce"),
    *("masked", "clean", "on_policy"),
)


@dataclass(frozen=True)
class Progress:
    """One update. A value is None where there was nothing to measure.

    Positions that show on-policy states are counted apart, under `mse_on_policy`.
    """

    step: int
    loss: float
    mse_masked: float | None
    mse_unmasked: float | None
    ce_masked: float | None
    reference_ce_masked: float | None
    gradient_norm: float
    rate: float
    mse_on_policy: float | None = None
    warning: str | None = None

    def line(self) -> dict[str, Any]:
        """For the log; what most runs never have is left out where there is none."""
        rare = ("mse_on_policy", "warning")
        return {k: v for k, v in asdict(self).items() if k not in rare or v is not None}


def sums_of(
    ours: Readout, theirs: Readout | None, part: MaskedBatch, on_policy: OnPolicyStates | None
) -> Float[Tensor, " 8"]:
    """Errors where a mask, a token or a state stands, CE at masks and the reference's; counts."""
    masked, visited = part.masked, torch.zeros_like(part.masked)
    if on_policy is not None:
        visited = masked & on_policy.rows.unsqueeze(-1)
    where = [at[part.candidates] for at in (masked & ~visited, ~masked, visited)]
    values = [ours.error[at] for at in where] + [ours.cross_entropy[where[0]]]
    values.append(torch.zeros(0) if theirs is None else theirs.cross_entropy[where[0]])
    return torch.stack([value.double().sum().cpu() for value in (*values, *where)])


@dataclass
class Drift:
    """Whether alignment costs the model what it had learned: CE at masked positions, then and now.

    The last cross-entropies beside the frozen reference's on the same inputs; warns once.
    """

    recent: list[tuple[float, float]] = field(default_factory=list)
    warned: bool = False

    @classmethod
    def of(cls, saved: dict[str, Any]) -> "Drift":
        """As it was saved, where pairs may have become lists."""
        return cls([(now, reference) for now, reference in saved["recent"]], saved["warned"])

    def add(self, now: float, reference: float) -> str | None:
        """A warning, the first time that the mean over the window is off by more than the limit."""
        self.recent = [*self.recent, (now, reference)][-WINDOW:]
        ours, theirs = (sum(values) for values in zip(*self.recent, strict=True))
        off = ours / max(theirs, 1e-12) - 1
        if self.warned or len(self.recent) < WINDOW or abs(off) <= LIMIT:
            return None
        self.warned = True
        return (
            f"cross-entropy at masked positions is {abs(off):.1%} {'above' if off > 0 else 'below'}"
            f" the reference's over the last {WINDOW} steps: lower lr, or give more answers"
        )
