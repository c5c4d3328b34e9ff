"""One of two processes that hold models together; the first writes down what was decoded.

python team_member.py JOBS.json ANSWERS.json, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from xpredflow import Engine, generate, load
from xpredflow.errors import InputError
from xpredflow.models.team import Team
from xpredflow.serve.jobs import Job
from xpredflow.serve.worker import ModelThread

# Of different lengths, and more than fit into a batch: rows join and leave.
PROMPTS = [[65, 66, 67, 68], [70, 71, 72, 73, 74, 75, 76, 77, 78, 79], [65]]
OPTIONS: dict[str, Any] = {"chat": False, "gen_length": 12, "budget": 6, "max_batch": 2}
DECODERS = ("flow", "threshold:0.9")


def decoded(model: Any) -> list[list[int]]:
    """Tokens of every prompt by every decoder, one after the other."""
    return [
        done.ids
        for decoder in DECODERS
        for done in generate(model, PROMPTS, decoder=decoder, **OPTIONS)
    ]


class Numbers:
    """In place of a tokenizer: the text of tokens is their numbers."""

    def decode(self, ids: list[int], **_: Any) -> str:
        return " ".join(map(str, ids))


def served(model: Any) -> list[str]:
    """What the server's thread answers, while a row leaves and another one joins."""
    model.tokenizer = Numbers()
    return asyncio.run(_served(model))


async def _served(model: Any) -> list[str]:
    thread = ModelThread(Engine(model, decoder="threshold:0.9"), max_batch=2)
    options = {"gen_length": 12, "budget": 6}
    left, *stays = [thread.open(Job(prompt, options=options)) for prompt in PROMPTS]
    await left.next()
    left.close()
    texts = []
    for feed in stays:
        while (update := await feed.next()).done is None:
            pass
        texts.append(update.done.text)
    thread.stop()
    return texts


def run_out(rank: int, layer: int | None) -> Any:
    """From now on, one process has no memory for two rows in a layer, or else in the head."""

    def connect(self: Team, model: Any) -> None:
        def hook(module: Any, args: Any) -> None:
            if len(args[0]) > 1:
                raise torch.OutOfMemoryError

        layers, _, head = model.trunk()
        if self.split.rank == rank:
            (head if layer is None else layers[layer]).register_forward_pre_hook(hook)
        CONNECT(self, model)

    return connect


CONNECT = Team.connect


def answer(job: dict[str, Any]) -> Any:
    """What became of one job; the others return from `load` as if they ended with it."""
    Team.connect = run_out(*job["runs_out"]) if "runs_out" in job else CONNECT
    try:
        model = load(job["source"], tensor_parallel=True, **job.get("options", {}))
    except InputError as error:
        return str(error)
    except SystemExit as ending:
        return None if ending.code == 0 else sys.exit(ending.code)
    found = served(model) if job.get("serve") else decoded(model)
    assert model.team is not None
    model.team.close()
    return [found, sum(t.numel() for t in model.state_dict().values())]


def main() -> None:
    torch.set_num_threads(1)
    jobs = json.loads(Path(sys.argv[1]).read_text())
    answers = {name: answer(job) for name, job in jobs.items()}
    if os.environ["RANK"] == "0":
        Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
