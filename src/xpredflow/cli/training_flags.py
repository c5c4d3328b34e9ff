"""Every setting of a training as a listed flag, in groups; and what was given, from all places.

@settings_flags(AlignConfig)
def align(out: ..., begin: AnswersFlags, **flags): ...

adds `--lr`, `--lora-rank`, `--checkpointing/--no-checkpointing` and so on to what the command
declares itself. Values stay text: the settings class converts and checks them, as it does for
`-o NAME=VALUE` and for a run.toml. A flag wins over the file.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from xpredflow.cli import options as shared
from xpredflow.cli.arguments import given, merged
from xpredflow.cli.flag_groups import expanded
from xpredflow.errors import InputError, unknown_name
from xpredflow.settings import Setting, described, option_names

SHORT = {"updates": "-n"}


def settings_flags(
    cls: type, rules: Sequence[Setting] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a command a flag for every setting of `cls` and every rule."""

    def extend(command: Callable[..., Any]) -> Callable[..., Any]:
        inner = expanded(command)
        own = inspect.signature(inner)
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        flags = [_parameter(setting, setting.group or "Settings") for setting in described(cls)]
        flags += [_parameter(rule, "Rules of the flow") for rule in rules]

        @wraps(inner)
        def extended(**values: Any) -> Any:
            return inner(**values)

        extended.__signature__ = own.replace(parameters=[*kept, *flags])  # type: ignore[attr-defined]
        extended.__annotations__ = {p.name: p.annotation for p in (*kept, *flags)}
        return extended

    return extend


def _parameter(setting: Setting, panel_name: str) -> inspect.Parameter:
    flag = "--" + setting.name.replace("_", "-")
    panel: dict[str, Any] = {"rich_help_panel": panel_name, "show_default": False}
    first = setting.help[:1]
    text = first.upper() if first.isascii() else first  # not λ and κ
    text += f"{setting.help[1:]}  [default: {setting.written_default or 'none'}]"
    if bool in (get_args(setting.hint) or (setting.hint,)):
        names = f"{flag}/--no-{flag[2:]}"
        hint: Any = Annotated[bool | None, typer.Option(names, help=text, **panel)]
    else:
        short = [SHORT[setting.name]] if setting.name in SHORT else []
        option = typer.Option(flag, *short, metavar=_metavar(setting.hint), help=text, **panel)
        hint = Annotated[str | None, option]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(setting.name, keyword, default=None, annotation=hint)


def _metavar(hint: Any) -> str:
    """What a value looks like, in a word."""
    choices = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if get_origin(hint) is Literal:
        return "|".join(map(str, choices))
    if len(choices) == 1 and get_origin(choices[0]) is Literal:
        return "|".join(map(str, get_args(choices[0])))
    return "N" if choices == [int] else "NUMBER" if float in choices else "VALUE"


class GroupedCommand(TyperCommand):
    """Help in sections: the command's own options first, then the settings group by group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            title = getattr(parameter, "rich_help_panel", None) or kind
            sections.setdefault(title, []).append(record)
        # click lists --help last, behind all groups, but it belongs to the command's own
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Given:
    """What the user said, in flags, in pairs and in a file: flags and pairs win over the file."""

    def __init__(
        self,
        command: str,
        cls: type,
        flags: dict[str, Any],
        pairs: list[str] | None,
        file: Path | None,
        example: str,
    ) -> None:
        self.cls, self.command = cls, command
        said = merged(given(flags), pairs, example=example)
        known = option_names(cls)
        self.rules = {name: value for name, value in said.items() if name not in known}
        self.settings = {name: value for name, value in said.items() if name in known}
        self.inputs: dict[str, Any] = {}
        if file is not None:
            from xpredflow.training.common.run_file import read_run_file

            tables = read_run_file(file, command)
            self.inputs = tables["inputs"]
            self.settings = {**tables["settings"], **self.settings}
            self.rules = {**tables["rules"], **self.rules}

    def config(self, rules: list[str] | None = None) -> Any:
        """The settings; a name that is neither one of them nor one of the `rules` is refused."""
        from xpredflow.settings import configured

        for name in self.rules:
            if name not in (rules or ()):
                valid = [*option_names(self.cls), *(rules or ())]
                raise unknown_name("setting", name, valid, f" of {self.command}")
        return configured(self.cls, self.settings, self.command)

    def input(self, name: str, said: Any, default: Any = None) -> Any:
        """What a run starts from: as the user says, or as the file does, or the default."""
        if said is not None and said != []:
            return said
        return self.inputs.get(name, default)


@dataclass(frozen=True)
class AnswersFlags:
    """Where a training on answers begins, and whether it goes on."""

    answers: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Answers to learn from, from self-generate; may be repeated."
        ),
    ] = None
    model: shared.Model = None
    config: shared.ConfigFile = None
    resume: shared.Resume = False
    option: shared.SettingPairs = None
    device: shared.Device = None
    threads: shared.Threads = None

    def given(self, command: str, cls: type, flags: dict[str, Any], example: str) -> Given:
        """What was said, with the `answers`, without which there is nothing to learn."""
        said = Given(command, cls, flags, self.option, self.config, example)
        said.inputs["answers"] = said.input("answers", self.answers)
        if not said.inputs["answers"]:
            raise InputError(
                "no answers: give --answers FILE, which xpredflow self-generate writes"
            )
        return said
