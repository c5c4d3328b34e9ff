"""Splits are disjoint, balanced, the same in every process, and pinned."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from hashlib import sha256
from random import Random

import pytest

from xpredflow.errors import InputError
from xpredflow.tasks import make_task, make_tasks
from xpredflow.tasks.generated.longcode.task import LongCode
from xpredflow.tasks.generated.longmath.story import parse as parse_long_story
from xpredflow.tasks.generated.longmath.task import LongMath
from xpredflow.tasks.generated.minicode.pipeline import parse as parse_pipeline
from xpredflow.tasks.generated.minicode.task import MiniCode
from xpredflow.tasks.generated.minimath.story import parse as parse_story
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.tasks.generated.splits import HELD_OUT, split_of

TASKS = [MiniCode(), MiniMath(), LongCode(), LongMath()]
PARSE = {
    "minicode": parse_pipeline,
    "minimath": parse_story,
    "longcode": parse_pipeline,
    "longmath": parse_long_story,
}

# A change here changes every published figure: never do it without a new name for the task.
PINNED = {
    ("minicode", "test"): "938b7f2cf0e7c0b264f63e844751d886",
    ("minicode", "validation"): "7496b2e8ac2b622e9c3189dd7b34431b",
    ("minimath", "test"): "284a7ef1700175fed2c8b999bda3570f",
    ("minimath", "validation"): "2c4787577e81925385f46ae8fa7d17f1",
    ("longcode", "test"): "c3aa41029bfbb13cb5650f6a2e388396",
    ("longcode", "validation"): "f1689399f94708776a093ddec60037e0",
    ("longmath", "test"): "fd960f9d92e9455ade975e6c95bd80a3",
    ("longmath", "validation"): "6ecbf4e169fa0240fe020e831c938d24",
}


def fingerprint(task, split, indices):
    problems = [task.problem(split, index) for index in indices]
    # `style` was called `manner` when these were pinned
    metas = [{"manner" if k == "style" else k: v for k, v in p.meta.items()} for p in problems]
    fields = [[p.id, p.prompt, p.level, m] for p, m in zip(problems, metas, strict=True)]
    return sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:32]


@cache
def train_ids(task):
    """The ids of 20,000 training problems, without the cost of their hidden tests."""
    return [task._draw("train", index)[0].id for index in range(20_000)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("split", ["validation", "test"])
def test_held_out_splits_never_change(task, split):
    assert fingerprint(task, split, range(HELD_OUT)) == PINNED[task.name, split]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_splits_are_disjoint_by_meaning(task):
    parse = PARSE[task.name]
    cores = {
        split: [parse(task.problem(split, index).id).core for index in range(HELD_OUT)]
        for split in ("validation", "test")
    }
    cores["train"] = [parse(id).core for id in train_ids(task)]
    assert train_ids(task)[7] == task.problem("train", 7).id
    for split, found in cores.items():
        assert {split_of(core) for core in found} == {split}
    assert len(set(cores["test"])) == len(set(cores["validation"])) == HELD_OUT
    assert not set(cores["train"]) & set(cores["test"])
    assert not set(cores["train"]) & set(cores["validation"])
    assert not set(cores["validation"]) & set(cores["test"])


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("split", ["validation", "test"])
def test_levels_are_balanced(task, split):
    levels = Counter(task.problem(split, index).level for index in range(HELD_OUT))
    assert levels == {1: 167, 2: 167, 3: 166}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_draws_share_no_meaning(task):
    draws = [type(task)(draw=number) for number in (0, 1)]
    cores = [drawn._draw("test", index)[0].core for drawn in draws for index in range(HELD_OUT)]
    assert {split_of(core) for core in cores} == {"test"}
    assert len(set(cores)) == 2 * HELD_OUT
    assert draws[0].problem("test", 4) == task.problem("test", 4)
    assert draws[1].problem("train", 4) == task.problem("train", 4)
    assert draws[1].digest
    assert not draws[0].digest


def test_a_draw_belongs_to_generated_tasks():
    drawn, other = make_tasks(["minicode", "gsm8k"], draw=2)
    assert drawn is make_task("minicode", draw=2)
    assert drawn.digest == "draw 2"  # type: ignore[attr-defined]
    assert not getattr(other, "digest", "")
    with pytest.raises(InputError, match="one list of problems"):
        make_task("gsm8k", draw=2)


def test_a_level_that_is_used_up_leaves_its_turns_to_others():
    """minimath has 222 short stories for the test split, and no more."""
    task = MiniMath(draw=1)
    levels = Counter(task._draw("test", index)[1] for index in range(HELD_OUT))
    assert levels == {1: 55, 2: 222, 3: 223}


def test_the_long_task_keeps_what_the_short_one_holds_out():
    """Both have pipelines of three steps: one meaning belongs to one split, whichever task."""
    held = {parse_pipeline(TASKS[0].problem("test", index).id).core for index in range(HELD_OUT)}
    drawn = {parse_pipeline(id).core for id in train_ids(TASKS[2])}
    assert not held & drawn


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_there_are_a_million_problems(task):
    """20,000 draws from n equally likely ones would repeat 20,000² / 2n times; ours are uneven."""
    assert task.count_problems() >= 10**6
    assert len(set(train_ids(task))) > 19_800


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_other_process_draws_the_same(task):
    program = (
        "from random import Random\n"
        f"from {type(task).__module__} import {type(task).__name__} as T\n"
        "task = T()\n"
        "for split, index in [('train', 0), ('train', 10**9), ('validation', 3), ('test', 499)]:\n"
        "    p = task.problem(split, index)\n"
        "    print(p, task.answer(p, Random(index)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    expected = ""
    for split, index in [("train", 0), ("train", 10**9), ("validation", 3), ("test", 499)]:
        p = task.problem(split, index)
        expected += f"{p} {task.answer(p, Random(index))}\n"
    assert outputs == {expected}


def test_bad_requests_say_what_is_valid():
    task = TASKS[0]
    with pytest.raises(InputError, match="did you mean 'train'"):
        task.problem("trian", 0)
    with pytest.raises(InputError, match="0 to 499"):
        task.problem("test", 500)
    with pytest.raises(InputError, match="from 0"):
        task.problem("train", -1)
    with pytest.raises(InputError, match="0 to 499"):
        task.problem("paraphrase", 500)
    with pytest.raises(InputError, match="draw is -1"):
        MiniCode(draw=-1)
