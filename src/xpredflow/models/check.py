"""Whether something is a model that the engine can decode with; what to do if it is not."""

from typing import Any

from xpredflow.errors import InputError
from xpredflow.types import Model


def check_model(model: Any) -> None:
    """Refuse what is no model: a name must be loaded first, a foreign module wrapped."""
    if isinstance(model, Model):
        return
    if isinstance(model, str):
        raise InputError(f"model is the text {model!r}: load it first, model = load({model!r})")
    raise InputError(
        f"model is a {type(model).__name__}, which has no logits(inputs, positions, columns): load"
        " a checkpoint with xpredflow.load, or adapt a torch module with xpredflow.wrap"
    )
