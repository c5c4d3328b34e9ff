import gzip
import json

import pytest
from toy import ToyModel, prompts

from xpredflow.engine import loop as engine
from xpredflow.errors import InputError
from xpredflow.watch.trace import Header, TraceWriter, read_trace

PROMPTS = prompts(3)
HEADER = Header("toy", "flow", 0, PROMPTS, {"gen_length": 6})


def steps():
    return engine.decode_steps(ToyModel(), PROMPTS, gen_length=6)


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz"])
def test_round_trip(tmp_path, name):
    path = tmp_path / name
    frames, decoded = [], []
    with TraceWriter(path, HEADER) as writer:
        for step in steps():
            writer.add(step)
            frames += step.frames()
            decoded += step.finished
        assert not path.exists()
    trace = read_trace(path)
    assert trace.header == HEADER
    assert trace.frames == frames
    assert trace.decoded == sorted(decoded, key=lambda done: done.row)
    assert trace.complete
    assert list(tmp_path.iterdir()) == [path]


def test_gz_is_compressed(tmp_path):
    path = tmp_path / "run.jsonl.gz"
    with TraceWriter(path, HEADER):
        pass
    assert json.loads(gzip.decompress(path.read_bytes()))["format"] == "xpredflow-trace"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_was_recorded_survives_the_end(tmp_path, error):
    path = tmp_path / "run.jsonl"

    def passes():
        yield next(steps())
        raise error

    def record():
        with TraceWriter(path, HEADER) as writer:
            for step in passes():
                writer.add(step)

    with pytest.raises(error):
        record()
    trace = read_trace(path)
    assert len(trace.frames) == 3
    assert not trace.complete


def test_an_error_before_the_first_step_replaces_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("older")

    with pytest.raises(MemoryError), TraceWriter(path, HEADER):
        raise MemoryError
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def lines_of(tmp_path):
    path = tmp_path / "run.jsonl"
    with TraceWriter(path, HEADER) as writer:
        for step in steps():
            writer.add(step)
    return path, path.read_text().splitlines()


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (0, {"format": "other"}, "no xpredflow-trace header"),
        (0, {"version": 99}, "version 99"),
        (1, {"kind": "strange"}, "unexpected 'strange'"),
        (1, {"tokens": [1]}, "lists of one length"),
        (1, {"surplus": 1}, "a damaged Frame"),
        (-1, {"reason": "TIRED"}, "expected CONVERGED"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, number, change, message):
    path, lines = lines_of(tmp_path)
    lines[number] = json.dumps({**json.loads(lines[number]), **change})
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=message) as caught:
        read_trace(path)
    assert f"{path}:" in str(caught.value)


def test_a_cut_file_is_refused(tmp_path):
    path, lines = lines_of(tmp_path)
    path.write_text("\n".join(lines)[:-40])
    with pytest.raises(InputError, match="cut off"):
        read_trace(path)
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress("\n".join(lines).encode())[:200])
    with pytest.raises(InputError, match="cut off"):
        read_trace(packed)


def test_a_missing_empty_or_foreign_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(InputError, match="no xpredflow-trace header"):
        read_trace(empty)
    empty.write_text("[1]\n")
    with pytest.raises(InputError, match="expected a JSON object"):
        read_trace(empty)
