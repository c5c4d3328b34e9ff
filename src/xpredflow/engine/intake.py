"""Prompts as the engine takes them: hinted at, encoded, given their room, and made rows."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from xpredflow.engine.guidance import PASSES
from xpredflow.engine.length import EndConfidence, find_room, with_room
from xpredflow.engine.prompts import Prompts, encode, numbered
from xpredflow.engine.request import Options, say_once
from xpredflow.engine.rows import Row, make_row
from xpredflow.engine.steps import Decoded
from xpredflow.types import Decoder, Model

Look = Callable[[Model, list[Row], Decoder, Options], Iterable[Decoded]]


def make_rows(model: Model, prompts: Prompts, settings: Options, look: Look) -> list[Row]:
    """Rows, numbered and checked against the model; `look` decodes those that find a length."""
    by_number = numbered(prompts, settings.first_row)
    for prompt in by_number.values():
        hint = model.hint(prompt) if hasattr(model, "hint") else None  # type: ignore[attr-defined]
        if hint:
            say_once(hint)
    encoded = {
        number: encode(model, prompt, chat=settings.chat, system=settings.system)
        for number, prompt in by_number.items()
    }

    def at_lengths(lengths: dict[int, int]) -> Iterable[Decoded]:
        rows = [
            make_row(model, n, encoded[n], gen_length=length, budget=1, block_length=None)
            for n, length in lengths.items()
        ]
        return look(
            model, rows, EndConfidence(), replace(settings, logits_eos_inf=False, cache=None)
        )

    rooms = find_room(model, encoded, settings, at_lengths)
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
