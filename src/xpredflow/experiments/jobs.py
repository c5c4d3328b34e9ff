"""What tells one job from another: the weights, the policy and the problems, by their contents."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from xpredflow.evaluation.run import Job
from xpredflow.experiments.rules import Rules
from xpredflow.models import embedded
from xpredflow.policies.beta import policy_files
from xpredflow.tasks.base import Task
from xpredflow.types import Model

# Beside the weights a checkpoint may bring settings that decoding follows.
PARTS = ("*.safetensors", "generation_config.json")


def slug(
    job: Job, source: str | Model, problems: str, rules: Rules, dtype: str | None = None
) -> str:
    """A file name that says what the job is, another one for other weights, problems or rules.

    It has no dot: samples of several processes are told apart by what follows the first.
    """
    weights = weights_digest(source) if isinstance(source, str) else model_digest(source)
    kind, _, policy = str(rules.get("policy", "")).partition(":")
    learned = file_digest(policy_files(policy)[0]) if kind == "learned" and policy else ""
    exact = json.dumps([asdict(job), weights, learned, problems, rules, dtype], sort_keys=True)
    parts = f"{job.task} {job.decoder} {job.options.get('budget') or 'full'}"
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{parts} {_short(exact.encode())}").strip("-")


def problems_digest(task: Task, split: str, count: int) -> str:
    """Of prompts and what grades them: a file of problems may change under its old name."""
    digest = hashlib.blake2b(digest_size=8)
    for number in range(count):
        problem = task.problem(split, number)
        meta = json.dumps(problem.meta, sort_keys=True, default=str)
        digest.update(f"{problem.id}\0{problem.prompt}\0{meta}\0".encode(errors="replace"))
    return digest.hexdigest()


@cache
def weights_digest(source: str) -> str:
    """Of a checkpoint's weights: one retrained under its old name is another model.

    Nothing for a hub id, whose weights are taken to stay what they are.
    """
    embedded_name = source in embedded.embedded_names()
    directory = embedded.assets(source) if embedded_name else Path(source).expanduser()
    if not directory.is_dir():
        return ""
    return "".join(file_digest(file) for part in PARTS for file in sorted(directory.glob(part)))


@cache
def file_digest(path: Path) -> str:
    """Of a file of weights."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:16]


def model_digest(model: Model) -> str:
    """Of a loaded model's tensors; of its embedding alone where it does not name the others."""
    tensors: Mapping[str, Any] = (
        model.state_dict() if isinstance(model, nn.Module) else {"embedding": model.embedding}
    )
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in tensors.items():
        if isinstance(tensor, Tensor):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> Any:
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def _short(exact: bytes) -> str:
    return hashlib.blake2b(exact, digest_size=5).hexdigest()
