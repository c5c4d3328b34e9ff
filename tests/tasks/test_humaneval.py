"""HumanEval: LLaDA's prompts and extraction; published solutions pass, cheats do not."""

import gzip
import json
from pathlib import Path

import pytest

from xpredflow.errors import InputError
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import HumanEval, prompt_of
from xpredflow.tasks.published.code_extraction import first_fenced_block, indented_continuation

DATA = Path(__file__).parents[3] / "shared/data/HumanEval.jsonl.gz"
ROW = {
    "task_id": "HumanEval/0",
    "prompt": 'def helper(x):\n    return x\n\n\ndef add(a, b):\n    """Add."""\n',
    "entry_point": "add",
    "canonical_solution": "    return a + b\n",
    "test": "def check(candidate):\n    assert helper(candidate(1, 2)) == 3\n",
}
ALWAYS_EQUAL = """
class Same:
    def __eq__(self, other): return True
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __eq__
    def __getattr__(self, name): return lambda *a: self
    def __sub__(self, other): return self
    __abs__ = __iter__ = __len__ = __getitem__ = lambda *a: Same()
def {}(*args, **kwargs):
    return Same()
"""


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    return HumanEval(path)


@pytest.fixture(scope="module")
def box():
    with Sandbox(workers=2) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def published():
    if not DATA.is_file():
        pytest.skip(f"no {DATA}")
    return HumanEval(DATA)


def test_prompts(task):
    (chat,) = task.prompts("test")
    content = "Complete the following python code:\n" + ROW["prompt"]
    assert prompt_of(chat) == [{"role": "user", "content": content}]
    (text,) = task.prompts("test", template="llada-base")
    assert prompt_of(text) == ROW["prompt"]
    assert task.response_length == 512
    json.dumps(chat.meta)


def test_extraction():
    fenced = "Sure:\n```python\n  def f(): pass\n```\nand\n```\nmore\n```"
    assert first_fenced_block(fenced) == "def f(): pass\n"
    assert first_fenced_block("\n  def f(): pass") == "def f(): pass"
    assert indented_continuation("   return 1\n\nx = 2") == "    return 1\n"
    assert (
        indented_continuation("    a = 1\n    return a\n\n\nprint()") == "    a = 1\n    return a"
    )
    assert indented_continuation("    return 1\n```\ntext") == "    return 1"


@pytest.mark.parametrize("template", HumanEval.templates)
def test_the_prompts_helper_is_not_the_programs(task, box, template):
    (problem,) = task.prompts("test", template)
    assert task.score(problem, task.published_answer(problem), box.runner).passed
    cheat = "```python\ndef helper(x):\n    return 3\ndef add(a, b):\n    return 0\n```"
    assert not task.score(problem, cheat, box.runner).passed


def test_mistakes_are_named(task, tmp_path):
    with pytest.raises(InputError, match="did you mean 'llada-base'"):
        task.prompts("test", template="lada-base")
    with pytest.raises(InputError, match="unknown split 'train'"):
        task.prompts("train")
    with pytest.raises(InputError, match="pass run="):
        task.score(task.problem("test", 0), "")
    with pytest.raises(InputError, match="no problem 1 in humaneval test"):
        task.problem("test", 1)
    other = tmp_path / "other.jsonl"
    other.write_text('{"question": 1}\n')
    with pytest.raises(InputError, match="line 1: no field 'task_id'"):
        HumanEval(other).prompts()
    with pytest.raises(InputError, match=r"no file '/nowhere.jsonl'"):
        HumanEval("/nowhere.jsonl").prompts()


def test_from_the_hub(monkeypatch, tmp_path):
    asked = []

    def download(repo_id, filename, repo_type):
        asked.append((repo_id, filename, repo_type))
        path = tmp_path / "test.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(ROW).encode()))
        return str(path)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert len(HumanEval().prompts()) == 1
    file = "openai_humaneval/test-00000-of-00001.parquet"
    assert asked == [("openai/openai_humaneval", file, "dataset")]

    def broken(*args, **kwargs):
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", broken)
    with pytest.raises(InputError, match="ConnectionError: no route"):
        HumanEval("someone/else").prompts()


def test_parquet_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist([ROW]), tmp_path / "rows.parquet")
    assert HumanEval(tmp_path / "rows.parquet").rows("test") == [ROW]


@pytest.mark.parametrize("template", HumanEval.templates)
def test_published_solutions_pass(published, box, template):
    jobs = []
    for problem in published.prompts("test", template):
        answer = published.published_answer(problem)
        jobs.append((problem, published.score(problem, answer, box.runner)))
    assert len(jobs) == 164
    assert [(p.id, v.reason) for p, v in jobs if not v.passed] == []


def test_objects_that_equal_everything_pass_none(published, box):
    for problem in published.prompts():
        program = f"```python\n{ALWAYS_EQUAL.format(problem.meta['entry_point'])}\n```"
        assert not published.score(problem, program, box.runner).passed, problem.id
