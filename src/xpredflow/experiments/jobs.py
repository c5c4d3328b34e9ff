"""What tells one job from another: the weights, the policy and the problems, by their contents."""

import hashlib
import json
import re
from dataclasses import asdict

from xpredflow import __version__
from xpredflow.evaluation.run import Job
from xpredflow.experiments.rules import Rules
from xpredflow.models.digests import file_digest, model_digest, weights_digest
from xpredflow.policies.beta import policy_files
from xpredflow.types import Model


def slug(
    job: Job,
    source: str | Model,
    problems: str,
    rules: Rules,
    dtype: str | None = None,
    quantize: str | None = None,
) -> str:
    """A file name that says what the job is, another one for other weights, problems or rules.

    The version of the package counts as well. It has no dot: samples of several processes are told
    apart by what follows the first.
    """
    weights = weights_digest(source) if isinstance(source, str) else model_digest(source)
    kind, _, policy = str(rules.get("policy", "")).partition(":")
    learned = file_digest(policy_files(policy)[0]) if kind == "learned" and policy else ""
    made_of = [__version__, asdict(job), weights, learned, problems, rules, dtype]
    made_of += [] if quantize is None else [quantize]  # names from before stay what they were
    exact = json.dumps(made_of, sort_keys=True)
    parts = f"{job.task} {job.decoder} {job.options.get('budget') or 'full'}"
    return re.sub(r"[^A-Za-z0-9]+", "-", f"{parts} {_short(exact.encode())}").strip("-")


def _short(exact: bytes) -> str:
    return hashlib.blake2b(exact, digest_size=5).hexdigest()
