"""The loop of a pretraining run (Eq. 1 of the paper): resumable, bit by bit the same."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.evaluation import Job, evaluate_job
from xpredflow.models import MaskedDiffusionModel, build, save
from xpredflow.models.compilation import compile_layers
from xpredflow.models.digests import weights_digest
from xpredflow.processes import Share, from_first, summed
from xpredflow.tasks import Runner, Task
from xpredflow.training.common.answer_batches import BATCHES_PER_CHUNK
from xpredflow.training.common.masking import TextBatch
from xpredflow.training.common.run_file import RunFile
from xpredflow.training.common.runs import Run
from xpredflow.training.pretrain.batches import Mixture, Source, chunk, make_source
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.pretrain.initialise import (
    Initialise,
    fresh_model,
    given_model,
    learn_tokenizer,
    read_shape,
    special_tokens,
)
from xpredflow.training.pretrain.lessons import check_blocks, draw_lesson
from xpredflow.training.pretrain.optimizers import Balance, make_optimizers

REPORT_EVERY = 64
SAVE_EVERY = 256
PROBED = 24  # problems of each task: enough to see it learn, cheap enough not to delay it


@dataclass(frozen=True)
class Stage:
    """What examples are drawn from, in turn, from an update on: tasks or exercises, by name or not.

    Batches are drawn 16 updates at a time: a stage begins with the next of those.
    """

    from_update: int
    sources: tuple[Source | str, ...]

    def __str__(self) -> str:
        names = (s if isinstance(s, str) else s.name for s in self.sources)
        return f"{self.from_update}:{','.join(names)}"


@dataclass(frozen=True)
class Progress:
    """One report: means since the last one."""

    step: int
    loss: float
    accuracy: float
    rate: float
    seconds_left: float
    solved: dict[str, float] | None = None  # share of validation problems, when it was probed

    @property
    def hours_left(self) -> float:
        """At the pace so far."""
        return self.seconds_left / 3600


class Pretraining:
    """A run: iterate over it to train; `finish` writes the averaged weights as a checkpoint."""

    def __init__(
        self,
        config: PretrainConfig,
        directory: Path,
        tasks: tuple[Source, ...],
        *,
        model_config: str | Path | Mapping[str, Any] | None = None,
        start: str | None = None,
        schedule: tuple[Stage, ...] = (),
        initialise: Initialise | None = None,
        resume: bool = False,
        save_every: int = SAVE_EVERY,
        judge: Runner | None = None,
        share: Share = Share(),  # noqa: B008  (immutable)
    ) -> None:
        """`judge` runs programs in the probes; without it, tasks that need it are left out.

        Several processes share out the rows of each batch; the first one writes and probes.
        """
        if config.batch % share.world:
            raise InputError(
                f"batch is {config.batch}, which {share.world} processes cannot share out evenly:"
                f" give a multiple of {share.world}"
            )
        if (model_config is None) == (start is None):
            raise InputError(
                "a run begins with a fresh model or with a checkpoint: give model_config (--shape)"
                " or start (--start), one of the two"
            )
        self.config, self.directory, self.save_every = config, directory, save_every
        self.share = share
        self.tasks, self.judge = tasks, judge  # probed are these, whatever later stages draw from
        self.stages = [
            (stage.from_update, tuple(map(make_source, stage.sources)))
            for stage in sorted(schedule, key=lambda stage: stage.from_update)
        ]
        shape = None if model_config is None else read_shape(model_config)
        inputs: dict[str, Any] = {"tasks": [task.name for task in tasks]}
        inputs |= {"start": start} if shape is None else {"shape": _named(model_config)}
        checks = {"schedule": ";".join(map(str, schedule))}
        checks |= {} if initialise is None else {"initialise": initialise.__name__}
        checks |= {} if start is None else {"weights": weights_digest(start)}
        # the rate is constant until it falls, so a run may be lengthened before it does; so with
        # the tasks of later stages
        later = ("updates", "decay_share", "probe_every", "schedule", "whole_from", "block_share")
        later += ("bf16", "compile")  # how it is computed, not what
        about = RunFile("pretrain", config, inputs, checks=checks)
        self.run = Run(directory, about, resume, may_change=later, share=share)
        # a killed run may have left a tokenizer for another vocabulary
        if shape is not None and not self.run.begun and self.run.writes:
            learn_tokenizer(directory, tasks, config.vocabulary, config.tokenizer_examples)
        from_first(share, None)  # nobody reads it before it is there
        if shape is not None:
            self.model = fresh_model(directory, shape, config.seed, initialise)
        else:
            self.model = given_model(directory, str(start))
        self.mixture = _mixture(directory, tasks, config.seed)
        self.average = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        products = torch.bfloat16 if config.bf16 else torch.float32
        self.optimizers = make_optimizers(self.model, config.lr, config.weight_decay, products)
        self.balance = Balance(self.model, share=share)
        check_blocks(config, self.model)
        if config.compile:
            compile_layers(self.model)
        self.step = 0
        self.losses: list[float] = []  # since the last report
        self.rights: list[float] = []
        state = self.run.load_state()
        if state is not None:
            self._restore(state)

    def __iter__(self) -> Iterator[Progress]:
        """Train to the end; a Progress every few updates, a saved state now and then."""
        started, first = time.monotonic(), self.step
        while self.step < self.config.updates:
            # the last chunk may end early, and a lengthened run begins in the middle of one
            for batch in self._batches()[self.step % BATCHES_PER_CHUNK :]:
                loss, right = self._train_on(batch)
                self.losses.append(loss)
                self.rights.append(right)
                self.step += 1
                last = self.step == self.config.updates
                now = None
                if self.step % REPORT_EVERY == 0 or last:
                    now = self._report((time.monotonic() - started) / (self.step - first))
                    self.losses, self.rights = [], []
                if self.step % self.save_every == 0 or last:
                    self.run.save_state(self._state())
                if now is not None:
                    yield now
                if last:
                    break

    def _batches(self) -> list[TextBatch]:
        """The chunk of batches that this update belongs to."""
        number = self.step // BATCHES_PER_CHUNK
        first = number * BATCHES_PER_CHUNK
        mixture = replace(self.mixture, tasks=self.sources_at(first))
        full_share = self.config.full_share if first < self.config.whole_from else 1.0
        return chunk(mixture, number, self.config.batch, full_share)

    def sources_at(self, update: int) -> tuple[Source, ...]:
        """What examples are drawn from at an update."""
        found = self.tasks
        for first, sources in self.stages:
            if update >= first:
                found = sources
        return found

    def _report(self, pace: float) -> Progress:
        every = self.config.probe_every
        probed = every > 0 and self.step % every == 0 and self.run.writes
        now = Progress(
            self.step,
            sum(self.losses) / len(self.losses),
            sum(self.rights) / len(self.rights),
            self.config.rate(self.step - 1),
            pace * max(self.config.updates - self.step, 0),
            self._probe() if probed else None,
        )
        solved = {} if now.solved is None else {"solved": now.solved}
        self.run.log(step=now.step, loss=now.loss, accuracy=now.accuracy, rate=now.rate, **solved)
        return now

    def _probe(self) -> dict[str, float]:
        """The share of validation problems that full-budget mask prediction solves, per task."""
        solved, model = {}, self.averaged()
        for task in self.tasks:
            if not isinstance(task, Task) or (task.runs_programs and self.judge is None):
                continue
            limit = min(PROBED, task.size("validation"))
            job = Job(task.name, "validation", "mask", limit=limit)
            samples = evaluate_job(model, task, job, run=self.judge)
            solved[task.name] = sum(sample.passed for sample in samples) / len(samples)
        return solved

    def _train_on(self, batch: TextBatch) -> tuple[float, float]:
        config = self.config
        rows = slice(self.share.rank, None, self.share.world)
        device = self.model.embedding.device
        lesson = draw_lesson(config, self.model, batch, self.step, rows)
        noisy, own = lesson.noisy, lesson.noisy.rows(rows).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=config.bf16):
            loss, right = lesson.loss(self.model, own)
        loss = loss * (own.candidates.sum() / noisy.candidates.sum())
        loss.backward()
        right = right * (own.asked.sum() / noisy.asked.sum())
        loss, right = self._shared_out(torch.stack([loss.detach(), right]))
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = config.rate(self.step)
            optimizer.step()
        self.model.zero_grad()
        self.balance.step()
        # a young average forgets the random start faster than an old one
        decay = min(config.ema, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for name, value in self.model.named_parameters():
                self.average[name].lerp_(value, 1 - decay)
        return loss.item(), right.item()

    def _shared_out(self, seen: Float[Tensor, " 2"]) -> Float[Tensor, " 2"]:
        """Everybody's gradients and figures, added up in every process by one message."""
        if self.share.world == 1:
            return seen
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        parts = [seen, *gradients]
        flat = summed(torch.cat([part.flatten() for part in parts]), self.share)
        for part, total in zip(parts, flat.split([p.numel() for p in parts]), strict=True):
            part.copy_(total.view_as(part))
        return seen

    def finish(self, directory: Path, dtype: torch.dtype = torch.float16) -> None:
        """Write the averaged weights as a checkpoint in the published layout."""
        model = self.averaged()
        model.convert(dtype)
        save(model, directory)

    def averaged(self) -> MaskedDiffusionModel:
        """The model with averaged weights: what the run is about."""
        model = build(
            self.model.config,
            self.config.seed,
            device=self.model.embedding.device,
            tokenizer=self.model.tokenizer,
        )
        model.load_state_dict({**self.model.state_dict(), **self.average})
        return model.eval()

    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "average": self.average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "unreported": [self.losses, self.rights],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.losses, self.rights = map(list, state.get("unreported", ([], [])))
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for name, value in state["average"].items():
            self.average[name].copy_(value)


def _mixture(directory: Path, tasks: tuple[Source, ...], seed: int) -> Mixture:
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    start, turn, end, _ = special_tokens(directory)
    length = max(getattr(task, "response_length", 0) for task in tasks)
    return Mixture(tasks, tokenizer, (start, turn, end), length, seed)


def _named(shape: str | Path | Mapping[str, Any] | None) -> Any:
    """How run.toml says a shape: by its name or path, or in full."""
    return dict(shape) if isinstance(shape, Mapping) else str(shape)
