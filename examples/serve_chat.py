"""The openai client against a server: whole answers, several at once, and text as it settles.

    python examples/serve_chat.py

Against a server of your own: xpredflow serve, then python examples/serve_chat.py URL
"""

import asyncio
import sys

from openai import AsyncOpenAI, OpenAI

from xpredflow import Engine, load
from xpredflow.serve.background import in_background

QUESTION = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."


def ask(client: OpenAI) -> None:
    """Any option of the decoder goes into extra_body; usage says what it cost."""
    answer = client.chat.completions.create(
        model="tiny-aligned",
        messages=[{"role": "user", "content": QUESTION}],
        extra_body={"decoder": "threshold:0.9", "budget": "1/2"},
    )
    used = answer.usage.model_extra if answer.usage else None
    print(repr(answer.choices[0].message.content), used)


def watch(client: OpenAI) -> None:
    """Settled text arrives in chunks; drafts stand in chunks without choices."""
    stream = client.chat.completions.create(
        model="tiny-aligned",
        messages=[{"role": "user", "content": QUESTION}],
        stream=True,
        extra_body={"decoder": "threshold:0.9", "drafts": True},
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            print("settled", repr(chunk.choices[0].delta.content))
        elif draft := (chunk.model_extra or {}).get("draft"):
            print("draft  ", repr(draft["draft"]))


async def ask_several(client: AsyncOpenAI) -> list[str]:
    """Requests under way together share forward passes."""
    questions = [QUESTION.replace("25", str(pens)) for pens in (31, 32, 33)]
    asked: list = [[{"role": "user", "content": question}] for question in questions]
    create = client.chat.completions.create
    answers = await asyncio.gather(*(create(model="tiny-aligned", messages=m) for m in asked))
    return [(answer.choices[0].message.content or "").splitlines()[-1] for answer in answers]


if __name__ == "__main__":
    with in_background(Engine(load("tiny-aligned")), sys.argv[1:]) as url:
        ask(OpenAI(base_url=f"{url}/v1", api_key="none"))
        watch(OpenAI(base_url=f"{url}/v1", api_key="none"))
        print(asyncio.run(ask_several(AsyncOpenAI(base_url=f"{url}/v1", api_key="none"))))
