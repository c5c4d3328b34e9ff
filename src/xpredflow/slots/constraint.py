"""What a pass says at the positions of gaps, given that each gap must become valid.

The pass gives every position a distribution of its own. Of all ways to fill a gap only the valid
ones that agree with what is committed count, each as likely as the product of its tokens; what a
position is told is its share in them. So a token is never predicted with which the gap could not
be completed, and where little is left to choose the decoder is as sure as it may be.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from xpredflow.engine.rows import RULED_OUT
from xpredflow.slots.automaton import FILLER, FIRST_CONTENT, Automaton

FLOOR = 1e-30  # what is allowed keeps a chance, however unlikely the model finds it


class SlotConstraint:
    """A gap with an automaton, at absolute `positions` of its row; one object per row.

    It sees every pass and remembers the newest, for the probabilities of choices and for `mended`.
    """

    def __init__(self, positions: Sequence[int], automaton: Automaton) -> None:
        self.positions, self.automaton = list(positions), automaton
        self.evidence: ndarray | None = None  # (n, C): probability of each class, as last seen
        self.undecided: ndarray | None = None  # the same before the first token was committed
        self._log_p: dict[int, Tensor] = {}  # of every token, by place, as last seen

    def apply(self, logits: Float[Tensor, "N V"], at: Sequence[int], held: dict[int, int]) -> None:
        """Write the shares into the logits of a pass at absolute positions `at`.

        `held` are the committed tokens of the row by position.
        """
        columns = {position: i for i, position in enumerate(at)}
        here = [k for k, position in enumerate(self.positions) if position in columns]
        if not here:
            return
        index = torch.tensor([columns[self.positions[k]] for k in here], device=logits.device)
        log_p = logits[index].double().log_softmax(-1)
        classes = self.automaton.classes.to(logits.device)
        seen = self._read(log_p, classes, here)
        evidence, fixed = self._evidence(seen, here), self._fixed(held)
        if self.undecided is None or not fixed:
            self.undecided = evidence
        self.evidence = evidence
        shares = self.shares(evidence, fixed)[here]
        with np.errstate(divide="ignore"):
            shift = np.where(shares > 0, np.log(shares) - np.log(seen), -np.inf)
        moved = log_p + torch.from_numpy(shift).to(logits.device)[:, classes]
        logits[index] = moved.clamp(min=RULED_OUT).to(logits.dtype)

    def _read(
        self, log_p: Float[Tensor, "K V"], classes: Int[Tensor, " V"], here: list[int]
    ) -> ndarray:
        """The probability of every class at the positions that are here."""
        for k, row in zip(here, log_p, strict=True):
            self._log_p[k] = row.float()
        width = len(self.automaton.moves[0])
        sums = log_p.new_zeros(len(here), width).index_add_(1, classes, log_p.exp())
        return sums.clamp(min=FLOOR).cpu().numpy()

    def _evidence(self, seen: ndarray, here: list[int]) -> ndarray:
        """Of all positions; those of other blocks say nothing yet."""
        evidence = np.ones((len(self.positions), seen.shape[1]))
        evidence[here] = seen
        if self.automaton.neutral_end:
            evidence[here, FILLER] = seen[:, FIRST_CONTENT:].max(1)
        return evidence

    def _fixed(self, held: dict[int, int]) -> dict[int, int]:
        """Classes of committed tokens by their place in the gap."""
        classes = self.automaton.classes
        return {k: int(classes[held[p]]) for k, p in enumerate(self.positions) if p in held}

    def shares(self, evidence: ndarray, fixed: dict[int, int]) -> ndarray:
        """The share of every class at every place, among the valid ways to fill the gap.

        What is committed binds the other places, not its own; if it contradicts itself, none.
        """
        edges = self.automaton.edges
        bound, free = self._weights(evidence, fixed), self._weights(evidence, {})
        before, behind = self._forward(bound), self._backward(bound)
        found = np.zeros_like(evidence)
        for k, weight in enumerate(free):
            share = before[k][edges.source] * weight * behind[k + 1][edges.target]
            np.add.at(found[k], edges.token_class, share)
        total = found.sum(1, keepdims=True)
        if fixed and (total == 0).any():
            return self.shares(evidence, {})
        return found / total

    def _weights(self, evidence: ndarray, fixed: dict[int, int]) -> list[ndarray]:
        """How likely every edge is at every place; 0 where a committed token is another one."""
        edges, closed = self.automaton.edges, self.automaton.closed
        weights = []
        for k, row in enumerate(evidence):
            weight = np.where(edges.source == closed, 1.0, row[edges.token_class])
            if k in fixed:
                weight = (edges.token_class == fixed[k]).astype(float)
            weights.append(weight)
        return weights

    def _forward(self, weights: list[ndarray]) -> list[ndarray]:
        edges, state = self.automaton.edges, np.zeros(self.automaton.closed + 1)
        state[0] = 1
        found = [state]
        for weight in weights:
            after = np.zeros_like(state)
            np.add.at(after, edges.target, state[edges.source] * weight)
            state = after / (after.sum() or 1)  # only ratios count, and products underflow
            found.append(state)
        return found

    def _backward(self, weights: list[ndarray]) -> list[ndarray]:
        edges, state = self.automaton.edges, np.array(self.automaton.accepting, dtype=float)
        found = [state]
        for weight in reversed(weights):
            before = np.zeros_like(state)
            np.add.at(before, edges.source, weight * state[edges.target])
            state = before / (before.sum() or 1)
            found.append(state)
        return found[::-1]

    def probabilities(self, choices: Sequence[list[int]]) -> list[float]:
        """How likely each choice was in the pass that decided, all together 1."""
        if self.undecided is None:
            return [1 / len(choices)] * len(choices)
        scores = [self._log_score(choice, self.undecided) for choice in choices]
        weights = np.exp(np.array(scores) - max(scores))
        return (weights / weights.sum()).tolist()

    def _log_score(self, tokens: list[int], evidence: ndarray) -> float:
        score = sum(
            float(np.log(evidence[k, int(self.automaton.classes[token])]))
            for k, token in enumerate(tokens)
        )
        if len(tokens) < len(evidence):  # the end; what follows it is no evidence
            score += float(np.log(evidence[len(tokens), FILLER]))
        return score

    def mended(self, tokens: Sequence[int]) -> list[int]:
        """The tokens if they are valid; else the likeliest valid ones, as of the last pass.

        A decoder that draws tokens, or reads them off a continuous state, may leave the valid ones.
        """
        if self.automaton.accepts(tokens):
            return list(tokens)
        evidence = self.evidence
        if evidence is None:
            evidence = np.ones((len(self.positions), len(self.automaton.moves[0])))
        path = self._likeliest(self._weights(evidence, {}))
        return [self._best(k, at) for k, at in enumerate(path)]

    def _best(self, k: int, at: int) -> int:
        """The likeliest token of a class at a place."""
        if at == FILLER:
            return self.automaton.filler
        inside = self.automaton.classes == at
        log_p = self._log_p.get(k, torch.zeros(len(inside)))
        return int(log_p.cpu().masked_fill(~inside, -torch.inf).argmax())

    def _likeliest(self, weights: list[ndarray]) -> list[int]:
        """The classes of the likeliest valid way to fill the gap."""
        edges = self.automaton.edges
        best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
        for weight in weights:
            after: dict[int, tuple[float, list[int]]] = {}
            for source, at, target, chance in zip(*edges, weight, strict=True):
                if source not in best:
                    continue
                score, path = best[source]
                total = score + float(np.log(chance))
                if target not in after or total > after[target][0]:
                    after[int(target)] = (total, [*path, int(at)])
            best = after
        ends = [found for state, found in best.items() if self.automaton.accepting[state]]
        return max(ends, key=lambda found: found[0])[1]
