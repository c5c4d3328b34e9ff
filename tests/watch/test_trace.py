import gzip
import json
from dataclasses import replace

import pytest
from recorded import ByteModel, decode_steps, made_up, toy_trace

from xpredflow.errors import InputError
from xpredflow.tasks.base import Verdict
from xpredflow.watch.deltas import PARTS, in_parts
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace_encoder import encode
from xpredflow.watch.trace_file import (
    TraceWriter,
    read_chosen,
    read_trace,
    read_traces,
    write_traces,
)


def close(frame):
    """A frame as a trace keeps it."""
    rounded = {
        name: [in_parts(value) / PARTS for value in getattr(frame, name)]
        for name in ("progress", "confidence", "step_size")
        if getattr(frame, name) is not None
    }
    probabilities = [[in_parts(p) / PARTS for p in group] for group in frame.probabilities]
    return frame._replace(**rounded, probabilities=probabilities)


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
@pytest.mark.parametrize("decoder", ["flow", "mask", "wino"])
def test_round_trip(tmp_path, name, decoder):
    path = tmp_path / name
    header, steps = decode_steps(decoder)
    frames, decoded = [], []
    with TraceWriter(path, header, TokenText(None)) as writer:
        for step in steps:
            writer.add(step)
            frames += step.frames()
            decoded += step.finished
        writer.judge(1, Verdict(False, "off by one"))
        assert not path.exists()
    trace = read_trace(path)
    assert trace.header == header
    assert trace.frames == [close(frame) for frame in frames]
    assert [done.all_ids for done in trace.decoded] == [
        done.all_ids for done in sorted(decoded, key=lambda done: done.row)
    ]
    assert trace.verdicts == {1: Verdict(False, "off by one")}
    assert trace.complete
    assert list(tmp_path.iterdir()) == [path]


def test_blocks_and_gaps_round_trip(tmp_path):
    for trace in (toy_trace(block_length=2), toy_trace(asked=[[1, -1, 3, -1, -1]])):
        write_traces(tmp_path / "t.jsonl", [trace])
        again = read_trace(tmp_path / "t.jsonl")
        assert again.frames == [close(frame) for frame in trace.frames]
        assert again.header.layouts == trace.header.layouts
        context = again.header.layouts[0].context
    assert context == [1, 22, 3, 22, 22]


def test_only_one_is_all_of_it():
    assert (in_parts(1.0), in_parts(0.9999), in_parts(0.0), in_parts(float("nan"))) == (
        *(1000, 999, 0),
        0,
    )


def test_flow_tells_its_step_sizes_and_others_have_none(tmp_path):
    write_traces(tmp_path / "t.jsonl", [toy_trace("flow", policy="constant:1/4")])
    assert read_trace(tmp_path / "t.jsonl").frames[0].step_size == [0.25] * 6
    write_traces(tmp_path / "t.jsonl", [toy_trace("threshold")])
    assert read_trace(tmp_path / "t.jsonl").frames[0].step_size is None


def test_texts_of_tokens_come_along(tmp_path):
    trace = toy_trace(model=ByteModel())
    write_traces(tmp_path / "t.jsonl", [trace])
    again = read_trace(tmp_path / "t.jsonl")
    frame = again.frames[-1]
    assert again.text.pieces(frame.tokens) == TokenText(ByteModel.tokenizer).pieces(frame.tokens)


def test_characters_of_several_tokens_come_along(tmp_path):
    text = TokenText(ByteModel.tokenizer)
    euro = [*"€".encode(), 97]
    trace = toy_trace(asked=[[1]], model=ByteModel(), gen_length=4)
    frames = [frame._replace(tokens=euro) for frame in trace.frames]
    write_traces(tmp_path / "t.jsonl", [type(trace)(trace.header, frames, trace.decoded, {}, text)])
    again = read_trace(tmp_path / "t.jsonl")
    assert again.text.pieces(euro) == ["€", "", "", "a"]


def test_only_what_changes_is_written():
    lines = list(encode(made_up(20, 8)))
    assert "span" not in json.loads(lines[2])
    last = json.loads(lines[20])
    assert "tokens" not in last  # everything is settled long before


def test_several_decoders_in_one_file_or_in_several(tmp_path):
    flow, mask = toy_trace("flow"), toy_trace("mask")
    write_traces(tmp_path / "both.jsonl", [flow, mask])
    assert [t.header.decoder for t in read_traces(tmp_path / "both.jsonl")] == ["flow", "mask"]
    with pytest.raises(InputError, match="holds 2 traces"):
        read_trace(tmp_path / "both.jsonl")
    write_traces(tmp_path / "one.jsonl", [flow])
    write_traces(tmp_path / "two.jsonl", [toy_trace("flow", budget=2)])
    chosen = read_chosen([tmp_path / "one.jsonl", tmp_path / "two.jsonl"], row=1)
    assert [one.title for trace in chosen for one in trace.recordings()] == [
        "flow (one)",
        "flow (two)",
    ]
    with pytest.raises(InputError, match="rows 0 to 2"):
        read_chosen([tmp_path / "one.jsonl"], row=9)


def test_gz_is_compressed(tmp_path):
    path = tmp_path / "run.jsonl.gz"
    write_traces(path, [toy_trace()])
    first = gzip.decompress(path.read_bytes()).splitlines()[0]
    assert json.loads(first)["format"] == "xpredflow-trace"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_was_recorded_survives_the_end(tmp_path, error):
    path = tmp_path / "run.jsonl"
    header, steps = decode_steps()

    def record():
        with TraceWriter(path, header) as writer:
            writer.add(next(steps))
            raise error

    with pytest.raises(error):
        record()
    trace = read_trace(path)
    assert len(trace.frames) == 3
    assert not trace.complete


def test_an_error_before_the_first_step_replaces_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("older")

    with pytest.raises(MemoryError), TraceWriter(path, decode_steps()[0]):
        raise MemoryError
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (0, {"format": "other"}, "no xpredflow-trace header"),
        (0, {"version": 99}, "version 99 .* reads versions 1 and 2"),
        (0, {"version": None}, "version None"),
        (0, {"layouts": []}, "3 prompts and 0 layouts"),
        (0, {"layouts": [{"row": 0, "positions": [[0, 10**9]], "budget": 1}] * 3}, "more than"),
        (1, {"kind": "strange"}, "a damaged line"),
        (1, {"kind": "header"}, "a damaged line"),
        (1, {"row": 7}, "row 7, which the header does not name"),
        (1, {"step": 4}, "pass 4 of row 0; expected 0"),
        (1, {"tokens": [None, [1]]}, "tokens has 1 values for 6 positions"),
        (1, {"tokens": [[99], [1]]}, "outside 0 to 5"),
        (1, {"tokens": [[0], [1]]}, "no line has given a token"),
        (1, {"tokens": [None, ["x"] * 6]}, r"a damaged line \(frame.tokens"),
        (1, {"progress": [None, [1001] * 6]}, "above 1000"),
        (1, {"span": [2, 40]}, "of 6 open positions"),
        (1, {"committed": [40]}, "outside 0 to 5"),
        (1, {"surplus": 1}, "surplus"),
        (1, {"pieces": {"<b>": "x"}}, "pieces"),
        (-2, {"reason": "TIRED"}, "reason"),
        (-1, {"frames": 1}, "lines are missing"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, number, change, message):
    path = tmp_path / "run.jsonl"
    write_traces(path, [toy_trace()])
    lines = path.read_text().splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **change})
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=message) as caught:
        read_trace(path)
    assert f"{path}:" in str(caught.value)


def test_a_cut_file_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    write_traces(path, [toy_trace()])
    whole = path.read_text()
    path.write_text(whole[:-10])
    with pytest.raises(InputError, match="cut off"):
        read_trace(path)
    path.write_text("\n".join(whole.splitlines()[:-1]) + "\n")  # at the end of a line
    with pytest.raises(InputError, match="cut off"):
        read_trace(path)
    lines = whole.splitlines()
    path.write_text("\n".join(lines[:1] + lines[2:]))  # in the middle
    with pytest.raises(InputError, match="expected 0"):
        read_trace(path)
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress(whole.encode())[:200])
    with pytest.raises(InputError, match="cut off"):
        read_trace(packed)


def test_a_missing_empty_or_foreign_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
    file = tmp_path / "file.jsonl"
    for content, message in (
        (b"", "no xpredflow-trace header"),
        (b"[1]\n", "no xpredflow-trace header"),
        (b'{"prompt": "x"}\n', "no xpredflow-trace header"),
        (b"hello\n", "not a line of JSON"),
        (b"\x89PNG\r\n\xff\xfe", "no trace"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_trace(file)


VERSION_1 = [
    {"kind": "header", "format": "xpredflow-trace", "version": 1, "model": "toy"}
    | {"decoder": "flow", "seed": 0, "prompts": ["p"], "options": {"gen_length": 2}},
    {"kind": "frame", "row": 0, "step": 0, "positions": [1, 2], "tokens": [5, 6]}
    | {"progress": [0.25, 1.0], "confidence": [0.5, 0.75]}
    | {"reedited": [False, False], "committed": [False, True]},
    {"kind": "decoded", "row": 0, "text": "", "ids": [5, 6], "passes": 1, "reason": "BUDGET"}
    | {"stop_reason": "the budget was used up", "progress": [0.25, 1.0], "all_ids": [5, 6]},
]


def test_version_1_is_read(tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in VERSION_1))
    trace = read_trace(path)
    [recording] = trace.recordings()
    assert recording.layout.positions == [1, 2]
    assert recording.text.pieces([5, 6]) == ["5 ", "6 "]
    write_traces(tmp_path / "new.jsonl", [trace])
    assert read_trace(tmp_path / "new.jsonl").frames[0].confidence == [0.5, 0.75]
    path.write_text(path.read_text().replace("[5, 6]", "[5]", 1))
    with pytest.raises(InputError, match="must have one length"):
        read_trace(path)


def test_a_row_without_step_sizes_beside_one_that_has_them():
    _, steps = decode_steps("flow", asked=[[1], [2]])
    step = next(steps)
    action = step.event.action
    assert action is not None
    fraction = action.fraction.clone()
    fraction[1] = float("nan")
    event = step.event._replace(action=replace(action, fraction=fraction))
    flow, other = replace(step, event=event).frames()
    assert flow.step_size is not None
    assert other.step_size is None
