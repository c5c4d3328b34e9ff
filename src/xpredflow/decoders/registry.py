"""The table of decoders: name, summary, the dataclass of its options, the option a spec sets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xpredflow.decoders.dinfer import Credit, Hierarchy
from xpredflow.decoders.editing import Editing
from xpredflow.decoders.entropy import EntropyBounded, EntropyThreshold
from xpredflow.decoders.evotoken import EvoToken
from xpredflow.decoders.flow_entry import FlowOptions, build_flow
from xpredflow.decoders.klass import Klass
from xpredflow.decoders.mask import MaskPrediction
from xpredflow.decoders.remdm import ReMDM
from xpredflow.decoders.remix import ReMix
from xpredflow.decoders.saber import Saber
from xpredflow.decoders.soft import SoftMasking
from xpredflow.decoders.threshold import Factor, Threshold
from xpredflow.decoders.wino import Wino
from xpredflow.types import Decoder


@dataclass(frozen=True)
class Entry:
    """A decoder in the registry: `options` declares its options, `main` is the one of a spec.

    `builder` makes it from them where the decoder is not that dataclass itself.
    """

    summary: str
    options: type
    main: str | None = None
    builder: Callable[..., Decoder] | None = None

    def build(self, **options: Any) -> Decoder:
        """The decoder with these options."""
        return (self.builder or self.options)(**options)


DECODERS: dict[str, Entry] = {
    "flow": Entry(
        "continuous state per position, moved towards the prediction by a step-size policy",
        FlowOptions,
        "policy",
        build_flow,
    ),
    "mask": Entry(
        "mask prediction: an even share of the response is committed per pass (LLaDA)",
        MaskPrediction,
        "remasking",
    ),
    "threshold": Entry(
        "commits everything whose confidence reaches a threshold, at least one (Fast-dLLM)",
        Threshold,
        "threshold",
    ),
    "factor": Entry(
        "commits the n surest for the largest n with c ≥ 1 − f/(n+1) (Fast-dLLM)",
        Factor,
        "factor",
    ),
    "entropy": Entry(
        "commits everything whose entropy is at most a threshold, at least one (dParallel)",
        EntropyThreshold,
        "threshold",
    ),
    "eb": Entry(
        "commits the lowest entropies while ΣH − max H stays within a bound (EB-sampler)",
        EntropyBounded,
        "gamma",
    ),
    "klass": Entry(
        "commits what is sure and stable from pass to pass, else an even share (KLASS)",
        Klass,
        "threshold",
    ),
    "hierarchy": Entry(
        "commits the surest of every open run and all above a threshold (dInfer)",
        Hierarchy,
        "threshold",
    ),
    "credit": Entry(
        "threshold decoding with credit for tokens that were predicted before (dInfer)",
        Credit,
        "threshold",
    ),
    "wino": Entry(
        "commits widely, verifies each token in the same pass and takes doubts back (WINO)",
        Wino,
        "threshold",
    ),
    "saber": Entry(
        "commits above the mean of past commitments, takes sudden drops back (Saber)",
        Saber,
        "n",
    ),
    "editing": Entry(
        "threshold decoding that overwrites tokens until nothing changes (LLaDA2.1)",
        Editing,
        "threshold",
    ),
    "remdm": Entry(
        "ancestral sampling that masks tokens again: cap, rescale, conf or loop (ReMDM)",
        ReMDM,
        "strategy",
    ),
    "soft": Entry(
        "mask prediction whose open positions carry a soft hint of the prediction (SM)",
        SoftMasking,
        "k",
    ),
    "evotoken": Entry(
        "mask prediction on soft tokens that evolve until their block ends (EvoToken)",
        EvoToken,
        "alpha",
    ),
    "remix": Entry(
        "threshold decoding whose steady open positions carry a mixture (ReMix)",
        ReMix,
        "threshold",
    ),
}
