"""Branches of recorded decodes: what they share with the recording, and when there can be none."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy import ToyModel, prompts

from xpredflow import InputError, make_decoder
from xpredflow.engine.steps import Change
from xpredflow.watch.branch import branch
from xpredflow.watch.trace import record
from xpredflow.watch.trace_file import read_traces, write_traces

ASKED = prompts(3)
OPTIONS: dict[str, Any] = {"decoder": "mask+temperature=0.8", "gen_length": 8, "seed": 4}
AT = len(ASKED[1]) + 2


def test_a_branch_of_a_file_repeats_its_passes_and_then_goes_another_way(tmp_path: Path) -> None:
    model = ToyModel()
    write_traces(tmp_path / "run.jsonl", [record(model, ASKED, **OPTIONS)])
    [trace] = read_traces(tmp_path / "run.jsonl")
    made = branch(model, trace, [Change(3, AT, token=5)], row=1)
    before, after = trace.recordings()[1], made.recordings()[0]
    assert [f.tokens for f in after.frames[:2]] == [f.tokens for f in before.frames[:2]]
    assert (after.frames[2].tokens[2], after.frames[2].committed[2]) == (5, True)
    assert after.decoded is not None
    assert after.decoded.all_ids[2] == 5
    assert after.title == "mask+temperature=0.8, changed after pass 3"
    opened = branch(model, trace, [Change(3, AT)], row=1, title="opened").recordings()[0]
    assert (opened.title, opened.frames[2].progress[2]) == ("opened", 0)


def test_what_cannot_be_repeated_is_said() -> None:
    model = ToyModel()
    trace = record(model, ASKED, **OPTIONS)
    change = [Change(3, AT)]
    with pytest.raises(InputError, match="the trace has the rows 0, 1, 2; name one"):
        branch(model, trace, change)
    with pytest.raises(InputError, match=r"temperature = 0\.8, which its header does not repeat"):
        branch(model, trace, change, row=1, decoder="mask")
    with pytest.raises(InputError, match="gives other tokens than the trace has"):
        branch(ToyModel(seed=1), trace, change, row=1)
    other = replace(trace, header=replace(trace.header, model="other"))
    with pytest.raises(InputError, match="is of model 'other'"):
        branch(model, other, change, row=1)
    with pytest.raises(InputError, match="could not be made: it ended after pass 8, before 99"):
        branch(model, trace, [Change(99, AT)], row=1)


def test_a_decoder_that_was_built_is_given_again() -> None:
    model, built = ToyModel(), make_decoder("threshold:0.7")
    trace = record(model, ASKED[1], decoder=built, gen_length=8)
    with pytest.raises(InputError, match=r"threshold = 0\.7"):
        branch(model, trace, [Change(1, AT)])
    assert branch(model, trace, [Change(1, AT)], decoder=built).complete
