"""The simulated accelerator refuses and counts what a real one would: faults are planted."""

import pytest
import torch
from counts import counting
from torch.nn import functional as F

from xpredflow import generate
from xpredflow.flow import Flow
from xpredflow.types import Action

CPU_IN_DEVICE_OPERATION = {
    "sum": lambda x: x + torch.ones(3),
    "in place": lambda x: x.add_(torch.ones(3)),
    "into the CPU": lambda x: torch.ones(3) * x,
    "product": lambda x: x @ torch.ones(3, 2),
    "layer": lambda x: F.linear(x, torch.ones(2, 3)),
    "concatenation": lambda x: torch.cat((x, torch.ones(1))),
    "stack": lambda x: torch.stack((x, torch.ones(3))),
    "where": lambda x: torch.where(torch.tensor([True, False, True]), x, x),
    "gather": lambda x: x.gather(0, torch.tensor([1])),
    "gather of nothing": lambda x: x.gather(0, torch.tensor(1)),
    "assignment": lambda x: x.index_put_((torch.zeros(2, dtype=torch.long),), torch.ones(2)),
    "index of a CPU tensor": lambda x: torch.ones(3)[x.long()],
    "draw": lambda x: torch.rand(3, device=x.device, generator=torch.Generator()),
    "numpy": lambda x: x.numpy(),
}
ALLOWED = {
    "a number": lambda x: x * 2 + torch.tensor(1.0),
    "a number in a choice": lambda x: torch.where(x > 0, x, torch.tensor(0.0)),
    "CPU indices": lambda x: x[torch.tensor([0, 2])],
    "a number assigned": lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(1.0)),
    "a draw of its own": lambda x: torch.rand(
        3, device=x.device, generator=torch.Generator(x.device).manual_seed(1)
    ),
}
SYNCS = {
    "item": lambda x: x.sum().item(),
    "a condition": lambda x: 1 if x.any() else 0,
    "a list": lambda x: x.tolist(),
    "a copy to the CPU": lambda x: x.cpu(),
    "a copy into a CPU tensor": lambda x: torch.zeros(3).copy_(x),
    "nonzero": lambda x: x.nonzero(),
    "a mask as index": lambda x: x[x > 0],
    "an assignment by mask": lambda x: x.index_put_((x > 0,), x[:2] + 1),
    "unique": lambda x: x.unique(),
    "bincount": lambda x: x.long().bincount(),
    "equal": lambda x: torch.equal(x, x),
    "an iteration": lambda x: int(next(iter(x))),
}
NO_SYNC = {
    "arithmetic": lambda x: (x * 2).softmax(-1).topk(2),
    "a filled mask": lambda x: x.masked_fill(x > 0, 1.0),
    "a number by mask": lambda x: x.index_put_((x > 0,), torch.tensor(1.0)),
    "a list that is uploaded": lambda x: torch.tensor([1, 2], device=x.device),
    "shapes": lambda x: x.reshape(3, 1).shape[0],
}


def made(device):
    return torch.tensor([1.0, 0.0, 2.0], device=device)


@pytest.mark.parametrize("fault", CPU_IN_DEVICE_OPERATION)
def test_refuses_what_cuda_refuses(device, fault):
    with pytest.raises((RuntimeError, TypeError), match=r"same device|generator|not supported"):
        CPU_IN_DEVICE_OPERATION[fault](made(device))


@pytest.mark.parametrize("way", ALLOWED)
def test_takes_what_cuda_takes(device, way):
    assert ALLOWED[way](made(device)).device == device


@pytest.mark.parametrize("fault", SYNCS)
def test_counts_what_makes_the_host_wait(device, fault):
    x = made(device)
    with counting() as counts:
        SYNCS[fault](x)
    assert counts.syncs == 1, counts


@pytest.mark.parametrize("way", NO_SYNC)
def test_counts_nothing_else(device, way):
    x = made(device)
    with counting() as counts:
        NO_SYNC[way](x)
    assert counts.syncs == 0, counts


def test_counts_copies_and_launches(device):
    with counting() as counts:
        x = torch.tensor([1.0, 2.0], device=device)
        (x * 2 + 1).view(2, 1)[0].sum()
    assert counts.copies == 1
    assert counts.kernels == {"mul": 1, "add": 1, "sum": 1}


def test_gradients_are_the_cpus(device):
    outcomes = []
    for where in ("cpu", device):
        weight = torch.nn.Parameter(torch.arange(6.0).view(2, 3).to(where))
        x = torch.tensor([[1.0, -1.0, 2.0]], device=where)
        optimizer = torch.optim.AdamW([weight], lr=0.1)
        for _ in range(3):
            F.linear(x, weight).square().sum().backward()
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
            optimizer.step()
            optimizer.zero_grad()
        outcomes.append(weight.detach().cpu())
    torch.testing.assert_close(*outcomes)


def test_autocast_lowers_products(device):
    x = torch.ones(2, 3, device=device)
    with torch.autocast(device.type, torch.bfloat16):
        assert F.linear(x, x).dtype == (x @ x.T).dtype == torch.bfloat16
        assert (x + 1).dtype == torch.float32


def on_the_cpu(signals, progress, info):
    return Action(torch.full(progress.shape, 0.5))


def with_a_hidden_sync(signals, progress, info):
    share = 0.5 if signals.confidence.mean() > 2 else 0.4
    return Action(torch.full_like(progress, share))


def test_a_policy_that_forgets_the_device_is_caught(device, model_on):
    with pytest.raises(RuntimeError, match="same device"):
        generate(model_on("llada", device), [[65]], decoder=Flow(on_the_cpu), gen_length=4)


def test_a_hidden_sync_is_counted_where_it_hides(device, model_on):
    with counting() as counts:
        generate(
            model_on("llada", device),
            [[65]],
            decoder=Flow(with_a_hidden_sync),
            gen_length=4,
            budget=3,
        )
    assert counts.syncs >= 3
    hidden = [where for where in counts.waits if where.startswith("flow.py")]
    assert sum(counts.waits[where] for where in hidden) == 3, counts
