"""The appendix's probe: clean tokens displaced towards the mask, a Gaussian, or another token.

x(α) = (1 − α)·x0 + α·u at half of the response positions, everything else clean. u is the mask
embedding m, an isotropic Gaussian vector rescaled to ‖m‖, or the embedding of a random token; each
displaced position has its own. Asked is how well the model recovers the token that was displaced.
"""

from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from xpredflow.engine.signals import read
from xpredflow.experiments.bench import Bench
from xpredflow.experiments.claims import Claim
from xpredflow.experiments.clean_answers import clean_answers
from xpredflow.experiments.inputs import Inputs
from xpredflow.experiments.plots import draw_recovery
from xpredflow.experiments.report import Probe, Report
from xpredflow.training.common.answer_batches import text_batch
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.masking import all_clean
from xpredflow.types import Model, Space

TITLE = "Recovery of tokens displaced by α towards three endpoints, on the pretrained model"
ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8)
ENDPOINTS = ("mask", "gaussian", "token")
SHARE = 0.5  # of the response positions is displaced


@dataclass(frozen=True)
class Recovery:
    """Per endpoint and α: the share of tokens predicted again, and their mean cross-entropy."""

    positions: int
    accuracy: dict[str, list[float]]
    cross_entropy: dict[str, list[float]]


# LLaDA-8B before alignment, 2347 positions of 64 MBPP problems.
PAPER = Recovery(
    2347,
    {
        "mask": [0.964, 0.967, 0.978, 0.889, 0.881],
        "gaussian": [0.964, 0.963, 0.963, 0.960, 0.791],
        "token": [0.964, 0.966, 0.965, 0.690, 0.158],
    },
    {
        "mask": [0.232, 0.175, 0.133, 0.529, 0.568],
        "gaussian": [0.232, 0.242, 0.243, 0.265, 1.359],
        "token": [0.232, 0.222, 0.203, 1.598, 6.067],
    },
)


@torch.no_grad()
def recovery(model: Model, answers: list[Answer]) -> Recovery:
    """Displace half of each answer's positions; an answer's draws depend on its number alone."""
    found: dict[str, list[Tensor]] = {name: [] for name in ENDPOINTS}
    for answer in answers:
        generator = torch.Generator().manual_seed(answer.number)
        count = len(answer.response_ids)
        chosen = torch.randperm(count, generator=generator)[: max(1, round(SHARE * count))]
        columns = (len(answer.prompt_ids) + chosen.sort().values).to(model.embedding.device)
        for name, ends in _endpoints(model, len(columns), generator).items():
            found[name].append(_probe(model, answer, columns, ends))
    means = {name: torch.cat(parts, -1).mean(-1).tolist() for name, parts in found.items()}
    return Recovery(
        sum(part.shape[-1] for part in found["mask"]),
        {name: right for name, (right, _) in means.items()},
        {name: entropy for name, (_, entropy) in means.items()},
    )


def _endpoints(
    model: Model, count: int, generator: torch.Generator
) -> dict[str, Float[Tensor, "P E"]]:
    """What each of the positions is displaced towards."""
    space = Space(model.embedding, model.special)
    vocabulary, width = model.embedding.shape
    noise = torch.randn(count, width, generator=generator).to(model.embedding.device)
    drawn = torch.randint(vocabulary - 1, (count,), generator=generator)
    others = drawn + (drawn >= model.special.mask)  # any token but the mask
    return {
        "mask": space.mask.expand(count, -1),
        "gaussian": noise / noise.norm(dim=-1, keepdim=True) * space.mask.norm(),
        "token": space.embed(others.to(model.embedding.device)),
    }


def _probe(
    model: Model, answer: Answer, columns: Int[Tensor, " P"], ends: Float[Tensor, "P E"]
) -> Float[Tensor, "2 A P"]:
    """Whether the token is recovered, and its cross-entropy: all α in one pass."""
    text = text_batch([answer], model.special, model.block_size)
    clean = all_clean(text, model.block_size).to(model.embedding.device)
    rows = len(ALPHAS)
    inputs = model.embedding[clean.ids].float().repeat(rows, 1, 1)
    alpha = torch.tensor(ALPHAS, device=inputs.device).reshape(-1, 1, 1)
    inputs[:, columns] = (1 - alpha) * inputs[:, columns] + alpha * ends
    positions = clean.positions.expand(rows, -1)
    logits = model.logits(inputs, positions, columns.expand(rows, -1))
    signals = read(logits, model.special)
    target = clean.ids[0, columns].expand(rows, -1)
    own = signals.whole.at(target)
    right = (signals.tokens == target).float()
    return torch.stack([right, signals.log_total - own]).double().cpu()


def _fall(found: Recovery, name: str) -> float:
    """What accuracy loses from α = 0.6 to 0.8."""
    return found.accuracy[name][3] - found.accuracy[name][4]


def _compared(*pairs: tuple[str, int]):
    """The accuracies that a claim looks at."""
    return lambda found: ", ".join(
        f"{name} {found.accuracy[name][index]:.3f} at α = {ALPHAS[index]}" for name, index in pairs
    )


CLAIMS = (
    Claim[Recovery](
        lambda f: (
            f.accuracy["mask"][2] > f.accuracy["mask"][0]
            and f.cross_entropy["mask"][2] < f.cross_entropy["mask"][0]
        ),
        "a push of 0.4 towards the mask improves on the untouched token",
        "a push of 0.4 towards the mask does not improve on the untouched token",
        lambda f: (
            f"accuracy {f.accuracy['mask'][2]:.3f}, untouched {f.accuracy['mask'][0]:.3f};"
            f" cross-entropy {f.cross_entropy['mask'][2]:.3f},"
            f" untouched {f.cross_entropy['mask'][0]:.3f}"
        ),
    ),
    Claim[Recovery](
        lambda f: f.accuracy["gaussian"][3] > f.accuracy["mask"][3],
        "at α = 0.6 the Gaussian endpoint keeps more than the mask",
        "at α = 0.6 the Gaussian endpoint does not keep more than the mask",
        _compared(("gaussian", 3), ("mask", 3)),
    ),
    Claim[Recovery](
        lambda f: _fall(f, "mask") < min(_fall(f, "gaussian"), _fall(f, "token")),
        "from α = 0.6 to 0.8 the mask loses least",
        "from α = 0.6 to 0.8 the mask does not lose least",
        lambda f: ", ".join(f"{name} {_fall(f, name):.3f}" for name in ENDPOINTS),
    ),
    Claim[Recovery](
        lambda f: f.accuracy["token"][4] < min(f.accuracy["mask"][4], f.accuracy["gaussian"][4]),
        "another token is the worst endpoint",
        "another token is not the worst endpoint",
        _compared(*((name, 4) for name in ENDPOINTS)),
    ),
)


def make(bench: Bench, inputs: Inputs) -> Report:
    """The probe on the first model before alignment."""
    source = inputs.pairs()[0].pretrained
    model = bench.model(source)
    found: dict[str, Recovery] = {}
    for name, answers in clean_answers(bench, inputs, model).items():
        found[f"{source}, {name}"] = recovery(model, answers)
        bench.watch.say(f"{source}, {name}: {len(answers)} answers displaced")
    return arranged(found)


def arranged(found: dict[str, Recovery]) -> Report:
    """Ours and the paper's, endpoint by endpoint."""
    shown = {**found, "paper: LLaDA-8B, MBPP": PAPER}
    rows = [
        [f"{where} (n = {recovery.positions})", measure.replace("_", "-"), name]
        + [f"{value:.3f}" for value in getattr(recovery, measure)[name]]
        for where, recovery in shown.items()
        for measure in ("accuracy", "cross_entropy")
        for name in ENDPOINTS
    ]
    return Report(
        title=TITLE,
        header=["", "", "endpoint", *(f"α = {alpha}" for alpha in ALPHAS)],
        rows=rows,
        data={
            "alphas": list(ALPHAS),
            "ours": {where: asdict(recovery) for where, recovery in found.items()},
            "paper": {"LLaDA-8B, MBPP": asdict(PAPER)},
        },
        outcomes=[c.judge(where, recovery) for where, recovery in found.items() for c in CLAIMS],
        notes=[
            "n counts displaced positions: half of the response positions of each answer.",
            "The paper calls the three endpoints equally far from the clean token. By its formula"
            " only the norms of mask and Gaussian are equal; here as there, nothing else is.",
        ],
        draw=lambda picture: draw_recovery(shown, ALPHAS, picture),
    )


TABLE = Probe("anchor", TITLE, ("answers",), make)
