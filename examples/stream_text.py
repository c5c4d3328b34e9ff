"""Text while it is being decoded: what is settled and what is still a draft, after every pass.

    python examples/stream_text.py

`stream` is for loops, `astream` for servers: each pass runs in a thread, the event loop stays free.
"""

import asyncio

from xpredflow import astream, load, stream

MODEL = load("tiny-aligned")
QUESTION = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."


def watch(decoder: str) -> None:
    """Threshold decoding settles from left to right; the flow may still change all of its draft."""
    print(decoder)
    for partial in stream(MODEL, QUESTION, decoder=decoder):
        print(f"pass {partial.passes}: settled {partial.settled!r}, draft {partial.draft!r}")
        if partial.done is not None:
            print(f"{partial.done.stop_reason} after {partial.passes} passes")


async def ask(name: str) -> str:
    """The whole answer, while other requests are answered too."""
    text = ""
    async for partial in astream(MODEL, QUESTION.replace("Zoe", name), decoder="threshold:0.9"):
        text = partial.settled
    return f"{name}: {text!r}"


async def ask_both() -> tuple[str, str]:
    """Two requests at the same time."""
    return await asyncio.gather(ask("Zoe"), ask("Sam"))


if __name__ == "__main__":
    watch("threshold:0.9")
    watch("flow")
    print(*asyncio.run(ask_both()), sep="\n")
