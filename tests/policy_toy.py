"""A task and a model small enough to train a step-size policy on within a test.

Run as a script under torchrun it trains in several processes: `policy_toy.py OUT`.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from toy import ToyModel, prompts

from xpredflow.policies.beta import BetaNetwork
from xpredflow.processes import join_processes, leave_processes
from xpredflow.tasks import Problem, Runner, Verdict
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.trainer import PolicyTraining
from xpredflow.types import SpecialTokens

SMALL = PolicyConfig(
    updates=4,
    prompts=3,
    group=4,
    wave=1,
    hidden=8,
    gen_length=10,
    init_prompts=3,
    init_fits=40,
    validate_every=2,
    validation=5,
    lr=1e-2,
)


class Words:
    """Writes token ids as numbers."""

    chat_template = None

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return " ".join(map(str, ids))


class ToyTask:
    """Right is an answer whose tokens have an even sum: by chance, so that groups are mixed."""

    name = "toytask"
    response_length = 10
    runs_programs = False

    def problem(self, split: str, index: int) -> Problem:
        ids = prompts(1, seed=index + (10_000 if split == "validation" else 0))[0]
        meta: Mapping = MappingProxyType({"messages": ids})  # raw ids are a prompt too
        return Problem(f"{split}/{index}", str(ids), 1, meta)

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        return Verdict(sum(map(int, text.split())) % 2 == 0, "the parity of the sum")

    def size(self, split: str) -> int:
        return 50

    def count_problems(self) -> int:
        return 100


class ChainModel:
    """Sure of a token only when the one before it is there; else it guesses, and guesses wrong.

    Each token is its predecessor plus one; guesses have a confidence of about a half. Whoever
    moves fast on guesses stops before the chain has been followed to its end.
    """

    name = "chain"
    special = SpecialTokens(mask=9, eos=8)
    max_length = 32
    block_size: int | None = None
    tokenizer = Words()
    embedding = torch.eye(10)

    def logits(self, inputs, positions, columns, cache=None, slots=None) -> torch.Tensor:
        rows = torch.arange(len(columns)).unsqueeze(-1)
        place = positions[rows, columns]
        z = torch.zeros(*columns.shape, 10)
        z[..., :8] = 8 * inputs[rows, columns - 1][..., :8].roll(1, -1)
        z.scatter_add_(-1, (5 * place % 8).unsqueeze(-1), torch.full((*columns.shape, 1), 2.5))
        return z

    def new_cache(self, slots: int, length: int) -> None:
        return None


class ChainTask(ToyTask):
    """Count on from the prompt's number."""

    name = "chain"
    response_length = 8

    def problem(self, split: str, index: int) -> Problem:
        return Problem(f"{split}/{index}", "", 1, {"messages": [0, index % 8]})

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        first = problem.meta["messages"][-1]
        right = [(first + i) % 8 for i in range(1, 1 + len(text.split()))]
        return Verdict(list(map(int, text.split())) == right, "counting")


def toy_model(sharpness: float = 6.0) -> ToyModel:
    model = ToyModel(sharpness=sharpness)
    model.tokenizer = Words()  # type: ignore[assignment]
    return model


def toy_setup(config: PolicyConfig = SMALL, **changes) -> Setup:
    return Setup(toy_model(), changes.pop("task", ToyTask()), config, **changes)


def same_weights(a: BetaNetwork, b: BetaNetwork) -> bool:
    return all(map(torch.equal, a.state_dict().values(), b.state_dict().values()))


POOL = list(range(7))

if __name__ == "__main__":
    torch.set_num_threads(1)
    share = join_processes()
    for _ in PolicyTraining(toy_setup(share=share), POOL, Path(sys.argv[1])):
        pass
    leave_processes()
