"""The command line with a small model behind it: nothing is trained, nothing is downloaded."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from byte_tokenizer import byte_tokenizer
from toy import WIDTH, ToyModel
from typer.testing import CliRunner

from xpredflow.cli import app
from xpredflow.models import embedded
from xpredflow.types import SpecialTokens

torch.set_num_threads(1)


class ByteToy(ToyModel):
    """The toy model with a tokenizer of bytes, so that it reads and writes text."""

    name = "byte-toy"
    special = SpecialTokens(mask=258, eos=257, eot=261)
    max_length = 256

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(1)
        self.tokenizer = tokenizer
        self.embedding = torch.randn(262, WIDTH, generator=draw)
        self.head = torch.randn(WIDTH, 262, generator=draw) * 1.5
        self.head[:, :32] = self.head[:, 127:] = 0  # printable ASCII only, so that text is text


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return byte_tokenizer()


@pytest.fixture
def model(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> ByteToy:
    """What every --model loads."""
    toy = ByteToy(tokenizer)
    monkeypatch.setattr(embedded, "load", lambda source, **_: toy)
    return toy


@pytest.fixture
def run(model: ByteToy) -> Callable[..., Any]:
    """`run("generate", "Hello")` as a user calls it; 8 tokens unless told, to be quick."""

    def call(*arguments: str, stdin: str | None = None, length: int | None = 8) -> Any:
        if arguments[0] == "generate" and length is not None:
            arguments = (*arguments, "--gen-length", str(length))
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return call
