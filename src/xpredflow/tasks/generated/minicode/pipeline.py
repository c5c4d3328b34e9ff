"""The meaning of a minicode problem: steps applied to each element, then a result."""

from dataclasses import dataclass
from itertools import pairwise
from operator import ne
from typing import Any

from xpredflow.tasks.generated.minicode.operations import (
    FAMILIES,
    VARIABLE,
    Atom,
    Family,
    Result,
)

WORDS = (
    "apple eel last tree rat star lot art letter salt rest all stone earth real "
    "lemon steel lasso oral test area tools easel a t"
)
SAMPLES: dict[str, list] = {
    "numbers": list(range(-10, 13)),
    "words": WORDS.split(),
}
SAMPLE_CONSTANT = 4  # what the second argument is while a pipeline is checked for idle steps


@dataclass(frozen=True)
class Step:
    """Keep by a predicate, change every element, or (both) change where the predicate holds."""

    predicate: Atom | None
    change: Atom | None

    @property
    def text(self) -> str:
        if self.change is None:
            assert self.predicate
            return f"keep {self.predicate.text}"
        return self.change.text + (f" if {self.predicate.text}" if self.predicate else "")

    def atoms(self) -> list[Atom]:
        return [atom for atom in (self.predicate, self.change) if atom]

    def apply(self, values: list, k: Any) -> list:
        """The values after this step; `k` is the second argument where the step uses it."""
        p, c = self.predicate, self.change
        pk = k if p and p.constant == VARIABLE else p and p.constant
        ck = k if c and c.constant == VARIABLE else c and c.constant
        if p and c:
            return [c.apply(x, ck) if p.apply(x, pk) else x for x in values]
        if c:
            return [c.apply(x, ck) for x in values]
        assert p
        return [x for x in values if p.apply(x, pk)]


@dataclass(frozen=True)
class Pipeline:
    """A named function of a list: its steps in order, then its result."""

    family: Family
    name: str
    argument: str
    steps: tuple[Step, ...]
    result: Result

    @property
    def takes_k(self) -> bool:
        return any(atom.constant == VARIABLE for step in self.steps for atom in step.atoms())

    @property
    def core(self) -> str:
        """The meaning without the names: what a split is decided by."""
        steps = "; ".join(step.text for step in self.steps)
        return f"{self.family.name}: {steps}; {self.result.text}"

    @property
    def id(self) -> str:
        return f"{self.name}({self.argument}) {self.core}"

    def signature(self) -> str:
        return f"{self.name}({self.argument}{', ' + VARIABLE if self.takes_k else ''})"

    def run(self, values: list, k: Any = None) -> Any:
        """What a right answer returns."""
        return self.result.apply(_through(self.steps, values, k))

    def is_sound(self) -> bool:
        """Whether every step makes a difference, so that no request asks for something idle."""
        kinds = [tuple(atom.kind for atom in step.atoms()) for step in self.steps]
        if any(a == b for a, b in pairwise(kinds)):
            return False
        if self.result.counts and self.steps[-1].change:
            return False
        stages = [SAMPLES[self.family.name]]
        for step in self.steps:
            stages.append(step.apply(stages[-1], SAMPLE_CONSTANT))
            if not _makes_a_difference(step, *stages[-2:]):
                return False
        seen = self._seen(stages[-1])
        return all(
            self._seen(_through(self.steps[i + 1 :], stages[i], SAMPLE_CONSTANT)) != seen
            for i in range(len(self.steps))
        )

    def _seen(self, values: list) -> Any:
        """What the result can see of the processed elements."""
        return len(values) if self.result.counts else values


def _through(steps: tuple[Step, ...], values: list, k: Any) -> list:
    for step in steps:
        values = step.apply(values, k)
    return values


def _makes_a_difference(step: Step, before: list, after: list) -> bool:
    if step.change is None:
        return 3 <= len(after) < len(before)
    changed = sum(map(ne, before, after))
    return changed >= 2 and (step.predicate is None or changed < len(before))


def parse(id: str) -> Pipeline:
    """The pipeline that an id names."""
    signature, family_name, body = id.replace(": ", " ", 1).split(" ", 2)
    name, argument = signature[:-1].split("(")
    *steps, result = body.split("; ")
    atoms, results = _BY_TEXT[family_name]
    return Pipeline(
        FAMILIES[family_name],
        name,
        argument,
        tuple(_parse_step(step, atoms) for step in steps),
        results[result],
    )


def _parse_step(text: str, atoms: dict[str, Atom]) -> Step:
    if text.startswith("keep "):
        return Step(atoms[text.removeprefix("keep ")], None)
    change, _, predicate = text.partition(" if ")
    return Step(atoms[predicate] if predicate else None, atoms[change])


_BY_TEXT = {
    family.name: (
        {atom.text: atom for atom in family.predicates + family.changes},
        {result.text: result for result in family.results},
    )
    for family in FAMILIES.values()
}
