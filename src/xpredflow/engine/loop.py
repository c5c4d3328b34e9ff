"""Prompts -> rows -> batched forward passes -> Steps -> Decoded, by one Session for all of them.

`decode_steps` hands every Step on; `generate` drains it. Rows that converge leave the batch at once
and waiting prompts take their place.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

from xpredflow.engine import intake
from xpredflow.engine.prompts import Prompts
from xpredflow.engine.request import DecodeOptions, Options, resolve
from xpredflow.engine.rows import Row
from xpredflow.engine.session import decode_rows, finished_of
from xpredflow.engine.steps import Decoded, Frame, Step
from xpredflow.errors import Interrupted
from xpredflow.models.wrap import check_model
from xpredflow.types import Decoder, Model


def generate(
    model: Model,
    prompts: Prompts,
    *,
    decoder: str | Decoder | None = None,
    **options: Unpack[DecodeOptions],
) -> list[Decoded]:
    """Decode every prompt; one Decoded each, in their order (of their numbers in a mapping).

    A prompt is a text, a list of messages, or token ids. Options are those of the loop and, beside
    a decoder's name, those of the decoder; what is left out is as the checkpoint says. Ctrl-C
    raises `Interrupted`, which carries the rows that were finished.

    model = load("tiny-aligned")
    question = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
    print(generate(model, question, decoder="threshold:0.9", budget="1/4")[0].text)
    """
    finished: list[Decoded] = []
    frames: dict[int, list[Frame]] = {}
    keep_trace = bool(options.get("trace", False))
    try:
        for step in decode_steps(model, prompts, decoder=decoder, **options):
            if keep_trace:
                for frame in step.frames():
                    frames.setdefault(frame.row, []).append(frame)
            finished += [replace(done, trace=frames.get(done.row)) for done in step.finished]
    except KeyboardInterrupt:
        raise Interrupted(sorted(finished, key=lambda done: done.row)) from None
    return sorted(finished, key=lambda done: done.row)


def decode_steps(
    model: Model,
    prompts: Prompts,
    *,
    decoder: str | Decoder | None = None,
    **options: Unpack[DecodeOptions],
) -> Iterator[Step]:
    """The same, one Step per forward pass. Bad input is reported here, before the first pass.

    for step in decode_steps(model, question, decoder="threshold:0.9"):
        print(step.canvas.progress.mean(), [done.text for done in step.finished])
    """
    settings, rules = resolve(decoder, dict(options), check_model(model))
    check_model(model, rules)
    return decode_rows(model, make_rows(model, prompts, settings), rules, settings)


def make_rows(model: Model, prompts: Prompts, settings: Options) -> list[Row]:
    """The prompts as the loop takes them, numbered and checked against the model."""
    return intake.make_rows(model, prompts, settings, finished_of)
