"""Dockerfile and compose file name what is there; they are built where there is Docker."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from typer import Context
from typer.main import get_command

from xpredflow.cli import app
from xpredflow.serve.config import ServeConfig

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    kept = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    copied = [
        name
        for line in re.findall(r"^COPY (.*)", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    ]
    sources = [name for name in copied if not name.startswith(".")]
    assert set(sources) == set(kept)
    assert all((ROOT / name).exists() for name in sources)


def test_the_lock_file_has_the_torch_that_is_installed_first() -> None:
    pinned = re.findall(r"^torch==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert len(pinned) == 1


def test_both_files_name_one_cuda_for_which_that_torch_is_built() -> None:
    [advised] = re.findall(r"--build-arg TORCH=(\w+)", DOCKERFILE)
    [default] = re.findall(r":-(\w+)", COMPOSE["services"]["cuda"]["build"]["args"]["TORCH"])
    [torch] = re.findall(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    built = {"2.12": {"cu126", "cu130", "cu132"}, "2.13": {"cu126", "cu130", "cu132"}}
    # another torch: look its CUDA versions up and add them here (2.12 was the first without cu128)
    assert advised == default
    assert default in built[torch.rpartition(".")[0]]


@pytest.mark.parametrize("service", ["cpu", "cuda"])
def test_the_command_line_is_spelt_right(service: str) -> None:
    entry = re.findall(r'"([^"]+)"', DOCKERFILE.split("ENTRYPOINT")[1])
    given = [re.sub(r"\$\{\w+:-(.*)\}", r"\1", w) for w in COMPOSE["services"][service]["command"]]
    group = get_command(app)
    command = group.get_command(Context(group), entry[1])  # type: ignore[attr-defined]
    context = command.make_context("serve", [*entry[2:], *given], parent=Context(group))
    assert context.params["host"] == "0.0.0.0"
    assert context.params["model"] == "tiny-aligned"
    assert "XPREDFLOW_TOKEN" in COMPOSE["services"][service]["environment"]


def test_the_extra_that_is_installed_is_declared_and_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [extras] = re.findall(r"'\.\[([\w,]+)\]'", DOCKERFILE)
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    for extra in extras.split(","):
        needed = [
            re.split(r"[\[<>=;~! ]", one)[0] for one in project["optional-dependencies"][extra]
        ]
        assert needed
        assert {name.lower() for name in needed} <= {name.lower() for name in pinned}
    for name in ("readme", "license"):
        said = project.get(name)
        file = said if isinstance(said, str) else (said or {}).get("file", "")
        assert not file.endswith((".md", "LICENSE")) or file in DOCKERFILE


def test_the_health_check_asks_what_the_server_answers() -> None:
    [asked] = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", DOCKERFILE)
    assert asked == ("8000", "/healthz")
    assert f"EXPOSE {asked[0]}" in DOCKERFILE
    assert all(asked[0] in str(one["ports"]) for one in COMPOSE["services"].values())
    drain = ServeConfig().drain_seconds
    assert all(int(one["stop_grace_period"][:-1]) > drain for one in COMPOSE["services"].values())
