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


def loaded(directory: Path, family: str | None = None) -> MaskedDiffusionModel:
    """The checkpoint in a directory, written first if a family is named."""
    if family is not None:
        write_checkpoint(directory, family, dtype=torch.float32)
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
    start = loaded(tmp_path / "start", "llada")
    pair = {
        "a": moved(loaded(tmp_path / "start"), 0.5),
        "b": moved(loaded(tmp_path / "start"), 1.5),
    }
    mean = average(pair)
    for old, new in zip(start.parameters(), mean.parameters(), strict=True):
        torch.testing.assert_close(new, old if old is start.embedding else old + 1.0)


def test_what_has_no_mean_is_named(tmp_path: Path) -> None:
    start = loaded(tmp_path / "start", "llada")
    with pytest.raises(InputError, match="1 model has no average: give at least two"):
        average({"a": start})
    with pytest.raises(InputError, match="'b' has other embeddings than 'a'"):
        average({"a": start, "b": moved(loaded(tmp_path / "start"), 1.0, table_too=True)})
    with pytest.raises(InputError, match="'c' has other parameters than 'a'"):
        average({"a": start, "c": loaded(tmp_path / "other", "llada2")})


def test_the_command_writes_a_checkpoint_that_loads(tmp_path: Path) -> None:
    loaded(tmp_path / "start", "llada")
    places = [tmp_path / "a", tmp_path / "b"]
    for by, place in zip((0.25, 0.75), places, strict=True):
        save(moved(loaded(tmp_path / "start"), by), place)
    command = ["average", str(tmp_path / "mean"), *map(str, places)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    wanted = average({str(place): loaded(place) for place in places})
    found = loaded(tmp_path / "mean")
    for one, two in zip(found.parameters(), wanted.parameters(), strict=True):
        assert torch.equal(one, two)
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "already holds a checkpoint" in again.output
    twice = CliRunner().invoke(app, ["average", str(tmp_path / "new"), *[str(places[0])] * 2])
    assert twice.exit_code == 2
    assert "was given twice" in twice.output
