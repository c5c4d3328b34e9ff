"""What a frozen head costs in alignment, as a tied model's is: `tiny` aligned with it and without.

    python benchmarks/frozen_head.py                              # about 2 minutes of a core
    python benchmarks/frozen_head.py --updates 300 --batch 32 --answers 2000 --problems 500

Alignment freezes the embedding table, and a tied head is that table. `tiny` has a head of its own:
aligned twice on the same answers, batches and masks, once with its head trained and once with it
frozen, it shows what the layers can do in its place. Reported are the consistency of held-out
answers (agreement at clean positions, distance to the clean embedding), the cross-entropy at masks
over the last tenth of the updates, and accuracy of the flow at a quarter of the passes. The last
line is one JSON object.
"""

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from xpredflow import evaluate, load, self_generate
from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.start import start_from

MODEL, TASK = "tiny", "minimath"


class FrozenHead(Alignment):
    """Everything but the embedding table and the head is trained."""

    def _trainable(self, model: MaskedDiffusionModel) -> MaskedDiffusionModel:
        trained = super()._trainable(model)
        trained.trunk()[2].requires_grad_(False)
        return trained


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        file = directory / "own.jsonl"
        asked = {"limit": options.answers, "decoder": "threshold:0.9"}
        answers = self_generate(load(MODEL), TASK, file, **asked)
        report: dict[str, Any] = {"before": measured(MODEL, options.problems)}
        for name, training in (("trained", Alignment), ("frozen", FrozenHead)):
            report[name] = aligned(training, answers, directory / name, options)
            print(name, report[name], flush=True)
    print(json.dumps({"benchmark": "frozen_head", **vars(options), **report}))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--answers", type=int, default=160)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--problems", type=int, default=40)
    return parser.parse_args()


def aligned(
    kind: type[Alignment], answers: list[Answer], out: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """One alignment, and what it leads to."""
    config = AlignConfig(
        updates=options.updates,
        batch=options.batch,
        lr=options.lr,
        holdout=32,
        reference_every=10,
    )
    training = kind(start_from(MODEL, answers), config, out)
    lines = list(training)
    after = training.finish(out / "model")
    last = lines[-max(1, len(lines) // 10) :]
    found = {
        "trained_weights": sum(p.numel() for p in training.parameters.values()),
        "ce_masked": mean(line.ce_masked or 0.0 for line in last),
        "before": asdict(training.before),
        "after": None if after is None else asdict(after),
    }
    return found | measured(out / "model", options.problems)


def measured(model: str | Path, problems: int) -> dict[str, float]:
    """The flow at a quarter of the passes."""
    shared: dict[str, Any] = {"decoder": "flow:power:8", "budget": "1/4"}
    summary = evaluate(load(model), TASK, limit=problems, **shared).summary
    return {"accuracy": summary.accuracy, "passes": summary.passes_mean}


if __name__ == "__main__":
    main()
