import pytest
from typer.testing import CliRunner

from xpredflow import __version__
from xpredflow.cli import COMMANDS, app
from xpredflow.cli.commands.decoders import decoder_summaries, options_of, policy_summaries
from xpredflow.cli.completion import (
    decoder_names,
    model_names,
    policy_names,
    split_names,
    table_names,
    task_names,
)
from xpredflow.decoders import DECODERS, POLICIES, option_owner
from xpredflow.engine.loop import Options
from xpredflow.models import FAMILIES
from xpredflow.models.embedded import embedded_names
from xpredflow.settings import described


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"xpredflow {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["generate", "--help"], ["models", "-h"], ["decoders", "--help"]]
)
def test_help_has_examples(run, arguments):
    result = run(*arguments, length=None) if arguments[0] == "generate" else run(*arguments)
    assert result.exit_code == 0
    assert "Examples:\n" in result.stdout
    assert "  xpredflow generate" in result.stdout


def test_models_in_one_line_each(run):
    lines = run("models").stdout.splitlines()
    # and the masked language models of transformers, whatever their architecture
    assert len(lines) == len(embedded_names()) + len(FAMILIES) + 1
    assert lines[0].startswith("tiny ")
    assert "LLaDA layout" in lines[0]
    assert "M parameters" in lines[0]


def test_decoders_in_one_line_each(run):
    lines = run("decoders").stdout.splitlines()
    for name, summary in decoder_summaries().items():
        line = next(line for line in lines if line.startswith(f"{name} "))
        assert summary in line
        assert summary
        assert all(f"{option.name}=" in line for option in options_of(name))
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in policy_summaries())
    assert set(decoder_summaries()) == set(DECODERS)
    assert set(policy_summaries()) == set(POLICIES)


@pytest.mark.parametrize("name", DECODERS)
def test_every_option_of_a_decoder_with_its_default(run, name):
    shown = run("decoders", name).stdout
    declared = option_owner(name)
    assert declared is not None
    for option in (*described(declared), *described(Options)):
        assert f"  {option.name}={option.written_default}" in shown


def test_comments_beside_the_declaration_are_shown(run):
    assert "floor of 1 − t in the velocity" in run("decoders", "flow").stdout
    assert "of the token draw; 0 is greedy" in run("decoders", "soft").stdout


def test_a_policy_by_name(run):
    assert "fraction=0.0625" in run("decoders", "constant").stdout
    assert "learned:FILE" in run("decoders", "learned").stdout


def test_a_misspelt_decoder_is_corrected(run):
    result = run("decoders", "flwo")
    assert result.exit_code == 2
    assert "did you mean 'flow'?" in result.stderr


def test_completion_offers_names(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").touch()
    assert [name for name, _ in decoder_names("thr")] == ["threshold"]
    assert {name for name, _ in policy_names("")} == set(POLICIES)
    assert "tiny" in dict(model_names(""))
    assert list(dict(model_names(f"{tmp_path}/m"))) == [f"{tmp_path}/mine"]


def test_completion_offers_tasks_tables_and_splits():
    assert [name for name, _ in task_names("minicode,mini")] == ["minicode,minimath"]
    assert {"minicode", "minimath", "humaneval"} <= set(dict(task_names("")))
    assert "main" in dict(table_names("ma"))
    assert list(dict(split_names("te"))) == ["test"]
    assert [name for name, _ in policy_names("learned:t")] == ["learned:tiny", "learned:tiny-left"]
    assert [name for name, _ in decoder_names("flow:jum")] == ["flow:jump"]


def test_a_misspelt_command_is_corrected(run):
    result = run("generat", "x")
    assert result.exit_code == 2
    assert "did you mean 'generate'?" in result.stderr


def test_every_command_is_listed_in_a_group_with_what_it_says_of_itself(run):
    overview = run("--help").stdout
    for title, group in COMMANDS.items():
        assert f"\n{title}:\n" in overview
        for name, lazy in group.items():
            assert f"  {name} " in overview
            assert lazy.summary in " ".join(overview.split())


@pytest.mark.parametrize("name", [name for group in COMMANDS.values() for name in group])
def test_every_command_has_examples_and_a_short_help_flag(name):
    result = CliRunner().invoke(app, [name, *(["show"] if name == "policy" else []), "-h"])
    assert result.exit_code == 0, result.output
    assert "Examples:\n" in result.stdout or name == "lm-eval"
    assert f"  xpredflow {name}" in result.stdout or name == "lm-eval"
