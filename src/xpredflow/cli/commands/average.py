"""`xpredflow average`: one checkpoint from several."""

from pathlib import Path
from typing import Annotated

import typer


def average(
    out: Annotated[Path, typer.Argument(help="Directory of the new checkpoint.")],
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Two or more: directories, hub ids or embedded."),
    ],
) -> None:
    """Average the weights of models that were aligned from the same checkpoint.

    The mean may keep what each of them has learned: measure it on validation problems before you
    use it. The result has the dtype of the first: float32 for an embedded model, else as it is
    stored.

    \b
    Examples:
      xpredflow average runs/mean runs/one/model runs/two/model
      xpredflow eval -m runs/mean -t minicode -d flow -b 1/4
    """
    from xpredflow.errors import InputError
    from xpredflow.models import MaskedDiffusionModel, save
    from xpredflow.models.average import average as mean_of
    from xpredflow.models.embedded import load

    if (out / "config.json").exists():
        raise InputError(f"{str(out)!r} already holds a checkpoint: give another directory")
    repeated = next((name for name in models if models.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{repeated!r} was given twice: give each model once")
    loaded: dict[str, MaskedDiffusionModel] = {}
    for name in models:
        model = load(name)
        assert isinstance(model, MaskedDiffusionModel)
        loaded[name] = model
    save(mean_of(loaded), out)
    typer.echo(f"checkpoint: {out}, the mean of {', '.join(loaded)}")
