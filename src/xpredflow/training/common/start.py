"""What a training starts from: a model, as often as it is asked for, and answers to learn from."""

import hashlib
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel, embedded
from xpredflow.processes import Share
from xpredflow.training.common.answers import Answer, read_answers

Answers = str | Path | Sequence[str | Path] | list[Answer]


@dataclass(frozen=True)
class Start:
    """The model, loaded anew by every call, and the answers.

    `inputs` names both and `checks` holds the answers' fingerprint: a run is resumed with the same
    ones only, wherever the files lie by then.
    """

    load: Callable[[], MaskedDiffusionModel]
    answers: list[Answer]
    inputs: dict[str, Any]
    checks: dict[str, Any]


def start_from(
    model: MaskedDiffusionModel | str | Path,
    answers: Answers,
    device: str | None = None,
    share: Share = Share(),  # noqa: B008  (immutable)
) -> Start:
    """From a loaded model, which is copied, or a name or path; and files of answers, or a list."""
    found, files, fingerprint = _answers(answers)
    name = str(model) if isinstance(model, str | Path) else getattr(model, "name", "a model")
    inputs: dict[str, Any] = {"model": name}
    if files:
        inputs["answers"] = [str(file) for file in files]
    return Start(_loader(model, device, share), found, inputs, {"answers_sha256": fingerprint})


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
    model: MaskedDiffusionModel | str | Path, device: str | None, share: Share
) -> Callable[[], MaskedDiffusionModel]:
    if isinstance(model, str | Path):
        source, where = str(model), _own_device(device or "cpu", share)
        return lambda: _trainable(embedded.load(source, device=where))
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
    return model


def _own_device(kind: str, share: Share) -> str:
    """Each process of a machine takes the accelerator of its number there."""
    if share.world == 1 or kind == "cpu" or ":" in kind:
        return kind
    number = int(os.environ.get("LOCAL_RANK", "0"))
    torch.get_device_module(kind).set_device(number)
    return f"{kind}:{number}"
