"""The weights that come with the package: small, in their layouts, and really trained."""

import json
import zlib

import pytest

from xpredflow.evaluation import Job, evaluate_job
from xpredflow.models.embedded import EMBEDDED, assets, embedded_names, load_embedded
from xpredflow.sandbox import Sandbox
from xpredflow.tasks import TASKS

PROBLEMS = 4


def test_all_that_is_named_is_there_and_fits_a_wheel() -> None:
    assert embedded_names() == list(EMBEDDED)
    files = [file for name in embedded_names() for file in assets(name).iterdir()]
    # a wheel is a zip file of at most 25 MB, and 1 MB of it is for the code
    assert sum(len(zlib.compress(file.read_bytes())) for file in files) < 24_000_000


@pytest.mark.parametrize("name", embedded_names())
def test_most_problems_are_solved_at_full_budget(name: str) -> None:
    """A smoke test; docs/embedded.md has the figures over all test problems."""
    model = load_embedded(name)
    with Sandbox() as box:
        for task in ("minicode", "minimath"):
            job = Job(task, "validation", "mask", limit=PROBLEMS)
            samples = evaluate_job(model, TASKS[task](), job, run=box.runner)
            solved = sum(sample.passed for sample in samples)
            assert solved >= PROBLEMS // 2, [(s.prompt, s.answer, s.reason) for s in samples]


def test_the_larger_ones_write_programs_and_read_words_that_they_never_saw() -> None:
    model = load_embedded("small-aligned")
    with Sandbox() as box:
        for task, split in (("longcode", "validation"), ("minimath", "paraphrase")):
            job = Job(task, split, "flow", limit=3 * PROBLEMS)
            samples = evaluate_job(model, TASKS[task](), job, run=box.runner)
            solved = sum(sample.passed for sample in samples)
            assert solved >= PROBLEMS, [(s.prompt, s.answer, s.reason) for s in samples]


@pytest.mark.parametrize("name", embedded_names())
def test_the_tokenizer_is_one_that_every_supported_transformers_reads(name: str) -> None:
    """Its version 5 writes a class and a list of extra tokens that version 4 rejects."""
    about = json.loads((assets(name) / "tokenizer_config.json").read_text())
    assert about["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert "extra_special_tokens" not in about
    assert about["chat_template"]
