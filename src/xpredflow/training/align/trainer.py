"""Align a model with its own clean states, as the paper does: x-prediction at every position.

The loss is the mean of (softmax(Z)·W_e − W_e[x0])² over all response positions, masked and
unmasked, and over the dimensions of the embedding. W_e is the coordinate system of decoding: it
is frozen, or predictions and targets could both shrink to one point.
"""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from xpredflow.models import MaskedDiffusionModel, save
from xpredflow.models.defaults import REPORT, aligned_defaults
from xpredflow.models.loader import as_dtype
from xpredflow.processes import Share
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.consistency import Consistency, consistency
from xpredflow.training.align.lora import add_adapters, merge_adapters, without_adapters
from xpredflow.training.align.objective import XPrediction
from xpredflow.training.align.on_policy import OnPolicyStates
from xpredflow.training.align.progress import SUMS, Drift, Progress, sums_of
from xpredflow.training.align.readout import Readout
from xpredflow.training.align.sharding import put, restore_optimizer, shard, summed, whole
from xpredflow.training.common.answer_batches import batch_at, check_answers, hold_out, text_batch
from xpredflow.training.common.masking import MaskedBatch, draw_masks
from xpredflow.training.common.run_file import RunFile
from xpredflow.training.common.runs import Run
from xpredflow.training.common.start import Start

KEPT = 16  # likeliest tokens of the reference that keep_reference holds on to, one by one


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
        about = RunFile("align", config, start.inputs, checks=start.checks)
        self.run = Run(directory, about, resume, ("save_every", "answers"), writes=share.rank == 0)
        state = self.run.load_state()
        model = start.load()
        check_answers(start.answers, model)
        self.device, self.stored = model.embedding.device, model.stored_dtype
        self.answers, self.held = hold_out(start.answers, config.holdout, config.seed)
        self.before = self._measured(model) if state is None else Consistency(**state["before"])
        self.objective = XPrediction(
            self._trainable(model), config.chunk, config.clean_entropy, config.keep_reference
        )
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
            model.convert(self._products())
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
        model.convert(self._products())
        reference = XPrediction(model, self.config.chunk)
        shard(reference, self.share, trained=False)
        return reference

    def __iter__(self) -> Iterator[Progress]:
        """Train to the end; every update is logged, a state is saved now and then."""
        while self.step < self.config.updates:
            now = self._update()
            self.step = now.step
            self.run.log(**now.line())
            if self.step % self.config.save_every == 0 or self.step == self.config.updates:
                self.run.save_state(self._state())
            yield now

    def _update(self) -> Progress:
        config, noisy, on_policy = self.config, self._noisy(), self._on_policy()
        noisy = noisy if on_policy is None else on_policy.started(noisy)
        every, read = config.reference_every, noisy.candidates.sum()
        compare = every > 0 and self.step % every == 0
        sums = torch.zeros(len(SUMS), dtype=torch.float64)
        for part, own in self._parts(noisy, on_policy):
            theirs = self._reference(part) if compare else None
            keep = theirs.top if theirs is not None and config.keep_reference else None
            with self._autocast():
                ours = self.objective(part, own, keep)
            # sharding averages gradients over the processes, but the loss is a sum of theirs
            (ours.total * (self.share.world / read)).backward()
            sums += sums_of(ours, theirs, part, own)
        norm = torch.nn.utils.clip_grad_norm_(self.parameters.values(), config.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate(self.step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        total = dict(zip(SUMS, summed(sums, self.share).tolist(), strict=True))

        def mean(value: str, count: str) -> float | None:
            return total[value] / total[count] if total[count] else None

        ce = mean("ce", "masked")
        reference = mean("reference_ce", "masked") if compare else None
        warning = None
        if ce is not None and reference is not None:
            warning = self.drift.add(ce, reference)
        return Progress(
            step=self.step + 1,
            loss=(total["at_masked"] + total["at_clean"] + total["at_on_policy"]) / int(read),
            mse_masked=mean("at_masked", "masked"),
            mse_unmasked=mean("at_clean", "clean"),
            mse_on_policy=mean("at_on_policy", "on_policy"),
            ce_masked=ce,
            reference_ce_masked=reference,
            gradient_norm=float(whole(norm)),
            rate=config.rate(self.step),
            warning=warning,
        )

    def _noisy(self) -> MaskedBatch:
        """The whole batch of this step: every process draws the same and takes its rows of it."""
        config, model = self.config, self.objective.model
        draw = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step)
        answers = batch_at(self.answers, self.step, config.batch, config.seed)
        batch = text_batch(answers, model.special, model.block_size)
        return draw_masks(batch, model.block_size, model.special.eos, draw)

    def _on_policy(self) -> OnPolicyStates | None:
        """Drawn for the whole batch too, from numbers of its own: other rows stay as they were."""
        config = self.config
        if not config.on_policy:
            return None
        draw = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step + 500_000)
        kind = config.on_policy_states
        return OnPolicyStates.drawn(config.batch, config.on_policy, draw, kind)

    def _parts(
        self, noisy: MaskedBatch, on_policy: OnPolicyStates | None
    ) -> Iterator[tuple[MaskedBatch, OnPolicyStates | None]]:
        """This process's rows; processes meet in rows of similar length."""
        for number in range(self.config.accumulate):
            first = (number * self.share.world + self.share.rank) * self.rows
            rows = slice(first, first + self.rows)
            part = None if on_policy is None else on_policy.part(rows, self.device)
            yield noisy.rows(rows).to(self.device), part

    @torch.no_grad()
    def _reference(self, part: MaskedBatch) -> Readout:
        """What the model read before alignment, at masks alone: it is asked about nothing else."""
        top = KEPT if self.config.keep_reference else 0
        with self._autocast():
            if self.reference is not None:
                return self.reference(part, top=top)
            with without_adapters(self.objective.model):
                return self.objective(part, top=top)

    def _products(self) -> torch.dtype:
        """What matrices are multiplied in: bf16 is fast on accelerators and slow on CPUs."""
        precision = self.config.precision
        if precision == "auto":
            return torch.float32 if self.device.type == "cpu" else torch.bfloat16
        return torch.float32 if precision == "float32" else torch.bfloat16

    def _autocast(self) -> Any:
        dtype = self._products()
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
        model.defaults = aligned_defaults(model.defaults)
        after = self._measured(model.to(self.device))
        report = {
            "config": self.run.about.values(),
            "held_out": len(self.held),
            "before": asdict(self.before),
            "after": asdict(after),
        }
        # with the weights, in one rename: aligned weights never stand there without saying so
        save(model, directory, beside={REPORT: json.dumps(report, indent=2) + "\n"})
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
