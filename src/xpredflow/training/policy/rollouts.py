"""Rollouts of a step-size policy: the engine's Steps in, what policy training replays out."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import MISSING, dataclass, field, replace
from random import Random
from typing import Any

import torch
from torch import Tensor

from xpredflow.decoders import make_decoder, option_owner
from xpredflow.engine.budget import resolve_budget
from xpredflow.engine.loop import decode_steps
from xpredflow.engine.steps import Decoded, Step
from xpredflow.errors import InputError, unknown_name
from xpredflow.evaluation.run import judged
from xpredflow.policies.beta import BetaNetwork, LearnedPolicy
from xpredflow.processes import Share, gathered
from xpredflow.settings import Setting, checked, described
from xpredflow.tasks import Problem, Runner, Task, Verdict, prompt_of
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.grpo import Outcomes, Records
from xpredflow.types import Decoder, Model, Policy

FIRST_TRY = 10**9  # row numbers of tries, far from those of rollouts


@dataclass(frozen=True)
class Setup:
    """What rollouts need beside a policy: who predicts, what is asked and who judges."""

    model: Model
    task: Task
    config: PolicyConfig
    run: Runner | None = None
    share: Share = field(default_factory=Share)
    rules: dict[str, Any] = field(default_factory=dict)  # of the flow, by name

    @property
    def length(self) -> int:
        """N, the positions of a response."""
        return self.config.gen_length or self.task.response_length

    @property
    def budget(self) -> int:
        """T, the passes that a rollout may take."""
        return resolve_budget(self.config.budget, self.length)

    def capped(self, update: int) -> "Setup":
        """The same with the cap of an update: drawn evenly over log T where caps are sampled."""
        if self.config.least_budget is None:
            return self
        least, most = resolve_budget(self.config.least_budget, self.length), self.budget
        if least > most:
            raise InputError(
                f"least_budget is {self.config.least_budget!r}, {least} passes, but budget is"
                f" {most}: give a smaller least_budget or a larger budget"
            )
        share = Random(f"{self.config.seed}/cap/{update}").random()
        cap = round(least * (most / least) ** share)
        return replace(self, config=replace(self.config, budget=cap, least_budget=None))

    def decoder(self, policy: Policy) -> Decoder:
        """The flow with a policy, under the rules of this run."""
        return make_decoder("flow", {**self.rules, "policy": policy})


_NO_RULES = ("policy", "policy_temperature")  # what else the flow's options name


def rule_settings() -> list[Setting]:
    """The flow's rules, which a run may be given."""
    owner = option_owner("flow")
    assert owner is not None
    return [setting for setting in described(owner) if setting.name not in _NO_RULES]


def rule_names() -> list[str]:
    """The same by name."""
    return [setting.name for setting in rule_settings()]


def effective_rules(given: dict[str, Any]) -> dict[str, Any]:
    """All rules of the flow with their values, so that nothing else can decide one of them."""
    owner = option_owner("flow")
    assert owner is not None
    for name in given:
        if name not in rule_names():
            raise unknown_name("rule", name, rule_names(), " of the flow")
    make_decoder("flow", dict(given))
    rules = {setting.name: setting.default for setting in rule_settings()}
    rules |= checked(owner, given)
    return {name: value for name, value in rules.items() if value is not MISSING}


def acting(setup: Setup, network: BetaNetwork, temperature: float | None = None) -> LearnedPolicy:
    """A copy of the policy where the model's signals are; the original learns on the CPU."""
    return LearnedPolicy(deepcopy(network).to(setup.model.embedding.device), temperature)


@dataclass(frozen=True)
class Ended:
    """How one rollout ended; its row number orders it among the others."""

    row: int
    solved: bool
    passes: int
    reedits: int
    progress: list[float]


class Recorder:
    """Handed every Step, keeps the actions that had an effect and counts re-edits."""

    def __init__(self) -> None:
        self._parts: list[Records] = []
        self._begin: dict[int, int] = {}  # first open position of a row
        self.reedits: dict[int, int] = {}

    def add(self, step: Step) -> None:
        """Every tensor is brought to the CPU: what is replayed is small, the model's device not."""
        positions, event = step.positions.cpu(), step.event
        for i, row in enumerate(step.rows):
            if step.index[i] == 0:
                self._begin[row] = int(positions[i][positions[i] >= 0].min())
            again = int((event.reedited[i].cpu() & (positions[i] >= 0)).sum())
            self.reedits[row] = self.reedits.get(row, 0) + again
        self._parts.append(self._records(step, positions))

    def _records(self, step: Step, positions: Tensor) -> Records:
        action, moved = step.event.action, step.event.moved
        if action is None or moved is None or action.features is None:
            raise ValueError("only a flow whose policy shows its features can be recorded")
        row, place = (moved.cpu() & (positions >= 0)).nonzero(as_tuple=True)
        begin = torch.tensor([self._begin[number] for number in step.rows])
        latent, log_prob = action.latent, action.log_prob
        if latent is None or log_prob is None:
            raise ValueError("only a sampled policy can be recorded: give it a temperature")
        return Records(
            features=action.features.cpu()[row, place],
            latent=latent.cpu()[row, place],
            log_prob=log_prob.cpu()[row, place],
            rollout=torch.tensor(step.rows)[row],
            column=positions[row, place] - begin[row],
        )

    def records(self) -> Records:
        """Everything so far; `rollout` holds the engine's row numbers."""
        return Records.join(self._parts)


@dataclass(frozen=True)
class Wave:
    """Rollouts that were decoded together."""

    number: int
    records: Records
    ended: list[Ended]


def roll_out(setup: Setup, policy: Policy, rows: dict[int, Problem]) -> tuple[Records, list[Ended]]:
    """One rollout per row number, in waves; in every process the rollouts of all of them.

    A wave has the same rows whatever the number of processes, so the result is the same bit by bit.
    """
    config, share = setup.config, setup.share
    numbers = list(rows)
    size = config.wave * config.group
    waves = [numbers[i : i + size] for i in range(0, len(numbers), size)]
    mine = {i: waves[i] for i in range(share.rank, len(waves), share.world)}
    recorders = {i: Recorder() for i in mine}

    def steps() -> Iterator[Step]:
        for i, wave in mine.items():
            for step in _stream(setup, policy, {number: rows[number] for number in wave}):
                recorders[i].add(step)
                yield step

    def judge(done: Decoded) -> Verdict:
        return setup.task.score(rows[done.row], done.text, setup.run)

    ended: dict[int, list[Ended]] = {i: [] for i in mine}
    home = {number: i for i, wave in mine.items() for number in wave}
    for done, verdict in judged(steps(), judge):
        i = home[done.row]
        ended[i].append(_ended(done, verdict, recorders[i].reedits[done.row]))
    found = gathered(share, [Wave(i, recorders[i].records(), ended[i]) for i in mine])
    found.sort(key=lambda wave: wave.number)
    everyone = sorted((one for wave in found for one in wave.ended), key=lambda one: one.row)
    return Records.join([wave.records for wave in found]), everyone


def _stream(setup: Setup, policy: Policy, rows: dict[int, Problem]) -> Iterator[Step]:
    config = setup.config
    return decode_steps(
        setup.model,
        {number: prompt_of(problem) for number, problem in rows.items()},
        decoder=setup.decoder(policy),
        gen_length=setup.length,
        budget=config.budget,
        seed=config.seed,
        max_batch=len(rows),
    )


def _ended(done: Decoded, verdict: Verdict, reedits: int) -> Ended:
    solved = verdict.passed and not done.failed
    return Ended(done.row, solved, done.passes, reedits, done.progress)


def group_rollouts(
    setup: Setup, policy: Policy, update: int, problems: list[Problem]
) -> tuple[Records, Outcomes]:
    """G rollouts of each problem; every (update, problem, draw) has a row number of its own."""
    group = setup.config.group
    first = update * len(problems) * group
    rows = {first + i: problems[i // group] for i in range(len(problems) * group)}
    records, ended = roll_out(setup, policy, rows)
    places = Records(
        records.features, records.latent, records.log_prob, records.rollout - first, records.column
    )
    return places, _outcomes(setup, ended)


def tries(setup: Setup, policy: Policy, problems: list[Problem]) -> list[bool]:
    """Whether one rollout of each problem solves it; its draws are not those of any update."""
    rows = {FIRST_TRY + i: problem for i, problem in enumerate(problems)}
    return [one.solved for one in roll_out(setup, policy, rows)[1]]


def _outcomes(setup: Setup, ended: list[Ended]) -> Outcomes:
    length, group = setup.length, setup.config.group

    def grouped(values: list) -> Tensor:
        return torch.tensor(values).unflatten(0, (-1, group))

    # a text that ended early, or could not be decoded, leaves positions without a final t
    progress = [one.progress + [0.0] * (length - len(one.progress)) for one in ended]
    decoded = [[i < len(one.progress) for i in range(length)] for one in ended]
    return Outcomes(
        solved=grouped([float(one.solved) for one in ended]),
        passes=grouped([float(one.passes) for one in ended]),
        reedits=grouped([float(one.reedits) for one in ended]),
        progress=grouped(progress),
        decoded=grouped(decoded),
        budget=setup.budget,
    )
