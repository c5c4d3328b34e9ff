import json
from pathlib import Path

import pytest
import torch

from xpredflow.engine import loop as engine
from xpredflow.engine import request
from xpredflow.watch.trace_file import read_trace


def texts(model, prompts, **options):
    return [done.text for done in engine.generate(model, prompts, gen_length=8, **options)]


def test_piped_output_is_the_text_and_nothing_else(run, model):
    result = run("generate", "Hello")
    assert result.exit_code == 0
    assert result.stdout == texts(model, "Hello")[0] + "\n"
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_several_prompts_come_out_in_order(run, model):
    result = run("generate", "one", "two", "three", "--max-batch", "2")
    assert result.stdout == "\n\n".join(texts(model, ["one", "two", "three"])) + "\n"


def test_json_has_one_object_per_prompt(run, model):
    result = run("generate", "one", "two", "--json", "--seed", "3", "-d", "mask", "--budget", "1/4")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["prompt"] for record in records] == ["one", "two"]
    expected = engine.generate(model, "one", decoder="mask", budget="1/4", seed=3, gen_length=8)[0]
    first = records[0]
    assert first["text"] == expected.text
    assert first["ids"] == expected.ids
    assert first["passes"] == 2
    assert first["mean_progress"] == 1.0
    assert (first["model"], first["decoder"], first["seed"]) == ("byte-toy", "mask", 3)
    assert first["stop_reason"] == expected.stop_reason
    assert first["options"] == {"seed": 3, "budget": "1/4", "gen_length": 8}
    assert first["tokens_per_forward"] == expected.tokens_per_forward
    assert first["failed"] is False
    assert first["budget"] == {"share": 0.25, "passes": 2}
    assert first["rules"]["remasking"] == "low_confidence"


def test_a_whole_spec_may_stand_behind_the_decoder(run):
    spec = "flow:constant:1/4+tau=0.95+budget=4"
    first = json.loads(run("generate", "one", "--json", "-d", spec).stdout)
    assert first["rules"]["tau"] == 0.95
    assert first["budget"] == {"share": 0.5, "passes": 4}
    assert first["decoder"] == "flow:constant:1/4"
    result = run("generate", "one", "-d", spec, "--budget", "3")
    assert result.exit_code == 2
    assert "budget is '4' in the decoder's spec and '3' beside it" in result.stderr


def test_standard_input_is_one_prompt(run, model):
    assert run("generate", stdin="two\nlines\n").stdout == texts(model, "two\nlines")[0] + "\n"


@pytest.mark.parametrize("how", [["--lines"], ["--file", "-"]])
def test_lines_of_standard_input_are_prompts(run, model, how):
    result = run("generate", *how, stdin="two\n\nlines\r\n")
    assert result.stdout == "\n\n".join(texts(model, ["two", "lines"])) + "\n"


def test_prompts_from_a_text_file(run, model, tmp_path: Path):
    file = tmp_path / "prompts.txt"
    file.write_text("one\n\ntwo\n")
    result = run("generate", "--file", str(file))
    assert result.stdout == "\n\n".join(texts(model, ["one", "two"])) + "\n"


def test_prompts_and_conversations_from_jsonl(run, model, tmp_path: Path):
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    file = tmp_path / "prompts.jsonl"
    # U+2028 ends a line for str.splitlines, but not in a file of JSON lines
    records = [{"prompt": "on\u2028e"}, {"messages": talk}]
    file.write_text("\n".join(json.dumps(r, ensure_ascii=False) for r in records))
    result = run("generate", "--file", str(file), "--json")
    found = [json.loads(line) for line in result.stdout.split("\n") if line]
    assert [record["prompt"] for record in found] == ["on\u2028e", talk]
    assert [record["text"] for record in found] == texts(model, ["on\u2028e", talk])


def test_gaps_are_filled_in(run):
    result = run("generate", "ab[[mask:2]]cd", length=None)
    text = result.stdout.removesuffix("\n")
    assert text.startswith("ab")
    assert text.endswith("cd")
    assert len(text) == 6


def test_chat_flags_reach_the_engine(run, model):
    assert run("generate", "x", "--no-chat").stdout.strip("\n") == texts(model, "x", chat=False)[0]
    as_system = texts(model, "x", system="Be brief.")[0]
    assert run("generate", "x", "--system", "Be brief.").stdout.strip("\n") == as_system


def test_options_reach_engine_and_decoder_and_defaults_stay_there(run, monkeypatch):
    seen = {}
    real = request.resolve

    def spy(decoder, options, model=None):
        seen.update(options, decoder=decoder)
        return real(decoder, options, model)

    monkeypatch.setattr(request, "resolve", spy)
    run("generate", "x", "-o", "tau=0.95", "-o", "reedit-margin=none", "--policy", "constant:1/4")
    assert seen == {
        "decoder": None,
        "policy": "constant:1/4",
        "gen_length": "8",
        "tau": "0.95",
        "reedit_margin": "none",
    }


def test_an_option_of_the_decoder_changes_what_it_does(run):
    steps = [
        json.loads(run("generate", "x", "--json", "-d", "threshold", "-o", pair).stdout)["passes"]
        for pair in ("threshold=1", "threshold=0")
    ]
    assert steps == [8, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "-o", "reedt_margin=0.2"], "did you mean 'reedit_margin'?"),
        (["x", "-o", "tau"], "expected NAME=VALUE"),
        (["x", "-o", "seed=1", "--seed", "2"], "give it once"),
        (["x", "-o", "tau=high"], "tau is 'high': expected a number"),
        (["x", "--budget", "abc"], "budget is 'abc'"),
        (["x", "--budget", "3/2"], "at most 1"),
        (["x", "--seed", "soon"], "seed is 'soon': expected a whole number"),
        (["x", "--max-batch", "0"], "max_batch is 0"),
        (["x", "--decoder", "flwo"], "did you mean 'flow'?"),
        (["x", "--policy", "constnt"], "did you mean 'constant'?"),
        (["x" * 400], "too long"),
        (["x", "--file", "prompts.txt"], "use one or the other"),
        (["x", "--lines"], "--lines"),
        (["--file", "/nowhere/prompts.txt"], "/nowhere/prompts.txt cannot be read"),
        (["x", "--trace", "/nowhere/t.jsonl"], "'/nowhere' is no directory"),
        (["x", "--trace", "/"], "is a directory"),
        (["x", "--trace", "/dev/null"], "is a device or a pipe"),
        ([], "standard input is empty"),
        (["\udcff"], "not valid UTF-8"),
        (["x", "--budgetz", "3"], "--budget"),
    ],
)
def test_bad_input_is_named_and_exits_with_2(run, arguments, message):
    result = run("generate", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "line",
    ["{", "3", "{}", '{"prompt": 3}', '{"messages": []}', '{"messages": [{"role": "user"}]}'],
)
def test_bad_jsonl_names_the_line(run, tmp_path: Path, line):
    file = tmp_path / "prompts.jsonl"
    file.write_text(f'{{"prompt": "fine"}}\n{line}\n')
    result = run("generate", "--file", str(file))
    assert result.exit_code == 2
    assert f"{file}:2:" in result.stderr


def test_empty_and_binary_files_are_refused(run, tmp_path: Path):
    file = tmp_path / "prompts.txt"
    file.write_text("\n")
    assert "has no prompts" in run("generate", "--file", str(file)).stderr
    file.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in run("generate", "--file", str(file)).stderr


def test_a_failed_row_is_reported_after_the_others(run, model, monkeypatch):
    real = model.logits

    def poisoned(inputs, positions, columns, cache=None, slots=None):
        logits = real(inputs, positions, columns, cache, slots)
        logits[0] = torch.nan
        return logits

    monkeypatch.setattr(model, "logits", poisoned)
    result = run("generate", "bad", "good")
    assert result.exit_code == 1
    assert "error: prompt 0: the model returned logits that are not finite" in result.stderr
    record = json.loads(run("generate", "bad", "--json").stdout)
    assert record["failed"] is True


def test_trace_round_trip_through_the_command(run, model, tmp_path: Path):
    file = tmp_path / "run.jsonl.gz"
    run("generate", "one", "two", "--trace", str(file), "-d", "mask", "--seed", "5")
    trace = read_trace(file)
    assert trace.header.prompts == ["one", "two"]
    assert (trace.header.model, trace.header.decoder, trace.header.seed) == ("byte-toy", "mask", 5)
    assert trace.header.options["gen_length"] == 8
    assert [done.text for done in trace.decoded] == texts(model, ["one", "two"], decoder="mask")
    assert trace.complete


def test_bad_input_leaves_an_older_trace_alone(run, tmp_path: Path):
    file = tmp_path / "run.jsonl"
    file.write_text("precious")
    assert run("generate", "x" * 400, "--trace", str(file)).exit_code == 2
    assert file.read_text() == "precious"


def test_ctrl_c_prints_and_records_what_is_finished(run, monkeypatch, tmp_path: Path):
    real = engine.decode_rows

    def interrupted(*arguments, **options):
        for step in real(*arguments, **options):
            yield step
            if step.finished:
                raise KeyboardInterrupt

    monkeypatch.setattr(engine, "decode_rows", interrupted)
    file = tmp_path / "run.jsonl"
    result = run("generate", "one", "two", "three", "--max-batch", "1", "--trace", str(file))
    assert result.exit_code == 130
    assert "interrupted: 1 of 3 prompts finished; to go on, give the other 2" in result.stderr
    trace = read_trace(file)
    assert result.stdout == trace.decoded[0].text + "\n"
    assert not trace.complete
    assert list(tmp_path.iterdir()) == [file]


def test_a_crash_still_prints_finished_rows(run, monkeypatch):
    real = engine.decode_rows

    def crashing(*arguments, **options):
        yield from real(*arguments, **options)
        raise MemoryError("no room")

    monkeypatch.setattr(engine, "decode_rows", crashing)
    result = run("generate", "one")
    assert result.exit_code == 2
    assert "memory" in result.stderr
    assert result.stdout.strip()
