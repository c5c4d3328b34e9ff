"""Whether alignment costs the model what it had learned: CE at masked positions, then and now."""

from dataclasses import dataclass, field

WINDOW = 20
LIMIT = 0.05


@dataclass
class Drift:
    """The last cross-entropies beside the frozen reference's on the same inputs; warns once."""

    recent: list[tuple[float, float]] = field(default_factory=list)
    warned: bool = False

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
