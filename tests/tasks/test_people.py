"""Requests as people write them: many words, and some that are kept from training."""

import builtins
import keyword
import re
from random import Random

import pytest

from xpredflow.tasks import GENERATED
from xpredflow.tasks.generated import people
from xpredflow.tasks.generated.longcode.answers import (
    CHANGE_NAMES,
    LISTS,
    STAGE_NAMES,
    TEST_NAMES,
)
from xpredflow.tasks.generated.longmath import phrasing as long_phrasing
from xpredflow.tasks.generated.minicode import phrasing as code_phrasing
from xpredflow.tasks.generated.minicode.answers import HELPER_NAMES, LIST_NAMES, NUMBER_NAMES
from xpredflow.tasks.generated.minicode.operations import FAMILIES
from xpredflow.tasks.generated.minimath import phrasing as math_phrasing
from xpredflow.tasks.generated.people import Pool, address, draw_cast, draw_function, invent
from xpredflow.tasks.generated.splits import HELD_OUT

POOLS = {
    f"{module.__name__.split('.')[-2]}.{name}": pool
    for module in (people, code_phrasing, math_phrasing, long_phrasing)
    for name, pool in vars(module).items()
    if isinstance(pool, Pool)
}
WORDS = [people.NAMES, people.THINGS, people.VERBS, people.NOUNS]
EXAMPLES = 1500


@pytest.mark.parametrize("name", POOLS)
def test_nothing_is_both_seen_and_reserved(name):
    pool = POOLS[name]
    assert pool.seen
    assert pool.reserved
    if not name.endswith("BEFORE"):  # to say nothing is no phrase
        assert not set(pool.seen) & set(pool.reserved)


@pytest.mark.parametrize("task", GENERATED)
def test_reserved_words_do_not_occur_in_training(task):
    made = GENERATED[task]()
    reserved = {word.lower() for pool in WORDS for word in pool.reserved}
    courtesies = [text.strip() for p in (people.OPENINGS, people.CLOSINGS) for text in p.reserved]
    for split in ("train", "people"):
        for index in range(EXAMPLES):
            prompt = made.problem(split, index).prompt
            words = set(re.findall(r"[a-z]+", prompt.lower()))
            assert not words & reserved, prompt
            assert not [text for text in courtesies if text in prompt], prompt


@pytest.mark.parametrize("task", GENERATED)
def test_a_paraphrase_asks_for_what_the_test_problem_does(task):
    made = GENERATED[task]()
    for index in range(0, HELD_OUT, 5):
        own, other = made.problem("test", index), made.problem("paraphrase", index)
        assert own.id.partition(" ")[2].split(": ")[1] == other.id.split(": ")[1]
        assert own.meta["style"] == other.meta["style"]
        assert own.level == other.level
        assert own.prompt != other.prompt


@pytest.mark.parametrize("task", GENERATED)
def test_training_requests_hardly_ever_begin_alike(task):
    made = GENERATED[task]()
    prompts = [made.problem("people", index).prompt for index in range(600)]
    openings = {tuple(prompt.split()[:3]) for prompt in prompts}
    assert len(openings) > 250
    assert sum(prompt[0].islower() for prompt in prompts) > 60
    assert sum("lease" in prompt or "hank" in prompt for prompt in prompts) > 100


def test_every_operation_has_other_words():
    atoms = [a for f in FAMILIES.values() for a in (*f.predicates, *f.changes)]
    assert {atom.kind for atom in atoms} == set(code_phrasing.OPERATIONS)
    assert {r.text for f in FAMILIES.values() for r in f.results} == set(code_phrasing.RESULTS)
    for atom in atoms:
        assert all(("{k}" in text) == ("{k}" in atom.kind) for text in _other_words(atom.kind))


def test_no_two_operations_share_their_words():
    said = [text for kind in code_phrasing.OPERATIONS for text in (kind, *_other_words(kind))]
    assert len(said) == len(set(said))


def _other_words(kind):
    return code_phrasing.OPERATIONS[kind]


def test_function_names_collide_with_nothing_that_an_answer_uses():
    used = {*TEST_NAMES, *CHANGE_NAMES, *STAGE_NAMES, "sorted", "len", "sum", "max", "min", "abs"}
    for pool in (people.VERBS, people.NOUNS):
        assert not used & {*pool.seen, *pool.reserved}
    names = {draw_function(Random(seed), seed % 2 == 1) for seed in range(2000)}
    assert all(name.isidentifier() for name in names)
    assert len(names) > 1000


def test_made_up_words_mean_nothing_in_a_program():
    answers_use = {*LIST_NAMES, *NUMBER_NAMES, *HELPER_NAMES, *STAGE_NAMES, *TEST_NAMES}
    answers_use |= {name for names in LISTS.values() for name in names}
    answers_use |= {name for family in FAMILIES.values() for name in family.loop_names}
    words = {invent(Random(seed)) for seed in range(20_000)}
    words |= {word + "s" for word in words}
    assert not words & answers_use
    assert not [word for word in words if keyword.iskeyword(word) or hasattr(builtins, word)]


def test_verbs_and_nouns_are_often_made_up_in_training_and_never_in_evaluation():
    known = {*people.VERBS.seen, *people.NOUNS.seen}
    drawn = [draw_function(Random(seed), reserved=False).split("_") for seed in range(1000)]
    assert 0.25 < sum(word not in known for name in drawn for word in name) / 1800 < 0.55
    kept = {*people.VERBS.reserved, *people.NOUNS.reserved}
    for seed in range(200):
        assert set(draw_function(Random(seed), reserved=True).split("_")) <= kept


def test_arguments_are_often_made_up_in_training_and_never_in_evaluation():
    pool = people.NUMBER_ARGUMENTS
    drawn = [people.draw_argument(Random(seed), pool, reserved=False) for seed in range(1000)]
    made_up = [name for name in drawn if name not in pool.seen]
    assert 400 < len(made_up) < 600
    assert all(name.isidentifier() for name in made_up)
    kept = {people.draw_argument(Random(seed), pool, reserved=True) for seed in range(200)}
    assert kept == set(pool.reserved)


def test_a_cast_has_different_people():
    for seed in range(300):
        names, thing = draw_cast(Random(seed), 3, reserved=True)
        assert len(set(names)) == 3
        assert set(names) <= set(people.NAMES.reserved)
        assert thing in people.THINGS.reserved


def test_invented_words_can_be_told_apart():
    words = [invent(Random(seed)) for seed in range(1000)]
    assert len(set(words)) > 900
    assert all(word.isalpha() and len(word) > 2 for word in words)


def test_an_address_leaves_the_request_whole():
    for seed in range(200):
        reserved = seed % 2 == 1
        text = address("Write f(xs).", Random(seed), reserved)
        assert ("rite f(xs)" if reserved else "f(xs)") in text


def test_in_training_some_words_of_an_address_mean_nothing():
    plain = [address("Write f(xs).", Random(seed), reserved=False) for seed in range(400)]
    assert 0.2 < sum("rite f(xs)" not in text for text in plain) / 400 < 0.5
