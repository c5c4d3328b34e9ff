"""Peak memory of decoding beyond the weights, per row and decoder, at LLaDA-8B's head.

    python benchmarks/memory.py                          # 126,464 tokens, 512 positions, bf16
    python benchmarks/memory.py --decoders flow klass --rows 4

Every decoder runs in a fresh process: its peak (VmHWM) while decoding minus what it held before
(VmRSS), divided by the rows. The model has LLaDA-8B's embedding table and one of its layers with
random weights; its head has the full output but a low rank, which changes no byte that is counted.
`generate.py` is LLaDA's own loop around the same model: argmax, softmax, gather, top k; `float64`
with the softmax in that precision. Linux only. The last line is one JSON object.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from xpredflow.engine.loop import decode_steps
from xpredflow.models.attention import Pass, Shape
from xpredflow.models.llada import Block
from xpredflow.types import SpecialTokens

GOAL, GOAL_WHOLE = 0.4, 0.8  # GB per row; the latter for rules that need whole distributions
RANK, PASSES, PROMPT = 64, 3, 64
DECODERS = (
    *("flow", "flow:learned:tiny", "mask", "threshold", "factor", "entropy", "eb", "soft"),
    *("saber", "editing", "wino", "klass", "credit", "remix", "generate.py", "float64"),
)
WHOLE = ("klass", "credit", "remix")


class Head8B:
    """The widths of LLaDA-8B where decoding meets them, one layer deep."""

    name, max_length, tokenizer = "head of LLaDA-8B", 4096, None
    block_size: int | None = None

    def __init__(self, vocabulary: int, width: int, dtype: torch.dtype) -> None:
        draw = torch.Generator().manual_seed(0)
        self.special = SpecialTokens(mask=vocabulary - 1, eos=vocabulary - 2)
        some = torch.randn(1024, width, generator=draw).to(dtype)
        self.embedding = some.repeat(-(-vocabulary // 1024), 1)[:vocabulary]
        heads = width // 128
        self.shape = Shape(self.special, 4096, 1, heads, heads, 128, 128, 1e4)
        self.layer = Block(self.shape, 3 * width, 1e-5).to(dtype)
        low_rank = nn.Linear(RANK, vocabulary, bias=False).to(dtype)
        self.separate_head = lambda hidden: low_rank(hidden[..., :RANK])

    def logits(
        self, inputs: Tensor, positions: Tensor, columns: Tensor, cache=None, slots=None
    ) -> Tensor:
        return self.separate_head(self.hidden(inputs, positions, columns))

    def hidden(
        self, inputs: Tensor, positions: Tensor, columns: Tensor, cache=None, slots=None
    ) -> Tensor:
        """As wide as the model, as the head of a model has it, of which our head takes a part."""
        hidden = self.layer(inputs, Pass.begin(positions, self.shape, None), 0)
        return hidden.gather(1, columns.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))

    def new_cache(self, slots: int, length: int) -> None:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--decoders", nargs="+", default=list(DECODERS))
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--positions", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=126_464)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(measure(given))
        return
    found = {}
    for decoder in given.decoders:
        command = [sys.executable, __file__, *sys.argv[1:], "--child", decoder]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found[decoder] = round(int(output.split()[-1]) / given.rows / 1e9, 3)
        goal = GOAL_WHOLE if decoder in WHOLE else GOAL
        print(f"{decoder:20} {found[decoder]:6.3f} GB per row (goal {goal})", flush=True)
    facts = {name: getattr(given, name) for name in ("rows", "positions", "vocabulary", "dtype")}
    print(json.dumps({"benchmark": "memory", **facts, "gb_per_row": found}))


@torch.no_grad()
def measure(given: argparse.Namespace) -> int:
    """Bytes of the peak while a few passes are decoded in this process."""
    torch.set_num_threads(1)
    model = Head8B(given.vocabulary, given.width, getattr(torch, given.dtype))
    prompts = [[i + 1] * PROMPT for i in range(given.rows)]
    before = memory("VmRSS")
    if given.child in ("generate.py", "float64"):
        generate_py(model, prompts, given.positions, given.child == "float64")
    else:
        for _ in decode_steps(
            model, prompts, decoder=given.child, gen_length=given.positions, budget=PASSES
        ):
            pass
    return memory("VmHWM") - before


def generate_py(model: Head8B, prompts: list[list[int]], length: int, double: bool) -> None:
    """LLaDA's published loop without a temperature, on ids, with a few passes."""
    mask = model.special.mask
    ids = torch.tensor([prompt + [mask] * length for prompt in prompts])
    everywhere = torch.arange(ids.shape[1]).expand(len(ids), -1)
    answer = everywhere[:, PROMPT:]
    for _ in range(PASSES):
        logits = model.logits(model.embedding[ids], everywhere, answer)
        x0 = logits.argmax(-1)
        p = (logits.to(torch.float64) if double else logits).softmax(-1)
        confidence = p.gather(-1, x0.unsqueeze(-1)).squeeze(-1)
        is_open = ids[:, PROMPT:] == mask
        chosen = confidence.masked_fill(~is_open, -torch.inf).topk(length // PASSES).indices
        ids[:, PROMPT:].scatter_(-1, chosen, x0.gather(-1, chosen))


def memory(field: str) -> int:
    """A field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    main()
