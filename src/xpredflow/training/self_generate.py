"""The model's own full-budget answers, for alignment and for choosing GRPO's prompts.

Answer number i depends on its number alone, so processes share the work out and a killed run goes
on. While it runs every answer, kept or not, is a line of FILE.part-RANK; at the end the kept ones
become FILE, in order, and FILE's sidecar says what they are.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from glob import escape
from pathlib import Path
from typing import Any, Unpack

from xpredflow.engine.budget import resolve_budget
from xpredflow.engine.loop import decode_steps
from xpredflow.engine.prompts import Prompt, encode
from xpredflow.engine.request import DecodeOptions, Options, resolve
from xpredflow.engine.steps import Decoded
from xpredflow.errors import InputError
from xpredflow.evaluation.identity import differences, identity
from xpredflow.evaluation.run import Watch, Watcher, judged, seen, watching
from xpredflow.files import read_object, write_atomically
from xpredflow.jsonl import JsonLines, write_lines
from xpredflow.processes import Share
from xpredflow.sandbox import Sandbox
from xpredflow.settings import option_names
from xpredflow.tasks.base import Runner, Task, Verdict
from xpredflow.training.common.answers import Answer, answers_in, read_answers
from xpredflow.training.prompt_sources import PromptSource, prompt_source
from xpredflow.types import Model


@dataclass(frozen=True)
class AnswerSpec:
    """Which answers: the same value gives the same file.

    `digest` tells problems of a file of one's own apart from what it held before, `identity` the
    weights, dtype, rules, policy and version from others of the same name.
    """

    model: str
    data: str
    first: int = 0  # number of the first prompt
    limit: int = 10_000  # prompts
    keep: str = "all"  # or "solved": what the grader accepts
    decoder: str = "mask"
    options: dict[str, Any] = field(default_factory=dict)
    retry: bool = False  # what the grader rejects is answered again, at full budget
    digest: str = ""
    identity: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.limit < 1 or self.first < 0:
            raise InputError(
                f"first is {self.first} and limit is {self.limit}: give first ≥ 0 and limit ≥ 1"
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
        return replace(self, limit=min(self.limit, size - self.first))


def check_path(path: Path) -> None:
    """The sidecar has the suffix .json, so that the file itself cannot."""
    if path == path.with_suffix(".json"):
        raise InputError(f"{str(path)!r} is a file of lines: name it with the suffix .jsonl")


class AnswerFile:
    """The file to be, the parts it grows in, and the sidecar that says what it holds."""

    def __init__(self, path: Path, spec: AnswerSpec, share: Share) -> None:
        self.path, self.spec = path, spec
        self.sidecar = path.with_suffix(".json")
        check_path(path)
        self.part = path.with_name(f"{path.name}.part-{share.rank}")
        self.finished = self._check()
        self.done = {answer.number: answer for part in self._parts() for answer in answers_in(part)}
        self._store = JsonLines(self.part)

    def _check(self) -> int:
        """How many prompts a finished file of the same kind already covers."""
        if not self.sidecar.is_file():
            # somebody's own file, perhaps that of the prompts: it would be written over in the end
            if self.path.exists() and (not self.path.is_file() or self.path.stat().st_size):
                raise InputError(
                    f"{str(self.path)!r} is there already, and was not written by self-generate"
                    f" (there is no {self.sidecar.name} beside it): choose another file"
                )
            return 0
        before = read_object(self.sidecar, "choose another file")
        now = json.loads(json.dumps(asdict(self.spec)))
        # what an older file says nothing of is as it is by default
        then = {**asdict(AnswerSpec("", "")), **before, "limit": now["limit"]}
        finished = then.pop("finished", None)
        if changed := differences({name: then.get(name) for name in now}, now):
            raise InputError(
                f"{str(self.path)!r} was begun otherwise ({changed}): choose another file, or"
                " repeat what it was begun with to go on"
            )
        if type(finished) is not int or finished < 0:
            raise InputError(
                f"{str(self.sidecar)!r}: finished is {finished!r}; expected a number of prompts:"
                " choose another file"
            )
        return finished

    def begin(self) -> None:
        """Say what the parts are parts of."""
        self._describe(self.finished)

    def add(self, answer: Answer) -> None:
        """Keep an answer; on disk before it counts as done."""
        self._store.append(asdict(answer))
        self.done[answer.number] = answer

    def finish(self) -> list[Answer]:
        """Gather every process's part into the file; call it once, when all are done."""
        found = read_answers(self.path) if self.finished and self.path.is_file() else []
        for part in self._parts():
            found += [a for a in answers_in(part) if a.solved or self.spec.keep == "all"]
        found = sorted({answer.number: answer for answer in found}.values(), key=lambda a: a.number)
        write_lines(self.path, map(asdict, found))
        self._describe(max(self.finished, self.spec.limit))
        for part in self._parts():
            part.unlink()
        return found

    def _describe(self, finished: int) -> None:
        about = {**asdict(self.spec), "finished": finished}
        write_atomically(self.sidecar, json.dumps(about, indent=2) + "\n")

    def _parts(self) -> list[Path]:
        return sorted(self.path.parent.glob(f"{escape(self.path.name)}.part-*"))


def self_generate(
    model: Model,
    data: str | Task | PromptSource,
    out: str | Path,
    *,
    limit: int = 10_000,
    first: int = 0,
    keep: str = "all",
    retry: bool = False,
    decoder: str = "mask",
    columns: Mapping[str, str] | None = None,
    grader: str | None = None,
    response_length: int | None = None,
    run: Runner | None = None,
    unsafe: bool = False,
    share: Share | None = None,
    watch: Watcher = None,
    model_name: str | None = None,
    **options: Unpack[DecodeOptions],
) -> list[Answer]:
    """The model's own answers to many prompts, written to `out` and returned.

        answers = self_generate(load("tiny"), "minimath", "own.jsonl", limit=1000, keep="solved")

    `data` is a task or several with commas (their training split), `mine.jsonl`, `mine.py:MyTask`,
    a file of prompts, or a dataset on the hub; `columns`, `grader` and `response_length` are those
    of a file (`make_task`). `keep="solved"` leaves out what the grader rejects, `retry` answers
    that again at full budget. A killed run goes on with the same call, a larger `limit` adds to a
    finished file. `watch` is called with every answer, or is an `evaluation.Watch`. Of several
    processes, the first one writes the file and returns the answers, the others return none.
    `model_name` says which model's answers they are where its own name does not.
    """
    share = share or Share()
    prompts, name = _source(data, columns, grader, response_length)
    spec = AnswerSpec(
        model=model_name or model.name,
        data=name,
        first=first,
        limit=limit,
        keep=keep,
        decoder=decoder,
        options=dict(options),
        retry=retry,
        digest=prompts.digest,
    ).within(len(prompts))
    _, built = resolve(spec.decoder, spec.options, model)
    spec = replace(spec, identity=identity(model, built, prompts.digest))
    file = AnswerFile(Path(out).expanduser(), spec, share)
    check_judge(spec, prompts)
    if share.rank == 0:
        file.begin()
    opens = prompts.runs_programs and run is None
    with Sandbox(unsafe=unsafe) if opens else nullcontext() as box:
        answer_prompts(model, prompts, file, share, run if box is None else box.runner, watch)
    if share.world > 1:
        import torch.distributed as dist

        dist.barrier()
    return file.finish() if share.rank == 0 else []


def _source(
    data: str | Task | PromptSource,
    columns: Mapping[str, str] | None,
    grader: str | None,
    response_length: int | None,
) -> tuple[PromptSource, str]:
    if isinstance(data, PromptSource):
        return data, data.name(0)
    found = prompt_source(data, columns=columns, grader=grader, response_length=response_length)
    return found, data if isinstance(data, str) else data.name


def check_judge(spec: AnswerSpec, prompts: PromptSource) -> None:
    """Refuse to keep what is solved, or to answer again what is not, where nothing judges."""
    if (spec.keep == "solved" or spec.retry) and not prompts.judges:
        asked = "keep is 'solved'" if spec.keep == "solved" else "retry is on"
        raise InputError(
            f"{asked}, but nothing judges answers to {spec.data!r}: keep all without retry, choose"
            " a task, or name a grader for a file with answers (--grader number)"
        )


def answer_prompts(
    model: Model,
    prompts: PromptSource,
    file: AnswerFile,
    share: Share,
    run: Runner | None = None,
    watch: Watcher = None,
) -> None:
    """Answer every prompt that falls to this process and is not answered yet."""
    spec, watched = file.spec, watching(watch)
    begin, end = spec.first + file.finished, spec.first + spec.limit
    mine = range(begin + share.rank, end, share.world)
    todo = [n for n in mine if n not in file.done]
    for answer in _answers(model, prompts, todo, spec, run, watched):
        file.add(answer)
        watched.sample(answer)
    if not spec.retry:
        return
    wrong = [n for n in mine if not (file.done[n].solved or file.done[n].again)]
    for answer in _answers(model, prompts, wrong, spec.again(), run, watched):
        again = replace(answer, again=True)
        file.add(again)
        watched.sample(again)


def _answers(
    model: Model,
    prompts: PromptSource,
    numbers: Iterable[int],
    spec: AnswerSpec,
    run: Runner | None,
    watch: Watch,
) -> Iterator[Answer]:
    asked = {number: prompts.prompt(number) for number in numbers}
    length = {} if prompts.response_length is None else {"gen_length": prompts.response_length}
    options = {**length, **spec.options}
    settings, _ = resolve(spec.decoder, options)
    encoded = {n: _ids(model, prompt, n, settings) for n, prompt in asked.items()}
    watch.begin(len(asked), resolve_budget(settings.budget, settings.gen_length))
    steps = decode_steps(model, encoded, decoder=spec.decoder, **options)

    def judge(done: Decoded) -> Verdict | None:
        return prompts.judge(done.row, done.text, run)

    for done, verdict in judged(seen(steps, watch), judge):
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
