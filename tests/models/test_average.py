"""The mean of checkpoints: its values, what cannot be averaged, and the command."""

from pathlib import Path

import pytest
import torch
from builders import write_checkpoint
from typer.testing import CliRunner

from xpredflow import InputError, load
from xpredflow.cli import app
from xpredflow.models import MaskedDiffusionModel, save
from xpredflow.models.average import average


def checkpoint(directory: Path) -> MaskedDiffusionModel:
    write_checkpoint(directory, "llada", dtype=torch.float32)
    model = load(directory)
    assert isinstance(model, MaskedDiffusionModel)
    return model


def moved(model: MaskedDiffusionModel, by: float, table_too: bool = False) -> MaskedDiffusionModel:
    with torch.no_grad():
        for parameter in model.parameters():
            if table_too or parameter is not model.embedding:
                parameter += by
    return model


def test_the_mean_lies_half_way_and_embeddings_stay(tmp_path: Path) -> None:
    start = checkpoint(tmp_path / "start")
    pair = {"a": moved(load_again(tmp_path), 0.5), "b": moved(load_again(tmp_path), 1.5)}
    mean = average(pair)
    for old, new in zip(start.parameters(), mean.parameters(), strict=True):
        torch.testing.assert_close(new, old if old is start.embedding else old + 1.0)


def load_again(tmp_path: Path) -> MaskedDiffusionModel:
    model = load(tmp_path / "start")
    assert isinstance(model, MaskedDiffusionModel)
    return model


def test_what_has_no_mean_is_named(tmp_path: Path) -> None:
    start = checkpoint(tmp_path / "start")
    with pytest.raises(InputError, match="1 model has no average: give at least two"):
        average({"a": start})
    with pytest.raises(InputError, match="'b' has other embeddings than 'a'"):
        average({"a": start, "b": moved(load_again(tmp_path), 1.0, table_too=True)})
    write_checkpoint(tmp_path / "other", "llada2", dtype=torch.float32)
    other = load(tmp_path / "other")
    assert isinstance(other, MaskedDiffusionModel)
    with pytest.raises(InputError, match="'c' has other parameters than 'a'"):
        average({"a": start, "c": other})


def test_the_command_writes_a_checkpoint_that_loads(tmp_path: Path) -> None:
    names = []
    for by in (0.25, 0.75):
        checkpoint(tmp_path / "start")
        names.append(str(tmp_path / f"moved{by}"))
        save(moved(load_again(tmp_path), by), names[-1])
    out = str(tmp_path / "mean")
    done = CliRunner().invoke(app, ["average", out, *names])
    assert done.exit_code == 0, done.output
    wanted = average({name: load(name) for name in names})  # type: ignore[misc]
    for one, two in zip(load(out).parameters(), wanted.parameters(), strict=True):  # type: ignore[attr-defined]
        assert torch.equal(one, two)
    again = CliRunner().invoke(app, ["average", out, *names])
    assert again.exit_code == 2
    assert "already holds a checkpoint" in again.output
