"""A template on a row: which positions are gaps, what binds them, and the text they make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from xpredflow.engine.prompts import decode, plain_ids
from xpredflow.engine.rows import before_end
from xpredflow.errors import InputError
from xpredflow.slots.automaton import of_choices, of_kind
from xpredflow.slots.constraint import SlotConstraint
from xpredflow.slots.template import Gap, Template
from xpredflow.types import Model


class Slot(NamedTuple):
    """A filled gap; `probabilities` of its choices where it was one."""

    name: str | None
    text: str
    probabilities: dict[str, float] | None


@dataclass
class _Place:
    """A gap on a row."""

    gap: Gap
    positions: list[int]
    constraint: SlotConstraint | None
    choices: list[list[int]]


class Filling:
    """A template behind a prompt: `ids` with -1 at open positions, and the row's constraint."""

    def __init__(self, model: Model, prompt: list[int], template: Template) -> None:
        self.model, self.template = model, template
        self.ids = list(prompt)
        self._places: list[_Place] = []
        for i, part in enumerate(template.parts):
            if isinstance(part, str):
                self.ids += plain_ids(model, part)
                continue
            following = template.parts[i + 1] if i + 1 < len(template.parts) else ""
            place = self._place(part, following if isinstance(following, str) else "")
            self._places.append(place)
            self.ids += [-1] * len(place.positions)

    def _place(self, gap: Gap, following: str) -> _Place:
        choices = [_choice_ids(self.model, choice) for choice in gap.choices]
        if len({tuple(choice) for choice in choices}) < len(choices):
            raise InputError(
                f"choices are {list(gap.choices)!r:.80}: {self.model.name!r} cannot tell all of"
                " them apart, its tokenizer writes some alike"
            )
        length = max(map(len, choices)) if gap.kind == "choice" else gap.tokens
        if length == 0:
            raise InputError(f"choices are {list(gap.choices)!r:.80}: expected one with text")
        positions = list(range(len(self.ids), len(self.ids) + length))
        if gap.kind == "text":
            return _Place(gap, positions, None, choices)
        if gap.kind == "choice":
            automaton = of_choices(self.model, choices)
        else:
            automaton = of_kind(self.model, gap.kind, following)
        return _Place(gap, positions, SlotConstraint(positions, automaton), choices)

    def __call__(
        self, logits: Float[Tensor, "N V"], at: Sequence[int], held: dict[int, int]
    ) -> None:
        """Bind every gap; what the engine calls before a pass is read."""
        for place in self._places:
            if place.constraint is not None:
                place.constraint.apply(logits, at, held)

    def finish(self, tokens: Sequence[int]) -> tuple[str, list[Slot]]:
        """The whole text and the gaps, from the tokens of all gaps in their order."""
        rest, slots = list(tokens), []
        for place in self._places:
            own, rest = rest[: len(place.positions)], rest[len(place.positions) :]
            slots.append(self._slot(place, own))
        filled = iter(slots)
        parts = [p if isinstance(p, str) else next(filled).text for p in self.template.parts]
        return "".join(parts), slots

    def settled(self, tokens: Sequence[int | None]) -> tuple[str, int]:
        """The text up to the first gap that may still change, and its tokens; None is open."""
        text, used, places = "", 0, iter(self._places)
        for part in self.template.parts:
            if isinstance(part, str):
                text += part
                continue
            place = next(places)
            own = [
                token for token in tokens[used : used + len(place.positions)] if token is not None
            ]
            whole = len(own) == len(place.positions)
            if not whole or (place.constraint and not place.constraint.automaton.accepts(own)):
                break
            text, used = text + self._slot(place, own).text, used + len(own)
        return text, used

    def _slot(self, place: _Place, tokens: list[int]) -> Slot:
        gap, constraint = place.gap, place.constraint
        if constraint is None:
            return Slot(gap.name, decode(self.model, before_end(tokens, self._ends)), None)
        content = constraint.automaton.content(constraint.mended(tokens))
        if gap.kind != "choice":
            return Slot(gap.name, decode(self.model, content), None)
        chosen = gap.choices[place.choices.index(content)]
        found = constraint.probabilities(place.choices)
        return Slot(gap.name, chosen, dict(zip(gap.choices, found, strict=True)))

    @property
    def _ends(self) -> tuple[int, ...]:
        return self.model.special.ends


def _choice_ids(model: Model, choice: str) -> list[int]:
    ids = plain_ids(model, choice)
    if {*ids} & {model.special.mask, *model.special.ends}:
        raise InputError(f"choice {choice!r:.60} holds a special token: leave it out")
    return ids
