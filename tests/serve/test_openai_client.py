"""The official openai client, unchanged: sync, async, streaming, and its errors."""

import asyncio
from math import exp

import openai
import pytest
from running_server import PENS, Running

from xpredflow import generate

MESSAGES = [{"role": "user", "content": PENS}]


@pytest.fixture
def client(server: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_a_chat_equals_the_offline_decode(client: openai.OpenAI, server: Running) -> None:
    [offline] = generate(server.engine.model, PENS)
    answer = client.chat.completions.create(model="tiny-aligned", messages=MESSAGES)  # type: ignore[call-overload]
    [choice] = answer.choices
    assert choice.message.content == offline.text
    assert choice.finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == len(offline.ids)
    assert answer.usage.model_extra == {"passes": offline.passes}


@pytest.mark.parametrize("decoder", ["flow", "threshold:0.9", "mask+temperature=0.7"])
def test_several_answers_are_those_of_rows_with_their_numbers(
    client: openai.OpenAI, server: Running, decoder: str
) -> None:
    offline = generate(server.engine.model, [PENS] * 3, decoder=decoder, seed=5, budget="1/4")
    options = {"decoder": decoder, "budget": "1/4"}
    answer = client.chat.completions.create(
        model="tiny-aligned",
        messages=MESSAGES,  # type: ignore[call-overload]
        n=3,
        seed=5,
        extra_body=options,
    )
    texts = [choice.message.content for choice in answer.choices]
    assert texts == [done.text for done in offline]
    assert answer.usage is not None
    assert answer.usage.model_extra == {"passes": sum(done.passes for done in offline)}


def test_a_stream_is_the_same_text_and_drafts_do_not_disturb_it(
    client: openai.OpenAI, server: Running
) -> None:
    [offline] = generate(server.engine.model, PENS, decoder="threshold:0.9")
    stream = client.chat.completions.create(
        model="tiny-aligned",
        messages=MESSAGES,  # type: ignore[call-overload]
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"decoder": "threshold:0.9", "drafts": True},
    )
    chunks = list(stream)
    deltas = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(delta or "" for delta in deltas) == offline.text
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == len(offline.ids)
    drafts = [chunk.model_extra["draft"] for chunk in chunks if "draft" in chunk.model_extra]  # type: ignore[operator]
    assert drafts
    assert all(offline.text.startswith(draft["settled"]) for draft in drafts)


def test_async_and_many_at_once(server: Running) -> None:
    prompts = [PENS.replace("25", str(n)) for n in range(20, 32)]
    offline = {p: generate(server.engine.model, p, decoder="threshold")[0].text for p in prompts}

    async def ask(client: openai.AsyncOpenAI, prompt: str) -> str:
        stream = await client.chat.completions.create(
            model="tiny-aligned",
            messages=[{"role": "user", "content": prompt}],
            stream=True,
            extra_body={"decoder": "threshold"},
        )
        text = ""
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
        return text

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            return await asyncio.gather(*(ask(client, prompt) for prompt in prompts))

    assert asyncio.run(ask_all()) == list(offline.values())


def test_stop_texts_end_an_answer_before_them(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(
        model="tiny-aligned",
        messages=MESSAGES,  # type: ignore[call-overload]
        extra_body={"decoder": "threshold:0.9"},
    )
    text = whole.choices[0].message.content or ""
    assert "\n####" in text
    for stream in (False, True):
        answer = client.chat.completions.create(
            model="tiny-aligned",
            messages=MESSAGES,  # type: ignore[call-overload]
            stop=["\n####", "never"],
            stream=stream,
            extra_body={"decoder": "threshold:0.9"},
        )
        if stream:
            chunks = [chunk.choices[0] for chunk in answer]  # type: ignore[union-attr]
            assert "".join(c.delta.content or "" for c in chunks) == text.split("\n####")[0]
            assert chunks[-1].finish_reason == "stop"
        else:
            assert answer.choices[0].message.content == text.split("\n####")[0]  # type: ignore[union-attr]


def test_max_tokens_is_the_length_of_the_canvas(client: openai.OpenAI, server: Running) -> None:
    [offline] = generate(server.engine.model, PENS, gen_length=8)
    answer = client.chat.completions.create(
        model="tiny-aligned",
        messages=MESSAGES,  # type: ignore[call-overload]
        max_tokens=8,
    )
    assert answer.choices[0].message.content == offline.text
    assert answer.choices[0].finish_reason == "length"


def test_logprobs_are_those_of_the_commitment(client: openai.OpenAI, server: Running) -> None:
    options = {"decoder": "threshold:0.9"}
    [offline] = generate(server.engine.model, PENS, trace=True, **options)  # type: ignore[attr-defined]
    committed = {
        position: confidence
        for frame in offline.trace or []
        for position, confidence, chosen in zip(
            frame.positions, frame.confidence, frame.committed, strict=True
        )
        if chosen
    }
    answer = client.chat.completions.create(
        model="tiny-aligned",
        messages=MESSAGES,  # type: ignore[call-overload]
        logprobs=True,
        top_logprobs=2,
        extra_body=options,
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert "".join(token.token for token in logprobs.content) == offline.text
    expected = [committed[position] for position in sorted(committed)][: len(logprobs.content)]
    assert [exp(token.logprob) for token in logprobs.content] == pytest.approx(expected, rel=1e-4)
    assert all(len(token.top_logprobs) == 2 for token in logprobs.content)


def test_the_older_endpoint_completes_and_fills_in(client: openai.OpenAI, server: Running) -> None:
    model = server.engine.model
    [offline] = generate(model, "25-7=[[mask:2]]\n", decoder="mask")
    answer = client.completions.create(
        model="tiny-aligned",
        prompt="25-7=",
        suffix="\n",
        max_tokens=2,
        logprobs=1,
        extra_body={"decoder": "mask"},
    )
    assert f"25-7={answer.choices[0].text}\n" == offline.text
    assert answer.choices[0].logprobs is not None
    assert answer.choices[0].logprobs.text_offset == [0, 1]
    several = client.completions.create(model="tiny-aligned", prompt=["x=", "y="], max_tokens=4)
    plain = [generate(model, p, chat=False, gen_length=4)[0].text for p in ("x=", "y=")]
    assert [choice.text for choice in several.choices] == plain
    ids = model.tokenizer("x=").input_ids
    same = client.completions.create(model="tiny-aligned", prompt=ids, max_tokens=4)
    assert same.choices[0].text == plain[0]
    whole = client.completions.create(model="tiny-aligned", prompt="25-7=[[mask:2]]\n")
    assert whole.choices[0].text == generate(model, "25-7=[[mask:2]]\n")[0].text


def test_errors_are_those_of_the_client(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="did you mean 'budget'"):
        client.chat.completions.create(
            model="tiny-aligned",
            messages=MESSAGES,  # type: ignore[call-overload]
            extra_body={"buget": 3},
        )
    with pytest.raises(openai.NotFoundError, match="tiny-aligned"):
        client.chat.completions.create(model="gpt-4", messages=MESSAGES)  # type: ignore[call-overload]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")
    assert [model.id for model in client.models.list()] == ["tiny-aligned"]
    assert client.models.retrieve("tiny-aligned").id == "tiny-aligned"
