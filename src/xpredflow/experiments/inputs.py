"""What a reproduction is made from, as the user named it; what is missing is said by its option."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from xpredflow.decoders import make_decoder, make_policy
from xpredflow.errors import InputError
from xpredflow.files import read_object
from xpredflow.models import embedded

# What each input is and where it comes from, for whoever left it out.
DESCRIBED = {
    "aligned": "--aligned MODEL, the model after alignment (xpredflow align)",
    "policy": "--policy FILE, a learned step-size policy (xpredflow train-policy)",
    "softmask": "--softmask DIR, a checkpoint fine-tuned with soft masks",
    "align_run": "--align-run DIR, the directory of an alignment run (xpredflow align)",
    "answers": "--answers FILE, because the tasks come without answers (xpredflow self-generate)",
}


SOFTNESS = ("k", "omega_s", "omega_a", "omega_b")  # what fine-tuning with soft masks settles


class Pair(NamedTuple):
    """A model as it was pretrained, and after alignment where that was given."""

    pretrained: str
    aligned: str | None


@dataclass(frozen=True)
class Inputs:
    """Models by name, directory or hub id; the n-th aligned one belongs to the n-th model.

    Embedded models bring their aligned weights and the learned policy with them.
    """

    models: tuple[str, ...] = ()
    aligned: tuple[str, ...] = ()
    policy: str | None = None
    softmask: str | None = None
    align_run: Path | None = None
    answers: Path | None = None
    tasks_answer: bool = True  # the tasks themselves have answers to show

    def check(self) -> None:
        """Everything that was given is there and can be read."""
        if self.chosen_policy is not None:
            make_policy(self.learned)
        for pair in self.pairs():
            for option, source in (("--model", pair.pretrained), ("--aligned", pair.aligned)):
                _check_source(option, source)
        _check_source("--softmask", self.softmask)
        if self.align_run is not None and not (self.align_run / "log.jsonl").is_file():
            raise InputError(
                f"--align-run {str(self.align_run)!r} holds no log.jsonl: give the OUT of an"
                " xpredflow align command"
            )

    def missing(self, needs: tuple[str, ...]) -> str | None:
        """What to give for the first of `needs` that was not given; None if all were."""
        given = {name: getattr(self, name) for name in DESCRIBED}
        given["answers"] = self.answers or self.tasks_answer
        given["aligned"] = all(pair.aligned for pair in self.pairs())
        given["policy"] = self.chosen_policy
        return next((DESCRIBED[name] for name in needs if not given[name]), None)

    def pairs(self) -> list[Pair]:
        """Every model with its aligned one; without --model, the embedded ones."""
        count = len(self.aligned) or len(embedded.SHORT_TASKS_ONLY)
        models = self.models or embedded.SHORT_TASKS_ONLY[:count]
        aligned = self.aligned or tuple(embedded.ALIGNED.get(model) for model in models)
        if len(aligned) != len(models):
            raise InputError(
                f"--aligned was given {len(aligned)} times for {len(models)} models"
                f" ({', '.join(models)}): give one for each, in the same order"
            )
        return [Pair(*pair) for pair in zip(models, aligned, strict=True)]

    @property
    def chosen_policy(self) -> str | None:
        """The one that was given, or for embedded models the one that was trained on them."""
        known = [embedded.ALIGNED[name] for name in embedded.SHORT_TASKS_ONLY]
        known.append(embedded.PAPER_ALIGNED)
        if self.policy is None and all(pair.aligned in known for pair in self.pairs()):
            return embedded.PRETRAINED
        return self.policy

    @property
    def learned(self) -> str:
        """The learned policy as the flow takes it."""
        return f"learned:{self.chosen_policy}"


def _check_source(option: str, source: str | None) -> None:
    """Refuse what can be no model before hours go into another one; a/b may be on the hub."""
    if source is None or source in embedded.EMBEDDED or Path(source).expanduser().exists():
        return
    if source.count("/") != 1 or source.startswith((".", "/", "~")):
        raise InputError(
            f"{option} {source!r}: expected {' or '.join(embedded.EMBEDDED)}, the directory of a"
            " checkpoint, or a hub id such as GSAI-ML/LLaDA-8B-Instruct"
        )


def softness_of(checkpoint: str) -> dict[str, Any]:
    """ω and k as softmask.json beside the weights has them; nothing where there is none."""
    file = Path(checkpoint).expanduser() / "softmask.json"
    if not file.is_file():
        return {}
    try:
        found = read_object(file, "restore it")
        own = {name: found[name] for name in SOFTNESS if name in found}
        make_decoder("soft", own)
        return own
    except InputError as error:
        raise InputError(
            f"{str(file)!r} cannot be read ({error}): expected an object with {', '.join(SOFTNESS)}"
        ) from error
