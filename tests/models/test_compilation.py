"""The option reaches torch.compile, and what it compiles is one graph per layer.

That compiled kernels agree is no test here: compiling takes long.
"""

import subprocess
import sys

import pytest
from builders import write_checkpoint
from toy import ToyModel

import xpredflow.models as models
from xpredflow import InputError
from xpredflow.models.compilation import compile_layers

# In a process of its own: checks of shapes under pytest would split the graphs.
ONE_GRAPH = """
import sys
from xpredflow import generate, load
from xpredflow.models.compilation import compile_layers

prompts = [[65, 66, 67, 68], [70, 71, 72]]
options = dict(decoder="mask", chat=False, gen_length=12, budget=3, max_batch=2)
expected = [done.ids for done in generate(load(sys.argv[1]), prompts, **options)]
model = load(sys.argv[1])
compile_layers(model, backend="eager", whole=True)
assert [done.ids for done in generate(model, prompts, **options)] == expected
"""


def test_loading_may_ask_for_it(tmp_path):
    model = models.load("tiny", compile=True)
    layers, _, _ = model.trunk()
    assert all(layer._compiled_call_impl is not None for layer in layers)
    models.save(model, tmp_path / "saved")  # under the same names as ever
    again = models.load(tmp_path / "saved")
    assert again.state_dict().keys() == model.state_dict().keys()
    layers, _, _ = again.trunk()
    assert all(layer._compiled_call_impl is None for layer in layers)


def test_what_cannot_be_compiled_is_said():
    with pytest.raises(InputError, match="do not go together"):
        models.load("tiny", compile=True, quantize="int8")
    with pytest.raises(InputError, match="before it is wrapped"):
        compile_layers(ToyModel())
    with pytest.raises(InputError, match="is on cpu, which has no CUDA graphs: give True"):
        models.load("tiny", compile="graphs", device="cpu")
    with pytest.raises(InputError, match="compile is 'graph': give True, or 'graphs'"):
        compile_layers(models.load("tiny"), "graph")


@pytest.mark.parametrize("family", ["llada", "llada2"])
def test_a_layer_is_one_graph(tmp_path, family):
    """Experts and a cache among them: neither asks the host for anything."""
    write_checkpoint(tmp_path / family, family)
    script = [sys.executable, "-c", ONE_GRAPH, str(tmp_path / family)]
    ended = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
