"""The one decoding loop: prompts -> rows -> batched forward passes -> Steps -> Decoded.

`decode_steps` hands every Step on; `generate` drains it. Rows that converge leave the batch at once
and waiting prompts take their place.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from xpredflow.engine.batch import Batch
from xpredflow.engine.guidance import PASSES
from xpredflow.engine.length import EndConfidence, find_room, with_room
from xpredflow.engine.prompts import Prompts, encode, numbered
from xpredflow.engine.request import DecodeOptions, Options, resolve, say_once
from xpredflow.engine.rows import Row, make_row, to_decoded
from xpredflow.engine.signals import not_finite, read
from xpredflow.engine.steps import Decoded, Frame, Step, StopReason
from xpredflow.errors import Interrupted
from xpredflow.models.wrap import check_model
from xpredflow.types import Decoder, Model, Signals


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
    by_number = numbered(prompts, settings.first_row)
    for prompt in by_number.values():
        hint = model.hint(prompt) if hasattr(model, "hint") else None  # type: ignore[attr-defined]
        if hint:
            say_once(hint)
    encoded = {
        number: encode(model, prompt, chat=settings.chat, system=settings.system)
        for number, prompt in by_number.items()
    }

    def look(lengths: dict[int, int]) -> Iterator[Decoded]:
        rows = [
            make_row(model, n, encoded[n], gen_length=length, budget=1, block_length=None)
            for n, length in lengths.items()
        ]
        sees_ends = replace(settings, logits_eos_inf=False)
        for step in decode_rows(model, rows, EndConfidence(), sees_ends):
            yield from step.finished

    rooms = find_room(model, encoded, settings, look)
    rows = [
        make_row(
            model,
            number,
            prompt,
            gen_length=rooms[number].positions,
            budget=settings.budget,
            block_length=settings.block_length,
            step_passes=PASSES if settings.cfg_scale else 1,
        )
        for number, prompt in encoded.items()
    ]
    return [with_room(row, rooms[row.number], model.special.eos) for row in rows]


def decode_rows(
    model: Model, rows: list[Row], decoder: Decoder, options: Options
) -> Iterator[Step]:
    """The loop: admit, run, decide, retire. A row is the same whatever its neighbours are."""
    if not rows:
        return
    waiting = deque(rows)
    slots = min(options.max_batch, len(rows))
    length = max(row.offset + len(row.ids) for row in rows)
    shadows = getattr(decoder, "shadows", False)
    batch = Batch(model, slots, length, shadows, cfg_scale=options.cfg_scale)
    kept, advancing = [], []
    while waiting or kept or advancing:
        joining = [waiting.popleft() for _ in range(min(len(waiting), len(batch.free)))]
        if advancing or joining or len(kept) < len(batch.rows):
            batch.replace(kept, advancing + joining)
        step, kept, advancing = _advance(batch, decoder, options)
        yield step


@torch.no_grad()
def _advance(batch: Batch, decoder: Decoder, options: Options) -> tuple[Step, list[int], list[Row]]:
    """One forward pass: the Step, the places of rows that go on, the rows that begin a block."""
    signals, bad = _read(batch, options)
    info = batch.info(options.seed)
    batch.canvas, event = decoder.step(batch.canvas, signals, info, batch.space)
    index = [row.used for row in batch.rows]
    for row in batch.rows:
        row.step, row.used = row.step + 1, row.used + 1
        row.shadowed += len(row.open) if batch.shadows else 0
    positions, rows = batch.positions(), batch.rows
    finished, kept, advancing = _retire(batch, decoder, options, bad)
    step = Step([row.number for row in rows], index, positions, batch.canvas, event, finished)
    return step, kept, advancing


def _read(batch: Batch, options: Options) -> tuple[Signals, Tensor]:
    """What the pass says at the canvas and at its shadows, and where it says nothing finite."""
    parts = batch.forward().split(batch.canvas.frozen.shape[1], dim=1)
    bad = torch.stack([not_finite(part) for part in parts]).any(0) & ~batch.canvas.frozen
    own, *shadows = [
        read(
            part.nan_to_num() if bad.any() else part,
            batch.space.special,
            forbid_eos=options.logits_eos_inf,
            rank_ends_last=options.confidence_eos_eot_inf,
        )
        for part in parts
    ]
    return (replace(own, shadow=shadows[0]) if shadows else own), bad


def _retire(
    batch: Batch, decoder: Decoder, options: Options, bad: Tensor
) -> tuple[list[Decoded], list[int], list[Row]]:
    """Rows whose block is done go on to the next one or become Decoded."""
    converged = decoder.stop(batch.canvas)
    spent = torch.tensor([row.step >= row.budget for row in batch.rows], device=batch.device)
    over = bad.any(-1) | converged | spent
    tokens = batch.canvas.tokens
    if over.any():
        tokens = torch.where(over.unsqueeze(-1), decoder.finish(batch.canvas, batch.space), tokens)
        batch.canvas = batch.canvas.update(tokens=tokens)  # watchers see what is emitted
    finished: list[Decoded] = []
    kept: list[int] = []
    advancing: list[Row] = []
    for i, row in enumerate(batch.rows):
        if not over[i]:
            kept.append(i)
            continue
        reason = _why(decoder, batch, i) if converged[i] else StopReason.BUDGET
        done = _finish_block(batch, i, tokens[i], bad[i], reason, options)
        if done is None:
            advancing.append(row)
        else:
            finished.append(done)
            batch.release(row)
    return finished, kept, advancing


def _why(decoder: Decoder, batch: Batch, i: int) -> StopReason:
    """Why a decoder let a row end: as a rule because everything has converged."""
    exited = getattr(decoder, "exited", None)
    if exited is not None and bool(exited(batch.canvas)[i]):
        return StopReason.EARLY_EXIT
    stalled = getattr(decoder, "stalled", None)
    given_up = stalled is not None and bool(stalled(batch.canvas)[i])
    return StopReason.STALLED if given_up else StopReason.CONVERGED


def _finish_block(
    batch: Batch, i: int, tokens: Tensor, bad: Tensor, reason: StopReason, options: Options
) -> Decoded | None:
    """The row's answer if it ends here; None if it goes on with its next block."""
    row, model = batch.rows[i], batch.model
    if bad.any():
        where = row.open[int(bad.nonzero()[0])]
        detail = f": position {where} of row {row.number} in pass {row.used}, block {row.block}"
        return to_decoded(model, row, StopReason.BAD_LOGITS, detail)
    width = len(row.open)
    block = tokens[:width].tolist()
    row.harden(block, batch.canvas.progress[i, :width].tolist())
    is_last = row.block == len(row.blocks) - 1
    ended = options.stop_at_eos and not row.infill and set(block) & set(model.special.ends)
    if is_last or ended:
        if ended and not is_last:
            reason = StopReason.END_OF_TEXT
        return to_decoded(model, row, reason)
    row.block, row.step = row.block + 1, 0
    return None
