"""Reading config.json: every complaint names the field, its value and what we implement."""

from typing import Any

from xpredflow.errors import InputError

REQUIRED: Any = object()
# Modules are made one by one for these; of anything else there may be as many as LARGEST.
COUNTED = {"n_layers": 4096, "num_hidden_layers": 4096, "num_experts": 65536}
LARGEST = 2**24
_LENGTHS = ("max_sequence_length", "max_position_embeddings")  # of no tensor
_WIDTHS = (
    *("d_model", "hidden_size", "mlp_hidden_size", "intermediate_size", "moe_intermediate_size"),
    *("vocab_size", "embedding_size", "n_heads", "num_attention_heads", "head_dim"),
)
_HALVES = {"float16": "F16", "bfloat16": "BF16"}


def check_sizes(config: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """Refuse sizes that the stored tensors cannot have, before anything is built from them."""
    longest = max((max(shape, default=0) for shape in shapes.values()), default=0)
    for names, most, what in (
        (COUNTED, max(len(shapes), longest), f"the checkpoint has {len(shapes)} tensors in all"),
        (_WIDTHS, longest, f"no tensor of the checkpoint is wider than {longest}"),
    ):
        for name in names:
            value = config.get(name)
            if type(value) is int and value > most:
                raise InputError(
                    f"config.json: {name} is {value}, but {what}: use the config.json published"
                    " with the weights"
                )


def check_stored_dtype(config: dict[str, Any], stored: set[str]) -> None:
    """Both halves of a float have two bytes: read as the other one, weights are noise."""
    name = next((n for n in ("dtype", "torch_dtype") if n in config), "")
    said = config.get(name)
    if isinstance(said, str) and said in _HALVES and stored & {*_HALVES.values()} - {_HALVES[said]}:
        raise InputError(
            f"config.json: {name} is {said!r}, but the weights' headers say"
            f" {', '.join(sorted(stored))}: one of them is wrong; download the checkpoint again, or"
            f" correct {name}"
        )


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
        most = COUNTED.get(name, 2**31 if name in _LENGTHS else LARGEST)
        if type(value) is not int or not least <= value <= most:
            raise InputError(
                f"config.json: {name} is {value!r:.60}; expected a whole number from {least} to"
                f" {most}"
            )
        return value

    def real(self, name: str, default: Any = REQUIRED) -> float:
        """A positive number."""
        value = self._value(name, default)
        if type(value) not in (int, float) or not 0 < value < 1e30:  # NaN is in no range
            raise InputError(f"config.json: {name} is {value!r:.60}; expected a positive number")
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
