"""Runs trials for tables: one model in memory at a time, samples kept on disk, nothing twice."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from xpredflow.decoders import effective_settings, option_owner
from xpredflow.decoders.spec import parse_spec
from xpredflow.engine import request as engine
from xpredflow.engine.budget import describe_budget, resolve_budget
from xpredflow.errors import InputError, unknown_name
from xpredflow.evaluation import run as evaluation
from xpredflow.evaluation.identity import problems_digest
from xpredflow.evaluation.run import Job, Records, Summary, evaluate_job, summarise
from xpredflow.experiments.jobs import slug
from xpredflow.experiments.rules import Rules
from xpredflow.models import embedded
from xpredflow.sandbox import Sandbox
from xpredflow.settings import convert, option_names
from xpredflow.tasks.base import Runner, Task
from xpredflow.types import Model

Source = str | Model  # a name, a directory or a hub id; or a model that is loaded already


@dataclass(frozen=True)
class Trial:
    """One way of decoding."""

    decoder: str
    options: dict[str, Any] = field(default_factory=dict)
    samples: int = 1


@dataclass(frozen=True)
class Plan:
    """On which problems, how many of them, with which options, and where samples are kept.

    An option goes to every decoder that declares it, whatever else a trial says.
    """

    tasks: tuple[Task, ...]
    out: Path | None = None  # None: samples are not kept
    split: str = "validation"
    limit: int = 100
    options: dict[str, Any] = field(default_factory=dict)
    dtype: str | None = None
    device: str | None = None
    unsafe: bool = False

    def check(self, trials: list[Trial], varied: tuple[str, ...] = ("budget",)) -> None:
        """Refuse options that are varied or that no decoder has, and values it cannot take."""
        names = [task.name for task in self.tasks]
        if not names:
            raise InputError("no tasks were given: such as minicode or minimath")
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two tasks are called {name!r}: give it once, or rename one")
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
            engine.resolve(trial.decoder, self.options_of(trial))

    def options_of(self, trial: Trial) -> dict[str, Any]:
        """The plan's options that the trial's decoder declares, and the trial's own, which win."""
        declared = _options_of(trial.decoder)
        return {n: value for n, value in self.options.items() if n in declared} | trial.options

    def problems(self, task: Task) -> int:
        """How many problems of a task are used."""
        return min(self.limit, task.size(self.split))

    def positions(self, task: Task) -> int:
        """Positions of a response: one pass each is the full budget."""
        return convert("gen_length", self.options.get("gen_length", task.response_length), int)


def _options_of(decoder: str) -> list[str]:
    owner = option_owner(decoder)
    return option_names(engine.Options) + (option_names(owner) if owner else [])


class Watch(evaluation.Watch, Protocol):
    """Is told how far a bench is; derive from it and override what is of interest."""

    def say(self, line: str) -> None:
        """A sentence about what has been done."""

    def loading(self, source: str) -> AbstractContextManager[Any]:
        """Entered while a model is loaded."""
        return nullcontext()

    def trials(self, count: int) -> None:
        """How many trials there will be, where that is known."""

    def trial(self, title: str, answers: int, cap: int) -> AbstractContextManager[Any]:
        """Entered for a trial with so many answers to come, of at most `cap` passes each."""
        return nullcontext()


class _Quiet(Watch):
    """Shows nothing."""


@dataclass(frozen=True)
class Measured:
    """What a trial reached on a task, under which cap and which rules."""

    summary: Summary
    budget: str  # share and passes, such as `1/4 (16 passes)`
    cap: int
    rules: Rules = field(default_factory=dict)
    samples: tuple[evaluation.Sample, ...] = field(default=(), repr=False)

    def entry(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self.summary), "budget": self.budget, "rules": self.rules}


class Bench(AbstractContextManager["Bench"]):
    """What a plan's trials run on. One that `decodes` programs has a sandbox while it is open."""

    def __init__(self, plan: Plan, watch: Watch | None = None, decodes: bool = True) -> None:
        self.plan, self.watch, self.decodes = plan, watch or _Quiet(), decodes
        self._judge: Runner | None = None
        self._open = ExitStack()
        self._loaded: tuple[str, Model] | None = None

    def __enter__(self) -> "Bench":
        if self.decodes and any(task.runs_programs for task in self.plan.tasks):
            self._judge = self._open.enter_context(Sandbox(unsafe=self.plan.unsafe)).runner
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._loaded = None

    @contextmanager
    def limited(self, most: int | None) -> Iterator[None]:
        """Inside, at most so many problems of each task are used."""
        plan = self.plan
        self.plan = plan if most is None else replace(plan, limit=min(plan.limit, most))
        try:
            yield
        finally:
            self.plan = plan

    def model(self, source: Source) -> Model:
        """The model of a source; the one before it is let go."""
        if not isinstance(source, str):
            return source
        if self._loaded is None or self._loaded[0] != source:
            self._loaded = None
            how: dict[str, Any] = {"dtype": self.plan.dtype, "device": self.plan.device}
            given = {name: value for name, value in how.items() if value is not None}
            with self.watch.loading(source):
                self._loaded = (source, embedded.load(source, **given))
        return self._loaded[1]

    def measure(self, source: Source, task: Task, trial: Trial) -> Measured:
        """The trial's row for a model and a task; samples that are there already are reused."""
        options = self.plan.options_of(trial)
        job = Job(
            task=task.name,
            split=self.plan.split,
            decoder=trial.decoder,
            options=options,
            limit=self.plan.problems(task),
            samples=trial.samples,
            model=name_of(source),
        )
        settings, decoder = engine.resolve(
            trial.decoder,
            {"gen_length": task.response_length, **options},
            self._asked(source, trial),
        )
        rules = effective_settings(decoder)
        budget = describe_budget(settings.budget, settings.gen_length)
        cap = resolve_budget(settings.budget, settings.gen_length)
        title = _title(source, task, trial, budget)
        file = self._file(source, task, job, rules)
        done = Records(file, job).done
        left = job.limit * job.samples - len(done)
        samples = [done[number] for number in sorted(done)]
        if left:
            model = self.model(source)
            with self.watch.trial(title, left, cap):
                samples = evaluate_job(
                    model, task, job, run=self._judge, out=file, watch=self.watch
                )
        found = summarise(samples, job)
        self.watch.say(f"{title}: {found.accuracy:.1%} in {found.passes_mean:.1f} passes")
        return Measured(found, budget, cap, rules, tuple(samples))

    def _file(self, source: Source, task: Task, job: Job, rules: Rules) -> Path | None:
        if self.plan.out is None:
            return None
        problems = problems_digest(task, job.split, job.limit)
        name = slug(job, source, problems, rules, self.plan.dtype)
        return self.plan.out / "samples" / f"{name}.jsonl"

    def _asked(self, source: Source, trial: Trial) -> Model | None:
        """The model where its own defaults decide about the rules; it need not be loaded else."""
        spec = parse_spec(trial.decoder)
        named = {*spec.options, *self.plan.options_of(trial)}
        if spec.value is not None:
            named.add("policy")
        decides = spec.name == "flow" and not {"policy", "rules"} <= named
        return self.model(source) if decides else None


def source_of(model: Model | str | Path | None) -> Source:
    """A model as it was given; the default one where none was."""
    if model is None:
        return embedded.DEFAULT
    return str(model) if isinstance(model, Path) else model


def name_of(source: Source) -> str:
    """A model as tables name it."""
    return source if isinstance(source, str) else source.name


def _title(source: Source, task: Task, trial: Trial, budget: str) -> str:
    options = [f"{n}={v}" for n, v in trial.options.items() if n != "budget"]
    return ", ".join([name_of(source), task.name, trial.decoder, f"budget {budget}", *options])
