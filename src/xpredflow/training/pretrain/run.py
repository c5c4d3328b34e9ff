"""Pretrain a small masked diffusion model on the synthetic tasks (Eq. 1 of the paper)."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel, build, save
from xpredflow.tasks import GENERATED, Runner
from xpredflow.training.common.cross_entropy import masked_cross_entropy
from xpredflow.training.common.masking import draw_masks
from xpredflow.training.common.runs import Run
from xpredflow.training.pretrain.balance import Balance
from xpredflow.training.pretrain.batches import BATCHES_PER_CHUNK, Mixture, Source, TextBatch, chunk
from xpredflow.training.pretrain.initialise import FRESH, fresh_model, given_model, learn_tokenizer
from xpredflow.training.pretrain.muon import Muon
from xpredflow.training.pretrain.probe import probe
from xpredflow.training.pretrain.shapes import SHAPES
from xpredflow.training.pretrain.sums import Sums
from xpredflow.training.pretrain.tokenizer import END, START, TURN

REPORT_EVERY = 64
SOURCES: dict[str, Callable[[], Source]] = {**GENERATED, "sums": Sums}
SAVE_EVERY = 256  # a multiple of the chunk and of the above: a resumed run reports the same


@dataclass(frozen=True)
class PretrainConfig:
    """Everything that decides the result of a pretraining run."""

    shape: str = "tiny"
    tasks: str = "minicode,minimath"  # in turn; a name may stand there more than once
    # other tasks from a step on, `STEP:TASK,TASK;STEP:…`; `sums` is an exercise
    later: str = ""
    cut_share: float = 0.5  # rows masked from a random place on instead of here and there
    tail_share: float = 0.25  # rows of which only the tail is shown, from `whole_from` on
    full_share: float = 0.25  # batches filled with EOS up to the full response length
    whole_from: int = 3584  # step from which on all batches are
    updates: int = 20_000
    batch: int = 64
    lr: float = 4e-3
    warmup: int = 200
    decay_share: float = 0.4  # last part of the run, in which the rate falls to zero
    weight_decay: float = 0.05
    clip: float = 1.0
    ema: float = 0.999
    probe_every: int = 2048  # steps between two probes of the accuracy; 0: never
    vocabulary: int = 704
    tokenizer_examples: int = 20_000  # that the vocabulary is learned from
    # training/start.py, `plain` for random throughout, or a checkpoint to train further
    start: str = "copying"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise InputError(f"shape is {self.shape!r}: choose one of {', '.join(SHAPES)}")
        for name in self.tasks.split(","):
            if name not in GENERATED:
                raise InputError(
                    f"task {name!r} cannot be trained on: choose from {list(GENERATED)}"
                )
        for step, names in self.stages():
            if not step.isdecimal():
                raise InputError(f"later has the step {step!r}: give STEP:TASK,TASK;STEP:TASK")
            for name in names.split(","):
                if name not in SOURCES:
                    raise InputError(f"later task {name!r} is unknown: {list(SOURCES)} are known")
        for name in ("cut_share", "tail_share", "full_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a share from 0 to 1")
        for name in ("updates", "batch", "vocabulary", "warmup"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give a whole number ≥ 1")

    def stages(self) -> list[tuple[str, str]]:
        """The first steps and the tasks of the later stages."""
        parts = (stage.partition(":") for stage in filter(None, self.later.split(";")))
        return [(step, names) for step, _, names in parts]

    def tasks_at(self, step: int) -> str:
        """What examples are drawn from at a step."""
        names = self.tasks
        for first, later in sorted((int(first), later) for first, later in self.stages()):
            if step >= first:
                names = later
        return names

    def rate(self, step: int) -> float:
        """Warm up, stay, then fall linearly to zero: most is learned while the rate falls."""
        left = (self.updates - step) / max(self.decay_share * self.updates, 1)
        return self.lr * min(1.0, (step + 1) / self.warmup, left)


@dataclass(frozen=True)
class Progress:
    """One reported info of a run."""

    step: int
    loss: float
    accuracy: float
    rate: float
    seconds_left: float
    solved: dict[str, float] | None = None  # share of validation problems, when it was probed


class Pretraining:
    """A run: iterate over it to train; `finish` writes the averaged weights as a checkpoint."""

    def __init__(
        self,
        config: PretrainConfig,
        directory: Path,
        resume: bool = False,
        save_every: int = SAVE_EVERY,
        run: Runner | None = None,
    ) -> None:
        """`run` judges programs in the probes; without it, tasks that need it are left out."""
        self.config, self.directory, self.save_every = config, directory, save_every
        self.judge = run
        # the rate is constant until it falls, so a run may be lengthened before it does; so with
        # the tasks of later stages
        later = ("updates", "decay_share", "probe_every", "later", "whole_from")
        self.run = Run(directory, asdict(config), resume, may_change=later)
        tasks = tuple(GENERATED[name]() for name in config.tasks.split(","))
        if config.start in FRESH:
            learn_tokenizer(directory, tasks, config.vocabulary, config.tokenizer_examples)
            self.model = fresh_model(directory, config.shape, config.start, config.seed)
        else:
            self.model = given_model(directory, config.shape, config.start)
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tasks = tasks  # those that are probed, whatever later stages draw from
        self.mixture = _mixture(config, tokenizer, tasks)
        self.average = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        self.optimizers = make_optimizers(self.model, config)
        self.balance = Balance(self.model)
        self.step = 0
        state = self.run.load_state()
        if state is not None:
            self._restore(state)

    def __iter__(self) -> Iterator[Progress]:
        """Train to the end; a Progress every few steps, a saved state now and then."""
        started, first = time.monotonic(), self.step
        losses: list[float] = []
        rights: list[float] = []
        while self.step < self.config.updates:
            for batch in self._batches():
                loss, right = self._train_on(batch)
                losses.append(loss)
                rights.append(right)
                self.step += 1
                if self.step % REPORT_EVERY == 0:
                    pace = (time.monotonic() - started) / (self.step - first)
                    yield self._report(losses, rights, pace)
                    losses, rights = [], []
            if self.step % self.save_every == 0 or self.step >= self.config.updates:
                self.run.save_state(self._state())

    def _batches(self) -> list[TextBatch]:
        """The chunk of batches that begins at this step."""
        number = self.step // BATCHES_PER_CHUNK
        names = self.config.tasks_at(self.step).split(",")
        mixture = replace(self.mixture, tasks=tuple(SOURCES[name]() for name in names))
        full_share = self.config.full_share if self.step < self.config.whole_from else 1.0
        return chunk(mixture, number, self.config.batch, full_share)

    def _report(self, losses: list[float], rights: list[float], pace: float) -> Progress:
        every = self.config.probe_every
        probed = every > 0 and self.step % every == 0
        now = Progress(
            self.step,
            sum(losses) / len(losses),
            sum(rights) / len(rights),
            self.config.rate(self.step - 1),
            pace * max(self.config.updates - self.step, 0),
            probe(self.averaged(), self.tasks, self.judge) if probed else None,
        )
        solved = {} if now.solved is None else {"solved": now.solved}
        self.run.log(step=now.step, loss=now.loss, accuracy=now.accuracy, rate=now.rate, **solved)
        return now

    def _train_on(self, batch: TextBatch) -> tuple[float, float]:
        config = self.config
        draw = torch.Generator().manual_seed(config.seed * 1_000_003 + self.step)
        noisy = draw_masks(
            batch,
            self.model.block_size,
            self.model.special.eos,
            draw,
            cut_share=config.cut_share,
            tail_share=config.tail_share if self.step >= config.whole_from else 0.0,
        )
        loss, right = masked_cross_entropy(self.model, noisy)
        loss.backward()
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

    def finish(self, directory: Path, dtype: torch.dtype = torch.float16) -> None:
        """Write the averaged weights as a checkpoint in the published layout."""
        model = self.averaged()
        model.convert(dtype)
        save(model, directory)

    def averaged(self) -> MaskedDiffusionModel:
        """The model with averaged weights: what the run is about."""
        model = build(self.model.config, self.config.seed, tokenizer=self.model.tokenizer)
        model.load_state_dict({**self.model.state_dict(), **self.average})
        return model.eval()

    def _state(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "average": self.average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for name, value in state["average"].items():
            self.average[name].copy_(value)


def make_optimizers(
    model: MaskedDiffusionModel, config: PretrainConfig
) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between embedding and head, AdamW for everything else."""
    layers, _, _ = model.trunk()
    inner = {p for layer in layers for p in layer.parameters() if p.ndim > 1}
    others = [p for p in model.parameters() if p not in inner]
    matrices = [p for p in model.parameters() if p in inner]
    decay = config.weight_decay
    return [
        Muon(matrices, config.lr, momentum=0.95, weight_decay=decay),
        torch.optim.AdamW(others, config.lr, betas=(0.9, 0.98), weight_decay=decay, fused=True),
    ]


def _mixture(config: PretrainConfig, tokenizer: Tokenizer, tasks: tuple) -> Mixture:
    vocabulary = tokenizer.get_vocab()
    start, turn, end = (vocabulary[token] for token in (START, TURN, END))
    length = max(task.response_length for task in tasks)
    return Mixture(tasks, tokenizer, (start, turn, end), length, config.seed)
