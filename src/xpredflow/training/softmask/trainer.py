"""Fine-tune a model to read soft masks (SM, arXiv 2510.17206), as the `soft` decoder writes them.

Half of the updates first predict without gradients and blend every mask with its predicted
embeddings, λ = ω_s·σ(ω_a(−H − ω_b)) of them; then comes the cross-entropy of Eq. 1 on what is
read. The ω are learned with the weights; ω_s starts at 0, where a soft mask is a mask.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from xpredflow.decoders.soft import softness
from xpredflow.engine.signals import mixture, read
from xpredflow.files import write_atomically
from xpredflow.models import MaskedDiffusionModel, save
from xpredflow.training.common.answer_batches import batch_at, check_answers, hold_out, text_batch
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.masking import (
    MaskedBatch,
    draw_masks,
    masked_cross_entropy,
    masked_inputs,
)
from xpredflow.training.common.run_file import RunFile
from xpredflow.training.common.runs import Run
from xpredflow.training.common.start import Start
from xpredflow.training.softmask.config import SoftMaskConfig

SPAN = (0.2, 0.8)  # σ, the share that is masked: SM's


class Omega(nn.Module):
    """ω_s, ω_a and ω_b, at SM's initial values."""

    def __init__(self) -> None:
        super().__init__()
        self.omega_s = nn.Parameter(torch.tensor(0.0))
        self.omega_a = nn.Parameter(torch.tensor(6.66))
        self.omega_b = nn.Parameter(torch.tensor(-0.75))

    def forward(self, entropy: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
        return softness(entropy, self.omega_s, self.omega_a, self.omega_b)

    @torch.no_grad()
    def keep_valid(self) -> None:
        """ω_s is a share."""
        self.omega_s.clamp_(0.0, 1.0)

    def values(self) -> dict[str, float]:
        return {name: parameter.item() for name, parameter in self.named_parameters()}


def soft_inputs(
    model: MaskedDiffusionModel, noisy: MaskedBatch, omega: Omega, k: int
) -> Float[Tensor, "B L E"]:
    """What the model reads where masks carry a hint of its own first prediction."""
    hard = masked_inputs(model, noisy)
    with torch.no_grad():
        signals = read(model.logits(hard, noisy.positions, noisy.columns), model.special)
    share = omega(signals.entropy).unsqueeze(-1)
    mask = model.embedding[model.special.mask].float()
    soft = (1 - share) * mask + share * mixture(signals, model.embedding, k)
    masked = noisy.masked[:, noisy.first :].unsqueeze(-1)
    tail = torch.where(masked, soft.to(hard.dtype), hard[:, noisy.first :])
    return torch.cat([hard[:, : noisy.first], tail], dim=1)


@dataclass(frozen=True)
class Progress:
    """One update; `soft` says whether it read soft masks."""

    step: int
    loss: float
    accuracy: float
    soft: bool
    omega_s: float
    omega_a: float
    omega_b: float


class SoftMaskTraining:
    """A run: iterate over it to train; `finish` writes the checkpoint and the learned ω."""

    def __init__(
        self, start: Start, config: SoftMaskConfig, directory: Path, resume: bool = False
    ) -> None:
        self.config = config
        about = RunFile("train-softmask", config, start.inputs, checks=start.checks)
        self.run = Run(directory, about, resume, ("save_every", "answers"))
        state = self.run.load_state()
        self.model = start.load()
        check_answers(start.answers, self.model)
        self.stored = self.model.stored_dtype
        self.answers, self.held = hold_out(start.answers, config.holdout, config.seed)
        self.model.float().requires_grad_()
        self.omega = Omega().to(self.model.embedding.device)
        self.step = 0
        self.before = self.measure() if state is None else state["before"]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": list(self.model.parameters()), "base": config.lr},
                {"params": list(self.omega.parameters()), "base": config.omega_lr},
            ],
            betas=(0.9, 0.98),
            weight_decay=config.weight_decay,
        )
        if state is not None:
            self._restore(state)

    def __iter__(self) -> Iterator[Progress]:
        """Train to the end; every update is logged, a state is saved now and then."""
        while self.step < self.config.updates:
            now = self._update()
            self.step = now.step
            self.run.log(**asdict(now))
            if self.step % self.config.save_every == 0 or self.step == self.config.updates:
                self.run.save_state(self._state())
            yield now

    def _update(self) -> Progress:
        config, step = self.config, self.step
        noisy = self._noisy(batch_at(self.answers, step, config.batch, config.seed), step)
        soft = Random(f"{config.seed}/soft/{step}").random() < config.soft_share
        inputs = soft_inputs(self.model, noisy, self.omega, config.k) if soft else None
        loss, right = masked_cross_entropy(self.model, noisy, inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = group["base"] * config.scale(step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.omega.keep_valid()
        return Progress(step + 1, loss.item(), right.item(), soft, **self.omega.values())

    def _noisy(self, answers: list[Answer], number: int) -> MaskedBatch:
        model = self.model
        draw = torch.Generator().manual_seed(self.config.seed * 1_000_003 + number)
        batch = text_batch(answers, model.special, model.block_size)
        noisy = draw_masks(batch, model.block_size, model.special.eos, draw, SPAN)
        return noisy.to(model.embedding.device)

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Eq. 1 on held-out answers, read with plain and with soft masks."""
        sums = {"plain": 0.0, "soft": 0.0}
        size = self.config.batch
        parts = [self.held[i : i + size] for i in range(0, len(self.held), size)]
        for number, part in enumerate(parts):
            noisy = self._noisy(part, number)
            soft = soft_inputs(self.model, noisy, self.omega, self.config.k)
            for name, inputs in (("plain", None), ("soft", soft)):
                loss, _ = masked_cross_entropy(self.model, noisy, inputs)
                sums[name] += loss.item() * len(part) / len(self.held)
        return sums

    def finish(self, directory: Path) -> dict[str, float]:
        """Write the weights, and beside them what the `soft` decoder needs; the losses now."""
        after = self.measure()
        self.model.convert(self.stored)
        save(self.model, directory)
        about = {
            "k": self.config.k,
            **self.omega.values(),
            "training": asdict(self.config),
            "before": self.before,
            "after": after,
        }
        write_atomically(directory / "softmask.json", json.dumps(about, indent=2) + "\n")
        return after

    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "omega": self.omega.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "before": self.before,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        self.omega.load_state_dict(state["omega"])
        self.optimizer.load_state_dict(state["optimizer"])
