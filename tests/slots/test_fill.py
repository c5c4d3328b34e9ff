"""Templates on rows: every decoder, every kind of gap, and texts that always parse."""

import json
from typing import Any

import pytest

from xpredflow import Engine, InputError, load
from xpredflow.engine.prompts import encode
from xpredflow.registry import DECODERS
from xpredflow.slots.fill import Filling, Slot
from xpredflow.slots.template import Template, gap, json_template, make_template

PENS = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxTokens": 5},
        "count": {"type": "number", "maxTokens": 4},
        "whole": {"type": "integer"},
        "sold": {"type": "boolean"},
        "kind": {"$ref": "#/$defs/Kind"},
        "inner": {"type": "object", "properties": {"version": {"const": 2}}},
    },
    "$defs": {"Kind": {"enum": ["pen", "pencil", 3, None]}},
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(load("tiny-aligned"))


def fill(engine: Engine, template: Template, **options: Any) -> tuple[str, list[Slot]]:
    """A template behind a question."""
    ids = encode(engine.model, PENS, chat=None, system=None).ids
    filling, session = Filling(engine.model, ids, template), engine.session(max_batch=1)
    session.submit(filling.ids, constraint=filling, **options)
    while (step := session.step()) is not None:
        for done in step.finished:
            assert not done.failed
            return filling.finish(done.all_ids)
    raise AssertionError("the row has not ended")


@pytest.mark.parametrize("decoder", list(DECODERS))
@pytest.mark.parametrize("model", ["tiny-aligned", "tiny-moe-aligned"])
def test_whatever_the_decoder_the_object_parses(model: str, decoder: str) -> None:
    engine = Engine(load(model))
    text, slots = fill(engine, json_template(SCHEMA), decoder=decoder, budget=6)
    found = json.loads(text)
    assert list(found) == list(SCHEMA["properties"])
    assert isinstance(found["name"], str)
    assert type(found["count"]) in (int, float)
    assert type(found["whole"]) is int
    assert type(found["sold"]) is bool
    assert found["kind"] in ("pen", "pencil", 3, None)
    assert found["inner"] == {"version": 2}
    assert [slot.name for slot in slots] == ["name", "count", "whole", "sold", "kind"]
    assert sum((slots[4].probabilities or {}).values()) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_tokens_that_are_drawn_at_random_parse_too(engine: Engine, seed: int) -> None:
    options = {"decoder": "mask+temperature=2", "seed": seed, "budget": 2}
    json.loads(fill(engine, json_template(SCHEMA), **options)[0])


@pytest.mark.parametrize("block_length", [1, 3])
def test_gaps_may_lie_across_blocks(engine: Engine, block_length: int) -> None:
    options = {"decoder": "threshold:0.5", "block_length": block_length}
    json.loads(fill(engine, json_template(SCHEMA), **options)[0])


def test_a_choice_is_the_likeliest_of_its_texts(engine: Engine) -> None:
    template = make_template(["x=25\nx=25-7=", gap(choices=["18", "17", "180"]), "\n"])
    text, [slot] = fill(engine, template, decoder="threshold:0.9")
    assert text == "x=25\nx=25-7=18\n"
    assert slot.probabilities is not None
    assert max(slot.probabilities, key=lambda one: (slot.probabilities or {})[one]) == "18"


def test_free_gaps_end_where_the_model_ends_them(engine: Engine) -> None:
    template = make_template([gap(tokens=64, name="answer")])
    text, [slot] = fill(engine, template)
    assert text.endswith("#### 22")
    assert (slot.name, slot.text) == ("answer", text)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array"}, "has type 'array'"),
        ({"type": "object"}, "needs properties"),
        ({"type": "number", "minimum": 3}, "unknown keyword .* 'minimum'"),
        ({"type": "string", "maxTokens": 0}, "maxTokens is 0"),
        ({"enum": []}, "enum is \\[\\]"),
        ({"$ref": "#/$defs/X"}, "no such definition"),
        ({"const": 3}, "has no gap"),
        (["string"], "expected a JSON schema"),
    ],
)
def test_what_a_schema_cannot_say_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        json_template({"type": "object", "properties": {"x": schema}})


def test_a_schema_that_holds_itself_is_refused() -> None:
    loop = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Loop"}}}
    with pytest.raises(InputError, match="deep"):
        json_template({**loop, "$defs": {"Loop": loop}})


def test_choices_that_cannot_be_told_apart_are_refused(engine: Engine) -> None:
    for choices, words in (
        (["a", "a"], "different"),
        ([], "different"),
        (["<|mdm_mask|>"], "spec"),
    ):
        with pytest.raises(InputError, match=words):
            fill(engine, make_template([gap(choices=choices)]))
    with pytest.raises(InputError, match="choices say how long"):
        gap(choices=["a"], tokens=3)
    with pytest.raises(InputError, match="did you mean 'number'"):
        gap("numbr")
