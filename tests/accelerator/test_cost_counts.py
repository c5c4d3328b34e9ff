"""Kernels and waits of the cost model are those that happen."""

import pytest
from builders import write_checkpoint
from test_counts import LENGTH, PROMPT, steady_steps

from xpredflow import load
from xpredflow.experiments.cost_model import Architecture, PassShape, parts_of

BATCH = 8


@pytest.mark.parametrize("layers", [2, 4])
@pytest.mark.parametrize(
    ("family", "field"), [("llada", "n_layers"), ("llada2", "num_hidden_layers")]
)
def test_as_counted(device, tmp_path, family, field, layers):
    write_checkpoint(tmp_path / family, family, **{field: layers})
    model = load(tmp_path / family, device=device)
    whole = LENGTH + len(PROMPT)
    parts = parts_of(Architecture.of(model), PassShape(BATCH, whole, LENGTH, whole), 4).values()
    steps = steady_steps(model, "flow:constant:1/64", BATCH, budget=LENGTH)
    assert {counts.launches for counts in steps} == {sum(part.kernels for part in parts)}
    assert {counts.syncs for counts in steps} == {sum(part.syncs for part in parts)}
