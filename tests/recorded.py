"""Recorded decodes for tests: of the toy model, and made-up ones of any size."""

import random

from byte_tokenizer import byte_tokenizer
from toy import ToyModel, prompts

from xpredflow.engine.loop import decode_rows, make_rows
from xpredflow.engine.request import resolve
from xpredflow.engine.steps import Decoded, Frame, StopReason
from xpredflow.tasks.base import Verdict
from xpredflow.types import Model
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace import Header, Layout, Trace, record


def decode_steps(decoder="flow", model: Model | None = None, asked=None, **options):
    """The header and the steps of a toy decode."""
    model, asked = model or ToyModel(), asked or prompts(3)
    settings, rules = resolve(decoder, {"gen_length": 6, **options}, model)
    rows = make_rows(model, asked, settings)
    header = Header.of(model, rows, asked, rules, settings, name=decoder)
    return header, decode_rows(model, rows, rules, settings)


def toy_trace(decoder="flow", model: Model | None = None, asked=None, **options) -> Trace:
    options = {"gen_length": 6, **options}
    return record(model or ToyModel(), asked or prompts(3), decoder=decoder, **options)


def made_up(passes: int, length: int, *, title="flow", seed=0, words=None, prompt="a prompt"):
    """A trace as a large model would leave it: most numbers change in most passes."""
    draw = random.Random(seed)
    words = words or [f" word{i}" for i in range(5000)]
    known = {(i,): word for i, word in enumerate(words)}
    ids = range(len(words))
    settles = [draw.randint(1, passes) for _ in range(length)]
    held = [draw.choices(ids, k=4) for _ in range(length)]
    frames, progress = [], [0.0] * length
    for step in range(passes):
        for i in range(length):
            if step < settles[i] and draw.random() < 0.3:
                held[i] = draw.choices(ids, k=4)
        sure = [0.999 if step > settles[i] else draw.uniform(0.2, 0.95) for i in range(length)]
        progress = [1.0 if step >= settles[i] else draw.random() for i in range(length)]
        frames.append(
            Frame(
                row=0,
                step=step,
                positions=list(range(10, 10 + length)),
                tokens=[group[0] for group in held],
                progress=progress,
                confidence=sure,
                reedited=[step < settles[i] and draw.random() < 0.02 for i in range(length)],
                committed=[step == settles[i] for i in range(length)],
                candidates=[list(group) for group in held],
                probabilities=[[c, (1 - c) / 2, (1 - c) / 4, (1 - c) / 8] for c in sure],
                step_size=[draw.random() for _ in range(length)],
            )
        )
    ends = [group[0] for group in held]
    text = "".join(words[token] for token in ends)
    reason = StopReason.CONVERGED
    done = Decoded(0, text, ends, passes, reason, reason.value, progress, ends)
    layout = Layout(0, list(range(10, 10 + length)), passes)
    header = Header("made-up", title, 0, [prompt], {}, {"decoder": title}, [layout], [], title)
    return Trace(header, frames, [done], {0: Verdict(True, "")}, TokenText(None, known))


class ByteModel(ToyModel):
    """The toy with texts for its tokens."""

    tokenizer = byte_tokenizer()
