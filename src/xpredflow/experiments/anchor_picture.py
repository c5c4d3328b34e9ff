"""The probe of anchors as curves over α: accuracy above cross-entropy, a column per model."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xpredflow.files import save_figure


def draw(shown: dict[str, Any], alphas: Sequence[float], picture: Path) -> bool:
    """`shown` holds a Recovery by where it was measured; False where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure  # not pyplot: no display and no global state

    figure = Figure(figsize=(4 * len(shown), 6), layout="constrained")
    panels = figure.subplots(2, len(shown), sharex=True, squeeze=False)
    for column, (where, recovery) in enumerate(shown.items()):
        for row, measure in enumerate(("accuracy", "cross_entropy")):
            axes = panels[row][column]
            for name, values in getattr(recovery, measure).items():
                axes.plot(alphas, values, "o-", label=name)
            axes.set(ylabel=measure.replace("_", "-"))
        panels[0][column].set(title=where, ylim=(0, 1.02))
        panels[1][column].set(xlabel="displacement α", ylim=(0, None))
    panels[0][0].legend(title="endpoint")
    save_figure(figure, picture)
    return True
