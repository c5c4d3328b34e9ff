"""Two processes that hold a model together decode as one does."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import team_member
from builders import write_checkpoint
from dense_checkpoints import write_kind

from xpredflow import load
from xpredflow.errors import InputError
from xpredflow.models.random_weights import build
from xpredflow.models.split import Split

# Shift and biases; blocks, norms of heads and a cache; a tied head; experts behind a softmax.
KINDS = (
    "Dream-v0-Instruct-7B",
    "SDAR-1.7B-Chat",
    "iLLaDA-8B-Instruct",
    "SDAR-30B-A3B-Chat",
)
# The family, the process and the layer, or the head.
OUT_OF_MEMORY = {
    "first, a layer": ("llada", 0, 1),
    "other, a layer": ("llada2", 1, 1),
    "other, the head": ("llada2", 1, None),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """Every family, a cut that leaves a rest, more processes than key heads, and a server."""
    root = tmp_path_factory.mktemp("team")
    checkpoints: list[tuple[str, str, dict[str, Any]]] = [
        ("llada", "llada", {}),
        ("llada2", "llada2", {}),
        ("one key head", "llada2", {"num_key_value_heads": 1}),
        ("odd vocabulary", "llada", {"vocab_size": 289, "embedding_size": 289}),
        ("odd heads", "llada", {"n_heads": 1, "n_kv_heads": 1}),
        ("odd width", "llada2", {"moe_intermediate_size": 25}),
    ]
    for name, family, changes in checkpoints:
        write_checkpoint(root / name, family, **changes)
    for name in KINDS:
        write_kind(root, name)
    found: dict[str, dict[str, Any]] = {p.name: {"source": str(p)} for p in sorted(root.iterdir())}
    found["int8"] = {"source": str(root / "llada2"), "options": {"quantize": "int8"}}
    for name, (family, *where) in OUT_OF_MEMORY.items():
        found[name] = {"source": str(root / family), "runs_out": where}
    found["server"] = {"source": str(root / "llada2"), "serve": True}
    return found


@pytest.fixture(scope="module")
def answers(jobs, tmp_path_factory) -> dict[str, Any]:
    """What both processes came to, started once for everything."""
    room = tmp_path_factory.mktemp("answers")
    (room / "jobs.json").write_text(json.dumps(jobs))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    script = [sys.executable, team_member.__file__, room / "jobs.json", room / "answers.json"]
    members = [
        subprocess.Popen(script, env={**os.environ, **world, "RANK": str(rank)})
        for rank in range(2)
    ]
    assert [member.wait(timeout=120) for member in members] == [0, 0]
    return json.loads((room / "answers.json").read_text())


@pytest.mark.parametrize("name", ["llada", "llada2", "one key head", "odd vocabulary", *KINDS])
def test_the_tokens_of_one_process(jobs, answers, name):
    model = load(jobs[name]["source"])
    tokens, held = answers[name]
    assert tokens == team_member.decoded(model)
    assert len({token for ids in tokens for token in ids}) > 8  # they say something
    everything = sum(t.numel() for t in model.state_dict().values())
    assert held < 0.8 * everything  # of small models the table is a large part, and it stays whole


@pytest.mark.parametrize("name", OUT_OF_MEMORY)
def test_a_batch_that_fits_into_no_memory_is_halved(jobs, answers, name):
    assert answers[name][0] == team_member.decoded(load(jobs[name]["source"]))


def test_packed_parts_decode(answers):
    tokens, _ = answers["int8"]
    assert [len(ids) for ids in tokens] == [12] * 6


def test_a_server_answers_as_one_process_does(jobs, answers):
    assert answers["server"][0] == team_member.served(load(jobs["server"]["source"]))


def test_what_does_not_divide_is_named(answers):
    assert "2 processes, but the model has 1 query heads" in answers["odd heads"]
    assert "gate_proj is 25 wide" in answers["odd width"]


def test_one_process_is_told_how_to_start_more(jobs):
    with pytest.raises(InputError, match="there is one: start them with torchrun"):
        load(jobs["llada"]["source"], tensor_parallel=True)


@pytest.mark.parametrize("family", ["llada", "llada2"])
def test_parts_of_all_processes_are_the_whole(jobs, family):
    """Also with more processes than key heads, which several of them then hold."""
    config = json.loads((Path(jobs[family]["source"]) / "config.json").read_text())
    whole = build(config)
    sizes = {name: tensor.shape for name, tensor in whole.state_dict().items()}
    held: dict[str, list[tuple[int, int]]] = {}
    for rank in range(4):
        for name, part in Split(rank, 4).apply(build(config)).items():
            held.setdefault(name, []).extend(part.ranges)
    for name, ranges in held.items():
        covered = {i for start, stop in ranges for i in range(start, stop)}
        assert covered == set(range(max(covered) + 1)), name
        assert max(covered) + 1 in sizes[name], name
