"""A pretraining of the layout of `tiny` at a size that takes a second."""

from pathlib import Path
from typing import Any

from xpredflow.tasks.generated.minicode.task import MiniCode
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.pretrain.initialise import read_shape
from xpredflow.training.pretrain.trainer import Pretraining

SMALL = PretrainConfig(updates=48, batch=4, warmup=4, vocabulary=704, tokenizer_examples=1200)
WIDTHS = {"d_model": 32, "n_heads": 2, "n_kv_heads": 2, "n_layers": 2, "mlp_hidden_size": 48}
SHAPE = {**read_shape("tiny"), **WIDTHS}
BOTH = (MiniCode(), MiniMath())


def begin(config: PretrainConfig, out: Path, **more: Any) -> Pretraining:
    """A run on both tasks, from nothing unless `start` is given."""
    fresh = {} if "start" in more else {"model_config": SHAPE}
    return Pretraining(config, out, BOTH, **{**fresh, **more})
