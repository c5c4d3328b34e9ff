"""`xpredflow decoders`: decoders and step-size policies, read off the registries."""

import inspect
import re
from contextlib import suppress
from dataclasses import MISSING, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xpredflow.cli.commands.models import entry
from xpredflow.cli.completion import decoders_and_policies

if TYPE_CHECKING:
    from xpredflow.settings import Setting

_COMMENTED = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)


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
    from xpredflow.engine.loop import Options
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
    from xpredflow import registry
    from xpredflow.decoders import DECODERS

    known = {} if DECODERS is registry.DECODERS else DECODERS
    return {name: known[name].summary for name in known} | _summaries(registry.DECODERS)


def policy_summaries() -> dict[str, str]:
    """Every policy with a line about it."""
    from xpredflow import registry
    from xpredflow.decoders import POLICIES
    from xpredflow.policies.beta import LearnedPolicy

    known: Any = {} if POLICIES is registry.POLICIES else POLICIES
    found = {name: known[name][1] for name in known} | _summaries(registry.POLICIES)
    return found | {"learned": (inspect.getdoc(LearnedPolicy) or "").split("\n")[0]}


def _summaries(names: Any) -> dict[str, str]:
    return {name: found.summary for name, found in names.entries().items()}


def options_of(owner: str | type) -> "list[Setting]":
    """The settings of a decoder by its name, or of a class that declares some."""
    from xpredflow.decoders import option_owner
    from xpredflow.settings import described

    declared = option_owner(owner) if isinstance(owner, str) else owner
    if declared is None or not is_dataclass(declared):
        return []
    said = _comments(declared)
    return [replace(one, help=one.help or said.get(one.name, "")) for one in described(declared)]


def _policy_options(name: str) -> "list[Setting]":
    from xpredflow.decoders import POLICIES

    if name not in POLICIES or name == "learned":
        return []
    found: Any = POLICIES[name]
    declared = found[0] if isinstance(found, tuple) else found
    return options_of(declared) if isinstance(declared, type) else []


def _comments(declared: type) -> dict[str, str]:
    """The comments beside a class's fields, for settings that describe themselves nowhere else."""
    found: dict[str, str] = {}
    for owner in reversed(declared.__mro__[:-1]):
        with suppress(OSError, TypeError):  # a class whose source is not at hand
            found |= dict(_COMMENTED.findall(inspect.getsource(owner)))
    return found


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
