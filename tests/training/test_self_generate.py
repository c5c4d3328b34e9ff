"""Self-generated answers: sources of prompts, files that survive a kill, shared work."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from builders import write_checkpoint

from xpredflow import InputError, generate, load
from xpredflow.evaluation import Watch
from xpredflow.processes import Share
from xpredflow.tasks import TASKS, Problem, Runner, Verdict
from xpredflow.tasks.rows import Row
from xpredflow.training.common.answers import Answer, read_answers
from xpredflow.training.prompt_sources import RowPrompts, TaskPrompts, prompt_source
from xpredflow.training.self_generate import (
    AnswerFile,
    AnswerSpec,
    answer_prompts,
    self_generate,
)


class Parity:
    """Texts with an even number of bytes are right, so that an untrained model gets some."""

    name, response_length, runs_programs = "parity", 6, False

    def problem(self, split: str, index: int) -> Problem:
        assert split == "train"
        return Problem(f"p{index}", f"say {index}", 1, {})

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        return Verdict(len(text.encode()) % 2 == 0, "parity")

    def answer(self, problem: Problem, rng: object) -> str:
        return ""

    def size(self, split: str) -> int:
        return 40

    def count_problems(self) -> int:
        return 40


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("llada")
    write_checkpoint(path, "llada", tokenizer=True)
    return load(path)


SOURCE = TaskPrompts((Parity(),))  # type: ignore[arg-type]
WANTED = AnswerSpec("toy", "parity", limit=12, options={"temperature": 1.0, "max_batch": 3})


def answer_all(model, path: Path, spec: AnswerSpec, worlds: int = 1) -> list[Answer]:
    files = [AnswerFile(path, spec, Share(rank, worlds)) for rank in range(worlds)]
    files[0].begin()
    for rank, file in enumerate(files):
        answer_prompts(model, SOURCE, file, Share(rank, worlds))
    return files[0].finish()


def test_answers_are_what_the_engine_decodes(model, tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    answers = answer_all(model, out, WANTED)
    assert read_answers(out) == answers
    assert [answer.number for answer in answers] == list(range(12))
    prompts = [f"say {number}" for number in range(12)]
    decoded = generate(model, prompts, decoder="mask", gen_length=6, temperature=1.0)
    assert [a.response_ids for a in answers] == [d.all_ids for d in decoded]
    assert [a.passes for a in answers] == [6] * 12
    asked = [model.tokenizer.decode(answer.prompt_ids) for answer in answers]
    assert asked == [f"[user]{prompt}[assistant]" for prompt in prompts]
    assert {a.solved for a in answers} == {True, False}
    assert not list(tmp_path.glob("*part*"))


def test_only_solved_answers_are_kept(model, tmp_path: Path) -> None:
    every = answer_all(model, tmp_path / "all.jsonl", WANTED)
    spec = AnswerSpec(**{**vars(WANTED), "keep": "solved"})
    assert answer_all(model, tmp_path / "solved.jsonl", spec) == [a for a in every if a.solved]


def test_a_killed_run_goes_on_without_repeating(model, tmp_path: Path) -> None:
    whole = answer_all(model, tmp_path / "whole.jsonl", WANTED)
    out, seen = tmp_path / "killed.jsonl", []
    file = AnswerFile(out, WANTED, Share())
    file.begin()

    def dies(answer: Answer) -> None:
        seen.append(answer.number)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_prompts(model, SOURCE, file, Share(), watch=dies)
    with file.part.open("a") as part:
        part.write('{"number": 11, "sou')  # the line that a kill cut short
    again = AnswerFile(out, WANTED, Share())
    answer_prompts(model, SOURCE, again, Share(), watch=lambda answer: seen.append(answer.number))
    assert sorted(seen) == list(range(12))
    assert again.finish() == whole


def test_processes_share_the_work_and_a_larger_limit_adds_to_the_file(model, tmp_path) -> None:
    whole = answer_all(model, tmp_path / "whole.jsonl", WANTED)
    out = tmp_path / "shared.jsonl"
    few = AnswerSpec(**{**vars(WANTED), "limit": 5})
    assert answer_all(model, out, few, worlds=2) == whole[:5]
    assert answer_all(model, out, WANTED, worlds=3) == whole


def test_a_file_of_another_kind_is_not_added_to(model, tmp_path: Path) -> None:
    answer_all(model, tmp_path / "a.jsonl", WANTED)
    other = AnswerSpec(**{**vars(WANTED), "decoder": "threshold", "options": {}})
    with pytest.raises(
        InputError, match=r"was begun otherwise \(.*decoder was .mask. and is .threshold."
    ):
        AnswerFile(tmp_path / "a.jsonl", other, Share())


def test_rows_of_text_and_conversations(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "one"}) + "\n" + json.dumps({"messages": turns}) + "\n")
    source = prompt_source(str(path))
    assert [source.prompt(n) for n in range(len(source))] == ["one", turns[:1]]
    assert source.judge(0, "x", None) is None
    with pytest.raises(InputError, match=r"row 1 has neither .* fields are question"):
        RowPrompts("f", [Row("f, row 1", {"question": "?"})])


def test_tasks_take_turns_and_benchmarks_are_refused() -> None:
    source = prompt_source("minicode,minimath")
    assert [source.name(n) for n in range(3)] == ["minicode", "minimath", "minicode"]
    assert source.prompt(3) == TASKS["minimath"]().problem("train", 3).prompt
    with pytest.raises(InputError, match="never trained on"):
        prompt_source("gsm8k")
    with pytest.raises(InputError, match="no prompts 'minicod'"):
        prompt_source("minicod")


def test_prompts_may_come_as_people_write() -> None:
    tasks = (TASKS["minicode"](), TASKS["minimath"]())
    source, own = TaskPrompts(tasks, split="people"), TaskPrompts(tasks)
    assert source.prompt(3) == tasks[1].problem("people", 3).prompt != own.prompt(3)
    assert source.digest == "people"
    assert not own.digest
    answer = tasks[1].answer(tasks[1].problem("people", 3), Random(0))
    verdict = source.judge(3, answer, None)
    assert verdict is not None
    assert verdict.passed


def test_a_hub_dataset_is_listed_and_read(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text('{"prompt": "p"}\n')
    asked = []

    class Api:
        def list_repo_files(self, name: str, repo_type: str) -> list[str]:
            asked.append((name, repo_type))
            return ["README.md", "data/test.jsonl", "data/train.jsonl"]

    def download(name: str, path: str, repo_type: str) -> str:
        asked.append((name, path))
        return str(file)

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert prompt_source("someone/code").prompt(0) == "p"
    assert asked == [("someone/code", "dataset"), ("someone/code", "data/train.jsonl")]


def test_bad_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="self-generate"):
        read_answers(tmp_path / "none.jsonl")
    path = tmp_path / "bad.jsonl"
    path.write_text('{"number": 1}\n')
    with pytest.raises(InputError, match="line 1 is no self-generated answer"):
        read_answers(path)


def test_what_is_rejected_is_answered_again_at_full_budget(model, tmp_path: Path) -> None:
    hasty = replace(WANTED, options={"temperature": 1.0, "budget": 2})
    first = answer_all(model, tmp_path / "first.jsonl", hasty)
    wrong = [answer.number for answer in first if not answer.solved]
    assert 0 < len(wrong) < len(first)
    spec = replace(hasty, retry=True)
    both = answer_all(model, tmp_path / "both.jsonl", spec)
    assert [a.number for a in both if a.again] == wrong
    assert [a for a in both if not a.again] == [a for a in first if a.solved]
    full = generate(
        model, {n: f"say {n}" for n in wrong}, decoder="mask", gen_length=6, max_batch=3
    )
    assert [a.response_ids for a in both if a.again] == [d.all_ids for d in full]
    assert {a.passes for a in both if a.again} == {6}
    kept = answer_all(model, tmp_path / "kept.jsonl", replace(spec, keep="solved"))
    assert kept == [a for a in both if a.solved]


def test_a_second_try_is_not_made_twice(model, tmp_path: Path) -> None:
    out, spec = tmp_path / "answers.jsonl", replace(WANTED, retry=True)
    file = AnswerFile(out, spec, Share())
    file.begin()
    answer_prompts(model, SOURCE, file, Share())
    lines = file.part.read_text()
    resumed = AnswerFile(out, spec, Share())
    answer_prompts(model, SOURCE, resumed, Share())
    assert resumed.part.read_text() == lines


def test_only_what_is_judged_can_be_answered_again(model, tmp_path: Path) -> None:
    rows = RowPrompts("rows", [Row("rows, row 1", {"prompt": "say"})])
    with pytest.raises(InputError, match="retry is on, but nothing judges answers to 'rows'"):
        self_generate(model, rows, tmp_path / "rows.jsonl", retry=True)


def test_one_call_writes_and_returns_the_answers(model, tmp_path: Path) -> None:
    whole = answer_all(model, tmp_path / "whole.jsonl", WANTED)
    out, seen = tmp_path / "own.jsonl", []
    options = {"temperature": 1.0, "max_batch": 3}
    first = self_generate(model, SOURCE, out, limit=5, watch=seen.append, **options)
    assert first == whole[:5] == sorted(seen, key=lambda answer: answer.number)
    assert self_generate(model, SOURCE, out, limit=12, **options) == whole
    with pytest.raises(InputError, match=r"keep was .all. and is .solved."):
        self_generate(model, SOURCE, out, limit=12, keep="solved", **options)


def test_the_second_phase_is_watched_too(model, tmp_path: Path) -> None:
    class Counter(Watch):
        def __init__(self) -> None:
            self.begun: list[tuple[int, int]] = []
            self.passes = self.answers = 0

        def begin(self, left: int, passes: int) -> None:
            self.begun.append((left, passes))

        def step(self, step) -> None:
            self.passes += len(step.rows)

        def sample(self, sample) -> None:
            self.answers += 1

    counter = Counter()
    options = {"temperature": 1.0, "max_batch": 3, "budget": 2}
    out = tmp_path / "both.jsonl"
    found = self_generate(model, SOURCE, out, limit=12, retry=True, watch=counter, **options)
    again = sum(answer.again for answer in found)
    assert counter.begun == [(12, 2), (again, 6)]
    assert counter.answers == 12 + again
    assert counter.passes == 12 * 2 + again * 6


def test_answers_of_an_older_version_are_read(model, tmp_path: Path) -> None:
    out = tmp_path / "old.jsonl"
    answers = answer_all(model, out, WANTED)
    out.write_text(out.read_text().replace('"passes"', '"steps"'))
    assert read_answers(out) == answers
    about = json.loads(out.with_suffix(".json").read_text())
    about["count"] = about.pop("limit")
    del about["digest"]
    out.with_suffix(".json").write_text(json.dumps(about))
    assert AnswerFile(out, WANTED, Share()).finished == 12


def test_own_tasks_are_prompts_with_a_judge(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{"q": f"{n} + 1?", "a": n + 1, "split": "train" if n else "test"} for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"prompt": "q", "answer": "a"}
    source = prompt_source(str(path), columns=columns, grader="number")
    assert (len(source), source.prompt(0), source.name(0)) == (2, "1 + 1?", "mine")
    verdict = source.judge(0, "It is 2", None)
    assert verdict is not None
    assert verdict.passed
    assert not prompt_source(str(path), columns=columns).judges
    path.write_text('{"prompt": "p", "answer": "a", "grader": "exact", "split": "test"}\n')
    with pytest.raises(InputError, match="unknown split 'train'"):
        prompt_source(str(path))


def test_a_file_of_somebodys_own_is_not_written_over(model, tmp_path: Path) -> None:
    prompts = tmp_path / "mine.jsonl"
    prompts.write_text('{"prompt": "hi"}\n')
    with pytest.raises(InputError, match=r"mine.jsonl' is there already.*no mine.json beside it"):
        self_generate(model, str(prompts), prompts)
    assert prompts.read_text() == '{"prompt": "hi"}\n'
