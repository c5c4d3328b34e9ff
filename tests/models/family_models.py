"""A small generated checkpoint of every family, loaded; with a tokenizer where one is wanted."""

from pathlib import Path

from builders import CONFIGS, write_checkpoint, write_tokenizer
from dense_checkpoints import ANCHORED, BLOCK, KINDS, write_kind
from masked_checkpoints import write_masked_lm

import xpredflow.models as models
from xpredflow.models import MaskedDiffusionModel

FAMILIES = [*CONFIGS, *KINDS]
MASKED_LM = "masked-lm"


def load_family(directory: Path, name: str, *, tokenizer: bool = False) -> MaskedDiffusionModel:
    """Written into the directory first, without any of our own saving code."""
    if name == MASKED_LM:
        write_masked_lm(directory, "bert")
        return models.load(directory)
    if name in CONFIGS:
        write_checkpoint(directory, name, tokenizer=tokenizer)
        return models.load(directory)
    written = write_kind(directory, name)
    if tokenizer:  # its special tokens have the ids that config.json names
        write_tokenizer(written, "llada")
    return models.load(written, block=BLOCK if name in ANCHORED else None)
