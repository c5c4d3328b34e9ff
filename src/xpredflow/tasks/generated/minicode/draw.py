"""Draws minicode problems: the meaning, its wording, and how many there are."""

from itertools import product
from random import Random

from xpredflow.tasks.generated.minicode.operations import NUMBERS, VARIABLE, WORDS, Atom, Family
from xpredflow.tasks.generated.minicode.pipeline import Pipeline, Step

FIRST_WORDS = ("get", "make", "find", "pick", "calc", "run", "load", "scan", "fold", "form")
SECOND_WORDS = ("box", "sun", "map", "key", "cat", "row", "tag", "bit", "cup", "log")
WORDS_SHARE = 0.25
SECOND_ARGUMENT_SHARE = 0.2
MOST_OF_A_SORT = 2  # filters, and changes, in one pipeline


def _by_kind(atoms: tuple[Atom, ...]) -> list[dict]:
    kinds: dict[str, dict] = {}
    for atom in atoms:
        kinds.setdefault(atom.kind, {})[atom.constant] = atom
    return list(kinds.values())


def _fixed(kinds: list[dict]) -> list[list[Atom]]:
    return [[atom for k, atom in kind.items() if k != VARIABLE] for kind in kinds]


# Kinds are drawn first and constants second, so that "even" is as frequent as "above".
_KINDS = {
    family.name: (_fixed(_by_kind(family.predicates)), _fixed(_by_kind(family.changes)))
    for family in (NUMBERS, WORDS)
}
_WITH_ARGUMENT = {
    atom.kind: atom
    for family in (NUMBERS, WORDS)
    for atom in family.predicates + family.changes
    if atom.constant == VARIABLE
}
_VALUE_RESULTS = {
    family.name: tuple(result for result in family.results if not result.counts)
    for family in (NUMBERS, WORDS)
}


def draw(rng: Random, level: int) -> Pipeline:
    """Two plain steps; two, one of them under a condition; or three. Not every one is sound."""
    return _draw(rng, 3 if level == 3 else 2, conditional=level == 2)


def draw_long(rng: Random, level: int) -> Pipeline:
    """Three plain steps; three, one of them under a condition; or four."""
    return _draw(rng, 4 if level == 3 else 3, conditional=level == 2)


def _draw(rng: Random, length: int, conditional: bool) -> Pipeline:
    family = WORDS if rng.random() < WORDS_SHARE else NUMBERS
    steps = _steps(rng, family, length, conditional)
    # Three plain steps on words with a second argument would not fit minicode's response.
    if rng.random() < SECOND_ARGUMENT_SHARE and (family is NUMBERS or length < 3):
        i = rng.randrange(len(steps))
        steps[i] = _with_argument(steps[i])
    name = f"{rng.choice(FIRST_WORDS)}_{rng.choice(SECOND_WORDS)}"
    # To count after a change would make the change idle.
    results = family.results if steps[-1].change is None else _VALUE_RESULTS[family.name]
    argument, result = rng.choice(family.arguments), rng.choice(results)
    return Pipeline(family, name, argument, tuple(steps), result)


def _steps(rng: Random, family: Family, length: int, conditional: bool) -> list[Step]:
    """So many steps, one of them under a condition or none."""
    predicates, changes = _KINDS[family.name]
    steps: list[Step] = []
    kept = changed = 0
    chosen = rng.randrange(length) if conditional else None
    for number in range(length):
        keep = changed == MOST_OF_A_SORT or (kept < MOST_OF_A_SORT and rng.random() < 0.5)
        keep &= number != chosen
        kept += keep
        changed += not keep
        predicate = rng.choice(rng.choice(predicates)) if keep or number == chosen else None
        steps.append(Step(predicate, None if keep else rng.choice(rng.choice(changes))))
    return steps


def _with_argument(step: Step) -> Step:
    """The step with its constant replaced by the second argument, where it has one."""
    if step.change and step.change.kind in _WITH_ARGUMENT:
        return Step(step.predicate, _WITH_ARGUMENT[step.change.kind])
    if step.predicate and step.predicate.kind in _WITH_ARGUMENT:
        return Step(_WITH_ARGUMENT[step.predicate.kind], step.change)
    return step


def request(pipeline: Pipeline, style: str, rng: Random) -> str:
    """The request in words: few templates, because long prompts were hopeless at this size."""
    keep = rng.choice(("keep if ", "drop unless "))
    steps = [_clause(step, keep, rng) for step in pipeline.steps]
    verb, joint = rng.choice(("Write", "Define")), rng.choice((", ", ", then "))
    element = pipeline.family.element
    return (
        f"{verb} {pipeline.signature()} with {style}. For each {element}: {joint.join(steps)}. "
        f"Return {pipeline.result.text}."
    )


def _clause(step: Step, keep: str, rng: Random) -> str:
    if step.change is None:
        assert step.predicate
        return keep + step.predicate.text
    if step.predicate is None:
        return step.change.text
    if rng.random() < 0.5:
        return f"if {step.predicate.text} {step.change.text}"
    return step.text


def count_problems() -> int:
    """A lower bound: the sound two-step pipelines on numbers, counted, times the names."""
    fixed = [step for kind in (0, 1) for step in _plain(kind)]
    name = f"{FIRST_WORDS[0]}_{SECOND_WORDS[0]}"
    sound = sum(
        Pipeline(NUMBERS, name, NUMBERS.arguments[0], pair, result).is_sound()
        for pair in product(fixed, fixed)
        for result in NUMBERS.results
    )
    return sound * len(FIRST_WORDS) * len(SECOND_WORDS) * len(NUMBERS.arguments)


def _plain(kind: int) -> list[Step]:
    atoms = [atom for atoms in _KINDS["numbers"][kind] for atom in atoms]
    return [Step(None, atom) if kind else Step(atom, None) for atom in atoms]
