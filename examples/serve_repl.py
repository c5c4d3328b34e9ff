"""A chat loop in the terminal: the conversation is sent whole each time, the answer is streamed.

    python examples/serve_repl.py

Against a server of your own: xpredflow serve, then python examples/serve_repl.py URL
"""

import sys

from openai import OpenAI

from xpredflow import Engine, load
from xpredflow.serve.background import in_background


def turn(client: OpenAI, conversation: list) -> str:
    """One answer, printed as its text settles."""
    text = ""
    stream = client.chat.completions.create(
        model="tiny-aligned",
        messages=conversation,
        stream=True,
        extra_body={"decoder": "threshold:0.9"},
    )
    for chunk in stream:
        more = chunk.choices[0].delta.content or ""
        print(more, end="", flush=True)
        text += more
    print()
    return text


if __name__ == "__main__":
    with in_background(Engine(load("tiny-aligned")), sys.argv[1:]) as url:
        client, conversation = OpenAI(base_url=f"{url}/v1", api_key="none"), []
        for line in sys.stdin:  # ends with Ctrl-D
            conversation.append({"role": "user", "content": line.strip()})
            conversation.append({"role": "assistant", "content": turn(client, conversation)})
            conversation = conversation[-8:]  # what a small model can still read
