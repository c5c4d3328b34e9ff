"""minicode: every answer is right, in every style, and the hidden tests tell apart."""

import json
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from trusted_runner import trusted_run

from xpredflow.errors import InputError
from xpredflow.tasks.generated.minicode.answers import STYLES, write
from xpredflow.tasks.generated.minicode.operations import FAMILIES
from xpredflow.tasks.generated.minicode.pipeline import SAMPLES, parse
from xpredflow.tasks.generated.minicode.task import CONSTANTS, MiniCode

TASK = MiniCode()


def test_answers_pass_their_own_hidden_tests():
    rng = Random(0)
    for index in range(2_000):
        problem = TASK.problem("train", index)
        text = TASK.answer(problem, rng)
        verdict = TASK.score(problem, text, run=trusted_run)
        assert verdict.passed, (problem.prompt, text, verdict.reason)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_manner_answers_every_problem(style, split):
    rng = Random(1)
    for index in range(300):
        problem = TASK.problem(split, index)
        program = write(parse(problem.id), style, rng)
        verdict = trusted_run(program, problem.meta)
        assert verdict.passed, (problem.prompt, program, verdict.reason)


def test_requests_name_their_manner_and_draw_all_of_them():
    drawn = Counter()
    for index in range(600):
        problem = TASK.problem("train", index)
        style = problem.meta["style"]
        drawn[style] += 1
        assert f" with {style}. " in problem.prompt
    assert all(150 < drawn[style] < 250 for style in STYLES)


def test_names_are_free():
    problem = TASK.problem("test", 2)
    answers = {TASK.answer(problem, Random(seed)) for seed in range(500)}
    assert len(answers) == 16  # four names of a list, four of a loop


def test_ids_parse_back():
    for index in range(1_000):
        id = TASK.problem("train", index).id
        assert parse(id).id == id


def neighbours(pipeline):
    """Every pipeline that differs in one constant, one operation, one result or one order."""
    family, steps = pipeline.family, pipeline.steps
    for i, step in enumerate(steps):
        for field, atoms in (("predicate", family.predicates), ("change", family.changes)):
            old = getattr(step, field)
            for atom in atoms if old else ():
                if atom != old:
                    changed = replace(step, **{field: atom})
                    yield (
                        "operation",
                        replace(pipeline, steps=(*steps[:i], changed, *steps[i + 1 :])),
                    )
        yield "missing step", replace(pipeline, steps=(*steps[:i], *steps[i + 1 :]))
    for result in family.results:
        if result != pipeline.result:
            yield "result", replace(pipeline, result=result)
    for i in range(len(steps) - 1):
        swapped = (*steps[:i], steps[i + 1], steps[i], *steps[i + 2 :])
        yield "order", replace(pipeline, steps=swapped)


def same_meaning(a, b):
    """Whether two pipelines agree on every list of one sample and on the list of all."""
    samples = SAMPLES[a.family.name]
    lists = [[sample] for sample in samples] + [samples]
    return all(a.run(xs, n) == b.run(xs, n) for xs in lists for n in CONSTANTS)


def test_hidden_tests_reject_neighbours():
    tried, rejected = Counter(), Counter()
    for index in range(60):
        problem = TASK.problem("validation", index)
        pipeline = parse(problem.id)
        for kind, other in neighbours(pipeline):
            if kind == "order" and same_meaning(pipeline, other):
                continue  # two filters, or two additions, may be swapped
            tried[kind] += 1
            rejected[kind] += any(
                other.run(args[0], args[1] if len(args) > 1 else 3) != expected
                for args, expected in problem.meta["tests"]
            )
    share = {kind: rejected[kind] / tried[kind] for kind in tried}
    assert share["operation"] > 0.9, share
    assert share["missing step"] > 0.9, share
    assert share["result"] > 0.9, share
    assert share["order"] > 0.9, share
    assert tried["order"] > 20


def test_hidden_tests_reject_constants():
    """Whoever always returns the same value fails."""
    for index in range(500):
        tests = TASK.problem("test", index).meta["tests"]
        assert len({json.dumps(expected) for _, expected in tests}) > 1


def test_meta_is_plain_json():
    meta = TASK.problem("test", 0).meta
    assert json.loads(json.dumps(meta)) == meta
    assert len(meta["tests"]) == 8
    assert meta["tests"][0][0][0] == []


def test_every_operation_is_drawn():
    found = set()
    for index in range(4_000):
        pipeline = parse(TASK.problem("train", index).id)
        found |= {atom.text for step in pipeline.steps for atom in step.atoms()}
        found.add(pipeline.result.text)
    for family in FAMILIES.values():
        texts = {x.text for x in (*family.predicates, *family.changes, *family.results)}
        assert texts <= found


def test_scoring_needs_a_runner():
    with pytest.raises(InputError, match="run="):
        TASK.score(TASK.problem("test", 0), "def f(): pass")
