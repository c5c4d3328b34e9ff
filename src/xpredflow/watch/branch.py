"""Another way that a recorded decode could have gone: a token changed at a pass, and what follows.

trace = record(model, question, decoder="flow")
other = branch(model, trace, [Change(after=3, position=70, token=None)])
write_page("both.html", [trace, other])
"""

import json
from collections.abc import Sequence
from typing import Any, Unpack

from xpredflow.decoders import effective_settings
from xpredflow.engine.request import DecodeOptions, resolve
from xpredflow.engine.steps import Change
from xpredflow.errors import InputError
from xpredflow.types import Decoder, Model
from xpredflow.watch.trace import Recording, Trace, record

NOT_REPEATED = ("max_batch", "trace")  # how the run was made, not what it gave


def branch(
    model: Model,
    trace: Trace,
    changes: Sequence[Change],
    /,
    *,
    row: int | None = None,
    title: str = "",
    decoder: str | Decoder | None = None,
    **options: Unpack[DecodeOptions],
) -> Trace:
    """Decode on from passes of a trace with tokens changed there; a trace to show beside it.

    The passes before are decoded again and must give what was recorded: the state between them is
    not in a trace. A decoder that was built in Python, and options of its own that were given
    beside its name, are not there either: give them once more.
    """
    one = _recording(trace, row)
    header = one.header
    if header.model != model.name:
        raise InputError(f"the trace is of model {header.model!r}, not of {model.name!r}: load it")
    recorded = {n: value for n, value in header.options.items() if n not in NOT_REPEATED}
    given: dict[str, Any] = {**recorded, **options}
    chosen = decoder or header.decoder
    _, rules = resolve(chosen, given, model)
    _check_rules(effective_settings(rules), header.rules)
    last = max((change.after for change in changes), default=0)
    named = title or f"{one.title}, changed after pass {last}"
    prompts = {one.layout.row: one.prompt}
    made = record(model, prompts, decoder=chosen, title=named, changes=changes, **given)
    _check_passes(one, made.recordings()[0], min((c.after for c in changes), default=0))
    return made


def _recording(trace: Trace, row: int | None) -> Recording:
    found = trace.recordings()
    if row is None and len(found) == 1:
        return found[0]
    for one in found:
        if one.layout.row == row:
            return one
    rows = ", ".join(str(one.layout.row) for one in found)
    raise InputError(f"row is {row}: the trace has the rows {rows}; name one of them")


def _check_rules(now: dict[str, Any], recorded: dict[str, Any]) -> None:
    """What a file holds went through JSON, where a tuple is a list."""
    now = json.loads(json.dumps(now, default=str))
    recorded = json.loads(json.dumps(recorded, default=str))
    for name, value in recorded.items():
        if now.get(name) != value:
            raise InputError(
                f"the trace was recorded with {name} = {value!r}, which its header does not repeat"
                f" ({now.get(name)!r}): give the decoder or its options again"
            )


def _check_passes(recorded: Recording, again: Recording, count: int) -> None:
    for before, now in list(zip(recorded.frames, again.frames, strict=False))[: max(count - 1, 0)]:
        if before.tokens != now.tokens:
            raise InputError(
                f"pass {before.step + 1} gives other tokens than the trace has: it was recorded"
                " with other weights or at another precision"
            )
