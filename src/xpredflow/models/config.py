"""Reading config.json: every complaint names the field, its value and what we implement."""

from typing import Any

from xpredflow.errors import InputError

REQUIRED: Any = object()


class Fields:
    """The fields of one config.json; null counts as absent, as it does upstream."""

    def __init__(self, config: dict[str, Any], family: str) -> None:
        self.config = config
        self.family = family

    def _value(self, name: str, default: Any) -> Any:
        value = self.config.get(name)
        if value is None:
            value = default
        if value is REQUIRED:
            raise InputError(
                f"config.json of this {self.family} checkpoint has no field {name!r}, which is "
                "required: use the config.json published with the weights"
            )
        return value

    def whole(self, name: str, default: Any = REQUIRED, least: int = 1) -> int:
        """A whole number of at least `least`."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(
                f"config.json: {name} is {value!r}; expected a whole number of at least {least}"
            )
        return value

    def real(self, name: str, default: Any = REQUIRED) -> float:
        """A positive number."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise InputError(f"config.json: {name} is {value!r}; expected a positive number")
        return float(value)

    def token(self, name: str, default: Any, vocabulary: int) -> int:
        """A token id inside the vocabulary."""
        value = self._value(name, default)
        is_id = isinstance(value, int) and not isinstance(value, bool)
        if not is_id or not 0 <= value < vocabulary:
            origin = (
                "" if self.config.get(name) is not None else " (the default; the field is absent)"
            )
            raise InputError(
                f"config.json: {name} is {value!r}{origin}; expected a token id in "
                f"[0, {vocabulary}): set {name} to the tokenizer's id"
            )
        return value

    def present(self, *names: str) -> str:
        """Of several names for one field the one that is there, or else the first."""
        return next((name for name in names if self.config.get(name) is not None), names[0])

    def tokens(self, name: str, default: Any, vocabulary: int) -> list[int]:
        """One token id or a list of them."""
        value = self._value(name, default)
        several = value if isinstance(value, list) and value else [value]
        return [
            Fields({name: one}, self.family).token(name, default, vocabulary) for one in several
        ]

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise InputError(f"config.json: {name} is {value!r}; expected true or false")
        return value

    def only(self, **supported: Any) -> None:
        """Reject a field whose value asks for something that is not implemented."""
        for name, wanted in supported.items():
            value = self._value(name, wanted)
            if value != wanted:
                raise InputError(
                    f"config.json: {name} is {value!r}, but the {self.family} family is "
                    f"implemented for {name} = {wanted!r} only"
                )

    def divides(self, whole: str, part: str, default: Any = REQUIRED) -> int:
        """`part`, which must divide `whole` without remainder."""
        value = self.whole(part, default)
        if self.whole(whole) % value:
            raise InputError(
                f"config.json: {part} is {value}, which does not divide {whole} = "
                f"{self.config[whole]}"
            )
        return value
