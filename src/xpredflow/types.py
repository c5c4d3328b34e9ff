"""The nouns of the library and the protocols between its rooms; no behaviour beyond bookkeeping.

Dimension names in shapes: B rows of a batch, N positions of a canvas, L positions of a row as the
model sees it, E embedding width, V vocabulary.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from xpredflow.engine.distribution import Distribution


class SpecialTokens(NamedTuple):
    """Token ids with a meaning of their own; `eot` ends a turn and may be absent."""

    mask: int
    eos: int
    eot: int | None = None

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens after which nothing is shown to the user."""
        return (self.eos,) if self.eot is None else (self.eos, self.eot)


@runtime_checkable
class Cache(Protocol):
    """Keys and values of finished blocks; one slot per row of the batch."""


@runtime_checkable
class Model(Protocol):
    """A model as the engine sees it: embeddings in, logits at some columns out.

    `block_size` is the native block of a block-causal model (blocks anchored at absolute position
    0), or None for a fully bidirectional one; a model with `anchored_at_response` gets rows whose
    first position is such that the response begins a block. `tokenizer` is a Hugging Face fast
    tokenizer or None.
    """

    name: str
    special: SpecialTokens
    max_length: int
    block_size: int | None
    tokenizer: Any

    @property
    def embedding(self) -> Float[Tensor, "V E"]:
        """The input embedding table W_e."""
        ...

    def logits(
        self,
        inputs: Float[Tensor, "B L E"],
        positions: Int[Tensor, "B L"],
        columns: Int[Tensor, "B N"],
        cache: Cache | None = None,
        slots: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Unshifted logits at the `columns` of `inputs`.

        `positions` are absolute positions in the row; -1 marks padding, which nothing attends to.
        `shadow` positions are queries beside the row: what stands at their own position is hidden
        from them, they see everything else and each other, and nothing else sees them.
        With a cache, keys and values of the inputs are written into the rows' `slots` at their
        absolute positions, and what the slots already hold there is attended to as well.
        """
        ...

    def new_cache(self, slots: int, length: int) -> Cache | None:
        """Room for `slots` rows of `length` positions; None where no exact cache exists."""
        ...


def shadow(positions: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
    """Positions as the codes of their shadows (below -1), and such codes as positions again."""
    return -2 - positions


class Space(NamedTuple):
    """The embedding space that decoding happens in, and the tokens that mean something there."""

    table: Float[Tensor, "V E"]
    special: SpecialTokens

    @property
    def mask(self) -> Float[Tensor, " E"]:
        """m, the embedding every flow starts from."""
        return self.table[self.special.mask].float()

    def embed(self, tokens: Int[Tensor, "*S"]) -> Float[Tensor, "*S E"]:
        """Rows of the table in fp32: bf16 would round away an update by a = 1/256."""
        return torch.nn.functional.embedding(tokens, self.table).float()


@dataclass(frozen=True)
class Signals:
    """What one forward pass says at each position, in fp32 and with the mask token ruled out.

    `log_odds` orders positions for commitment: log p/(1 − p) of the predicted token, which still
    tells apart what rounds to p = 1. Tokens in `last` are to be committed last: they have none.
    `distribution` is there until the pass ends and no longer, for the rules that need more than
    the four likeliest tokens. `shadow` is what the positions' shadows say, for a decoder that asks,
    `branches` what the pass says of each of the decoder's branches.
    """

    top_probs: Float[Tensor, "B N 4"]
    top_tokens: Int[Tensor, "B N 4"]
    log_total: Float[Tensor, "B N"]
    log_odds: Float[Tensor, "B N"]
    last: tuple[int, ...] = ()
    distribution: Distribution | None = None
    shadow: "Signals | None" = None
    branches: "tuple[Signals, ...]" = ()

    @cached_property
    def tokens(self) -> Int[Tensor, "B N"]:
        """The predicted token: argmax of the distribution."""
        return self.top_tokens[..., 0]

    @cached_property
    def confidence(self) -> Float[Tensor, "B N"]:
        """c, the probability of the predicted token."""
        return self.top_probs[..., 0]

    @property
    def margin(self) -> Float[Tensor, "B N"]:
        """p_m = p_(1) - p_(2)."""
        return self.top_probs[..., 0] - self.top_probs[..., 1]

    @cached_property
    def entropy4(self) -> Float[Tensor, "B N"]:
        """H_4, the entropy of the renormalised top four over log 4."""
        p = self.top_probs / self.top_probs.sum(-1, keepdim=True)
        return torch.special.entr(p).sum(-1) / log(4)

    @property
    def whole(self) -> Distribution:
        """The distribution, which must be asked for before the pass ends."""
        if self.distribution is None:
            raise ValueError("the pass is over: read its distribution in the decoder's step")
        return self.distribution

    @cached_property
    def entropy(self) -> Float[Tensor, "B N"]:
        """H of the whole distribution, in nats."""
        return self.whole.entropy()

    def probability(self, tokens: Int[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        """p of these tokens."""
        return (self.whole.at(tokens) - self.log_total).exp()

    def summary(self) -> "Signals":
        """The same without the distribution, which is large: what may be kept."""
        shadow = None if self.shadow is None else self.shadow.summary()
        numbers = (self.top_probs, self.top_tokens, self.log_total, self.log_odds)
        return Signals(*numbers, self.last, shadow=shadow)


@dataclass(frozen=True)
class StepInfo:
    """Where each row stands: pass `step` of `budget` in its block, and what seeds its draws."""

    step: Int[Tensor, " B"]
    budget: Int[Tensor, " B"]
    rows: tuple[int, ...]
    seed: int | tuple[int, ...] = 0  # for all rows, or for each
    block: tuple[int, ...] = ()
    # `step`, `budget` and the positions of each row on the host: nothing shall wait for the device
    passes: tuple[int, ...] = ()
    budgets: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()

    @property
    def rho(self) -> Float[Tensor, " B"]:
        """ρ = ℓ/(T − 1), the share of the budget that is used up."""
        return self.step / (self.budget - 1).clamp(min=1)

    @property
    def is_followed(self) -> bool:
        """The host knows that a pass follows for every row."""
        known = zip(self.passes, self.budgets, strict=bool(self.budgets))
        return bool(self.budgets) and all(step < budget - 1 for step, budget in known)

    @property
    def is_last(self) -> Bool[Tensor, " B"]:
        """No pass follows this one: whatever is left open must be closed now."""
        return self.step >= self.budget - 1


@dataclass(frozen=True)
class Action:
    """What a step-size policy chose: the fraction a, and for a sampled one how likely it was.

    `features` s, `latent` y and `log_prob` are what policy training replays; None where the
    policy has no density. One that also chooses when to commit and to re-edit draws three numbers.
    """

    fraction: Float[Tensor, "B N"]
    features: Float[Tensor, "B N F"] | None = None
    latent: Float[Tensor, "B N *A"] | None = None
    log_prob: Float[Tensor, "B N"] | None = None
    commit_threshold: Float[Tensor, "B N"] | None = None
    reedit_margin: Float[Tensor, "B N"] | None = None


@dataclass(frozen=True)
class Canvas:
    """The positions being decoded: state X, progress t, the tokens they would be read as now.

    `frozen` positions (padding) never change. `memory` holds what a decoder carries from step to
    step beside them; its tensors have the rows in front, so that rows can leave and join.
    """

    state: Float[Tensor, "B N E"]
    progress: Float[Tensor, "B N"]
    tokens: Int[Tensor, "B N"]
    frozen: Bool[Tensor, "B N"]
    memory: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def blank(cls, frozen: Bool[Tensor, "B N"], space: Space) -> "Canvas":
        """Every position at the mask embedding, t = 0."""
        shape = (*frozen.shape, space.table.shape[1])
        return cls(
            state=space.mask.expand(shape).clone(),
            progress=torch.zeros(frozen.shape, device=frozen.device),
            tokens=torch.full(frozen.shape, space.special.mask, device=frozen.device),
            frozen=frozen,
        )

    @cached_property
    def open(self) -> Bool[Tensor, "B N"]:
        """Positions that have not arrived; asked for several times in a pass."""
        return (self.progress < 1) > self.frozen  # of bools: one, and not the other

    def update(self, **changes: Any) -> "Canvas":
        """A copy with some fields replaced."""
        return replace(self, **changes)


class Event(NamedTuple):
    """What a decoder did in one step, for whoever watches: never needed to go on decoding."""

    signals: Signals
    reedited: Bool[Tensor, "B N"]
    committed: Bool[Tensor, "B N"]
    action: Action | None = None
    travelled: Float[Tensor, "B N"] | None = None  # Δt of the action, whatever came instead of it

    @property
    def moved(self) -> Bool[Tensor, "B N"] | None:
        """Where the action decided; one that also says when to commit and re-edit: everywhere."""
        if self.travelled is None or self.action is None:
            return None
        if self.action.commit_threshold is not None:
            return torch.ones_like(self.committed)
        return (self.travelled > 0) & ~(self.reedited | self.committed)


@runtime_checkable
class Policy(Protocol):
    """Chooses the fraction of the remaining distance that each position travels in this step."""

    def __call__(
        self, signals: Signals, progress: Float[Tensor, "B N"], info: StepInfo
    ) -> Action: ...


@runtime_checkable
class Decoder(Protocol):
    """A decoding rule: how one forward pass changes the canvas. It never calls the model.

    One with `shadows = True` is also told what each position's shadow predicts. One with
    `whole_distribution = True` keeps all logits of a pass for the next: its rows need more memory;
    one whose own class has `summaries_only = True` needs the likeliest tokens alone, hence less.
    One with `resumes = False` cannot go on from a recorded state, so that nobody branches its rows.
    One with `branches = k` names k other canvases, `fork(canvas, space)`, read in the same pass.
    """

    def step(
        self, canvas: Canvas, signals: Signals, info: StepInfo, space: Space
    ) -> tuple[Canvas, Event]:
        """The canvas after this pass, and what happened."""
        ...

    def stop(self, canvas: Canvas) -> Bool[Tensor, " B"]:
        """Which rows need no further pass."""
        ...

    def finish(self, canvas: Canvas, space: Space) -> Int[Tensor, "B N"]:
        """The tokens that the canvas is read as when decoding ends; never the mask token."""
        ...
