"""Another package adds a decoder, a policy, a model family and a task: they are found by name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import xpredflow
import xpredflow.tasks
from xpredflow import InputError, make_decoder
from xpredflow.models.embedded import assets
from xpredflow.policies import make_policy
from xpredflow.registry import DECODERS, POLICIES, Registry, register

MODULE = '''"""What the little package adds."""

from xpredflow.decoders.discrete import Discrete, open_positions, top_ranked
from xpredflow.models.llada import LLaDA
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings
from xpredflow.tasks import Problem, Verdict
from xpredflow.types import Action


@DECODERS.register("several", summary="the surest few of another package", main="count")
@settings
class Several(Discrete):
    count: int = Field(2, ge=1, description="positions per pass")

    def choose(self, canvas, prediction, signals, info):
        return top_ranked(
            prediction.log_odds, open_positions(canvas), info.step * 0 + self.count
        )


@settings
class Share:
    """A share of what is left, by another package."""

    share: float = Field(0.5, gt=0, le=1, description="of the rest")

    def __call__(self, signals, progress, info):
        return Action(progress * 0 + self.share)


class MineLM(LLaDA):
    """A family of another package."""

    family = "Mine"
    model_type = "mine"


class Echo:
    """Any answer is right, by another package."""

    name = "echo"
    response_length = 8
    runs_programs = False

    def problem(self, split, index):
        return Problem(f"{split}/{index}", f"Ann has {index + 2} pens. How many pens now?", 1, {})

    def score(self, problem, text, run=None):
        return Verdict(True, "as it should be")

    def size(self, split):
        return 4

    def count_problems(self):
        return 4
'''
ENTRY_POINTS = """
[xpredflow.decoders]
several = little_package:Several
broken = little_package:Missing

[xpredflow.policies]
share = little_package:Share

[xpredflow.models]
MineModelLM = little_package:MineLM

[xpredflow.tasks]
echo = little_package:Echo
"""
PROMPT = "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as pip would leave it, and a checkpoint of the package's own architecture."""
    root = tmp_path_factory.mktemp("site")
    (root / "little_package.py").write_text(MODULE)
    about = root / "little_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: little-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    shutil.copytree(assets("tiny"), root / "checkpoint")
    file = root / "checkpoint" / "config.json"
    config = json.loads(file.read_text()) | {"architectures": ["MineModelLM"], "model_type": "mine"}
    file.write_text(json.dumps(config))
    return root


LENGTH = ["-o", "gen_length=32"]
MINIMATH = ["-t", "minimath", "--limit", "1", *LENGTH, "-m", "tiny", "--json"]
ECHO = ["-t", "echo", "--limit", "2", "-o", "gen_length=8", "-m", "tiny", "--json"]
OWN = ["generate", PROMPT, "-m", "checkpoint", *LENGTH]
TWO = ["-d", "threshold", "-d", "several:4", "-b", "full"]
COMMANDS = {
    "options": ["decoders", "several"],
    "models": ["models"],
    "decoder": [*OWN, "-d", "several:4", "--json"],
    "policy": [*OWN, "--policy", "share:0.9"],
    "wrong": [*OWN, "--policy", "share:2"],
    "judged decoder": ["eval", "-d", "several:8", *MINIMATH],
    "compared": ["compare", "-d", "several:8", "-b", "full", *MINIMATH, "--out", "decoder"],
    "judged task": ["eval", "-d", "threshold", *ECHO],
    "compared task": ["compare", *TWO, *ECHO, "--out", "task"],
}
# All of them in one process, which starts but once.
DRIVER = """
import json, sys
from typer.testing import CliRunner
from xpredflow.cli import app
for name, words in json.load(sys.stdin).items():
    done = CliRunner().invoke(app, words)
    print(json.dumps([name, done.exit_code, done.stdout, done.stderr]), flush=True)
"""


class Done(NamedTuple):
    """What became of a command."""

    returncode: int
    stdout: str
    stderr: str


def python(site: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A process of somebody who has installed the package."""
    source = Path(xpredflow.__file__).parents[1]
    path = os.pathsep.join([str(site), str(source)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "input": stdin}
    return subprocess.run(command, env=environment, cwd=site, **how)


@pytest.fixture(scope="module")
def called(site: Path) -> dict[str, Done]:
    """Every command of COMMANDS."""
    done = python(site, "-c", DRIVER, stdin=json.dumps(COMMANDS))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: Done(*rest) for name, *rest in found}


def test_they_are_listed(site: Path, called: dict[str, Done]) -> None:
    shown = python(site, "-m", "xpredflow", "decoders")
    assert shown.returncode == 0, shown.stderr
    assert "the surest few of another package" in shown.stdout
    assert "A share of what is left, by another package." in shown.stdout
    assert "decoder 'broken' of the plug-in 'little_package:Missing'" in shown.stderr
    assert "count=2" in called["options"].stdout
    assert "MineModelLM" in called["models"].stdout


def test_decoder_policy_and_family_decode(called: dict[str, Done]) -> None:
    done = called["decoder"]
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert line["passes"] == 8
    assert line["text"].endswith("22")
    assert called["policy"].returncode == 0, called["policy"].stderr
    assert called["wrong"].returncode == 2
    assert "share is 2.0: expected a number ≤ 1" in called["wrong"].stderr


def test_a_decoder_is_evaluated_and_compared(called: dict[str, Done]) -> None:
    judged, compared = called["judged decoder"], called["compared"]
    assert judged.returncode == 0, judged.stderr
    assert "several" in judged.stdout
    assert compared.returncode == 0, compared.stderr
    assert "several:8" in compared.stdout


def test_a_task_is_evaluated_and_compared(called: dict[str, Done]) -> None:
    judged, compared = called["judged task"], called["compared task"]
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout.splitlines()[-1])["accuracy"] == 1
    assert compared.returncode == 0, compared.stderr
    points = json.loads(compared.stdout.splitlines()[-1])["points"]
    assert [(point["decoder"], point["task"]) for point in points] == [
        ("threshold", "echo"),
        ("several:4", "echo"),
    ]
    assert all(point["summary"]["accuracy"] == 1 for point in points)


def test_a_plug_in_that_cannot_be_loaded_is_named(site: Path) -> None:
    failed = python(site, "-m", "xpredflow", "generate", PROMPT, "-d", "broken")
    assert failed.returncode == 2
    assert "update or uninstall that package" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_registering_from_python() -> None:
    class Plain:
        """Ends at once."""

        def step(self, canvas, signals, info, space): ...
        def stop(self, canvas): ...
        def finish(self, canvas, space): ...

    register("decoder", "plain", Plain)
    register("policy", "always", lambda fraction: lambda signals, progress, info: fraction)
    try:
        assert isinstance(make_decoder("plain"), Plain)
        assert DECODERS.entry("plain").summary == "Ends at once."
        with pytest.raises(InputError, match="'plain' takes no value"):
            make_decoder("plain:3")
        with pytest.raises(InputError, match="unknown option 'speed' for decoder 'plain"):
            make_decoder("plain+speed=3")
        assert make_policy("always:1")(None, None, None) == "1"  # type: ignore[arg-type]
    finally:
        DECODERS.remove("plain")
        POLICIES.remove("always")
    with pytest.raises(InputError, match="unknown kind of thing to register 'decodr'"):
        register("decodr", "plain", Plain)


def test_a_name_is_taken_once_but_a_definition_may_run_again() -> None:
    def definition() -> type:
        class Item: ...

        return Item

    registry: Registry = Registry("thing")
    first, again = definition(), definition()
    registry.register("one")(first)
    registry.register("one")(again)
    assert registry["one"] is again
    with pytest.raises(InputError, match="thing 'one' is registered already"):
        registry.register("one")(Registry)


@pytest.mark.parametrize(
    ("kind", "made", "message"),
    [
        ("decoder", Registry, r"odd is the class Registry: give Registry\(\)"),
        ("decoder", 3, "odd is 3: expected a decoder with step, stop and finish"),
        ("policy", Registry, r"odd is the class Registry: give Registry\(\)"),
        ("policy", 3, "odd is 3: expected a function of signals"),
    ],
)
def test_what_makes_no_decoder_or_policy_is_refused(kind: str, made: object, message: str) -> None:
    register(kind, "odd", lambda: made)
    try:
        with pytest.raises(InputError, match=message):
            make_decoder("odd") if kind == "decoder" else make_policy("odd")
    finally:
        (DECODERS if kind == "decoder" else POLICIES).remove("odd")


def test_a_value_that_nobody_takes_is_refused() -> None:
    with pytest.raises(InputError, match="takes no value; write 'confidence'"):
        make_policy("confidence:2")
    with pytest.raises(InputError, match=r"fraction is 2\.0: expected a number ≤ 1"):
        make_policy("constant:2")
