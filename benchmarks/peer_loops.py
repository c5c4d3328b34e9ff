"""LLaDA's published decoding loop, written from its description, for benchmarks to run beside ours.

Ids in, ids out: every pass embeds all ids, and the ids of the surest positions of the block are
written. Batches are left-padded; a batch is decoded until its last row is done.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel

Result = TypeVar("Result")
Item = TypeVar("Item")


@torch.no_grad()
def generate_py(
    model: MaskedDiffusionModel,
    prompts: list[list[int]],
    length: int,
    block: int | None = None,
    *,
    head_everywhere: bool = True,
) -> Tensor:
    """The responses of one batch, a pass per position; `steps` of the original is the length.

    The original's head also runs on the prompt; `head_everywhere=False` spares it that.
    """
    mask, longest = model.special.mask, max(map(len, prompts))
    ids = torch.full((len(prompts), longest + length), mask)
    places = torch.full_like(ids, -1)
    for i, prompt in enumerate(prompts):
        ids[i, longest - len(prompt) : longest] = torch.tensor(prompt)
        places[i, longest - len(prompt) :] = torch.arange(len(prompt) + length)
    everywhere = torch.arange(ids.shape[1]).expand(len(ids), -1)
    read = everywhere if head_everywhere else everywhere[:, longest:].contiguous()
    answer = ids[:, longest:]
    block = block or length
    for start in range(0, length, block):
        for _ in range(min(block, length - start)):
            logits = model.logits(model.embedding[ids], places, read)[:, -length:]
            logits[..., mask] = -torch.inf
            x0 = logits.argmax(-1)
            p = logits.softmax(-1).gather(-1, x0.unsqueeze(-1)).squeeze(-1)
            is_open = answer == mask
            is_open[:, start + block :] = False
            best = p.masked_fill(~is_open, -torch.inf).topk(1).indices
            answer.scatter_(-1, best, x0.gather(-1, best))
    return answer


def batches(items: list[Item], size: int) -> Iterator[list[Item]]:
    """So many at a time, in order."""
    return (items[i : i + size] for i in range(0, len(items), size))


class CpuSeconds:
    """CPU time of this process by side: others on the machine do not count."""

    def __init__(self) -> None:
        self.of: dict[str, float] = {}

    def run(self, side: str, work: Callable[[], Result]) -> Result:
        """What `work` gives, its time added to this side's."""
        start = time.process_time()
        found = work()
        self.of[side] = self.of.get(side, 0.0) + time.process_time() - start
        return found


def hardware(threads: int) -> str:
    """The processor and how many threads of it were used."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{threads} thread(s) of {len(names)} x {names[0] if names else 'CPU'}"
