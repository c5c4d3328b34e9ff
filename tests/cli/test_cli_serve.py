"""`xpredflow serve` says what is wrong before it loads anything."""

import socket

import pytest
from typer.testing import CliRunner

from xpredflow.cli import app


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "XPREDFLOW_TOKEN"),
        (["--port", "x"], "port is 'x'"),
        (["--limit", "max_que=3"], "did you mean 'max_queue'"),
        (["--limit", "max_queue"], "expected NAME=VALUE"),
        (["--token", "short"], "token is"),
        (["--decoder", "treshold"], "did you mean 'threshold'"),
        (["--max-batch", "0"], "max_batch is"),
    ],
)
def test_bad_input_ends_with_a_sentence(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 2, result.output
    assert words in result.output


def test_a_port_that_is_taken_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["serve", "--port", port])
    assert result.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in result.output
