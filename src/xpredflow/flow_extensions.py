"""What is ours on top of the paper's flow, each rule off unless it is named.

`commit_threshold` and `commit_entropy` commit several positions per pass, `trust=held` doubts the
token that a position holds, `confirm` asks for one more pass before a row ends, `max_idle_passes`
ends a row that no longer gets anywhere. docs/decisions.md says why, docs/log.md what each is worth.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from xpredflow.engine.signals import jointly_sure
from xpredflow.flow import Flow, Rules
from xpredflow.settings import Field, option_names, settings
from xpredflow.types import Action, Canvas, Event, Policy, Signals, Space, StepInfo

GAIN = 0.01  # progress beyond a position's best that counts as getting somewhere


@settings
class ExtendedRules(Rules):
    """The paper's rules and ours."""

    commit_threshold: float | None = Field(
        None, ge=0, le=1, description="also commit every candidate with c ≥ this"
    )
    commit_entropy: float | None = Field(
        None, ge=0, description="also commit the surest while ΣH − max H ≤ this, in nats"
    )
    trust: Literal["predicted", "held"] = Field(
        "predicted", description="token whose probability re-editing looks at"
    )
    confirm: bool = Field(False, description="a row ends only when one more pass agrees")
    max_idle_passes: int | None = Field(
        None,
        ge=1,
        description="a row ends after so many passes that only take back what they commit",
    )


EXTENSIONS = [name for name in option_names(ExtendedRules) if name not in option_names(Rules)]
# Named rule sets, as differences from the paper's.
RULE_SETS: dict[str, dict[str, Any]] = {
    "paper": {},
    # For weights that were never aligned: nothing is taken back, what is sure is committed at once.
    "training-free": {"reedit_margin": None, "commit_threshold": 0.9},
}


@dataclass(frozen=True)
class ExtendedFlow(Flow):
    """The flow with the extensions that its rules name."""

    rules: ExtendedRules = field(default_factory=ExtendedRules)

    @property
    def summaries_only(self) -> bool:
        """Entropies are those of whole distributions."""
        return super().summaries_only and self.rules.commit_entropy is None

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """The paper's step, and what `confirm` and `max_idle_passes` have to remember of it."""
        before = canvas.progress
        canvas, event = super().step(canvas, signals, info, space)
        memory = dict(canvas.memory)
        if self.rules.confirm:
            memory["reached"] = before >= self.rules.tau
        if self.rules.max_idle_passes is not None:
            memory |= self._progress_made(canvas, event.reedited)
        return canvas.update(memory=memory), event

    def trust(self, canvas: Canvas, signals: Signals) -> Float[Tensor, "B N"]:
        """`held`: the probability of the token that the position last moved towards."""
        if self.rules.trust == "predicted":
            return super().trust(canvas, signals)
        return signals.probability(canvas.tokens)

    def distrusted(
        self, c: Float[Tensor, "B N"], t: Float[Tensor, "B N"], action: Action
    ) -> Bool[Tensor, "B N"]:
        """By the margin of the rules, or by one that the policy chose."""
        if action.reedit_margin is None or self.rules.reedit_margin is None:
            return super().distrusted(c, t, action)
        return c - t < -action.reedit_margin

    def commitments(
        self, signals: Signals, candidates: Bool[Tensor, "B N"], action: Action
    ) -> Bool[Tensor, "B N"]:
        """The surest, and those that are sure each by itself or all together."""
        rules, chosen = self.rules, super().commitments(signals, candidates, action)
        if rules.commit == "off":
            return chosen
        if action.commit_threshold is not None:
            chosen = chosen | (candidates & (signals.confidence >= action.commit_threshold))
        if rules.commit_threshold is not None:
            chosen = chosen | (candidates & (signals.confidence >= rules.commit_threshold))
        if rules.commit_entropy is not None:
            chosen = chosen | jointly_sure(signals.entropy, candidates, rules.commit_entropy)
        return chosen

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Every t ≥ τ, confirmed if that is asked for; or nothing was gained for too long."""
        there = super().stop(canvas)
        if self.rules.confirm:
            there = there & (canvas.memory["reached"] | canvas.frozen).all(-1)
        return there | self._idle_too_long(canvas)

    def stalled(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Rows that end without having arrived."""
        return self._idle_too_long(canvas) & ~super().stop(canvas)

    def _idle_too_long(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Rows without new progress in which something was taken back all the same.

        Positions whose confidence stays below τ are committed and taken back in turn, for ever;
        a row in which nothing is taken back is only slow.
        """
        if self.rules.max_idle_passes is None:
            return torch.zeros_like(canvas.frozen[:, 0])
        return canvas.memory["circling"] & (canvas.memory["idle"] >= self.rules.max_idle_passes)

    def _progress_made(self, canvas: Canvas, reedited: Bool[Tensor, "B N"]) -> dict[str, Tensor]:
        """How far each position ever was, and for how many passes none of a row got further."""
        t, memory = canvas.progress, canvas.memory
        best = memory.get("best", torch.zeros_like(t))
        idle = memory.get("idle", torch.zeros_like(t[:, 0]))
        gained = ((t > best + GAIN) & ~canvas.frozen).any(-1)
        circling = memory.get("circling", torch.zeros_like(gained)) | reedited.any(-1)
        return {
            "best": torch.maximum(best, t),
            "idle": torch.where(gained, 0.0, idle + 1),
            "circling": circling & ~gained,
        }


def make_flow(policy: Policy, rules: dict[str, Any]) -> Flow:
    """The paper's flow, or ours where an extension is named or the policy chooses thresholds."""
    made = ExtendedRules(**rules)
    if getattr(policy, "sets_thresholds", False) or any(
        getattr(made, name) != getattr(ExtendedRules(), name) for name in EXTENSIONS
    ):
        return ExtendedFlow(policy, made)
    return Flow(policy, Rules(**{name: getattr(made, name) for name in option_names(Rules)}))
