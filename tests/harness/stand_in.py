"""What the tests of the harness share; without lm-eval they are skipped, except in CI."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from builders import write_checkpoint

if find_spec("lm_eval") is None and not os.environ.get("CI"):
    pytest.skip("lm-eval is not installed: pip install 'xpredflow[eval]'", allow_module_level=True)

from lm_eval.api.instance import Instance

from xpredflow.harness.model import XpredflowLM


def checkpoint(directory: Path, family: str = "llada") -> str:
    """A small model with random weights, a byte tokenizer and a chat template."""
    write_checkpoint(directory, family, tokenizer=True)
    return str(directory)


def ask(text: str, doc: int = 0, **kwargs: Any) -> Instance:
    """A request as a task makes it."""
    return Instance("generate_until", {}, (text, kwargs), 0, ("some_task", doc, 1))


def score(context: str, continuation: str) -> Instance:
    return Instance("loglikelihood", {}, (context, continuation), 0, ("some_task", 0, 1))


__all__ = ["Instance", "XpredflowLM", "ask", "checkpoint", "score"]
