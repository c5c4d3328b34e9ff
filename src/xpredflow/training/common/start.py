"""What a training starts from: a model, as often as it is asked for, and answers to learn from."""

import hashlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel, embedded
from xpredflow.models.digests import model_digest, weights_digest
from xpredflow.models.loader import as_device
from xpredflow.models.quantize import refuse_quantised
from xpredflow.training.common.answers import Answer, read_answers

Answers = str | Path | Sequence[str | Path] | list[Answer]


@dataclass(frozen=True)
class Start:
    """The model, loaded anew by every call, and the answers.

    `inputs` names both and `checks` holds the fingerprints of both: a run is resumed with the same
    ones only, wherever the files lie by then. `shell` is the model on the meta device, whose files
    are yet to be read (None: there are none), and `device` where its values belong.
    """

    load: Callable[[], MaskedDiffusionModel]
    answers: list[Answer]
    inputs: dict[str, Any]
    checks: dict[str, Any]
    shell: Callable[[], MaskedDiffusionModel | None] = lambda: None
    device: torch.device | None = None


def start_from(
    model: MaskedDiffusionModel | str | Path,
    answers: Answers,
    device: str | None = None,
) -> Start:
    """From a loaded model, which is copied, or a name or path; and files of answers, or a list."""
    found, files, fingerprint = _answers(answers)
    name = str(model) if isinstance(model, str | Path) else getattr(model, "name", "a model")
    inputs: dict[str, Any] = {"model": name}
    if files:
        inputs["answers"] = [str(file) for file in files]
    named = isinstance(model, str | Path)
    weights = weights_digest(model) if named else model_digest(model)
    checks = {"answers_sha256": fingerprint, "weights": weights}
    start = Start(_loader(model, device), found, inputs, checks)
    if not named:
        return start
    return replace(start, shell=_loader(model, "meta"), device=as_device(device))


def _answers(answers: Answers) -> tuple[list[Answer], list[Path], str]:
    given: Any = [answers] if isinstance(answers, str | Path) else list(answers)
    if given and all(isinstance(one, Answer) for one in given):
        content = "".join(one.line() for one in given).encode()
        return given, [], hashlib.sha256(content).hexdigest()
    if not given or any(not isinstance(one, str | Path) for one in given):
        raise InputError(
            f"answers is {str(answers)[:60]!r}: give a file that self-generate wrote, several of"
            " them, or a list of Answer"
        )
    files = [Path(one) for one in given]
    found = [answer for file in files for answer in read_answers(file)]
    content = b"".join(file.read_bytes() for file in files)
    return found, files, hashlib.sha256(content).hexdigest()


def _loader(
    model: MaskedDiffusionModel | str | Path, device: str | None
) -> Callable[[], MaskedDiffusionModel]:
    if isinstance(model, str | Path):
        return lambda: _trainable(embedded.load(str(model), device=device))
    if device is not None:
        raise InputError(
            f"device is {device!r} but the model is loaded already: leave it out, or give the"
            " model by its name or path"
        )
    return lambda: deepcopy(_trainable(model))


def _trainable(model: Any) -> MaskedDiffusionModel:
    if not isinstance(model, MaskedDiffusionModel):
        raise InputError(
            f"{getattr(model, 'name', type(model).__name__)!r} has weights that cannot be trained"
            " here: give a model that xpredflow.load returned, or its name or path"
        )
    refuse_quantised(model, "trained")
    return model
