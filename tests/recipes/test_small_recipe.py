"""The recipe of `small`: what it trains on, and that its answers fit the room they have."""

import re
from random import Random

import pytest
from small import EVERYTHING, FIRST, SCHEDULE, SHORT, SHORT_FIRST, SHORT_ONLY, AsPeopleWrite

from xpredflow.tasks import GENERATED
from xpredflow.tasks.generated.people import NAMES
from xpredflow.training.pretrain.batches import make_source


@pytest.mark.parametrize("task", GENERATED)
def test_people_s_requests_are_training_problems_with_right_answers(task: str) -> None:
    source = AsPeopleWrite(GENERATED[task]())
    assert make_source(source) is source
    problem = source.problem("train", 5)
    assert problem == GENERATED[task]().problem("people", 5)
    assert source.answer(problem, Random(0)) == GENERATED[task]().answer(problem, Random(0))
    assert source.response_length == GENERATED[task]().response_length


def test_every_stage_has_all_tasks_and_the_last_one_all_of_them_twice() -> None:
    for sources in (SHORT_FIRST, EVERYTHING):
        names = [make_source(source).name for source in sources]
        assert {name.removesuffix("-people") for name in names} >= set(GENERATED)
    assert {make_source(s).name for s in EVERYTHING} >= {f"{name}-people" for name in GENERATED}
    assert SCHEDULE[-1].from_update < FIRST.updates


def test_short_answers_need_what_long_ones_need_in_less_room() -> None:
    for source in map(make_source, SHORT_ONLY):
        room = getattr(source, "response_length", 0)
        assert room < GENERATED["longcode"]().response_length
    names = [make_source(source).name for source in SHORT_ONLY]
    assert {"shortcode", "shortmath", "shortcode-people", "shortmath-people"} <= set(names)
    code, math = (source for source in SHORT_ONLY if source in SHORT)
    assert not isinstance(code, str)
    assert not isinstance(math, str)
    for index in range(50):
        answer = code.answer(code.problem("train", index), Random(index))
        assert 3 <= str(answer).count("def ") <= 4
        answer = math.answer(math.problem("train", index), Random(index))
        assert len(re.findall(r"\d=\d", str(answer))) in (2, 3, 4)


def test_sums_reach_as_far_as_three_people_s_total() -> None:
    sums = next(source for source in EVERYTHING if getattr(source, "name", "") == "sums")
    assert not isinstance(sums, str)
    results = [
        int(text)
        for index in range(300)
        for text, asked in sums.answer(sums.problem("train", index), Random(0))
        if asked
    ]
    assert 90 < max(results) <= 99
    assert min(results) >= 10


def test_reserved_names_are_in_no_batch() -> None:
    for source in map(make_source, EVERYTHING):
        for index in range(100):
            prompt = source.problem("train", index).prompt
            assert not [name for name in NAMES.reserved if f"{name} " in prompt]
