"""`xpredflow models`: the embedded models, and the architectures that can be loaded."""

import inspect
import shutil
import sys
import textwrap
from typing import Any

import typer

_MARGIN = 20  # the longest name is tiny-aligned-paper


def models() -> None:
    """The embedded models and the architectures that can be loaded, plug-ins included.

    \b
    Examples:
      xpredflow models
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          --model tiny --decoder threshold
      xpredflow generate "Explain diffusion." --model GSAI-ML/LLaDA-8B-Instruct --dtype bfloat16
    """
    from xpredflow.models import FAMILIES
    from xpredflow.models.embedded import embedded_names
    from xpredflow.models.masked_lm import SUFFIX, MaskedLM

    for name in embedded_names():
        entry(name, f"embedded: {_embedded(name)}")
    for architecture, found in FAMILIES.entries().items():
        # one class may load several kinds, each registered with its name and a line about it
        family = found.about.get("family")
        about = found.summary if family else _about(found.item)
        name = family or getattr(found.item, "family", architecture)
        entry(name, f"{about} Loads any {architecture} checkpoint.".strip())
    entry(MaskedLM.family, f"{_about(MaskedLM)} Loads any ...{SUFFIX} checkpoint.")


def _about(family: Any) -> str:
    """The first line of the module that a family fills, or else of the family itself."""
    module = inspect.getdoc(sys.modules[family.__module__]) or inspect.getdoc(family) or ""
    return module.split("\n")[0]


def _embedded(name: str) -> str:
    from xpredflow.models.base import on_meta
    from xpredflow.models.embedded import ALIGNED, PAPER_ALIGNED, assets
    from xpredflow.models.families import family_of
    from xpredflow.models.source import read_config

    directory = assets(name)
    config = read_config(directory)
    model = on_meta(family_of(config), config)
    millions = sum(weight.numel() for weight in model.parameters()) / 1e6
    state = {**dict.fromkeys(ALIGNED.values(), "aligned"), PAPER_ALIGNED: "aligned as in the paper"}
    about = state.get(name, "as pretrained")
    return f"{model.family} layout, {millions:.1f} M parameters, {about}"


def entry(name: str, text: str) -> None:
    """A line of a catalogue; in a terminal it is folded under its first column."""
    line = f"{name:<{_MARGIN - 1}} {text}"
    if sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns, 40)
        line = textwrap.fill(line, width, subsequent_indent=" " * _MARGIN, break_on_hyphens=False)
    typer.echo(line)
