"""The recipe of `small`: what it trains on, and that its answers fit the room they have."""

from random import Random

import pytest
from small import (
    EVERYTHING,
    FIRST,
    LAST,
    LAST_SCHEDULE,
    SCHEDULE,
    SECOND,
    SECOND_SCHEDULE,
    SHORT_FIRST,
    THIRD,
    THIRD_SCHEDULE,
    AsPeopleWrite,
)

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


def test_the_second_run_begins_with_programs_and_all_keep_every_task_s_own_words() -> None:
    stages = [
        [make_source(source).name for source in stage.sources]
        for stage in (*SECOND_SCHEDULE, *THIRD_SCHEDULE, *LAST_SCHEDULE)
    ]
    assert sum("longcode" in name for name in stages[0]) == 5
    for names in stages:  # what is left out is forgotten
        assert {"minicode", "minimath", "longcode"} <= set(names)
    for names in stages[1:]:
        assert {f"{name}-people" for name in GENERATED} <= set(names)
    assert SECOND_SCHEDULE[-1].from_update < SECOND.whole_from < SECOND.updates


def test_most_of_the_last_runs_is_of_people_s_requests_and_much_of_long_problems() -> None:
    runs = ((THIRD_SCHEDULE, THIRD, 2 / 3), (LAST_SCHEDULE, LAST, 0.6))
    for schedule, config, share in runs:
        names = [make_source(source).name for source in schedule[0].sources]
        assert sum(name.endswith("-people") for name in names) >= share * len(names)
        assert config.whole_from < config.updates
    assert sum("longmath" in name for name in names) >= 0.4 * len(names)


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
    stages = (*SCHEDULE, *SECOND_SCHEDULE, *THIRD_SCHEDULE, *LAST_SCHEDULE)
    trained_on = {source for stage in stages for source in stage.sources}
    for source in map(make_source, trained_on):
        for index in range(100):
            prompt = source.problem("train", index).prompt
            assert not [name for name in NAMES.reserved if f"{name} " in prompt]
