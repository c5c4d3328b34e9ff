"""Two processes: each reads and holds its rows alone, and a killed run ends as another does."""

import json
import shutil
from pathlib import Path

import pytest
from builders import write_checkpoint
from own_answers import own_answers, write_answers
from small_alignment import free_port, in_two
from torch import equal
from two_processes import CONFIG

from xpredflow import InputError, load
from xpredflow.errors import Recovered
from xpredflow.processes import Share
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.runs import read_log
from xpredflow.training.common.start import start_from

SCRIPT = Path(__file__).with_name("two_processes.py")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two processes: `whole`, `rounded` to bf16, `killed` that went on from `left`."""
    place = tmp_path_factory.mktemp("runs")
    write_checkpoint(place / "llada2", "llada2")
    write_answers(place / "own.jsonl", own_answers(24))
    for done in in_two([str(SCRIPT), str(place)], NEXT_PORT=free_port()):
        assert done.returncode == 0, done.stderr
    return place


def test_a_run_that_was_killed_ends_like_one_that_was_not(place: Path) -> None:
    assert read_log(place / "killed/log.jsonl") == read_log(place / "whole/log.jsonl")
    for name in ("model.safetensors", "config.json", "alignment.json"):
        killed, whole = (place / run / "model" / name for run in ("killed", "whole"))
        assert killed.read_bytes() == whole.read_bytes(), name
    kept = {path.name for path in (place / "killed").iterdir()}
    assert kept == {"run.toml", "log.jsonl", "model", "state", "state.before"}


def test_each_process_holds_half_and_routers_stay_exact(place: Path) -> None:
    found = [json.loads((place / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    assert sum(one["own"] for one in found) == found[0]["all"]
    for one in found:
        assert one["own"] < 0.52 * one["all"]
        assert one["router"] == ["torch.float32"]
        assert one["layer"] == ["torch.bfloat16"]


def test_bf16_shards_learn_nearly_the_same(place: Path) -> None:
    logs = [read_log(place / name / "log.jsonl") for name in ("whole", "rounded")]
    for exact, rounded in zip(*logs, strict=True):
        assert rounded != exact
        assert rounded["loss"] == pytest.approx(exact["loss"], rel=0.05)


def test_one_process_goes_on_with_shards_and_finds_damage(place: Path) -> None:
    start = start_from(place / "llada2", place / "own.jsonl", "cpu")
    training = Alignment(start, CONFIG, place / "left", resume=True, share=Share())
    assert training.step == 2
    list(training)
    assert read_log(place / "left/log.jsonl")[-1] == pytest.approx(
        read_log(place / "whole/log.jsonl")[-1], rel=1e-4
    )
    assert {p.name for p in (place / "left").glob("state*")} == {"state.pt"}
    training.finish(place / "left/model")
    ours, theirs = (load(place / run / "model").state_dict() for run in ("left", "whole"))  # type: ignore[attr-defined]
    assert equal(ours["model.word_embeddings.weight"], theirs["model.word_embeddings.weight"])


def test_damaged_shards_fall_back_to_the_state_before(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "killed", tmp_path / "run")
    start = start_from(place / "llada2", place / "own.jsonl", "cpu")
    shard = sorted((tmp_path / "run/state").glob("*.safetensors"))[-1]
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)
    with pytest.warns(Recovered, match=r"state' is damaged \(checksum of .* of update 2"):
        assert Alignment(start, CONFIG, tmp_path / "run", resume=True).step == 2
    for shard in (tmp_path / "run/state.before").glob("*.safetensors"):
        shard.unlink()
    with pytest.raises(InputError, match="start anew in another directory"):
        Alignment(start, CONFIG, tmp_path / "run", resume=True)
