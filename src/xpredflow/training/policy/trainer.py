"""Train the step-size policy with GRPO: rollouts, verdicts, updates, validation; resumable."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import torch

from xpredflow.evaluation import Job, evaluate_job, summarise
from xpredflow.evaluation.identity import digest_of
from xpredflow.models.digests import model_digest
from xpredflow.policies.beta import BetaConfig, BetaNetwork, save_policy
from xpredflow.processes import from_first, gathered
from xpredflow.tasks import Problem
from xpredflow.training.common.run_file import RunFile
from xpredflow.training.common.runs import Run
from xpredflow.training.policy.config import GrpoConfig
from xpredflow.training.policy.grpo import Learner, advantages
from xpredflow.training.policy.imitation import begin, shaped
from xpredflow.training.policy.log import (
    WARN_AFTER,
    describe_policy,
    describe_rollouts,
    why_no_signal,
)
from xpredflow.training.policy.rollouts import (
    Setup,
    acting,
    effective_rules,
    group_rollouts,
    tries,
)

LAST, BEST = "policy", "best"
COMPARED = 64  # problems of the pool that a resumed run must find as they were


class PolicyTraining:
    """A run: iterate over it to train; each item is the line that the log got.

    The first line is update 0, the policy before training. After every update the policy and
    everything needed to go on are on disk; only the first of several processes writes.
    """

    def __init__(
        self,
        setup: Setup,
        pool: list[int],
        directory: Path,
        resume: bool = False,
        inputs: dict[str, Any] | None = None,
    ) -> None:
        """`pool` are the numbers of the training problems that prompts are drawn from.

        `inputs` names what the run starts from, for its run.toml; else the model and task do.
        """
        rules = effective_rules(setup.rules)
        self.setup = setup = replace(setup, config=shaped(setup.config), rules=rules)
        setup.capped(0)  # caps that cannot be are named before anything runs
        self.about = self._about(pool, inputs or {})
        self.pool, self.directory = pool, directory
        self.update, self.idle, self.best = 0, 0, float("-inf")
        self.fit_error: float | None = None
        self.failed: list[int] = []  # of the pool, what the first policy did not solve
        self.learner: Learner | None = None
        self.run = None
        if setup.share.rank == 0:
            may_change = ("updates", "patience", "answers")
            self.run = Run(directory, self.about, resume, may_change)
        state = from_first(setup.share, self.run.load_state() if self.run else None)
        if state is not None:
            self._restore(state)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Train until the last update, or until nothing has been learned for `patience` of them."""
        if self.learner is None:
            yield self._begin()
        while self.update < self.setup.config.updates and not self.stalled:
            yield self._advance()

    def stoppable(self) -> AbstractContextManager:
        """Inside, Ctrl-C says what was kept; processes that write nothing have nothing to say."""
        return nullcontext() if self.run is None else self.run.stoppable(lambda: self.update)

    @property
    def stalled(self) -> bool:
        """Whether training was given up: no group had any signal for too long."""
        return self.idle >= self.setup.config.patience

    @property
    def network(self) -> BetaNetwork:
        """The policy as it is now."""
        if self.learner is None:
            raise RuntimeError("iterate over the training first: it begins with an imitation")
        return self.learner.network

    def _about(self, pool: list[int], inputs: dict[str, Any]) -> RunFile:
        """The config and what else decides the result."""
        setup, prompts = self.setup, blake2b(repr(pool).encode(), digest_size=8).hexdigest()
        return RunFile(
            "train-policy",
            setup.config,
            {"model": setup.model.name, "task": setup.task.name, **inputs},
            setup.rules,
            {
                "model_name": setup.model.name,
                "prompt_pool": f"{len(pool)} problems, {prompts}",
                "model_dtype": str(setup.model.embedding.dtype),
                "weights": model_digest(setup.model),
                "prompt_problems": digest_of(
                    setup.task.problem("train", n) for n in pool[:COMPARED]
                ),
            },
        )

    def _begin(self) -> dict[str, Any]:
        started, config = time.monotonic(), self.setup.config
        start = begin(self.setup, self._problems(0, config.init_prompts))
        # every process must begin with the very same weights
        weights = from_first(self.setup.share, start.network.state_dict())
        self.fit_error = start.error
        self._learn_from(start.network.config, weights, weights)
        line = {"step": 0, "fit_error": start.error, **self._screen(), **self._validate()}
        return self._keep(line, started)

    def _advance(self) -> dict[str, Any]:
        started, config = time.monotonic(), self.setup.config
        assert self.learner is not None
        policy = acting(self.setup, self.network, temperature=1.0)
        hard = round(config.hard * config.prompts) if self.failed else 0
        problems = self._problems(self.update, config.prompts - hard)
        problems += self._problems(self.update, hard, self.failed)
        capped = self.setup.capped(self.update)
        records, outcomes = group_rollouts(capped, policy, self.update, problems)
        line = {"step": self.update + 1, **describe_rollouts(outcomes, config)}
        if config.least_budget is not None:
            line["budget"] = outcomes.budget
        line |= describe_policy(self.network, records)
        draw = torch.Generator().manual_seed(config.seed * 1_000_003 + self.update)
        line |= asdict(self.learner.update(records, advantages(outcomes, config), draw))
        self.update += 1
        self.idle = 0 if line["signal"] else self.idle + 1
        if self.idle >= min(WARN_AFTER, config.patience):
            cause = why_no_signal(line, self.network.config.kappa_max)
            line["warning"] = f"no signal in {self.idle} updates: {cause}"
        every = config.validate_every
        if every and (self.update % every == 0 or self.update == config.updates):
            line |= self._validate()
        return self._keep(line, started)

    def _screen(self) -> dict[str, Any]:
        """Try problems of the pool once each and keep the failed ones apart, if that is wanted.

        Where every draw of a group solves its problem only speed can be learned from it.
        """
        config = self.setup.config
        if not config.hard:
            return {}
        numbers = self.pool[: config.screened]
        problems = [self.setup.task.problem("train", number) for number in numbers]
        policy = acting(self.setup, self.network, temperature=1.0)
        solved = tries(self.setup, policy, problems)
        self.failed = [n for n, right in zip(numbers, solved, strict=True) if not right]
        found: dict[str, Any] = {"screened": len(numbers), "failed": len(self.failed)}
        if not self.failed:
            found["warning"] = f"all {len(numbers)} screened problems were solved: none is hard"
        return found

    def _problems(self, update: int, count: int, pool: list[int] | None = None) -> list[Problem]:
        """Prompts of an update: the pool in a new order each time it has been gone through."""
        pool = self.pool if pool is None else pool
        places = [divmod(update * count + i, len(pool)) for i in range(count)]
        orders = {
            turn: Random(f"{self.setup.config.seed}/{turn}").sample(pool, len(pool))
            for turn in {turn for turn, _ in places}
        }
        return [self.setup.task.problem("train", orders[turn][i]) for turn, i in places]

    def _validate(self) -> dict[str, Any]:
        """Accuracy and passes with the expected action on validation problems; the best is kept.

        The score is accuracy − (mean passes / budget) / n: one more problem solved outweighs any
        saving of passes, and of equals the faster wins.
        """
        config, share = self.setup.config, self.setup.share
        if not config.validate_every:
            return {}
        options = {
            **self.setup.rules,
            "policy": acting(self.setup, self.network),
            "budget": config.budget,
            "gen_length": self.setup.length,
            "seed": config.seed,
        }
        limit = min(config.validation, self.setup.task.size("validation"))
        job = Job(self.setup.task.name, "validation", "flow", options, limit)
        mine = evaluate_job(self.setup.model, self.setup.task, job, run=self.setup.run, share=share)
        row = summarise(sorted(gathered(share, mine), key=lambda s: s.number), job)
        score = row.accuracy - row.passes_mean / self.setup.budget / row.n
        found = {"accuracy": row.accuracy, "passes": row.passes_mean, "n": row.n, "score": score}
        if score > self.best:
            self.best = score
            self._save(BEST, {"validation": found})
        return {"validation": found}

    def _keep(self, line: dict[str, Any], started: float) -> dict[str, Any]:
        """Log, policy, state: in this order, so that a kill between them repeats the update."""
        line["seconds"] = time.monotonic() - started
        if self.run is not None:
            self.run.log(**line)
            self._save(LAST, {"last": line})
            self.run.save_state(self._state())
        return line

    def _save(self, name: str, statistics: dict[str, Any]) -> None:
        if self.run is None:
            return
        training = {
            "config": self.about.values(),
            "updates": self.update,
            "fit_error": self.fit_error,
            **statistics,
        }
        save_policy(self.network, self.directory / name, training)

    def _learn_from(self, shape: BetaConfig, weights: dict, start: dict) -> None:
        network, first = BetaNetwork(shape), BetaNetwork(shape)
        network.load_state_dict(weights)
        first.load_state_dict(start)
        self.learner = Learner(network, first, self.setup.config.part(GrpoConfig))

    def _state(self) -> dict[str, Any]:
        assert self.learner is not None
        return {
            "step": self.update,
            "idle": self.idle,
            "best": self.best,
            "fit_error": self.fit_error,
            "failed": self.failed,
            "shape": asdict(self.network.config),
            "network": self.network.state_dict(),
            "start": self.learner.start.state_dict(),
            "optimizer": self.learner.optimizer.state_dict(),
            "baseline": None if self.learner.baseline is None else self.learner.baseline.state(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.update, self.idle, self.best = state["step"], state["idle"], state["best"]
        self.fit_error, self.failed = state["fit_error"], state["failed"]
        self._learn_from(BetaConfig(**state["shape"]), state["network"], state["start"])
        assert self.learner is not None
        self.learner.optimizer.load_state_dict(state["optimizer"])
        if self.learner.baseline is not None:
            self.learner.baseline.restore(state["baseline"])
