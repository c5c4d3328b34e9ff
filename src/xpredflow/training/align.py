"""Align a model with its own clean states, as the paper does: x-prediction at every position.

The loss is the mean of (softmax(Z)·W_e − W_e[x0])² over all response positions, masked and
unmasked, and over the dimensions of the embedding. W_e is the coordinate system of decoding: it
is frozen, or predictions and targets could both shrink to one point.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from xpredflow.files import write_atomically
from xpredflow.models import MaskedDiffusionModel, save
from xpredflow.models.loading import as_dtype
from xpredflow.processes import Share
from xpredflow.training.align_config import AlignConfig
from xpredflow.training.answer_batches import batch_at, check_answers, hold_out, text_batch
from xpredflow.training.answers import Answer
from xpredflow.training.consistency import Consistency, consistency
from xpredflow.training.corruption import Corruption, corrupt
from xpredflow.training.drift import Drift
from xpredflow.training.lora import add_adapters, merge_adapters, without_adapters
from xpredflow.training.readout import Readout
from xpredflow.training.runs import Run
from xpredflow.training.sharding import put, restore_optimizer, shard, summed, whole
from xpredflow.training.x_prediction import XPrediction


@dataclass(frozen=True)
class Start:
    """What a run starts from: the model, as often as it is asked for, and its own answers.

    `origin` names both; a run is resumed with the same ones only ("answers" is a mere path).
    """

    load: Callable[[], MaskedDiffusionModel]
    answers: list[Answer]
    origin: dict[str, str]


@dataclass(frozen=True)
class Progress:
    """One update. A value is None where there was nothing to measure."""

    step: int
    loss: float
    mse_masked: float
    mse_unmasked: float | None
    ce_masked: float
    reference_ce_masked: float | None
    gradient_norm: float
    rate: float
    warning: str | None = None


class Alignment:
    """A run: iterate over it to train; `finish` writes the aligned checkpoint."""

    def __init__(
        self,
        start: Start,
        config: AlignConfig,
        directory: Path,
        resume: bool = False,
        share: Share = Share(),  # noqa: B008  (immutable)
    ) -> None:
        self.start, self.config, self.share = start, config, share
        self.rows = config.rows_at_once(share)
        origin = {**asdict(config), **start.origin}
        self.run = Run(directory, origin, resume, ("save_every", "answers"), writes=share.rank == 0)
        state = self.run.load_state()
        model = start.load()
        check_answers(start.answers, model)
        self.device, self.stored = model.embedding.device, model.embedding.dtype
        self.answers, self.held = hold_out(start.answers, config.holdout, config.seed)
        self.before = self._measured(model) if state is None else Consistency(**state["before"])
        self.objective = XPrediction(self._trainable(model), config.chunk, config.clean_entropy)
        self.reference = self._frozen_copy()
        shard(self.objective, share)
        self.parameters = {
            name: p for name, p in self.objective.model.named_parameters() if p.requires_grad
        }
        # Embeddings are small, so the loss and its gradients are: they must not drown in eps.
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(),
            config.lr,
            betas=(0.9, 0.98),
            eps=1e-12,
            weight_decay=config.weight_decay,
        )
        self.drift, self.step = Drift(), 0
        if state is not None:
            self._restore(state)

    def _measured(self, model: MaskedDiffusionModel) -> Consistency:
        return consistency(model, self.held, self.config.chunk)

    def _trainable(self, model: MaskedDiffusionModel) -> MaskedDiffusionModel:
        """What is trained is in fp32; beside adapters the weights stay as they are multiplied."""
        config = self.config
        if config.lora_rank:
            model.convert(config.compute_dtype(self.device))
            add_adapters(model, config.lora_rank, config.lora_targets, config.seed)
        else:
            model.float().requires_grad_()
            model.embedding.requires_grad_(False)
        model.checkpointing = config.checkpointing
        return model

    def _frozen_copy(self) -> XPrediction | None:
        if self.config.lora_rank or not self.config.reference_every:
            return None
        model = self.start.load().requires_grad_(False)
        model.convert(self.config.compute_dtype(self.device))
        reference = XPrediction(model, self.config.chunk)
        shard(reference, self.share, trained=False)
        return reference

    def __iter__(self) -> Iterator[Progress]:
        """Train to the end; every update is logged, a state is saved now and then."""
        while self.step < self.config.steps:
            now = self._update()
            self.step = now.step
            self.run.log(**{k: v for k, v in asdict(now).items() if k != "warning" or v})
            if self.step % self.config.save_every == 0 or self.step == self.config.steps:
                self.run.save_state(self._state())
            yield now

    def _update(self) -> Progress:
        config, noisy = self.config, self._noisy()
        every, masked, read = config.reference_every, noisy.masked.sum(), noisy.candidates.sum()
        compare = every > 0 and self.step % every == 0
        sums = torch.zeros(4, dtype=torch.float64)
        for part in self._parts(noisy):
            with self._autocast():
                ours = self.objective(part)
            # sharding averages gradients over the processes, but the loss is a sum of theirs
            (ours.total * (self.share.world / read)).backward()
            theirs = self._reference(part) if compare else None
            sums += _sums(ours, theirs, part.masked[part.candidates])
        norm = torch.nn.utils.clip_grad_norm_(self.parameters.values(), config.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate(self.step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        at_masked, at_others, ce, reference = summed(sums, self.share).tolist()
        ce, reference = ce / int(masked), reference / int(masked)
        return Progress(
            step=self.step + 1,
            loss=(at_masked + at_others) / int(read),
            mse_masked=at_masked / int(masked),
            mse_unmasked=at_others / int(read - masked) if read > masked else None,
            ce_masked=ce,
            reference_ce_masked=reference if compare else None,
            gradient_norm=float(whole(norm)),
            rate=config.rate(self.step),
            warning=self.drift.add(ce, reference) if compare else None,
        )

    def _noisy(self) -> Corruption:
        """The whole batch of this step: every process draws the same and takes its rows of it."""
        config, model = self.config, self.objective.model
        draw = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step)
        answers = batch_at(self.answers, self.step, config.batch, config.seed)
        batch = text_batch(answers, model.special, model.block_size)
        return corrupt(batch, model.block_size, model.special.eos, draw)

    def _parts(self, noisy: Corruption) -> Iterator[Corruption]:
        """This process's rows; processes meet in rows of similar length."""
        for number in range(self.config.accumulate):
            first = (number * self.share.world + self.share.rank) * self.rows
            yield noisy.rows(slice(first, first + self.rows)).to(self.device)

    @torch.no_grad()
    def _reference(self, part: Corruption) -> Readout:
        """What the model read before alignment."""
        with self._autocast():
            if self.reference is not None:
                return self.reference(part)
            with without_adapters(self.objective.model):
                return self.objective(part)

    def _autocast(self) -> Any:
        dtype = self.config.compute_dtype(self.device)
        if dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype)

    def finish(self, directory: Path) -> Consistency | None:
        """Write the aligned weights; what they read now, in the process that wrote them."""
        values = whole(self.parameters, keep=self.share.rank == 0)
        if self.share.rank:
            return None
        self._make_room()
        model, config = self.start.load().cpu().float(), self.config
        if config.lora_rank:
            add_adapters(model, config.lora_rank, config.lora_targets, config.seed)
        for name, parameter in model.named_parameters():
            if name in values:
                put(values[name], parameter)
        if config.lora_rank:
            merge_adapters(model)
        model.convert(as_dtype(config.dtype) or self.stored)
        save(model, directory)
        after = self._measured(model.to(self.device))
        report = {
            "config": {**asdict(config), **self.start.origin},
            "held_out": len(self.held),
            "before": asdict(self.before),
            "after": asdict(after),
        }
        write_atomically(directory / "alignment.json", json.dumps(report, indent=2) + "\n")
        return after

    def _make_room(self) -> None:
        """Nothing is trained any more: a device that just held the run must hold another model."""
        self.reference = None
        self.optimizer.state.clear()
        if self.share.world == 1:
            self.objective.cpu()

    def _state(self) -> dict[str, Any]:
        keep = self.share.rank == 0
        return {
            "step": self.step,
            "parameters": whole(self.parameters, keep),
            "optimizer": whole(self.optimizer.state_dict(), keep),
            "drift": asdict(self.drift),
            "before": asdict(self.before),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.step, self.drift = state["step"], Drift(**state["drift"])
        for name, parameter in self.parameters.items():
            put(state["parameters"][name], parameter)
        restore_optimizer(self.optimizer, state["optimizer"])


def _sums(ours: Readout, theirs: Readout | None, masked: Tensor) -> Float[Tensor, " 4"]:
    """Errors at masked and at other positions, CE at masked ones and the reference's."""
    values = [ours.error[masked], ours.error[~masked], ours.cross_entropy[masked]]
    values.append(torch.zeros(0) if theirs is None else theirs.cross_entropy[masked])
    return torch.stack([value.double().sum().cpu() for value in values])
