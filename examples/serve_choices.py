"""Gaps that are bound: one of several choices with their probabilities, and JSON that parses.

    python examples/serve_choices.py

Against a server of your own: xpredflow serve, then python examples/serve_choices.py URL
"""

import json
import sys

from openai import OpenAI

from xpredflow import Engine, load
from xpredflow.serve.background import in_background

QUESTION = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."


def ask(client: OpenAI, response_format: dict) -> tuple[str, list]:
    """The text, and every gap with what stands in it."""
    answer = client.chat.completions.create(
        model="tiny-aligned",
        messages=[{"role": "user", "content": QUESTION}],
        response_format=response_format,  # type: ignore[arg-type]
    )
    [choice] = answer.choices
    return choice.message.content or "", (choice.model_extra or {})["slots"]


if __name__ == "__main__":
    with in_background(Engine(load("tiny-aligned")), sys.argv[1:]) as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none")
        gap = {"name": "result", "choices": ["18", "22", "36"]}
        template = ["x=25\nx=25-7=18\nx=4+18=", gap, "\n#### ", {"tokens": 2}]
        text, slots = ask(client, {"type": "template", "template": template})
        print(repr(text), {one: round(p, 3) for one, p in slots[0]["probabilities"].items()})
        properties = {
            "pens": {"type": "integer"},
            "unit": {"enum": ["pens", "boxes"]},
            "sold": {"type": "boolean"},
            "note": {"type": "string", "maxTokens": 4},
        }
        schema = {"name": "answer", "schema": {"type": "object", "properties": properties}}
        text, slots = ask(client, {"type": "json_schema", "json_schema": schema})
        print(json.loads(text))
