"""The model's own full-budget answers, for alignment and for choosing GRPO's prompts.

Answer number i depends on its number alone, so processes share the work out and a killed run goes
on. While it runs every answer, kept or not, is a line of FILE.part-RANK; at the end the kept ones
become FILE, in order, and FILE's sidecar says what they are.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from xpredflow.engine.loop import stream
from xpredflow.engine.prompts import Prompt, encode
from xpredflow.engine.request import Options, resolve
from xpredflow.engine.steps import Decoded
from xpredflow.errors import InputError
from xpredflow.evaluation.run import judged
from xpredflow.files import write_atomically
from xpredflow.processes import Share
from xpredflow.settings import option_names
from xpredflow.tasks.base import Runner, Verdict
from xpredflow.training.common.answers import Answer, answers_in, read_answers
from xpredflow.training.prompt_sources import PromptSource
from xpredflow.types import Model


@dataclass(frozen=True)
class AnswerSpec:
    """Which answers: the same value gives the same file."""

    model: str
    data: str
    first: int = 0  # number of the first prompt
    count: int = 10_000
    keep: str = "all"  # or "solved": what the grader accepts
    decoder: str = "mask"
    options: dict[str, Any] = field(default_factory=dict)
    retry: bool = False  # what the grader rejects is answered again, at full budget

    def __post_init__(self) -> None:
        if self.count < 1 or self.first < 0:
            raise InputError(
                f"first is {self.first} and count is {self.count}: give first ≥ 0 and count ≥ 1"
            )
        if self.keep not in ("all", "solved"):
            raise InputError(f"keep is {self.keep!r}: choose all or solved")
        resolve(self.decoder, self.options)  # misspelt options, before anything is decoded

    def again(self) -> "AnswerSpec":
        """The second try: mask prediction at full budget, all else as it was."""
        engine = set(option_names(Options)) - {"budget", "steps"}
        options = {name: value for name, value in self.options.items() if name in engine}
        return replace(self, decoder="mask", options=options)

    def within(self, size: int) -> "AnswerSpec":
        """No more than there are prompts."""
        if self.first >= size:
            raise InputError(f"first is {self.first}, but {self.data!r} has only {size} prompts")
        return replace(self, count=min(self.count, size - self.first))


class AnswerFile:
    """The file to be, the parts it grows in, and the sidecar that says what it holds."""

    def __init__(self, path: Path, spec: AnswerSpec, share: Share) -> None:
        self.path, self.spec = path, spec
        self.sidecar = path.with_suffix(".json")
        if path == self.sidecar:
            raise InputError(f"{str(path)!r} is a file of lines: name it with the suffix .jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.part = path.with_name(f"{path.name}.part-{share.rank}")
        self.finished = self._check()
        self.done = {answer.number: answer for part in self._parts() for answer in answers_in(part)}
        if self.part.is_file():
            # rewritten whole: a kill may have cut the last line short
            own = "".join(answer.line() for answer in answers_in(self.part))
            write_atomically(self.part, own)

    def _check(self) -> int:
        """How many prompts a finished file of the same kind already covers."""
        if not self.sidecar.is_file():
            return 0
        before = json.loads(self.sidecar.read_text())
        now = asdict(self.spec)
        for name in now.keys() - {"count"}:
            # a file from before there was a second try says nothing of it
            if before.get(name, False) != now[name]:
                raise InputError(
                    f"{name} is {now[name]!r}, but {str(self.path)!r} was begun with"
                    f" {before.get(name)!r}: choose another file, or repeat that value to go on"
                )
        return int(before["finished"])

    def begin(self) -> None:
        """Say what the parts are parts of."""
        self._describe(self.finished)

    def add(self, answer: Answer) -> None:
        """Keep an answer; on disk before it counts as done."""
        with self.part.open("a") as file:
            file.write(answer.line())
        self.done[answer.number] = answer

    def finish(self) -> list[Answer]:
        """Gather every process's part into the file; call it once, when all are done."""
        found = read_answers(self.path) if self.finished else []
        for part in self._parts():
            found += [a for a in answers_in(part) if a.solved or self.spec.keep == "all"]
        found = sorted({answer.number: answer for answer in found}.values(), key=lambda a: a.number)
        write_atomically(self.path, "".join(answer.line() for answer in found))
        self._describe(max(self.finished, self.spec.count))
        for part in self._parts():
            part.unlink()
        return found

    def _describe(self, finished: int) -> None:
        about = {**asdict(self.spec), "finished": finished}
        write_atomically(self.sidecar, json.dumps(about, indent=2) + "\n")

    def _parts(self) -> list[Path]:
        return sorted(self.path.parent.glob(f"{self.path.name}.part-*"))


def self_generate(
    model: Model,
    prompts: PromptSource,
    file: AnswerFile,
    share: Share,
    run: Runner | None = None,
    watch: Callable[[Answer], None] = lambda answer: None,
) -> None:
    """Answer every prompt that falls to this process and is not answered yet."""
    spec = file.spec
    if (spec.keep == "solved" or spec.retry) and not prompts.judges:
        asked = "keep is 'solved'" if spec.keep == "solved" else "retry is on"
        raise InputError(
            f"{asked}, but nothing judges answers to {spec.data!r}: keep all without retry, or"
            " choose a task"
        )
    begin, end = spec.first + file.finished, spec.first + spec.count
    mine = range(begin + share.rank, end, share.world)
    for answer in _answers(model, prompts, [n for n in mine if n not in file.done], spec, run):
        file.add(answer)
        watch(answer)
    if not spec.retry:
        return
    wrong = [n for n in mine if not (file.done[n].solved or file.done[n].again)]
    for answer in _answers(model, prompts, wrong, spec.again(), run):
        file.add(replace(answer, again=True))


def _answers(
    model: Model,
    prompts: PromptSource,
    numbers: Iterable[int],
    spec: AnswerSpec,
    run: Runner | None,
) -> Iterator[Answer]:
    asked = {number: prompts.prompt(number) for number in numbers}
    length = {} if prompts.response_length is None else {"gen_length": prompts.response_length}
    options = {**length, **spec.options}
    settings, _ = resolve(spec.decoder, options)
    encoded = {n: _ids(model, prompt, n, settings) for n, prompt in asked.items()}
    steps = stream(model, encoded, decoder=spec.decoder, **options)

    def judge(done: Decoded) -> Verdict | None:
        return prompts.judge(done.row, done.text, run)

    for done, verdict in judged(steps, judge):
        if done.failed:
            raise InputError(f"prompt {done.row} could not be decoded: {done.stop_reason}")
        yield Answer(
            number=done.row,
            source=prompts.name(done.row),
            prompt=asked[done.row],  # type: ignore[arg-type]  # sources give text or messages
            answer=done.text,
            prompt_ids=encoded[done.row],
            response_ids=done.all_ids,
            passes=done.passes,
            solved=None if verdict is None else verdict.passed,
            reason="" if verdict is None else verdict.reason,
        )


def _ids(model: Model, prompt: Prompt, number: int, settings: Options) -> list[int]:
    encoded = encode(model, prompt, chat=settings.chat, system=settings.system)
    if encoded.has_gaps:
        raise InputError(f"prompt {number} has [[mask:n]] gaps: only whole answers are generated")
    return encoded.ids
