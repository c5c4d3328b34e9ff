"""`xpredflow models` and `xpredflow decoders`: what there is, read off the registries."""

import inspect
import re
import shutil
import sys
import textwrap
from dataclasses import MISSING, is_dataclass
from typing import Annotated, Any

import typer

from xpredflow.settings import Setting, described

_MARGIN = 18  # the longest name is tiny-moe-aligned
_COMMENTED = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)


def models() -> None:
    """The embedded models and the architectures that can be loaded.

    \b
    Examples:
      xpredflow models
      xpredflow generate "Hello" --model tiny
      xpredflow generate "Hello" --model GSAI-ML/LLaDA-8B-Instruct --dtype bfloat16
    """
    from xpredflow.models import FAMILIES
    from xpredflow.models.embedded import embedded_names

    for name in embedded_names():
        _line(name, f"embedded: {_embedded(name)}")
    for architecture, entry in FAMILIES.entries().items():
        family = entry.item
        about = inspect.getdoc(sys.modules[family.__module__]) or ""
        _line(family.family, f"{about.splitlines()[0]} Loads any {architecture} checkpoint.")


def _embedded(name: str) -> str:
    from xpredflow.models.base import on_meta
    from xpredflow.models.embedded import ALIGNED, assets
    from xpredflow.models.families import family_of
    from xpredflow.models.source import read_config

    directory = assets(name)
    config = read_config(directory)
    model = on_meta(family_of(config), config)
    millions = sum(weight.numel() for weight in model.parameters()) / 1e6
    aligned = "aligned" if name in ALIGNED.values() else "as pretrained"
    return f"{model.family} layout, {millions:.1f} M parameters, {aligned}"


def decoders(
    name: Annotated[
        str | None, typer.Argument(help="A decoder or policy, to see its options in full.")
    ] = None,
) -> None:
    """The decoders and the flow's step-size policies, with their options and defaults.

    \b
    Examples:
      xpredflow decoders
      xpredflow decoders flow
      xpredflow generate "Hello" --decoder threshold:0.8
      xpredflow generate "Hello" --policy constant:1/16 -o tau=0.95
    """
    from xpredflow.decoders import DECODERS, POLICIES, option_owner
    from xpredflow.errors import unknown_name

    if name is None:
        _overview()
    elif name in DECODERS:
        _detail(name, DECODERS.entry(name).summary, option_owner(name))
    elif name in policies():
        typer.echo(f"{name}: {policies()[name]}\nUse it with --policy {name}")
        _options(POLICIES[name]) if is_dataclass(POLICIES[name]) else None
    else:
        raise unknown_name("decoder or policy", name, [*DECODERS, *policies()])


def policies() -> dict[str, str]:
    """Every policy with its summary."""
    from xpredflow.decoders import POLICIES

    return {name: entry.summary for name, entry in POLICIES.entries().items()}


def _overview() -> None:
    from xpredflow.decoders import DECODERS, POLICIES, option_owner

    typer.echo("Decoders (--decoder NAME, options with -o NAME=VALUE):")
    for name, entry in DECODERS.entries().items():
        _line(name, f"{entry.summary}{_brief(option_owner(name))}")
    typer.echo("\nStep-size policies of flow (--policy NAME or NAME:VALUE):")
    for name, text in policies().items():
        _line(name, text + _brief(POLICIES[name]))


def _detail(name: str, summary: str, declared: Any) -> None:
    from xpredflow.engine.loop import Options

    typer.echo(f"{name}: {summary}\n\nOptions of {name} (-o NAME=VALUE):")
    _options(declared)
    typer.echo("\nOptions of every decoder (-o NAME=VALUE):")
    _options(Options)


def _options(declared: type) -> None:
    """One line per option: name, default and what it is for."""
    comments = {
        name: text
        for owner in reversed(declared.__mro__[:-1])
        for name, text in _COMMENTED.findall(inspect.getsource(owner))
    }
    for setting in described(declared):
        about = setting.help or comments.get(setting.name, "")
        typer.echo(f"  {_default(setting):<32}  {about}".rstrip())


def _brief(declared: Any) -> str:
    options = ", ".join(map(_default, described(declared)))
    return f" [{options}]" if options else ""


def _default(setting: Setting) -> str:
    if setting.default is MISSING:
        return setting.name
    return f"{setting.name}={'none' if setting.default is None else setting.default}"


def _line(name: str, text: str) -> None:
    """One line; in a terminal it is folded under its first column."""
    line = f"{name:<{_MARGIN}}{text}"
    if sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns, 40)
        line = textwrap.fill(line, width, subsequent_indent=" " * _MARGIN, break_on_hyphens=False)
    typer.echo(line)
