"""Runs jobs for tables: one model in memory at a time, samples kept on disk, nothing twice."""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from xpredflow.decoders import option_owner
from xpredflow.engine import loop as engine
from xpredflow.errors import InputError, unknown_name
from xpredflow.evaluation import Job, Sample, Summary, evaluate_job, summarise
from xpredflow.evaluation.samples import Records
from xpredflow.models import embedded
from xpredflow.policies.beta import policy_files
from xpredflow.settings import option_names
from xpredflow.tasks.base import Runner, Task
from xpredflow.types import Model


@dataclass(frozen=True)
class Plan:
    """On which problems, how many of them, with which options, and where samples are kept.

    An option goes to every decoder that declares it, whatever else a trial says.
    """

    tasks: tuple[Task, ...]
    out: Path
    split: str = "test"
    limit: int = 500
    options: dict[str, Any] = field(default_factory=dict)
    template: str | None = None

    def check(self, trials: "list[Trial]", varied: tuple[str, ...] = ("budget",)) -> None:
        """Refuse options that are varied or that no decoder has, and values it cannot take."""
        if not self.tasks:
            raise InputError("no tasks were given: choose minicode, minimath or both")
        for name in varied:
            if name in self.options:
                raise InputError(f"-o {name}: {name} is what is varied here; leave it out")
        for task in self.tasks:
            task.size(self.split)
        known = {name for trial in trials for name in _options_of(trial.decoder)} - {*varied}
        for name in self.options:
            if name not in known:
                raise unknown_name("option", name, known)
        for trial in trials:
            engine.resolve(trial.decoder, self.options_for(trial.decoder) | trial.options)

    def options_for(self, decoder: str) -> dict[str, Any]:
        """The plan's options that a decoder declares."""
        own = _options_of(decoder)
        return {name: value for name, value in self.options.items() if name in own}

    def problems(self, task: Task) -> int:
        """How many problems of a task are used."""
        return min(self.limit, task.size(self.split))

    def positions(self, task: Task) -> int:
        """Positions of a response: one pass each is the full budget."""
        settings = {"gen_length": task.response_length, **self.options_for("mask")}
        return engine.resolve("mask", settings)[0].gen_length


def _options_of(decoder: str) -> list[str]:
    owner = option_owner(decoder)
    return option_names(engine.Options) + (option_names(owner) if owner else [])


@dataclass(frozen=True)
class Trial:
    """One way of decoding."""

    decoder: str
    options: dict[str, Any] = field(default_factory=dict)
    samples: int = 1


Watch = Callable[[Sample], None]
# Given a title and how many samples are to come: who watches them.
Progress = Callable[[str, int], AbstractContextManager[Watch]]


def unwatched(title: str, total: int) -> AbstractContextManager[Watch]:
    """No progress is shown."""
    return nullcontext(lambda sample: None)


class Bench:
    """What a plan's trials run on; `load` turns a source into a model."""

    def __init__(
        self,
        plan: Plan,
        load: Callable[[str], Model],
        judge: Runner | None = None,
        progress: Progress = unwatched,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.plan, self.judge, self.progress, self.say = plan, judge, progress, say
        self._load, self._loaded = load, ("", None)

    def model(self, source: str) -> Model:
        """The model of a source; the one before it is let go."""
        if self._loaded[0] != source or self._loaded[1] is None:
            self._loaded = ("", None)
            self._loaded = (source, self._load(source))
        return self._loaded[1]

    def summary(self, source: str, task: Task, trial: Trial) -> Summary:
        """The trial's row for a model and a task; samples that are there already are reused."""
        job = Job(
            task=task.name,
            split=self.plan.split,
            decoder=trial.decoder,
            options=self.plan.options_for(trial.decoder) | trial.options,
            limit=self.plan.problems(task),
            samples=trial.samples,
            model=source,
            template=self.plan.template,
        )
        title = _title(source, task, trial)
        found = summarise(self._samples(task, job, title), job)
        self.say(f"{title}: {found.accuracy:.1%} in {found.passes_mean:.1f} passes")
        return found

    def _samples(self, task: Task, job: Job, title: str) -> list[Sample]:
        file = self.plan.out / "samples" / f"{slug(job)}.jsonl"
        done = Records(file, job).done
        left = job.limit * job.samples - len(done)
        if not left:
            return [done[number] for number in sorted(done)]
        model = self.model(job.model)
        with self.progress(title, left) as watch:
            return evaluate_job(model, task, job, run=self.judge, out=file, watch=watch)


def _title(source: str, task: Task, trial: Trial) -> str:
    options = [f"{n}={v}" for n, v in trial.options.items() if n != "budget"]
    budget = f"budget {trial.options.get('budget') or 'full'}"
    return ", ".join([source, task.name, trial.decoder, budget, *options])


def slug(job: Job) -> str:
    """A file name that says what the job is and is another one for other weights.

    It has no dot: samples of several processes are told apart by what follows the first.
    """
    kind, _, policy = str(job.options.get("policy", "")).partition(":")
    files = [
        weights_digest(job.model),
        file_digest(policy_files(policy)[0]) if kind == "learned" else "",
    ]
    exact = json.dumps([asdict(job), files], sort_keys=True)
    key = hashlib.blake2b(exact.encode(), digest_size=5).hexdigest()
    parts = f"{job.task} {job.decoder} {job.options.get('budget') or 'full'}"
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{parts} {key}")


@cache
def weights_digest(source: str) -> str:
    """Of a checkpoint's weights: one retrained under its old name is another model.

    Nothing for a hub id, whose weights are taken to stay what they are.
    """
    embedded_name = source in embedded.embedded_names()
    directory = embedded.assets(source) if embedded_name else Path(source).expanduser()
    files = sorted(directory.glob("*.safetensors")) if directory.is_dir() else []
    return "".join(file_digest(file) for file in files)


@cache
def file_digest(path: Path) -> str:
    """Of a file of weights."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:16]
