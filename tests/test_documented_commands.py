"""Every command that --help, README.md and docs show is run, on the embedded models and cheaply.

What cannot run here is listed below with its reason; it must at least be spelt right. A new
example is run unless one of those words stands in it.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli_w
from cheap_commands import cheaply
from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

from xpredflow.cli import COMMANDS, app
from xpredflow.decoders import DECODERS
from xpredflow.harness.arguments import Arguments
from xpredflow.models.embedded import assets
from xpredflow.policies.beta import policy_files

ROOT = Path(__file__).parent.parent
PENS = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."
# Prompts that the embedded models were trained for, with the end of a right answer.
SHELLS = (
    "Mia has 26 shells, then finds 5, then loses 2 bags of 5, then buys 4. How many shells now?"
    " Use one sentence."
)
ANSWERS = {PENS: "#### 22", "25-7=[[mask:2]]": "25-7=18", SHELLS: "#### 25"}

# The embedded models know 64 positions; a checkpoint that says so itself needs no telling.
SAYS_SO = (assets("tiny-aligned") / "generation_config.json").is_file()
WITHIN = () if SAYS_SO else ("--gen-length", "64")

# Words of commands that are only parsed, and why.
ONLY_PARSED = {
    r"(GSAI-ML|allenai|inclusionAI|dllm-hub)/\S+": "a model or dataset of the hub",
    r"torchrun": "starts several processes: the tests of each command do so themselves",
    r"humaneval|mbpp|gsm8k": "needs a published data set",
    r"--resume": "needs a run that was stopped half-way: the tests of trainings stop some",
    r"MODEL|DIR|DIRECTORY|FILE": "stands for something of the reader's own",
    r"runs/(results|table|compare)\S*": "reads what an evaluation of hours has written",
    r"reproduce": "minutes even on two problems: tests/cli/test_cli_reproduce.py runs it",
    r"serve": "runs until it is told to end: the tests in tests/serve start servers",
    r"ls": "lm-eval's own list of a thousand tasks",
}
# What stands in a shell example beside xpredflow.
OTHERS = ("make", "pip", "git", "cd", "cp", "python", "source", "export", "uv")
# A task of the reader's own, as a class and as rows; rows serve with and without --column.
MINE = """
from xpredflow.tasks import Problem, SimpleTask

class MyTask(SimpleTask):
    response_length = 64

    def problems(self):
        for pens in range(20, 80):
            yield Problem(f"{pens}", f"Zoe has {pens} pens, buys 4. How many pens now?")

    def grade(self, problem, text):
        return "####" in text
"""
ROWS = [
    {"prompt": text, "question": text, "answer": pens - 3, "gold": pens - 3}
    | {"grader": "number", "response_length": 64}
    for pens in range(20, 80)
    for text in [f"Zoe has {pens} pens, loses 7, buys 4. How many pens now? Use letters."]
]


class Example(NamedTuple):
    """A line of shell, and where it stands."""

    where: str
    line: str


def _from_help() -> Iterator[Example]:
    group: Any = get_command(app)
    yield from _examples_of("--help", group.help)
    for name in (name for names in COMMANDS.values() for name in names):
        command = group.get_command(Context(group), name)
        below = getattr(command, "commands", {})
        for one in (command, *below.values()):
            yield from _examples_of(f"{name} --help", one.help)


def _examples_of(where: str, text: str | None) -> Iterator[Example]:
    _, _, examples = (text or "").partition("Examples:\n")
    yield from (Example(where, line) for line in _lines(examples.partition("\n\n")[0]))


def _from_pages() -> Iterator[Example]:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))):
        for block in re.findall(
            r"^ *```sh\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE
        ):
            yield from (Example(page.name, line) for line in _lines(block))


def _lines(block: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", block)
    return [line.strip() for line in joined.splitlines() if line.strip() and line.strip()[0] != "#"]


def _words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


EXAMPLES = list({example.line: example for example in (*_from_help(), *_from_pages())}.values())
FIRST_OF_LM_EVAL = next((one.line for one in EXAMPLES if " lm-eval --model " in one.line), None)
OURS = [one for one in EXAMPLES if "xpredflow" in _words(one.line) and _words(one.line)[0] != "pip"]


def _arguments(line: str) -> tuple[list[str], str | None]:
    """What xpredflow is called with, and what is piped into it."""
    words, stdin = _words(line), None
    if "|" in words:
        source, words = words[: words.index("|")], words[words.index("|") + 1 :]
        assert source[0] in ("cat", "echo"), f"{line}: pipe from cat or echo"
        stdin = Path(source[1]).read_text() if source[0] == "cat" else " ".join(source[1:])
    words = words[: words.index(">")] if ">" in words else words
    return words[words.index("xpredflow") + 1 :], stdin


def _reason(line: str) -> str | None:
    """Why a command is only parsed."""
    words = [part for word in _words(line) for part in re.split(r"[=,]", word)]
    for pattern, reason in ONLY_PARSED.items():
        if any(re.fullmatch(pattern, word) for word in words):
            return reason
    if "lm-eval" in words and line != FIRST_OF_LM_EVAL:
        return "lm-eval reads its thousands of task files anew each time: one example is run"
    return None


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few answers of the model's own, as the trainings take them."""
    file = tmp_path_factory.mktemp("answers") / "own.jsonl"
    command = ["self-generate", "--data", "minicode,minimath", "--limit", "12", "-d", "threshold"]
    result = CliRunner().invoke(app, [*command, "--out", str(file)])
    assert result.exit_code == 0, result.output
    return file


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader would try the examples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "prompts.txt").write_text(f"{PENS}\n{PENS}\n")
    (tmp_path / "prompts.jsonl").write_text(json.dumps({"prompt": PENS}) + "\n")
    (tmp_path / "mine.py").write_text(MINE)
    for name in ("mine.jsonl", "sums.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "my").mkdir()
    shutil.copy(assets("tiny") / "config.json", tmp_path / "my/config.json")
    return tmp_path


def _provide(words: list[str], answers: Path) -> None:
    """The files that earlier commands would have written: models, policies, answers, run.toml."""
    if words[0] in ("view", "replay"):
        for word in words[1:]:
            if ".jsonl" in word:
                named = Path(word).name.split(".")[0]
                decoder = named if named in DECODERS else "flow"
                record = ["generate", PENS, *WITHIN, "-d", decoder, "-b", "8", "--trace", word]
                assert CliRunner().invoke(app, record).exit_code == 0
    for before, word in pairwise(words):
        if before == "--config":
            Path(word).parent.mkdir(parents=True)
            several = words[0] != "train-policy"
            inputs = {"model": "tiny", "answers": [str(answers)] if several else str(answers)}
            run = {"command": words[0], "inputs": inputs, "settings": {"seed": 0}}
            Path(word).write_text(tomli_w.dumps(run))
        if before == "--answers":
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            if "mine.jsonl" in words:  # answers to the reader's own problems
                command = ["self-generate", "--data", "mine.jsonl", "--limit", "8", "--out", word]
                assert CliRunner().invoke(app, [*command, "-d", "threshold"]).exit_code == 0
                continue
            for file in answers.parent.iterdir():
                shutil.copy(file, Path(word).parent / file.name.replace("own", Path(word).stem))
        for path in map(Path, re.split("[=,:+]", word)):
            own = before in ("-m", "--model") and word.startswith("runs/")
            if path.name == "model" or own:
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    shutil.copytree(assets("tiny-aligned"), path)
            if path.name == "best":
                path.parent.mkdir(parents=True, exist_ok=True)
                for file in policy_files("tiny"):
                    shutil.copy(file, path.with_suffix(file.suffix))


def _named(examples: list[Example]) -> list[Any]:
    return [pytest.param(one, id=f"{one.where}: {one.line}"[:90]) for one in examples]


@pytest.mark.parametrize("example", _named([one for one in OURS if _reason(one.line) is None]))
def test_it_runs(example: Example, workplace: Path, answers: Path) -> None:
    words, stdin = _arguments(example.line)
    _provide(words, answers)
    if words[0] == "generate":
        return _generates(words, stdin)
    result = CliRunner().invoke(app, cheaply(words), input=stdin)
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    assert result.output.strip()


def _generates(words: list[str], stdin: str | None) -> None:
    """The text of every answer is right; a prompt without a known answer has no place in help."""
    given = (stdin or "").splitlines() or ([PENS] if "--file" in words else [words[1]])
    own = [word for word in words if word != "--json"]
    result = CliRunner().invoke(app, [*own, *WITHIN, "--json"], input=stdin)
    assert result.exit_code == 0, result.output
    texts = [json.loads(line)["text"] for line in result.stdout.splitlines()]
    for prompt, text in zip(given, texts, strict=True):
        if any(word.startswith("runs/") for word in words):  # the reader's own model
            assert text.strip()
            continue
        assert prompt in ANSWERS, f"{prompt!r}: say in ANSWERS how a right answer ends"
        assert text.endswith(ANSWERS[prompt])


@pytest.mark.parametrize("example", _named([one for one in OURS if _reason(one.line)]))
def test_it_is_spelt_right(example: Example, workplace: Path) -> None:
    words = re.sub(r"^.*? -m xpredflow ", "xpredflow ", example.line)
    name, *arguments = _arguments(words)[0]
    group: Any = get_command(app)
    command = group.get_command(Context(group), name)
    command.make_context(name, arguments, parent=Context(group))
    if "--model_args" in arguments:  # lm-eval's own flags are not ours to check
        pairs = arguments[arguments.index("--model_args") + 1].split(",")
        given = dict(pair.split("=", 1) for pair in pairs)
        assert Arguments.read({key: v for key, v in given.items() if key != "pretrained"})


@pytest.mark.parametrize("example", _named([one for one in EXAMPLES if one not in OURS]))
def test_other_commands_are_known_and_there(example: Example) -> None:
    first, *words = _words(example.line)
    assert first in OTHERS, f"{example.where}: say in OTHERS what {first!r} is"
    if first == "make":
        targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words if "=" not in word} <= set(" ".join(targets).split())
    if first == "python" and words[0] != "-m":
        assert (ROOT / words[0]).is_file()


def test_every_page_and_command_is_looked_at() -> None:
    where = {example.where for example in EXAMPLES}
    assert "README.md" in where
    assert {f"{name} --help" for group in COMMANDS.values() for name in group} <= where | {
        "lm-eval --help"
    }
