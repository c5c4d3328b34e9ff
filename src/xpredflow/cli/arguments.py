"""What was given on the command line, by name: put together, split, and quoted again."""

import shlex
from collections.abc import Iterable
from typing import Any

import typer

from xpredflow.errors import InputError


def spec_and_options(decoder: str | None, options: dict[str, Any]) -> tuple[str | None, Any]:
    """NAME[:VALUE] of a decoder's spec, and its options with those given beside it."""
    from xpredflow.decoders.spec import parse_spec, with_options

    if decoder is None:
        return None, options
    spec = parse_spec(decoder)
    head = spec.name if spec.value is None else f"{spec.name}:{spec.value}"
    return head, with_options(spec, options)


def names(texts: Iterable[str]) -> list[str]:
    """What was given by repeating a flag, with commas, or both."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def merged(
    named: dict[str, Any], pairs: list[str] | None, flag: str = "-o", example: str = "tau=0.95"
) -> dict[str, Any]:
    """Options with a flag of their own and NAME=VALUE pairs; nothing may be said twice."""
    options = dict(named)
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"{flag} {pair!r}: expected NAME=VALUE, such as {flag} {example}")
        if name in options:
            raise InputError(f"{flag} {pair!r}: {name} was given before; give it once")
        options[name] = value
    return options


def of_file(
    column: list[str] | None, grader: str | None, response_length: int | None = None
) -> dict[str, Any]:
    """The options of a file of one's own, as `make_task` takes them."""
    columns = merged({}, column, "--column", "prompt=question") or None
    return {"columns": columns, "grader": grader, "response_length": response_length}


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Only what the user said: every default is declared where it is used."""
    return {name: value for name, value in values.items() if value is not None}


def command(context: typer.Context) -> str:
    """`xpredflow NAME` with the arguments and then the options that the user wrote."""
    words = ["xpredflow", context.info_name or ""]
    # arguments first, whatever stands before them in the declaration
    for parameter in sorted(context.command.params, key=lambda p: p.param_type_name):
        name = parameter.name or ""
        value = context.params.get(name)
        source = context.get_parameter_source(name)
        # by its name: which module the enumeration lives in depends on the version of typer
        if source is None or source.name != "COMMANDLINE" or value is None:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if value is True:
            words += flag
        else:
            words += [word for one in values for word in (*flag, str(one))]
    return shlex.join(words)
