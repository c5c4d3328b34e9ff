"""Everything that decides the result of training a step-size policy."""

from dataclasses import dataclass, fields
from typing import TypeVar

from xpredflow.engine.budget import resolve_budget
from xpredflow.errors import InputError
from xpredflow.flow import Rules
from xpredflow.policies.beta import BetaConfig
from xpredflow.training.policy.grpo import GrpoConfig

Part = TypeVar("Part")
_AT_LEAST_ONE = (
    *("updates", "prompts", "pool", "screened", "wave", "init_prompts", "init_fits"),
    *("validation", "patience", "hidden"),
)


@dataclass(frozen=True)
class PolicyConfig(Rules, BetaConfig, GrpoConfig):
    """The flow's rules, the network's shape, the update's settings, and these."""

    updates: int = 200
    prompts: int = 8  # problems per update
    group: int = 8  # rollouts of each
    budget: str | None = None  # T: passes, or a share such as 1/4; None: one per position
    gen_length: int | None = None  # positions of a response; None: the task's
    pool: int = 1024  # training problems to draw from where no answers are given
    hard: float = 0.0  # share of an update's problems that the first policy failed at a first try
    screened: int = 1024  # problems tried to find such, where hard is above 0
    wave: int = 4  # problems decoded together; processes share out whole waves
    init: str = "power:8"  # policy to begin with: a heuristic to imitate, learned:FILE or none
    init_prompts: int = 16  # problems on which the heuristic is watched
    init_kappa: float = 20.0  # concentration to begin with: lower explores more
    init_fits: int = 600  # gradient steps of the imitation
    validate_every: int = 10  # updates between two validations; 0: never
    validation: int = 100  # problems of the validation split
    patience: int = 20  # updates in a row without any signal after which training stops
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a whole number ≥ 1")
        if self.group < 2:
            raise InputError(
                f"group is {self.group}: an advantage is relative to other rollouts of the same"
                " prompt; give a whole number ≥ 2"
            )
        if self.validate_every < 0 or self.seed < 0:
            name = "seed" if self.seed < 0 else "validate_every"
            raise InputError(f"{name} is {getattr(self, name)}: give a whole number ≥ 0")
        if not 0 <= self.hard <= 1:
            raise InputError(f"hard is {self.hard}: give a share of the prompts, from 0 to 1")
        if self.gen_length is not None and self.gen_length < 1:
            raise InputError(f"gen_length is {self.gen_length}: give a whole number ≥ 1")
        resolve_budget(self.budget, self.gen_length or 1)
        self._check_kappa()

    def _check_kappa(self) -> None:
        if not 0 < self.kappa_min < self.kappa_max:
            raise InputError(
                f"kappa_min is {self.kappa_min} and kappa_max {self.kappa_max}: expected"
                " 0 < kappa_min < kappa_max"
            )
        imitates = self.init.partition(":")[0] not in ("learned", "none")
        if imitates and not self.kappa_min < self.init_kappa < self.kappa_max:
            raise InputError(
                f"init_kappa is {self.init_kappa}: give a number between kappa_min"
                f" {self.kappa_min} and kappa_max {self.kappa_max}"
            )

    def part(self, kind: type[Part]) -> Part:
        """The settings that `kind`, one of the parents, declares."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})  # type: ignore[arg-type]
