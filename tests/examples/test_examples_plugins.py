"""The examples of one's own decoder and of a wrapped model run and print what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import xpredflow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def run(name: str) -> list[str]:
    source = str(Path(xpredflow.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["own_decoder.py", "wrap_a_model.py"])
def test_examples_are_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) < 60


def test_an_own_decoder_takes_the_passes_it_was_told() -> None:
    one, four, threshold = run("own_decoder.py")
    assert "left-to-right:1  32 passes" in one
    assert "left-to-right:4   8 passes" in four
    assert "threshold:0.9" in threshold
    assert "#### 22" in one


def test_a_wrapped_model_decodes_with_two_decoders() -> None:
    flow, threshold = run("wrap_a_model.py")
    assert flow.startswith("flow:power:8: 8 passes, '")
    assert threshold.startswith("threshold:0.5: 8 passes, '")
