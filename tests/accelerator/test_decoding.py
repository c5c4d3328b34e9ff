"""Every decoder, policy and block setting on the accelerator: the tokens of the CPU."""

from typing import Any

import pytest
import torch
from test_contract import VARIANTS

from xpredflow import Engine, generate

PROMPTS = [[65, 66, 67], list(range(70, 81)), [90]]
RUN: dict[str, Any] = {"gen_length": 6, "budget": 4, "max_batch": 2, "chat": False}
FAMILIES = ("llada", "llada2")
SETTINGS = {
    "one block": ("llada", {"gen_length": 4, "budget": 3, "max_batch": 3}),
    "blocks": ("llada", {"block_length": 4}),
    "native blocks": ("llada2", {"gen_length": 6, "budget": 2}),  # of 8: the second row has two
}
DRAWN = ("remdm", "remdm:conf", "remdm:rescale")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("decoder", "extra"), VARIANTS, ids=str)
def test_decodes_as_on_the_cpu(device, model_on, decoder, extra, setting):
    family, changes = SETTINGS[setting]
    options = {**RUN, **changes, **extra, "decoder": decoder}
    on_device = generate(model_on(family, device), PROMPTS, **options)
    on_cpu = generate(model_on(family, "cpu"), PROMPTS, **options)
    if "temperature" in extra or decoder in DRAWN:
        return  # noise is drawn on the device: only that it runs is asked
    assert [done.ids for done in on_device] == [done.ids for done in on_cpu]
    assert [done.passes for done in on_device] == [done.passes for done in on_cpu]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("decoder", ["flow:learned:tiny", "flow", "threshold", "soft", "wino"])
def test_half_precision_end_to_end(device, model_on, dtype, family, decoder):
    model = model_on(family, device, dtype)
    for step in Engine(model, decoder=decoder, **RUN).steps(PROMPTS):
        assert step.canvas.state.dtype == torch.float32  # whatever the weights are
        assert step.canvas.state.device == step.event.signals.confidence.device == device
        assert not any(done.failed for done in step.finished)


def test_options_of_the_loop(device, model_on):
    model = model_on("llada", device)
    options = {**RUN, "logits_eos_inf": True, "confidence_eos_eot_inf": True, "trace": True}
    done = generate(model, [*PROMPTS, "a [[mask:3]] b"], decoder="flow", **options)
    assert len(done) == 4
    assert all(one.trace and isinstance(one.trace[0].tokens[0], int) for one in done)
