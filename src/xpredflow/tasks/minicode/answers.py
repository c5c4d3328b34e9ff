"""Writes one of the many right answers to a minicode problem."""

from collections.abc import Callable
from random import Random

from xpredflow.tasks.minicode.operations import Atom
from xpredflow.tasks.minicode.pipeline import Pipeline, Step

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
            body += [f"if {_code(step.predicate, v)}:", f"{INDENT}{v} = {_code(step.change, v)}"]
        else:
            body.append(f"{v} = {_code(step.change, v)}")
    return _loop(p, v, into, [*body, _add(p, into, v)])


def nested(p: Pipeline, rng: Random) -> list[str]:
    """A loop of nested ifs that puts changed values into a helper variable."""
    v, into = rng.choice(p.family.loop_names), _accumulator(p, rng)
    helper = rng.choice(HELPER_NAMES)
    now, depth, body = v, 0, []
    for step in p.steps:
        if step.change is None:
            assert step.predicate
            body.append(INDENT * depth + f"if {_code(step.predicate, now)}:")
            depth += 1
        else:
            body.append(INDENT * depth + f"{helper} = {_changed(step, now)}")
            now = helper
    return _loop(p, v, into, [*body, INDENT * depth + _add(p, into, now)])


def chained(p: Pipeline, rng: Random) -> list[str]:
    """One comprehension per step, each into a list of its own name."""
    v, names = rng.choice(p.family.loop_names), rng.sample(LIST_NAMES, len(p.steps))
    lines, source = [], p.argument
    for step, name in zip(p.steps, names, strict=True):
        lines.append(f"{name} = {_comprehension([step], v, source)}")
        source = name
    return [*lines, "return " + p.result.code.format(xs=source)]


def fused(p: Pipeline, rng: Random) -> list[str]:
    """One list rebound by comprehensions that filter and change at once."""
    v, name = rng.choice(p.family.loop_names), rng.choice(LIST_NAMES)
    groups: list[list[Step]] = []
    for step in p.steps:
        if groups and step.change and groups[-1][-1].change is None:
            groups[-1].append(step)
        else:
            groups.append([step])
    lines, source = [], p.argument
    for group in groups:
        lines.append(f"{name} = {_comprehension(group, v, source)}")
        source = name
    return [*lines, "return " + p.result.code.format(xs=source)]


STYLES: tuple[Callable[[Pipeline, Random], list[str]], ...] = (
    guards,
    nested,
    chained,
    fused,
)


def write(p: Pipeline, rng: Random) -> str:
    """The whole function, in a style drawn uniformly."""
    body = rng.choice(STYLES)(p, rng)
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


def _comprehension(group: list[Step], v: str, source: str) -> str:
    head, last = v, group[-1]
    if last.change:
        head = _changed(last, v)
    tail = ""
    if group[0].change is None:
        assert group[0].predicate
        tail = f" if {_code(group[0].predicate, v)}"
    return f"[{head} for {v} in {source}{tail}]"


def _changed(step: Step, v: str) -> str:
    assert step.change
    if step.predicate:
        return f"{_code(step.change, v)} if {_code(step.predicate, v)} else {v}"
    return _code(step.change, v)


def _code(atom: Atom, v: str) -> str:
    return atom.code.replace("{v}", v)


def _opposite(atom: Atom, v: str) -> str:
    return atom.opposite.replace("{v}", v)
