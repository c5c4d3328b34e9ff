"""run.toml: everything that a training run was started with, in one file that can be given back.

    command = "align"

    [inputs]               # what it starts from: the model, answers, a task
    [settings]             # every setting of the training
    [rules]                # of the flow, where it decodes
    [checks]               # what a resumed run is held against; --config does not read it

TOML has no null: what is left out on purpose stands there as "none", as a user would type it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from xpredflow.errors import InputError, unknown_name
from xpredflow.files import explained, read_object, write_atomically
from xpredflow.settings import configured, described, option_names

NAME, OLD_NAME = "run.toml", "config.json"
_TABLES = ("inputs", "settings", "rules", "checks")
# what earlier versions called a setting in config.json, per command
_RENAMED = {
    "align": {"steps": "updates", "walk": "on_policy"},
    "train-softmask": {"steps": "updates"},
    "pretrain": {"steps": "updates"},
    "train-policy": {
        "steps": "budget",
        "model": "model_name",
        "commit_above": "commit_threshold",
        "commit_below": "commit_max_progress",
        "commit_bound": "commit_entropy",
    },
}


@dataclass(frozen=True)
class RunFile:
    """What a run was started with; `settings` is its config, a dataclass."""

    command: str
    settings: Any
    inputs: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Everything by name, for reports and for the comparison on resuming."""
        return {**asdict(self.settings), **self.rules, **self.inputs, **self.checks}

    def write(self, directory: Path) -> None:
        """Replace the directory's run.toml."""
        tables = {"settings": asdict(self.settings)}
        tables |= {name: dict(getattr(self, name)) for name in ("inputs", "rules", "checks")}
        text = f"# xpredflow {self.command} OUT --config {NAME} starts the same run again\n"
        written = {name: _plain(tables[name]) for name in _TABLES if tables[name]}
        text += tomli_w.dumps({"command": self.command, **written})
        write_atomically(directory / NAME, text)

    def changed_since(self, directory: Path, may_change: tuple[str, ...]) -> tuple | None:
        """The first (name, then, now) that differs from the run in a directory; None if none."""
        now, old = _plain(self.values()), not (directory / NAME).is_file()
        if old:
            then = self._old_values(directory / OLD_NAME)
            names = {*then} & {*now}  # an older version may have known more, or less
        else:
            tables = _read(directory / NAME)
            then = {k: v for table in _TABLES for k, v in tables.get(table, {}).items()}
            # an earlier version held fewer things against a resumed run, and had fewer settings
            defaults = _plain({s.name: s.default for s in described(type(self.settings))})
            new = {name for name in {*now} - {*then} if now[name] == defaults.get(name)}
            names = ({*then} | {*now}) - ({*self.checks} - {*then}) - new
        for name in sorted(names - {*may_change}):
            if then.get(name) != now.get(name):
                return name, then.get(name), now.get(name)
        return None

    def _old_values(self, path: Path) -> dict[str, Any]:
        """What config.json of an earlier version says, in today's names and types."""
        renamed = _RENAMED.get(self.command, {})
        read = read_object(path, "start anew in another directory")
        values = {renamed.get(name, name): value for name, value in read.items()}
        known = {k: v for k, v in values.items() if k in option_names(type(self.settings))}
        values |= asdict(configured(type(self.settings), known, str(path)))
        for name, value in self.inputs.items():  # lists were written as text
            if isinstance(value, list) and isinstance(values.get(name), str):
                values[name] = [part.strip() for part in values[name].split(",")]
        return _plain(values)


def read_run_file(path: Path, command: str) -> dict[str, dict[str, Any]]:
    """The tables `inputs`, `settings` and `rules` of a run.toml for --config."""
    if not path.is_file():
        raise InputError(f"--config {str(path)!r} does not exist: give the run.toml of a run")
    tables = _read(path)
    for name in tables:
        if name not in ("command", *_TABLES):
            raise unknown_name("table", name, _TABLES, f" in {str(path)!r}")
    if tables.get("command", command) != command:
        raise InputError(
            f"{str(path)!r} belongs to a run of {tables['command']!r}: give it to"
            f" 'xpredflow {tables['command']} OUT --config {path}'"
        )
    return {name: dict(tables.get(name, {})) for name in ("inputs", "settings", "rules")}


def _read(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {explained(error)}") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError
        raise InputError(
            f"{str(path)!r} is not TOML ({error}): mend it or write it anew"
        ) from error
    for name in _TABLES:
        if not isinstance(found.get(name, {}), dict):
            raise InputError(f"{str(path)!r}: {name} is no table: mend it or write it anew")
    return found


def _plain(value: Any) -> Any:
    """Values as TOML has them, so that what is written compares equal to what is read."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None:
        return "none"
    return value if isinstance(value, bool | int | float | str) else str(value)
