"""Every format that is read from outside: a good file, how it is read, and how it gets damaged."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
from builders import write_checkpoint
from byte_tokenizer import byte_tokenizer
from own_answers import own_answers, write_answers
from recorded import toy_trace
from toy import ToyModel

from battery.mutation import damaged, damaged_json, damaged_line, damaged_toml
from battery.outcome import Tally, Wrong
from xpredflow import generate, load
from xpredflow.cli.prompts import gather
from xpredflow.engine.chat import chat_text
from xpredflow.evaluation.samples import Job, Records, Sample
from xpredflow.experiments.inputs import softness_of
from xpredflow.experiments.tables import write_index
from xpredflow.policies.beta import BetaNetwork, load_policy, save_policy
from xpredflow.processes import Share
from xpredflow.settings import configured
from xpredflow.tasks import make_task
from xpredflow.tasks.published.gsm8k import Gsm8k
from xpredflow.tasks.published.humaneval import HumanEval
from xpredflow.tasks.published.mbpp import Mbpp
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.common.answers import read_answers
from xpredflow.training.common.run_file import RunFile, read_run_file
from xpredflow.training.common.runs import Run, read_log, read_state
from xpredflow.training.self_generate import AnswerFile, AnswerSpec
from xpredflow.watch.trace_file import read_traces, write_traces
from xpredflow.watch.viewer import write_page

Damage = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Format:
    """`make` writes good files below a directory; `file` of them is damaged, then all are read."""

    name: str
    file: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    damages: tuple[Damage, ...] = (damaged, damaged_json)


def _checkpoint(place: Path) -> None:
    write_checkpoint(place, "llada", tokenizer=True)
    (place / "generation_config.json").write_text('{"gen_length": 8, "policy": "power:8"}')


def _load(place: Path) -> None:
    """Loaded, it must decode: what is accepted has to work."""
    generate(load(place), [5, 6], gen_length=2, budget=1, decoder="mask")


ROWS = [
    {"prompt": "2+3=", "answer": 5, "grader": "number"},
    {"prompt": "Say A.", "answer": "A", "choices": ["x", "y"], "grader": "choice"},
    {"messages": [{"role": "user", "content": "hi"}], "answer": "h.*", "grader": "regex"},
    {"prompt": "f", "tests": [[[1], 2]], "entry_point": "f", "grader": "python", "id": "p"},
]


def _rows(place: Path, rows: list[dict] = ROWS, name: str = "mine.jsonl") -> None:
    (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def _task(place: Path) -> None:
    task = make_task(str(place / "mine.jsonl"))
    for number in range(task.size("all")):
        problem = task.problem("all", number)
        if problem.meta["grader"] != "python":
            task.score(problem, "#### 5 (A) h")


HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "def f(x):\n",
    "entry_point": "f",
    "canonical_solution": "    return x\n",
    "test": "def check(candidate):\n    assert candidate(1) == 1\n",
}


MBPP = {
    "text": "Add one.",
    "code": "def f(x):\n    return x + 1",
    "test_list": ["assert f(1) == 2"],
    "test_setup_code": "",
}


def _samples(place: Path) -> None:
    job = Job("toy", identity={"weights": "abc"}, options={"budget": 2})
    records = Records(place / "toy.jsonl", job)
    for number in range(3):
        records.add(Sample(number, f"p{number}", "2+2", "4", True, "right", 3, 2, 0))


def _read_samples(place: Path) -> None:
    job = Job("toy", identity={"weights": "abc"}, options={"budget": 2})
    for sample in Records(place / "toy.jsonl", job).done.values():
        if not isinstance(sample.answer, str) or type(sample.passed) is not bool:
            raise Wrong(f"accepted {sample}")


def _run(place: Path, resume: bool = False) -> Run:
    return Run(place, RunFile("align", AlignConfig(), {"model": "m"}, checks={"w": "1"}), resume)


STATE = {"step": 1, "weights": torch.arange(50.0)}


def _make_run(place: Path) -> None:
    run = _run(place)
    run.save_state(STATE)
    run.log(step=1, loss=0.5)


def _read_state(place: Path) -> None:
    found = read_state(place / "state.pt")
    if not torch.equal(found["weights"], STATE["weights"]):
        raise Wrong("a damaged state was accepted")


def _sidecar(place: Path) -> AnswerFile:
    file = AnswerFile(place / "a.jsonl", AnswerSpec("m", "d", identity={"w": "1"}), Share())
    file.begin()
    return file


TABLE = {"title": "T", "command": "c", "claims": [{"holds": True}]}
SOFT = {"k": 1, "omega_s": 0.5, "omega_a": 6.0, "omega_b": -0.7, "training": {}}


def _text(name: str, value: object) -> Callable[[Path], object]:
    return lambda place: (place / name).write_text(json.dumps(value))


def _policy(place: Path) -> None:
    decoder = {"decoder": "flow", "policy": load_policy(place / "p")}
    generate(ToyModel(), [5, 6], gen_length=2, budget=1, **decoder)


def _save_policy(place: Path) -> None:
    save_policy(BetaNetwork(), place / "p", {"config": {"budget": 4}, "updates": 3})


def _template(place: Path) -> None:
    (place / "chat_template.jinja").write_text(CHAT)


CHAT = """{% for m in messages %}
{{ '<|' + m.role + '|>' + (m.content | trim) }}{% if loop.last %}{{ eos_token }}{% endif %}
{% endfor %}
{%- if add_generation_prompt %}{{ raise_exception('no') if messages | length > 9 }}go{% endif %}
"""


class Talking(ToyModel):
    """A toy whose tokenizer takes its template from a file; its process is shared by all cases."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self.tokenizer = byte_tokenizer()
        self.tokenizer.name_or_path = str(place)


TALKING: dict[str, Talking] = {}


def _chat(place: Path) -> None:
    model = TALKING.setdefault(str(place), Talking(place))
    template = (place / "chat_template.jinja").read_bytes().decode(errors="replace")
    model.tokenizer.chat_template = template or " "
    chat_text(model, [{"role": "user", "content": "hi"}])


def _traces(place: Path) -> None:
    """Whatever is read can be shown."""
    write_page(place / "page.html", read_traces(place / "t.jsonl"), "")


def _config_file(place: Path) -> None:
    """As --config takes it: tables, then every setting by its name and type."""
    configured(AlignConfig, read_run_file(place / "run.toml", "align")["settings"], "run.toml")


LINES, BYTES, TOML = (damaged, damaged_line), (damaged,), (damaged, damaged_toml)
FORMATS = (
    Format("config.json", "config.json", _checkpoint, _load),
    Format("index", "model.safetensors.index.json", _checkpoint, _load),
    Format("weights", "model-00002-of-00003.safetensors", _checkpoint, _load, BYTES),
    Format("generation_config", "generation_config.json", _checkpoint, _load),
    Format("tokenizer", "tokenizer.json", _checkpoint, _load),
    Format("tokenizer_config", "tokenizer_config.json", _checkpoint, _load),
    Format("policy weights", "p.safetensors", _save_policy, _policy, BYTES),
    Format("policy", "p.json", _save_policy, _policy),
    Format(
        "answers",
        "a.jsonl",
        lambda place: write_answers(place / "a.jsonl", own_answers(4)),
        lambda place: [asdict(answer) for answer in read_answers(place / "a.jsonl")],
        LINES,
    ),
    Format("samples", "toy.jsonl", _samples, _read_samples, LINES),
    Format("state", "state.pt", _make_run, _read_state, BYTES),
    Format("log", "log.jsonl", _make_run, lambda place: read_log(place / "log.jsonl"), LINES),
    Format("run directory", "run.toml", _make_run, lambda p: _run(p, resume=True), TOML),
    Format("run file", "run.toml", _make_run, _config_file, TOML),
    Format(
        "trace", "t.jsonl", lambda p: write_traces(p / "t.jsonl", [toy_trace()]), _traces, LINES
    ),
    Format("chat template", "chat_template.jinja", _template, _chat, BYTES),
    Format("sidecar", "a.json", _sidecar, _sidecar),
    Format("own task", "mine.jsonl", _rows, _task, LINES),
    Format(
        "prompts",
        "prompts.jsonl",
        lambda place: _rows(place, [{"prompt": "a"}, ROWS[2] | {"x": 1}], "prompts.jsonl"),
        lambda place: gather([], place / "prompts.jsonl", False),
        LINES,
    ),
    Format(
        "gsm8k",
        "g.jsonl",
        lambda place: _rows(place, [{"question": "q", "answer": "w\n#### 5"}] * 2, "g.jsonl"),
        lambda place: Gsm8k(place / "g.jsonl", "zero-shot").prompts("test"),
        LINES,
    ),
    Format(
        "humaneval",
        "h.jsonl",
        lambda place: _rows(place, [HUMANEVAL], "h.jsonl"),
        lambda place: HumanEval(place / "h.jsonl").prompts("test"),
        LINES,
    ),
    Format(
        "mbpp",
        "m.jsonl",
        lambda place: _rows(place, [MBPP | {"task_id": n} for n in (2, 3, 4, 11)], "m.jsonl"),
        lambda place: Mbpp(place / "m.jsonl").prompts("test"),
        LINES,
    ),
    Format("table", "main.json", _text("main.json", TABLE), write_index),
    Format(
        "softmask.json",
        "softmask.json",
        _text("softmask.json", SOFT),
        lambda p: softness_of(str(p)),
    ),
)


def try_formats(count: int, seed: int = 0) -> Tally:
    """So many damaged files of every format."""
    tally = Tally("formats")
    for kind in FORMATS:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            kind.make(place)
            good = {file.name: file.read_bytes() for file in place.iterdir()}
            for number in range(count):
                rng = Random(f"{seed}/{kind.name}/{number}")
                spoil = kind.damages[number % len(kind.damages)]
                for name, data in good.items():
                    (place / name).write_bytes(data)
                (place / kind.file).write_bytes(spoil(good[kind.file], rng))
                tally.run(f"{kind.name} #{number}", lambda kind=kind, place=place: kind.read(place))
    return tally
