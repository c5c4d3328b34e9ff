"""The installed command in a process of its own, as a shell starts it."""

import os
import pty
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xpredflow import cli
from xpredflow.cli import app

COMMAND = str(Path(sys.executable).with_name("xpredflow"))
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm-256color"}


def test_help_does_not_import_torch():
    code = (
        "import sys, xpredflow.cli\n"
        "try:\n    xpredflow.cli.app(['generate', '--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'transformers', 'rich'} & set(sys.modules), 'slow import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_embedded_model_runs_piped():
    command = [COMMAND, "generate", "--gen-length", "4", "--budget", "1", "--no-chat"]
    done = subprocess.run(command, input="Hi", capture_output=True, text=True, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n")
    assert "\x1b" not in done.stdout


def test_bad_input_without_traceback():
    done = subprocess.run([COMMAND, "generate", "--file", "nope"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --file nope cannot be read")
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_ends_it_quietly():
    process = subprocess.Popen(
        [COMMAND, "decoders"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ONE_THREAD
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # before anything is written
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (0, 1)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gen", ["generate"]),
        ("generate --decoder thr", ["threshold"]),
        ("generate --policy pow", ["power"]),
        ("generate --model tiny-m", ["tiny-moe", "tiny-moe-aligned"]),
        ("generate -d threshold -o thr", ["threshold="]),
        ("generate -d threshold -o gen", ["gen_length="]),
        ("generate -d flow:power:8+tau=0.9 -o reedit_m", ["reedit_margin="]),
        ("eval --task minicode,mini", ["minicode,minimath"]),
        ("eval --split v", ["validation"]),
        ("decoders jum", ["jump"]),
    ],
)
def test_the_shell_completes(line, offered):
    done = CliRunner().invoke(app, [], prog_name="xpredflow", env=completing(line))
    assert done.stdout.split() == offered, done.stderr


def completing(line):
    """What bash tells a command whose line it would complete."""
    words = f"xpredflow {line}"
    request = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    return {"_XPREDFLOW_COMPLETE": "complete_bash", **request}


def test_the_shell_asks_a_process():
    environment = {**ONE_THREAD, **completing("generate -d threshold -o thr")}
    done = subprocess.run([COMMAND], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["threshold="], done.stderr


def test_completion_script_is_offered():
    done = subprocess.run(
        [COMMAND, "--show-completion", "bash"],
        capture_output=True,
        text=True,
        env={**ONE_THREAD, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert "_XPREDFLOW_COMPLETE" in done.stdout


def test_a_terminal_sees_the_text_settle():
    master, slave = pty.openpty()
    command = [COMMAND, "generate", "Hi", "--gen-length", "6", "--budget", "2", "-d", "mask"]
    command += ["--delay", "0.01"]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=ONE_THREAD)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:  # Linux reports the closed terminal this way
        pass
    os.close(master)
    assert process.wait() == 0
    screen = shown.decode()
    assert "pass 1/2" in screen
    # the view stays: nothing is erased after the last line of it
    assert "2 passes · " in screen
    last = screen.rpartition(" tokens per pass · every position converged")[2]
    assert "\x1b[2K" not in last


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "full"), "error: standard output cannot be written: No space left"),
        (OSError(28, "full", "/a/b"), "error: cannot use '/a/b': No space left"),
    ],
)
def test_what_the_system_refuses_is_said_of_the_right_place(error, said, monkeypatch, capsys):
    def fails() -> None:
        raise error

    monkeypatch.setattr(cli, "_run", fails)
    monkeypatch.setattr(cli, "_close_quietly", sys.exit)  # it gives standard output away
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 2
    assert capsys.readouterr().err.startswith(said)


def test_without_standard_output_there_is_a_line_and_exit_code_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ending:
        cli._check_streams()
    assert ending.value.code == 2
    assert "standard output is closed" in capsys.readouterr().err
