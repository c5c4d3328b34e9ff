"""The settings of training a step-size policy: each is a flag of `train-policy`.

The flow's rules are not among them: a run is given those by name, as the decoder is.
"""

from dataclasses import fields
from typing import Literal, TypeVar

from pydantic.config import JsonDict

from xpredflow.engine.budget import resolve_budget
from xpredflow.errors import InputError
from xpredflow.policies.beta_config import BetaConfig
from xpredflow.settings import Field, settings
from xpredflow.training.common.optimiser import OPTIMISER

Part = TypeVar("Part")
_REWARD: JsonDict = {"group": "Reward"}
_PROMPTS: JsonDict = {"group": "Prompts and rollouts"}
_START: JsonDict = {"group": "Start"}
_VALIDATION: JsonDict = {"group": "Validation"}
_RUN: JsonDict = {"group": "Run"}


@settings
class GrpoConfig:
    """The reward, its advantage and the update."""

    completion: float = Field(
        default=0.1,
        ge=0,
        description="λ, reward of a position's final progress",
        json_schema_extra=_REWARD,
    )
    speed: float = Field(
        default=0.0,
        ge=0,
        description="reward of the share of the budget that was not used",
        json_schema_extra=_REWARD,
    )
    normalise: Literal["none", "total", "position"] = Field(
        default="none",
        description="deviation that an advantage is divided by: none, total, position",
        json_schema_extra=_REWARD,
    )
    lr: float = Field(
        default=3e-4, gt=0, description="learning rate of Adam", json_schema_extra=OPTIMISER
    )
    clip: float = Field(
        default=0.2, gt=0, description="ratios are cut to 1 ± this", json_schema_extra=OPTIMISER
    )
    epochs: int = Field(
        default=2,
        ge=1,
        description="times the rollouts are gone through",
        json_schema_extra=OPTIMISER,
    )
    minibatches: int = Field(
        default=4, ge=1, description="gradient steps per epoch", json_schema_extra=OPTIMISER
    )
    kl: float = Field(
        default=0.0,
        ge=0,
        description="weight of the divergence from the first policy",
        json_schema_extra=OPTIMISER,
    )
    max_norm: float = Field(
        default=1.0,
        gt=0,
        description="longer gradients are shortened to this",
        json_schema_extra=OPTIMISER,
    )


@settings
class PolicyConfig(BetaConfig, GrpoConfig):
    """The network's shape, the update's settings, and these."""

    updates: int = Field(default=200, ge=1, description="updates in all", json_schema_extra=_RUN)
    patience: int = Field(
        default=20,
        ge=1,
        description="updates in a row without any signal after which training stops",
        json_schema_extra=_RUN,
    )
    seed: int = Field(
        default=0, ge=0, description="seed of prompts and draws", json_schema_extra=_RUN
    )
    prompts: int = Field(
        default=8, ge=1, description="problems per update", json_schema_extra=_PROMPTS
    )
    group: int = Field(
        default=8, description="rollouts of each problem, at least 2", json_schema_extra=_PROMPTS
    )
    budget: int | str | None = Field(
        default=None,
        description="cap T on passes, or a share such as 1/4; none: one per position",
        json_schema_extra=_PROMPTS,
    )
    gen_length: int | None = Field(
        default=None,
        ge=1,
        description="positions of a response; none: the task's",
        json_schema_extra=_PROMPTS,
    )
    pool: int = Field(
        default=1024,
        ge=1,
        description="training problems to draw from where no answers are given",
        json_schema_extra=_PROMPTS,
    )
    hard: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of an update's problems that the first policy failed",
        json_schema_extra=_PROMPTS,
    )
    screened: int = Field(
        default=1024,
        ge=1,
        description="problems tried to find such, where hard is above 0",
        json_schema_extra=_PROMPTS,
    )
    wave: int = Field(
        default=4,
        ge=1,
        description="problems decoded together; processes share out whole waves",
        json_schema_extra=_PROMPTS,
    )
    init: str = Field(
        default="power:8",
        description="policy to begin with: a heuristic to imitate, learned:FILE or none",
        json_schema_extra=_START,
    )
    init_prompts: int = Field(
        default=16, ge=1, description="problems on which it is watched", json_schema_extra=_START
    )
    init_kappa: float = Field(
        default=20.0, description="κ to begin with: lower explores more", json_schema_extra=_START
    )
    init_fits: int = Field(
        default=600, ge=1, description="gradient steps of the imitation", json_schema_extra=_START
    )
    validate_every: int = Field(
        default=10,
        ge=0,
        description="updates between two validations; 0: never",
        json_schema_extra=_VALIDATION,
    )
    validation: int = Field(
        default=100,
        ge=1,
        description="problems of the validation split",
        json_schema_extra=_VALIDATION,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group < 2:
            raise InputError(
                f"group is {self.group}: an advantage is relative to other rollouts of the same"
                " prompt; give a whole number ≥ 2"
            )
        resolve_budget(self.budget, self.gen_length or 1)
        imitates = self.init.partition(":")[0] not in ("learned", "none")
        if imitates and not self.kappa_min < self.init_kappa < self.kappa_max:
            raise InputError(
                f"init_kappa is {self.init_kappa}: give a number between kappa_min"
                f" {self.kappa_min} and kappa_max {self.kappa_max}"
            )

    def part(self, kind: type[Part]) -> Part:
        """The settings that `kind`, one of the parents, declares."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})  # type: ignore[arg-type]
