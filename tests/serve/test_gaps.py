"""`response_format` over HTTP: templates, choices and JSON schemas, whole and streamed."""

import json

import pytest
from running_server import PENS, Running

SCHEMA = {
    "type": "object",
    "properties": {
        "note": {"type": "string", "maxTokens": 3},
        "pens": {"type": "integer"},
        "unit": {"enum": ["pens", "boxes"]},
    },
}


@pytest.mark.parametrize("decoder", ["flow", "threshold:0.9", "mask+temperature=1.5"])
def test_a_schema_is_kept_to(server: Running, decoder: str) -> None:
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    [choice] = server.chat(response_format=format_, decoder=decoder, seed=3)["choices"]
    found = json.loads(choice["message"]["content"])
    assert list(found) == ["note", "pens", "unit"]
    assert [slot["name"] for slot in choice["slots"]] == ["note", "pens", "unit"]
    assert choice["finish_reason"] == "stop"
    streamed = server.post(
        messages=[{"role": "user", "content": PENS}],
        response_format=format_,
        decoder=decoder,
        seed=3,
        stream=True,
        drafts=True,
    )
    chunks = [line[6:] for line in streamed.text.splitlines() if line.startswith("data: {")]
    deltas = [c for chunk in chunks for c in json.loads(chunk)["choices"]]
    assert "".join(c["delta"].get("content", "") for c in deltas) == choice["message"]["content"]
    assert deltas[-1]["slots"] == choice["slots"]


def test_gaps_that_can_no_longer_change_are_sent_at_once(server: Running) -> None:
    parts = ["x=", {"kind": "integer", "tokens": 2}, "\nx=25-7=", {"tokens": 4}, "!"]
    streamed = server.post(
        messages=[{"role": "user", "content": PENS}],
        response_format={"type": "template", "template": parts},
        decoder="mask+block_length=2",
        stream=True,
    )
    chunks = [line[6:] for line in streamed.text.splitlines() if line.startswith("data: {")]
    texts = [c["delta"].get("content") for chunk in chunks for c in json.loads(chunk)["choices"]]
    sent = [text for text in texts if text]
    assert sent[:2] == ["x=", "25\nx=25-7="]
    assert len(sent) == 3


def test_a_choice_has_the_probability_of_each(server: Running) -> None:
    format_ = {"type": "choice", "choices": ["x=25", "y=25", "no"]}
    [choice] = server.chat(response_format=format_)["choices"]
    assert choice["message"]["content"] == "x=25"
    [slot] = choice["slots"]
    assert sum(slot["probabilities"].values()) == pytest.approx(1)
    assert slot["probabilities"]["x=25"] > 0.9


def test_a_template_keeps_its_text(server: Running) -> None:
    parts = ["x=25\nx=25-7=", {"kind": "integer", "tokens": 2}, "\n#### ", {"tokens": 2}]
    format_ = {"type": "template", "template": parts}
    [choice] = server.chat(response_format=format_, logprobs=True)["choices"]
    assert choice["message"]["content"].startswith("x=25\nx=25-7=18\n#### ")
    assert len(choice["logprobs"]["content"]) == 4


@pytest.mark.parametrize(
    ("format_", "words"),
    [
        ({"type": "template", "template": ["only text"]}, "has no gap"),
        ({"type": "template", "template": [{"tokens": 10**6}]}, "at most 4096"),
        ({"type": "template", "template": [{"token": 3}]}, "token"),
        ({"type": "template", "template": [{"choices": ["a"], "kind": "number"}]}, "one of the"),
        ({"type": "choice", "choices": ["a", "a"]}, "different"),
        ({"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}, "'array'"),
        ({"type": "json_object"}, "json_object"),
    ],
)
def test_what_cannot_be_kept_to_is_refused(server: Running, format_: dict, words: str) -> None:
    status, message = server.refused(response_format=format_)
    assert status == 400
    assert words in message


def test_a_format_stands_alone(server: Running) -> None:
    format_ = {"type": "choice", "choices": ["a", "b"]}
    assert server.refused(response_format=format_, stop="x")[0] == 400
    body = {"prompt": "25-7=", "response_format": format_}
    assert server.refused("/v1/completions", **body, suffix="x")[0] == 400
    assert server.post("/v1/completions", **body).json()["choices"][0]["text"] in ("a", "b")
