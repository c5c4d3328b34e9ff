"""`xpredflow decoders`: decoders and step-size policies, read off the registries."""

from dataclasses import MISSING, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xpredflow.cli.commands.models import entry
from xpredflow.cli.completion import decoders_and_policies

if TYPE_CHECKING:
    from xpredflow.settings import Setting


def decoders(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A decoder or policy, to see its options in full.",
            autocompletion=decoders_and_policies,
        ),
    ] = None,
) -> None:
    """The decoders and the flow's step-size policies, with their options and defaults.

    \b
    Examples:
      xpredflow decoders
      xpredflow decoders flow
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          --decoder threshold:0.8
      xpredflow generate "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters." \\
          --policy power:8 -o tau=0.95
    """
    from xpredflow.engine.request import Options
    from xpredflow.errors import unknown_name

    known, policies = decoder_summaries(), policy_summaries()
    if name is None:
        typer.echo("Decoders (--decoder NAME, options with -o NAME=VALUE):")
        for one, summary in known.items():
            entry(one, summary + _brief(options_of(one)))
        typer.echo("\nStep-size policies of flow (--policy NAME or NAME:VALUE):")
        for one, summary in policies.items():
            entry(one, summary + _brief(_policy_options(one)))
    elif name in known:
        typer.echo(f"{name}: {known[name]}\n\nOptions of {name} (-o NAME=VALUE):")
        _print(options_of(name))
        typer.echo("\nOptions of every decoder (-o NAME=VALUE):")
        _print(options_of(Options))
    elif name in policies:
        typer.echo(f"{name}: {policies[name]}\nUse it with --policy {name}")
        _print(_policy_options(name))
    else:
        raise unknown_name("decoder or policy", name, [*known, *policies])


def decoder_summaries() -> dict[str, str]:
    """Every decoder with a line about it, those of other packages included."""
    from xpredflow.decoders import DECODERS

    return {name: found.summary for name, found in DECODERS.entries().items()}


def policy_summaries() -> dict[str, str]:
    """Every policy with a line about it."""
    from xpredflow.decoders import POLICIES

    return {name: found.summary for name, found in POLICIES.entries().items()}


def options_of(owner: Any) -> "list[Setting]":
    """The settings of a decoder by its name, or of a class that declares some."""
    from xpredflow.decoders import option_owner
    from xpredflow.settings import described

    declared = option_owner(owner) if isinstance(owner, str) else owner
    return described(declared) if isinstance(declared, type) and is_dataclass(declared) else []


def _policy_options(name: str) -> "list[Setting]":
    from xpredflow.decoders import POLICIES

    return options_of(POLICIES[name])


def _print(options: "list[Setting]") -> None:
    for option in options:
        typer.echo(f"  {_default(option):<32}  {option.help}".rstrip())


def _brief(options: "list[Setting]") -> str:
    listed = ", ".join(_default(option) for option in options)
    return f" [{listed}]" if listed else ""


def _default(option: "Setting") -> str:
    if option.default is MISSING:
        return option.name
    return f"{option.name}={option.written_default}"
