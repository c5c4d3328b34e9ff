"""A row that fails, by a NaN or by its decoder, takes no other one down."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from running_server import PENS, Running, running

from xpredflow import Engine, generate, load, register
from xpredflow.decoders.discrete import Discrete
from xpredflow.registry import DECODERS
from xpredflow.settings import settings

GOOD = {"decoder": "mask", "budget": 16}


@settings
class Breaking(Discrete):
    """Raises in its third pass, with whatever is beside it."""

    def choose(self, canvas, prediction, signals, info):
        if int(info.step.max()) == 2:
            raise RuntimeError("broken")
        return torch.zeros_like(canvas.frozen)


@pytest.fixture(autouse=True, scope="module")
def breaking() -> Iterator[None]:
    """Known by name while these tests run, and to no others."""
    register("decoder", "breaking", Breaking, summary="for tests")
    yield
    del DECODERS._entries["breaking"]


class Poisoned:
    """A model that says NaN of rows that hold a certain token."""

    def __init__(self, model: Any, token: int) -> None:
        self._model, self._token = model, token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def logits(self, inputs, positions, columns, cache=None, slots=None):
        logits = self._model.logits(inputs, positions, columns, cache, slots)
        poison = self._model.embedding[self._token]
        rows = (inputs - poison).abs().sum(-1).lt(1e-6).any(-1)
        return torch.where(rows.reshape(-1, 1, 1), torch.nan, logits)


def together(served: Running, bad: dict[str, Any], count: int = 3) -> tuple[Any, list[str]]:
    """One bad request among good ones: its response, and the others' texts."""
    responses: dict[int, Any] = {}

    def ask(i: int) -> None:
        body = bad if i == 0 else {**GOOD, "seed": i}
        message = [{"role": "user", "content": PENS}]
        responses[i] = served.post(**{"messages": message, **body})

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(count + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = []
    for i in range(1, count + 1):
        assert responses[i].status_code == 200, responses[i].text
        texts.append(responses[i].json()["choices"][0]["message"]["content"])
    return responses[0], texts


@pytest.fixture(scope="module")
def expected() -> str:
    return generate(load("tiny-aligned"), PENS, **GOOD)[0].text  # type: ignore[arg-type]


def test_a_decoder_that_raises_fails_alone(server: Running, expected: str) -> None:
    response, texts = together(server, {"decoder": "breaking"})
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "row_failed"
    assert "RuntimeError" in response.json()["error"]["message"]
    assert texts == [expected] * 3
    assert server.chat(**GOOD)["choices"][0]["message"]["content"] == expected


def test_logits_that_are_no_numbers_fail_alone(expected: str) -> None:
    model = load("tiny-aligned")
    [token] = model.tokenizer("Q", add_special_tokens=False).input_ids
    with running(Engine(Poisoned(model, token))) as served:  # type: ignore[arg-type]
        bad = {"messages": [{"role": "user", "content": "Q" + PENS}], "decoder": "mask"}
        response, texts = together(served, bad)
    assert response.status_code == 500
    assert "not finite" in response.json()["error"]["message"]
    assert texts == [expected] * 3


def test_a_stream_that_fails_says_so_in_its_last_event(server: Running) -> None:
    message = [{"role": "user", "content": PENS}]
    response = server.post(messages=message, stream=True, decoder="breaking")
    assert response.status_code == 200
    assert '"code": "row_failed"' in response.text.strip().split("\n\n")[-1]
