"""How likely each token was when it was committed: what `logprobs` says of a diffusion's answer."""

from math import log

from xpredflow.engine.steps import Step
from xpredflow.serve.jobs import Candidate, Committed
from xpredflow.types import Model

UNSEEN = -9999.0  # as the API writes it: not among the four likeliest tokens of its pass


class Commitments:
    """For every position the four likeliest tokens of the pass that settled it last."""

    def __init__(self, model: Model, top: int) -> None:
        self.model, self.top = model, top
        self._seen: dict[int, tuple[int, list[int], list[float]]] = {}
        self._settled: set[int] = set()

    def add(self, step: Step, i: int) -> None:
        """Look at a pass: a position counts until it is committed, and again if it changes."""
        signals, canvas = step.event.signals, step.canvas
        columns = zip(
            step.positions[i].tolist(),
            canvas.tokens[i].tolist(),
            canvas.progress[i].tolist(),
            signals.top_tokens[i].tolist(),
            signals.top_probs[i].tolist(),
            strict=True,
        )
        for position, token, progress, tokens, probs in columns:
            if position < 0:
                continue
            known = self._seen.get(position)
            if position not in self._settled or known is None or known[0] != token:
                self._seen[position] = (token, tokens, probs)
            if progress >= 1:
                self._settled.add(position)
            else:
                self._settled.discard(position)

    def of(self, positions: list[int], ids: list[int]) -> list[Committed]:
        """The tokens of the answer with their log-probabilities."""
        return [self._one(p, token) for p, token in zip(positions, ids, strict=True)]

    def _one(self, position: int, token: int) -> Committed:
        _, tokens, probs = self._seen[position]
        found = dict(zip(tokens, probs, strict=True))
        top = [self._candidate(t, found[t]) for t in tokens[: self.top]]
        return Committed(self._candidate(token, found.get(token, 0.0)), top)

    def _candidate(self, token: int, probability: float) -> Candidate:
        text = self.model.tokenizer.decode([token]) if self.model.tokenizer else ""
        value = log(min(probability, 1.0)) if probability > 0 else UNSEEN
        return Candidate(text, text.encode(), value)
