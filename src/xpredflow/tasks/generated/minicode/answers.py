"""Writes one of the many right answers to a minicode problem."""

from collections.abc import Callable
from random import Random

from xpredflow.tasks.generated.minicode.operations import Atom
from xpredflow.tasks.generated.minicode.pipeline import Pipeline, Step

NUMBER_NAMES = ("total", "acc", "res", "ans")
LIST_NAMES = ("out", "kept", "vals", "temp")
HELPER_NAMES = ("y", "z", "new")
INDENT = "    "


def guards(p: Pipeline, rng: Random) -> list[str]:
    """A loop that skips with `continue` and rebinds its own variable."""
    v, into = rng.choice(p.family.loop_names), _accumulator(p, rng)
    body = []
    for step in p.steps:
        if step.change is None:
            assert step.predicate
            body += [f"if {_opposite(step.predicate, v)}:", INDENT + "continue"]
        elif step.predicate:
            body += [f"if {code(step.predicate, v)}:", f"{INDENT}{v} = {code(step.change, v)}"]
        else:
            body.append(f"{v} = {code(step.change, v)}")
    return _loop(p, v, into, [*body, _add(p, into, v)])


def nested(p: Pipeline, rng: Random) -> list[str]:
    """A loop of nested ifs that puts changed values into a helper variable."""
    v, into = rng.choice(p.family.loop_names), _accumulator(p, rng)
    helper = rng.choice(HELPER_NAMES)
    now, depth, body = v, 0, []
    for step in p.steps:
        if step.change is None:
            assert step.predicate
            body.append(INDENT * depth + f"if {code(step.predicate, now)}:")
            depth += 1
        else:
            body.append(INDENT * depth + f"{helper} = {changed(step, now)}")
            now = helper
    return _loop(p, v, into, [*body, INDENT * depth + _add(p, into, now)])


def chained(p: Pipeline, rng: Random) -> list[str]:
    """One comprehension per step, each into a list of its own name."""
    v, names = rng.choice(p.family.loop_names), rng.sample(LIST_NAMES, len(p.steps))
    lines, source = [], p.argument
    for step, name in zip(p.steps, names, strict=True):
        lines.append(f"{name} = {comprehension(step, v, source)}")
        source = name
    return [*lines, "return " + p.result.code.format(xs=source)]


# What a request asks for. Names are free, but not the style: it decides how long the answer is,
# and decoders that may settle any position first would have to guess that before all else.
STYLES: dict[str, Callable[[Pipeline, Random], list[str]]] = {
    "a loop": nested,
    "continue": guards,
    "lists": chained,
}


def write(p: Pipeline, style: str, rng: Random) -> str:
    """The whole function in the style asked for, with names drawn uniformly."""
    body = STYLES[style](p, rng)
    return "\n".join([f"def {p.signature()}:", *(INDENT + line for line in body)])


def _accumulator(p: Pipeline, rng: Random) -> str:
    return rng.choice(NUMBER_NAMES if p.result.add else LIST_NAMES)


def _add(p: Pipeline, into: str, v: str) -> str:
    if p.result.add:
        return f"{into} += {p.result.add.format(v=v)}"
    return f"{into}.append({v})"


def _loop(p: Pipeline, v: str, into: str, body: list[str]) -> list[str]:
    returned = into if p.result.add else p.result.code.format(xs=into)
    return [
        f"{into} = {'0' if p.result.add else '[]'}",
        f"for {v} in {p.argument}:",
        *(INDENT + line for line in body),
        f"return {returned}",
    ]


def comprehension(step: Step, v: str, source: str) -> str:
    """The list of a step's values of another list."""
    if step.change:
        return f"[{changed(step, v)} for {v} in {source}]"
    assert step.predicate
    return f"[{v} for {v} in {source} if {code(step.predicate, v)}]"


def changed(step: Step, v: str) -> str:
    """The value of an element after a step that changes it."""
    assert step.change
    if step.predicate:
        return f"{code(step.change, v)} if {code(step.predicate, v)} else {v}"
    return code(step.change, v)


def code(atom: Atom, v: str) -> str:
    """An operation on a variable."""
    return atom.code.replace("{v}", v)


def _opposite(atom: Atom, v: str) -> str:
    return atom.opposite.replace("{v}", v)
