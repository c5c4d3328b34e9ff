"""The settings of training a step-size policy: each is a flag of `train-policy`.

The flow's rules are not among them: a run is given those by name, as the decoder is.
"""

from dataclasses import fields
from typing import Literal, TypeVar

from xpredflow.engine.budget import resolve_budget
from xpredflow.errors import InputError
from xpredflow.policies.beta_config import BetaConfig
from xpredflow.settings import grouped, settings
from xpredflow.training.common.optimiser import optimiser

Part = TypeVar("Part")
_reward = grouped("Reward")
_prompts = grouped("Prompts and rollouts")
_start = grouped("Start")
_validation = grouped("Validation")
_run = grouped("Run")


@settings
class GrpoConfig:
    """The reward, its advantage and the update."""

    completion: float = _reward(0.1, "λ, reward of a position's final progress", ge=0)
    speed: float = _reward(0.0, "reward of the share of the budget that was not used", ge=0)
    speed_of: Literal["all", "solved"] = _reward(
        "all", "rollouts that it goes to: all, or those that are right"
    )
    baseline: Literal["group", "value"] = _reward(
        "group", "taken off a reward: the group's mean, or what the view promises beside it too"
    )
    normalise: Literal["none", "total", "position"] = _reward(
        "none", "deviation that an advantage is divided by: none, total, position"
    )
    lr: float = optimiser(3e-4, "learning rate of Adam", gt=0)
    clip: float = optimiser(0.2, "ratios are cut to 1 ± this", gt=0)
    epochs: int = optimiser(2, "times the rollouts are gone through", ge=1)
    minibatches: int = optimiser(4, "gradient steps per epoch", ge=1)
    kl: float = optimiser(0.0, "weight of the divergence from the first policy", ge=0)
    max_norm: float = optimiser(1.0, "longer gradients are shortened to this", gt=0)


@settings
class PolicyConfig(BetaConfig, GrpoConfig):
    """The network's shape, the update's settings, and these."""

    updates: int = _run(200, "updates in all", ge=1)
    patience: int = _run(20, "updates in a row without any signal after which training stops", ge=1)
    seed: int = _run(0, "seed of prompts and draws", ge=0)
    prompts: int = _prompts(8, "problems per update", ge=1)
    group: int = _prompts(8, "rollouts of each problem, at least 2")
    budget: int | str | None = _prompts(
        None, "cap T on passes, or a share such as 1/4; none: one per position"
    )
    least_budget: int | str | None = _prompts(
        None, "every update draws its cap between this and budget; none: always budget"
    )
    gen_length: int | None = _prompts(None, "positions of a response; none: the task's", ge=1)
    pool: int = _prompts(1024, "training problems to draw from where no answers are given", ge=1)
    hard: float = _prompts(
        0.0, "share of an update's problems that the first policy failed", ge=0, le=1
    )
    screened: int = _prompts(1024, "problems tried to find such, where hard is above 0", ge=1)
    wave: int = _prompts(4, "problems decoded together; processes share out whole waves", ge=1)
    init: str = _start(
        "power:8", "policy to begin with: a heuristic to imitate, learned:FILE or none"
    )
    init_prompts: int = _start(16, "problems on which it is watched", ge=1)
    init_kappa: float = _start(20.0, "κ to begin with: lower explores more")
    init_fits: int = _start(600, "gradient steps of the imitation", ge=1)
    validate_every: int = _validation(10, "updates between two validations; 0: never", ge=0)
    validation: int = _validation(100, "problems of the validation split", ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group < 2:
            raise InputError(
                f"group is {self.group}: an advantage is relative to other rollouts of the same"
                " prompt; give a whole number ≥ 2"
            )
        for cap in (self.budget, self.least_budget):
            resolve_budget(cap, self.gen_length or 1)
        imitates = self.init.partition(":")[0] not in ("learned", "none")
        if imitates and not self.kappa_min < self.init_kappa < self.kappa_max:
            raise InputError(
                f"init_kappa is {self.init_kappa}: give a number between kappa_min"
                f" {self.kappa_min} and kappa_max {self.kappa_max}"
            )

    def part(self, kind: type[Part]) -> Part:
        """The settings that `kind`, one of the parents, declares."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})  # type: ignore[arg-type]
