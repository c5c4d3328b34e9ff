"""Train a small model whose head is its embedding table, align it, and measure both.

    python recipes/tied.py            about 13 minutes on a core
    python recipes/tied.py --untied   the same with a head of its own, to compare

Killed, the same command goes on where it was. The start is `tiny` in the layout of iLLaDA, the
published tied model that sees both ways: same layers, and the table of `tiny` as the head too, with
--untied as a copy that is trained by itself. The old head is lost, and what the layers say must be
learned anew in the coordinates of the table. Then the model answers training problems at full
budget, and the paper's alignment is run on those answers; it freezes the table, and with it a tied
head. runs/tied/report.json has what was measured before and after. docs/models.md has the figures.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from xpredflow import evaluate, self_generate
from xpredflow.models import MaskedDiffusionModel, build, save
from xpredflow.models.embedded import load
from xpredflow.training.align import AlignConfig, align
from xpredflow.training.pretrain import PretrainConfig, pretrain

RUNS = Path("runs")
HEAD = "lm_head.weight"
TASKS = ("minicode", "minimath")
GAIN = 0.25  # of the final norm, so that a head that fits nothing yet is not sure of anything
NAMES = {
    "transformer.wte": "embed_tokens",
    "transformer.ln_f": "norm",
    "transformer.blocks": "layers",
    "attn_norm": "input_layernorm",
    "ff_norm": "post_attention_layernorm",
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "attn_out": "self_attn.o_proj",
    "ff_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "ff_out": "mlp.down_proj",
}
PRETRAIN = PretrainConfig(
    updates=512,
    lr=3e-3,
    warmup=32,
    decay_share=0.7,
    tail_share=0.125,
    whole_from=0,
    probe_every=256,
    ema=0.99,
    bf16=True,
)


ANSWERS = 1024
ALIGN = AlignConfig(updates=200, lr=3e-4, reference_every=10, dtype="float16")
DECODERS: dict[str, dict[str, Any]] = {
    "flow:power:8": {"budget": "1/4"},
    "threshold:0.9": {},
    "mask": {"budget": "full"},
}
FULL_BUDGET_SHARE = 3  # one problem in so many: it takes 64 passes of each


def tied_shape(config: dict[str, Any], tied: bool) -> dict[str, Any]:
    """LLaDA's config.json in iLLaDA's words."""
    same = ("rms_norm_eps", "rope_theta", "vocab_size", "mask_token_id", "eos_token_id")
    return {
        "architectures": ["ILLaDAForCausalLM"],
        "model_type": "illada",
        "hidden_size": config["d_model"],
        "intermediate_size": config["mlp_hidden_size"],
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": config["n_heads"],
        "num_key_value_heads": config["n_kv_heads"],
        "max_position_embeddings": config["max_sequence_length"],
        "tie_word_embeddings": tied,
        **{name: config[name] for name in same},
    }


@torch.no_grad()
def start(tied: bool) -> MaskedDiffusionModel:
    """`tiny` with its table as the head, or with a copy of the table as one."""
    old = load("tiny", dtype="float32")
    shape = tied_shape(old.config, tied)
    new = build(shape, 0, device="cpu", tokenizer=old.tokenizer)
    weights = {_renamed(name): value for name, value in old.state_dict().items()}
    del weights[HEAD]
    if not tied:
        weights[HEAD] = old.embedding
    weights["model.norm.weight"] *= GAIN
    new.load_state_dict(weights)
    return new


def _renamed(name: str) -> str:
    if name == "model.transformer.ff_out.weight":
        return HEAD
    for before, after in NAMES.items():
        name = name.replace(f".{before}.", f".{after}.")
    return name


def pretrained(run: Path, tied: bool) -> Path:
    """Learn both tasks from that start."""
    begin = run / "start"
    if not (begin / "config.json").exists():
        save(start(tied), begin)
    if not (run / "pretrain" / "model").exists():
        pretrain(
            PRETRAIN,
            run / "pretrain",
            tasks=TASKS,
            start=begin,
            resume=(run / "pretrain" / "state.pt").exists(),
            watch=lambda now: print(f"{run}: {now}", flush=True),
        )
    return run / "pretrain" / "model"


def aligned(run: Path, model: Path) -> Path:
    """The paper's alignment on the model's own answers, right and wrong ones."""
    out, file = run / "align", run / "own.jsonl"
    if not (out / "model").exists():
        self_generate(load(model), ",".join(TASKS), file, limit=ANSWERS, decoder="threshold:0.9")
        done = align(model, file, ALIGN, out=out, resume=(out / "state.pt").exists())
        assert done.after is not None
        found = {"before": asdict(done.before), "after": asdict(done.after)}
        (run / "consistency.json").write_text(json.dumps(found))
    return out / "model"


def measured(model: Path, problems: int, out: Path) -> dict[str, dict[str, Any]]:
    """Accuracy of each decoder on the first validation problems of each task."""
    loaded, found = load(model), {}
    for decoder, options in DECODERS.items():
        place, count = out / decoder.partition(":")[0], problems
        if decoder == "mask":
            count = -(-problems // FULL_BUDGET_SHARE)
        for task in TASKS:
            done = evaluate(loaded, task, decoder=decoder, limit=count, out=place, **options)
            row = done.summary
            found[f"{decoder} {task}"] = {
                "accuracy": round(row.accuracy, 4),
                "interval": [round(row.low, 4), round(row.high, 4)],
                "passes": round(row.passes_mean, 2),
                "n": row.n,
            }
            print(f"{model}: {decoder} {task} {found[f'{decoder} {task}']}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(usage="python recipes/tied.py [--untied] [--problems N]")
    parser.add_argument("--untied", action="store_true", help="with a head of its own")
    parser.add_argument("--problems", type=int, default=150, help="of each task, to measure with")
    given = parser.parse_args()
    run = RUNS / ("untied" if given.untied else "tied")
    before = pretrained(run, tied=not given.untied)
    after = aligned(run, before)
    report = {
        "tied": not given.untied,
        "consistency": json.loads((run / "consistency.json").read_text()),
        "before": measured(before, given.problems, run / "samples-before"),
        "after": measured(after, given.problems, run / "samples-after"),
    }
    (run / "report.json").write_text(json.dumps(report, indent=2))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
