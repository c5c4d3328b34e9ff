"""Random command lines: words that belong together, words that do not, and nonsense as values."""

import shlex
import tempfile
from pathlib import Path
from random import Random

import click
from typer.main import get_command

from battery.faults import Workshop
from battery.outcome import Tally, Wrong
from xpredflow.cli import COMMANDS, app

VALUES = (
    *("-1", "0", "1e308", "1e999999999", "nan", "inf", "1/0", "9" * 400, "", " ", "\u2028", "../x"),
    *("/dev/null/x", "x" * 300, "flow:", "threshold:2", "mask+k=1", "learned:nope", "[]", "a=b=c"),
    *("temperature=-1", "seed=x", "top_k=-1", "clamp=1e308", "budget=1e999999999", "%s", "tiny/x"),
)
NAMES = [name for group in COMMANDS.values() for name in group if name not in ("demo", "lm-eval")]


def random_words(rng: Random, out: Path) -> list[str]:
    """A command with options that it has or has not; one value at least is nonsense."""
    name = rng.choice(NAMES)
    command = get_command(app).get_command(click.Context(click.Command("x")), name)  # type: ignore[attr-defined]
    options = [flag for p in command.params for flag in p.opts if flag.startswith("--")]
    words = [name]
    if any(p.param_type_name == "argument" and p.required for p in command.params):
        words.append(str(out))
    for _ in range(rng.randrange(1, 4)):
        words.append(rng.choice([*options, "--nonsense", "-o"]))
        if rng.random() < 0.9:
            words.append(rng.choice(VALUES))
    # whatever is left of it, nothing large is loaded and nothing long is decoded
    words += ["--model", "no-such-model"] if "--model" in options else []
    return [word for word in words if word != "--help"]


def try_command_lines(count: int, seed: int = 0) -> Tally:
    """So many of them; each ends with an exit code and a line, or does what it says."""
    tally = Tally("commands")
    with tempfile.TemporaryDirectory() as directory:
        shop = Workshop(Path(directory))
        for number in range(count):
            words = random_words(Random(f"{seed}/{number}"), Path(directory) / f"out{number}")
            tally.run(shlex.join(words)[:200], lambda words=words: _try(shop, words))
    return tally


def _try(shop: Workshop, words: list[str]) -> None:
    code, said = shop.run(words)
    if code not in (0, 1, 2):
        raise Wrong(f"exit code {code}: {said}")
