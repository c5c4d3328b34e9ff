"""Infilling as an editor does it: the text before the cursor, the text after it, and a gap.

    python examples/serve_infill.py

Against a server of your own: xpredflow serve, then python examples/serve_infill.py URL
"""

import sys

from openai import OpenAI

from xpredflow import Engine, load
from xpredflow.serve.background import in_background

CURSOR = "|"
BUFFERS = ["x=25\nx=25-7=|\nx=4+18=22\n#### 22", "x=25\nx=25-7=18\nx=4+18=|\n#### 22"]


def complete(client: OpenAI, buffer: str, tokens: int) -> str:
    """The buffer with the gap at its cursor filled in."""
    before, _, after = buffer.partition(CURSOR)
    answer = client.completions.create(
        model="tiny-aligned",
        prompt=before,
        suffix=after,
        max_tokens=tokens,
        extra_body={"decoder": "threshold:0.9"},
    )
    return before + answer.choices[0].text + after


if __name__ == "__main__":
    with in_background(Engine(load("tiny-aligned")), sys.argv[1:]) as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none")
        for buffer in BUFFERS:
            print(repr(buffer), "->", repr(complete(client, buffer, tokens=2)))
