"""The settings that a row was decoded under, and how a page lists them."""

from typing import Any

# As `effective_settings` of a built decoder gives them: its name, the flow's policy, every setting.
Rules = dict[str, Any]
HEAD = ("decoder", "policy")


def rules_lines(found: list[Rules]) -> list[str]:
    """A line per distinct set; sets that differ in one and the same setting share theirs."""
    lines: list[_Line] = []
    for rules in found:
        if rules and not any(line.takes(rules) for line in lines):
            lines.append(_Line(rules))
    return [line.text() for line in lines]


class _Line:
    """Sets of rules that are equal but for one setting."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.varied = rules, ""
        self.values: list[Any] = []

    def takes(self, rules: Rules) -> bool:
        """Whether the set belongs here; if so it is taken in."""
        if rules.keys() != self.rules.keys():
            return False
        other = [name for name in rules if rules[name] != self.rules[name]]
        if not other:
            return True
        if len(other) > 1 or other[0] in HEAD or self.varied not in ("", other[0]):
            return False
        self.varied = other[0]
        if rules[self.varied] not in self.values:
            self.values.append(rules[self.varied])
        return True

    def text(self) -> str:
        name = str(self.rules.get("decoder", ""))
        policy = f" ({self.rules['policy']})" if self.rules.get("policy") else ""
        settings = [f"{n}={self._written(n)}" for n in self.rules if n not in HEAD]
        return f"{name}{policy}: {', '.join(settings) or 'no settings'}"

    def _written(self, name: str) -> str:
        values = [self.rules[name], *(self.values if name == self.varied else ())]
        return " or ".join(written(value) for value in values)


def written(value: Any) -> str:
    """A value as a user would write it."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
