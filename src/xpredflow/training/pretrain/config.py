"""The settings of a pretraining run: each is a flag of `pretrain` and a line of its run.toml."""

from xpredflow.settings import grouped, settings
from xpredflow.training.common.optimiser import (
    gradient_clip,
    optimiser,
    rate_share,
    weight_decay,
)

_masking = grouped("Masking and batches")
_tokenizer = grouped("Tokenizer")
_run = grouped("Run")


@settings
class PretrainConfig:
    """Everything that decides the result, beside the tasks and what the model begins with."""

    updates: int = _run(
        20_000, "updates in all; may be raised on --resume until the rate begins to fall", ge=1
    )
    seed: int = _run(0, "seed of examples, masks and weights", ge=0)
    probe_every: int = _run(
        2048, "updates between two probes of the accuracy, in whole 64s; 0: never", ge=0
    )
    batch: int = _masking(64, "examples per update", ge=1)
    cut_share: float = _masking(
        0.5, "rows masked from a random place on instead of here and there", ge=0, le=1
    )
    tail_share: float = _masking(
        0.25, "rows of which only the tail is shown, from whole_from on", ge=0, le=1
    )
    block_share: float = _masking(
        0.0,
        "updates before whole_from that learn all blocks of a response at once, each with what is"
        " before it clean",
        ge=0,
        le=1,
    )
    full_share: float = _masking(
        0.25, "batches filled with EOS up to the full response length", ge=0, le=1
    )
    whole_from: int = _masking(3584, "update from which on all batches are", ge=0)
    lr: float = optimiser(4e-3, "learning rate of Muon and AdamW", gt=0)
    warmup: int = optimiser(200, "updates until the full rate", ge=1)
    decay_share: float = optimiser(
        0.4, "last part of the run, in which the rate falls to zero", ge=0, le=1
    )
    weight_decay: float = weight_decay(0.05, "both")
    bf16: bool = optimiser(
        False, "multiply matrices in bfloat16: faster where the processor knows it"
    )
    compile: bool = optimiser(
        False, "have torch compile the layers: a minute at first, then larger kernels"
    )
    clip: float = gradient_clip()
    ema: float = optimiser(
        0.999, "decay of the average of the weights, which is what is written", ge=0, lt=1
    )
    vocabulary: int = _tokenizer(704, "tokens of a fresh model", ge=1)
    tokenizer_examples: int = _tokenizer(
        20_000, "examples that the vocabulary is learned from", ge=1
    )

    def rate(self, step: int) -> float:
        """Warm up, stay, then fall linearly to zero: most is learned while the rate falls."""
        falling = self.decay_share * self.updates
        return self.lr * rate_share(step, self.updates, warmup=self.warmup, falling=falling)
