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
import torch.distributed as dist

from xpredflow.files import write_atomically
from xpredflow.models import MaskedDiffusionModel, attention
from xpredflow.models.defaults import REPORT
from xpredflow.models.loader import as_dtype, load
from xpredflow.models.module_adapter import Wrapped
from xpredflow.models.publication import published
from xpredflow.models.spread import whole_tensor
from xpredflow.processes import Share, summed
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.align.consistency import Consistency, read_consistency
from xpredflow.training.align.export import export
from xpredflow.training.align.lora import add_adapters, without_adapters
from xpredflow.training.align.memory import Footprint, Work, footprint
from xpredflow.training.align.objective import XPrediction
from xpredflow.training.align.on_policy import OnPolicyStates
from xpredflow.training.align.optimizer import adamw, check_moments, set_rate
from xpredflow.training.align.progress import SUMS, Drift, Progress, sums_of
from xpredflow.training.align.readout import Readout
from xpredflow.training.align.sharding import Placement
from xpredflow.training.align.state import file_state, restore, shard_state
from xpredflow.training.common.answer_batches import (
    batch_at,
    check_answers,
    hold_out,
    length,
    text_batch,
)
from xpredflow.training.common.masking import MaskedBatch, draw_masks
from xpredflow.training.common.run_file import RunFile
from xpredflow.training.common.runs import Run
from xpredflow.training.common.start import Start

# What changes no more than rounding, or nothing.
MAY_CHANGE = ("save_every", "answers", "accumulate", "checkpointing")
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
        config.parts(share)  # refuses what cannot be shared out, before anything is read
        check_moments(config, share)
        about = RunFile("align", config, start.inputs, checks=start.checks)
        self.run = Run(directory, about, resume, MAY_CHANGE, share)
        state = self.run.load_state()
        self.placement = Placement(start, share)
        model = self.placement.open()
        check_answers(start.answers, model)
        self.device, self.stored = self.placement.device(model), model.stored_dtype
        self.places, size = model.places(), sum(p.numel() for p in model.parameters())
        self.parts = config.parts(share, max(map(length, start.answers)), size)
        self.rows = config.batch // (self.parts * share.world)
        self.answers, self.held = hold_out(start.answers, config.holdout, config.seed)
        if state is None:
            # what is sharded once cannot be taken apart for training
            self.before = self._measured(model if share.world == 1 else self.placement.open())
        else:
            self.before = Consistency(**state["before"])
        self.objective = XPrediction(
            self._trainable(model), config.chunk, config.clean_entropy, config.keep_reference
        )
        self.reference = self._frozen_copy()
        self.placement.put(self.objective, self.places, self._products(), trained=True)
        self.parameters = {
            name: p for name, p in self.objective.model.named_parameters() if p.requires_grad
        }
        self.optimizer = adamw(self.parameters.values(), config, self.device)
        self.drift, self.step = Drift(), 0
        if state is not None:
            self.step, self.drift = state["step"], Drift.of(state["drift"])
            restore(state, self.parameters, self.optimizer, share)

    def _measured(self, model: MaskedDiffusionModel) -> Consistency:
        objective = XPrediction(model.requires_grad_(False), self.config.chunk)
        self.placement.put(objective, self.places)
        return read_consistency(objective, self.held, self.device)

    def _trainable(self, model: MaskedDiffusionModel) -> MaskedDiffusionModel:
        """What is trained is in fp32; beside adapters the weights stay as they are multiplied."""
        config = self.config
        if config.lora_rank:
            model.convert(self._products())
            add_adapters(model, config.lora_rank, config.lora_targets, config.seed)
        else:
            model.float().requires_grad_()
            model.embedding.requires_grad_(False)
        if config.checkpointing is not None or not isinstance(model, Wrapped):
            model.checkpointing = config.recomputes(sum(p.numel() for p in model.parameters()))
        return model

    def _frozen_copy(self) -> XPrediction | None:
        if self.config.lora_rank or not self.config.reference_every:
            return None
        model = self.placement.open().requires_grad_(False)
        model.convert(self._products())
        reference = XPrediction(model, self.config.chunk)
        self.placement.put(reference, self.places)
        return reference

    def expected(self) -> Footprint | None:
        """The memory that a process needs on its device; unknown for a foreign module."""
        model, longest = self.objective.model, max(map(length, self.answers))
        if isinstance(model, Wrapped):
            return None
        positions = self.rows * longest
        products, again = self._products(), model.checkpointing
        floats = attention.attends_in_float(self.device)
        work = Work(positions, self.parts, self.share.world, products, again, floats)
        return footprint(model, self.config, work)

    def __iter__(self) -> Iterator[Progress]:
        """Train to the end; every update is logged, a state is saved now and then."""
        while self.step < self.config.updates:
            now = self._update()
            self.step = now.step
            self.run.log(**now.line())
            if self.step % self.config.save_every == 0 or self.step == self.config.updates:
                self._save()
            yield now
        self.run.wait()

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
        set_rate(self.optimizer, config.rate(self.step))
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
            gradient_norm=float(whole_tensor(norm)),
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
        kind, block = config.on_policy_states, config.on_policy_block
        return OnPolicyStates.drawn(config.batch, config.on_policy, draw, kind, block)

    def _parts(
        self, noisy: MaskedBatch, on_policy: OnPolicyStates | None
    ) -> Iterator[tuple[MaskedBatch, OnPolicyStates | None]]:
        """This process's rows; processes meet in rows of similar length."""
        for number in range(self.parts):
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
        # Without the cache: it would hold all weights once more until the pass ends.
        return torch.autocast(self.device.type, dtype, cache_enabled=False)

    def finish(self, directory: Path) -> Consistency | None:
        """Write the aligned weights; what they read now, in the process that wrote them."""
        self.run.wait()
        model, dtype = self.objective.model, as_dtype(self.config.dtype) or self.stored
        written = directory.with_name(f"{directory.name}-unmeasured")
        export(model, self.places, self.placement, dtype, written)
        after = self._measured_after(written)
        if self.share.rank:
            return None
        report = {
            "config": self.run.about.values(),
            "held_out": len(self.held),
            "before": asdict(self.before),
            "after": asdict(after),
        }
        # with the weights, in one rename: aligned weights never stand there without saying so
        with published(directory) as draft:
            for file in written.iterdir():
                file.rename(draft / file.name)
            write_atomically(draft / REPORT, json.dumps(report, indent=2) + "\n")
        written.rmdir()
        return after

    def _measured_after(self, directory: Path) -> Consistency:
        """Of what was written; a foreign module may not be one that can be loaded here."""
        if isinstance(self.objective.model, Wrapped):
            return read_consistency(self.objective, self.held, self.device)
        self._make_room()
        if self.share.world == 1:
            return self._measured(load(directory, device=self.device))
        dist.barrier()  # until the first one has written
        return self._measured(load(directory, device="meta"))

    def _make_room(self) -> None:
        """Nothing is trained any more: a device that just held the run must hold another model."""
        self.reference = None
        self.optimizer.state.clear()
        if self.share.world == 1:
            self.objective.to("meta")

    def _save(self) -> None:
        values = {"step": self.step, "drift": asdict(self.drift), "before": asdict(self.before)}
        if self.share.world == 1:
            self.run.save_state({**values, **file_state(self.parameters, self.optimizer)})
        else:
            steps, tensors = shard_state(self.parameters, self.optimizer)
            self.run.save_shards({**values, "steps": steps}, tensors)
