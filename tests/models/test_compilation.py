"""The option reaches torch.compile. That results agree is no test here: compiling takes long."""

import pytest
from toy import ToyModel

import xpredflow.models as models
from xpredflow import InputError
from xpredflow.models.compilation import compile_layers


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
