"""The copying start: attention gives back what it reads, and the head names it."""

import pytest
import torch
from copying import LOGIT, start_copying

from xpredflow.models import build
from xpredflow.training.pretrain.initialise import SHAPES, read_shape


@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_output_undo_each_other(shape: str) -> None:
    model = build({**read_shape(shape), "vocab_size": 40, "embedding_size": 40})
    before = {name: value.clone() for name, value in model.state_dict().items()}
    start_copying(model, seed=0)
    weights = model.state_dict()
    groups, heads, size = model.shape.kv_heads, model.shape.heads, model.shape.head_dim
    layer = next(iter(model.trunk()[0])).state_dict()
    if shape != "tiny-moe":
        values, output = layer["v_proj.weight"], layer["attn_out.weight"]
    else:
        values = layer["attention.query_key_value.weight"][-groups * size :]
        output = layer["attention.dense.weight"]
    x = torch.randn(5, model.embedding.shape[1], dtype=torch.float64)
    read = (x @ values.double().T).unflatten(-1, (groups, size))
    back = read.repeat_interleave(heads // groups, 1).flatten(1) @ output.double().T
    span = values.double()
    assert torch.allclose(back, x @ span.T @ span, atol=1e-5)
    head = dict(model.trunk()[2].named_parameters())["weight"]
    assert torch.equal(head, model.embedding * (LOGIT / model.embedding.shape[1]))
    changed = {name for name in weights if not torch.equal(weights[name], before[name])}
    assert not any("mlp" in name or ("ff_" in name and "out" not in name) for name in changed)
    assert not any(name.endswith(("q_proj.weight", "k_proj.weight")) for name in changed)
    if shape == "tiny-moe":  # the fused rows of queries and keys keep their start
        fused = next(name for name in weights if "query_key_value" in name)
        rows = heads * size + groups * size
        assert torch.equal(weights[fused][:rows], before[fused][:rows])
