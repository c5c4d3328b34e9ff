"""How often a steady step makes the host wait for the device: counts, on any machine."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from toy import ToyModel, prompts

from xpredflow.decoders import DECODERS
from xpredflow.engine.session import Session
from xpredflow.policies.beta import expected_fraction

WAITS = ("tolist", "item", "cpu", "__bool__", "__int__", "__float__", "__index__", "nonzero")
UPLOADS = ("tensor", "as_tensor", "from_numpy")


class Counting(TorchFunctionMode):
    """Counts what would wait for an accelerator, and host data that becomes a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.uploads: list[str] = []
        self.paused = False

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if not self.paused:
            if name in WAITS or (name in ("__getitem__", "__setitem__") and _by_mask(args[1])):
                self.waits.append(name)
            if name in UPLOADS:
                self.uploads.append(name)
        return func(*args, **(kwargs or {}))


def _by_mask(index) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, torch.Tensor) and part.dtype is torch.bool for part in parts)


class Quiet(ToyModel):
    """What the model itself does is not counted."""

    def __init__(self, counting: Counting) -> None:
        super().__init__(3, sharpness=1.0)  # unsure: nothing ends for a while
        self.counting = counting

    def logits(self, *args, **kwargs):
        self.counting.paused = True
        found = super().logits(*args, **kwargs)
        self.counting.paused = False
        return found


def steady_step(rows: int, decoders: list[str], **options) -> Counting:
    counting = Counting()
    session = Session(Quiet(counting), max_batch=rows)
    for i, prompt in enumerate(prompts(rows)):
        session.submit(prompt, decoder=decoders[i % len(decoders)], gen_length=16, **options)
    for _ in range(2):
        step = session.step()
        assert step is not None
        assert not step.finished
    with counting:
        step = session.step()
    assert step is not None
    assert (len(step.rows), list(step.finished)) == (rows, [])
    return counting


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize(
    "decoder",
    [
        *(name for name in DECODERS if name != "flow"),
        *("flow:constant:1/64+commit=off", "flow:learned:tiny+commit=off+tau=1"),
        "flow:learned:tiny+policy_temperature=1.0+commit=off+tau=1",
    ],
)
def test_a_steady_step_waits_twice_at_most_whatever_the_batch(decoder: str, rows: int) -> None:
    counted = steady_step(rows, [decoder])
    assert len(counted.waits) <= (2 if "temperature" in decoder else 1), counted.waits
    assert len(counted.uploads) <= 2, counted.uploads


def test_rows_of_several_decoders_wait_together() -> None:
    counted = steady_step(6, ["mask", "threshold:1.0", "flow:constant:1/64+commit=off"])
    assert counted.waits == ["tolist"]
    assert counted.uploads == []


class Launches(TorchDispatchMode):
    """Operations that an accelerator would run as kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def test_the_expected_action_is_a_handful_of_operations() -> None:
    mu, kappa = torch.rand(2, 8), 2 + torch.rand(2, 8)
    with Launches() as launches:
        expected_fraction(mu, kappa)
    assert launches.count <= 30
