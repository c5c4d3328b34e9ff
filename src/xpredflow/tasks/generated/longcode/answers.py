"""Writes one of the many right answers to a longcode problem: helpers, and who calls them."""

from collections.abc import Callable
from random import Random

from xpredflow.tasks.generated.minicode.answers import (
    INDENT,
    LIST_NAMES,
    NUMBER_NAMES,
    changed,
    code,
    comprehension,
)
from xpredflow.tasks.generated.minicode.operations import VARIABLE
from xpredflow.tasks.generated.minicode.pipeline import Pipeline, Step

# Names that requests do not use. Each is free, has to agree wherever a function is defined or
# called, and is the same in the whole answer: the step's number, behind it, tells functions apart.
# What helpers call their argument, and stages their list and its elements, is the same too.
TEST_NAMES = ("ok", "fits", "good", "valid")
CHANGE_NAMES = ("change", "apply", "modify", "adapt")
STAGE_NAMES = ("base", "inner", "middle", "chain")
LISTS = {"numbers": ("nums", "data", "xs"), "words": ("words", "names", "texts")}


def helpers(p: Pipeline, rng: Random) -> list[str]:
    """A small function per step, and a loop that calls them on each element."""
    test, change = rng.choice(TEST_NAMES), rng.choice(CHANGE_NAMES)
    into = rng.choice(NUMBER_NAMES if p.result.add else LIST_NAMES)
    v, own = rng.choices(p.family.loop_names, k=2)
    lines, body, depth = [], [], 0
    for number, step in enumerate(p.steps, 1):
        name = f"{change if step.change else test}{number}"
        more = f", {VARIABLE}" if _takes_k(step) else ""
        lines += [f"def {name}({own}{more}):", f"{INDENT}return {_value(step, own)}"]
        call = f"{name}({v}{more})"
        body.append(INDENT * depth + (f"{v} = {call}" if step.change else f"if {call}:"))
        depth += step.change is None
    add = f"{into} += {p.result.add.format(v=v)}" if p.result.add else f"{into}.append({v})"
    body.append(INDENT * depth + add)
    returned = into if p.result.add else p.result.code.format(xs=into)
    return [
        *lines,
        f"def {p.signature()}:",
        f"{INDENT}{into} = {'0' if p.result.add else '[]'}",
        f"{INDENT}for {v} in {p.argument}:",
        *(INDENT * 2 + line for line in body),
        f"{INDENT}return {returned}",
    ]


def stages(p: Pipeline, rng: Random) -> list[str]:
    """A function of the whole list per step, each of which calls the one before it."""
    stage, argument = rng.choice(STAGE_NAMES), rng.choice(LISTS[p.family.name])
    v = rng.choice(p.family.loop_names)
    lines, before, more = [], "", ""
    for number, step in enumerate(p.steps, 1):
        name = f"{stage}{number}"
        source = f"{before}({argument}{more})" if before else argument
        more = more or (f", {VARIABLE}" if _takes_k(step) else "")
        lines.append(f"def {name}({argument}{more}):")
        lines.append(f"{INDENT}return {comprehension(step, v, source)}")
        before = name
    called = f"{before}({p.argument}{more})"
    returned = p.result.code.format(xs=called)
    return [*lines, f"def {p.signature()}:", f"{INDENT}return {returned}"]


# What a request asks for: it decides how long the answer is (see minicode/answers.py).
STYLES: dict[str, Callable[[Pipeline, Random], list[str]]] = {
    "helpers": helpers,
    "stages": stages,
}


def write(p: Pipeline, style: str, rng: Random) -> str:
    """All functions in the style asked for, with names drawn uniformly."""
    return "\n".join(STYLES[style](p, rng))


def _takes_k(step: Step) -> bool:
    return any(atom.constant == VARIABLE for atom in step.atoms())


def _value(step: Step, v: str) -> str:
    if step.change:
        return changed(step, v)
    assert step.predicate
    return code(step.predicate, v)
