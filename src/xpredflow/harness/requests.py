"""What a task parsed of a generation (`generation_kwargs`), in the engine's words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xpredflow.decoders import DECODERS, option_owner
from xpredflow.errors import InputError, unknown_name
from xpredflow.settings import convert, option_names

LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
SAMPLING = ("temperature", "top_p", "top_k", "min_p")  # without effect on greedy decoding
KNOWN = ("until", "do_sample", "num_beams", *LENGTHS, *SAMPLING)


@dataclass(frozen=True)
class Request:
    """Engine options, and the texts that end an answer."""

    options: tuple[tuple[str, Any], ...]  # hashable: requests with the same go together
    until: tuple[str, ...]

    def cut(self, text: str) -> str:
        """The text before the first stop text. Decoding is not left to right: cut afterwards."""
        found = [at for stop in self.until if stop and (at := text.find(stop)) >= 0]
        return text[: min(found)] if found else text


def read_request(kwargs: Mapping[str, Any], decoder: str, given: Mapping[str, Any]) -> Request:
    """What one request asks for; `given` are the --model_args, which win over the task's."""
    for name in kwargs:
        if name not in KNOWN:
            raise unknown_name("generation option", name, KNOWN, " (generation_kwargs)")
    if (beams := kwargs.get("num_beams") or 1) != 1:
        raise InputError(f"num_beams is {beams}: a diffusion decoder has no beams, leave it out")
    options: dict[str, Any] = {}
    length = next((kwargs[name] for name in LENGTHS if kwargs.get(name) is not None), None)
    if length is not None and "gen_length" not in given:
        options["gen_length"] = convert("max_gen_toks", length, int)
    temperature = _temperature(kwargs)
    if temperature > 0:
        _can_sample(decoder, kwargs, temperature)
        if "temperature" not in given:
            options["temperature"] = temperature
    until = kwargs.get("until") or ()
    return Request(tuple(options.items()), _texts(until))


def _temperature(kwargs: Mapping[str, Any]) -> float:
    """0 for greedy; do_sample without a temperature is 1, as in transformers."""
    wanted = kwargs.get("do_sample")
    if wanted is not None and not convert("do_sample", wanted, bool):
        return 0.0
    given = kwargs.get("temperature")
    if given is None:
        return 1.0 if wanted else 0.0
    return convert("temperature", given, float)


def _can_sample(decoder: str, kwargs: Mapping[str, Any], temperature: float) -> None:
    asked = f"the task samples (do_sample, temperature {temperature:g})"
    if not _has_temperature(decoder):
        able = ", ".join(name for name in DECODERS if _has_temperature(name))
        raise InputError(
            f"{asked}, but decoder {decoder!r} draws no tokens: give --gen_kwargs do_sample=False,"
            f" or a decoder with a temperature ({able})"
        )
    neutral = {"top_p": (1, 1.0), "top_k": (0, -1), "min_p": (0, 0.0)}
    for name, values in neutral.items():
        if kwargs.get(name) is not None and kwargs[name] not in values:
            raise InputError(
                f"{asked} with {name}={kwargs[name]}, which no decoder has: give --gen_kwargs"
                f" {name}={values[0]}"
            )


def _has_temperature(decoder: str) -> bool:
    owner = option_owner(decoder)
    return owner is not None and "temperature" in option_names(owner)


def _texts(until: str | Sequence[str]) -> tuple[str, ...]:
    return (until,) if isinstance(until, str) else tuple(until)
