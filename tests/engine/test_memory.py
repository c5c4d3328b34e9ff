"""What a pass holds: bytes, counted; at LLaDA's scale benchmarks/memory.py measures them."""

import os
import platform

import pytest
import torch
from flow_scene import SPACE, canvas
from torch.utils._python_dispatch import TorchDispatchMode
from toy import MASK, ToyModel, prompts

from xpredflow import Flow, Rules, decode_steps
from xpredflow.engine import signals
from xpredflow.engine.capacity import MOST_ROWS, bytes_of_row, fitting_batch
from xpredflow.engine.loop import make_rows
from xpredflow.engine.request import resolve
from xpredflow.engine.rows import Rule
from xpredflow.models.machine import keep_freed_memory
from xpredflow.policies.heuristic import Jump
from xpredflow.types import SpecialTokens

VOCABULARY, LENGTH, ROWS = 40_000, 64, 2
LOGITS = ROWS * LENGTH * VOCABULARY * 2  # bytes in bf16


class Wide(ToyModel):
    """A vocabulary so large that its logits are larger than anything else."""

    special = SpecialTokens(mask=VOCABULARY - 1, eos=VOCABULARY - 2)

    def __init__(self) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.embedding = torch.randn(VOCABULARY, 16, generator=draw)
        self.head = torch.randn(16, VOCABULARY, generator=draw)
        self.counting: Large | None = None

    def logits(self, *args, **kwargs):
        if self.counting is not None:
            self.counting.paused = True
        found = super().logits(*args, **kwargs).bfloat16()
        if self.counting is not None:
            self.counting.paused = False
        return found


class Large(TorchDispatchMode):
    """Bytes of every tensor beyond a chunk that anything but the model makes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []
        self.paused = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple) else (made,):
            fresh = isinstance(one, torch.Tensor) and not func.is_view
            fresh = fresh and not any(one is given for given in args)
            if fresh and not self.paused and one.nbytes > 2**23:  # a chunk in float64
                self.found.append(one.nbytes)
        return made


@pytest.mark.parametrize(
    ("decoder", "copies"),
    [
        *((name, 0) for name in ("flow:confidence", "mask", "threshold", "eb", "soft", "wino")),
        *((f"{name}+temperature=0.5", 0) for name in ("mask", "threshold")),
        *((name, 0) for name in ("klass", "remix")),  # they keep the head's own tensor
        ("credit", 2),  # fp32 credits of this pass and the last
    ],
)
def test_no_decoder_copies_the_logits(decoder: str, copies: int) -> None:
    model = Wide()
    steps = decode_steps(model, prompts(ROWS), decoder=decoder, gen_length=LENGTH, max_batch=ROWS)
    next(steps)
    with Large() as model.counting:
        step = next(steps)
    assert model.counting is not None
    assert sum(model.counting.found) <= copies * 2 * LOGITS
    kept = (step.canvas, step.event.signals)
    tensors = [value for one in kept for value in vars(one).values()]
    assert all(t.nbytes < LOGITS / 10 for t in tensors if isinstance(t, torch.Tensor))
    assert not step.canvas.memory
    assert step.event.signals.distribution is None


def test_only_rows_that_end_are_read_off() -> None:
    rows: list[int] = []

    class Watched(Flow):
        def finish(self, canvas, space):
            rows.append(len(canvas.frozen))
            return super().finish(canvas, space)

    decoder = Watched(Jump(0.5), Rules(reedit_margin=None))
    steps = decode_steps(ToyModel(), prompts(6), decoder=decoder, gen_length=16)
    ended = [len(step.finished) for step in steps]
    assert rows == [count for count in ended if count]
    assert len(rows) > 2


def test_only_a_state_that_left_the_straight_way_is_searched_for(monkeypatch) -> None:
    searched: list[int] = []
    nearest = signals._nearest

    def counted(states, *rest):
        searched.append(len(states))
        return nearest(states, *rest)

    monkeypatch.setattr(signals, "_nearest", counted)
    straight = canvas([0.3, 0.9, 1.0, 0.0], [4, 9, 2, 7])
    assert signals.nearest_tokens(straight, SPACE).tolist() == [[4, 9, 2, 7]]
    # what is predicted now is not what the state moved to
    bent = straight.update(tokens=torch.tensor([[5, 9, 5, 5]]))
    assert signals.nearest_tokens(bent, SPACE).tolist() == [[4, 9, 2, 5]]
    assert searched == [0, 2]
    masked = straight.update(tokens=torch.full((1, 4), MASK))
    assert signals.nearest_tokens(masked, SPACE).tolist()[0][:3] == [4, 9, 2]


def test_the_batch_follows_from_the_memory_that_is_free(monkeypatch) -> None:
    settings, _ = resolve("mask", {"gen_length": 32})
    rows = make_rows(ToyModel(), prompts(5), settings)
    each = max(bytes_of_row(ToyModel(), row) for row in rows)
    fixed = 3 * 2**26
    for free, expected in ((fixed + 5.5 * each / 0.9, 5), (0, 1), (10**12, MOST_ROWS)):
        room = (free + fixed * (1 / 0.9 - 1)) if expected == 5 else free
        monkeypatch.setattr("xpredflow.engine.capacity.free_bytes", lambda _, room=room: int(room))
        assert fitting_batch(ToyModel(), rows) == expected
    plain = bytes_of_row(ToyModel(), rows[0])
    _, whole = resolve("klass", {"gen_length": 32})
    rows[0].rule = Rule(whole)
    assert bytes_of_row(ToyModel(), rows[0]) > plain


def test_freed_memory_is_kept_unless_the_user_said_otherwise(monkeypatch) -> None:
    for name in [n for n in os.environ if n.startswith(("MALLOC_", "LD_PRELOAD"))]:
        monkeypatch.delenv(name)
    ask = keep_freed_memory.__wrapped__  # as in a process that never asked
    assert ask() == (platform.libc_ver()[0] == "glibc")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not ask()
