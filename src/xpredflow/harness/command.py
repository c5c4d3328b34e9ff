"""Starts the harness's own command line with our model and our tasks in it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.harness import grading

TASK_FILES = Path(__file__).parent / "tasks"
UNSAFE = "--unsafe-code-execution"


def run(arguments: list[str]) -> None:
    """`lm-eval` with these arguments; `--unsafe-code-execution` among them is ours."""
    grading.allow_unsafe(UNSAFE in arguments)
    arguments = [argument for argument in arguments if argument != UNSAFE]
    try:
        from lm_eval._cli import HarnessCLI
        from lm_eval.utils import setup_logging
    except ImportError as error:
        raise InputError(
            f"lm-evaluation-harness cannot be imported ({error}): pip install 'xpredflow[eval]'"
        ) from error
    import xpredflow.harness.model  # noqa: F401  (importing it registers the model)

    setup_logging()
    with _command_line(["lm-eval", *arguments]):
        harness = HarnessCLI()
        chosen = harness.parse_args()
    if hasattr(chosen, "include_path"):
        # a list, which the flag cannot give: our tasks come beside those of the user
        chosen.include_path = [str(TASK_FILES), *_include_paths(chosen)]
    harness.execute(chosen)


def _include_paths(chosen: Any) -> list[str]:
    """The user's own --include_path: the flag, or else the line of a --config file."""
    if chosen.include_path:
        return [chosen.include_path]
    if not getattr(chosen, "config", None):
        return []
    from lm_eval.config.evaluate_config import EvaluatorConfig

    theirs = EvaluatorConfig.load_yaml_config(chosen.config).get("include_path") or []
    return [theirs] if isinstance(theirs, str) else list(theirs)


@contextmanager
def _command_line(arguments: list[str]) -> Iterator[None]:
    """The harness reads sys.argv, and inserts its default subcommand there."""
    before = sys.argv
    sys.argv = arguments
    try:
        yield
    finally:
        sys.argv = before
