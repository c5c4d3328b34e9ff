"""All blocks of a response in one pass: what they see, what is masked, and that it trains."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.training.common.masking import MaskedBatch, TextBatch
from xpredflow.training.pretrain import PretrainConfig
from xpredflow.training.pretrain.batches import make_source
from xpredflow.training.pretrain.block_streams import SIZES, block_logits, mask_blocks
from xpredflow.training.pretrain.initialise import read_shape
from xpredflow.training.pretrain.trainer import Pretraining

PROMPT, SIZE, COUNT = 8, 4, 3  # tokens of the prompt, of a block; blocks

# In a process of its own, where shapes are not checked; traced only, as kernels take a minute.
COMPILED = """
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from xpredflow import load
from xpredflow.training.pretrain import PretrainConfig, trainer
from xpredflow.training.pretrain.batches import make_source

trainer.compile_layers = partial(trainer.compile_layers, backend="eager", whole=True)
config = PretrainConfig(updates=3, batch=4, block_share=0.5, whole_from=2, lr=1e-3, warmup=1)
out, losses, tasks = Path(sys.argv[1]), {}, (make_source("minimath"),)
for compiled in (False, True):
    settings, directory = replace(config, compile=compiled), out / str(compiled)
    run = trainer.Pretraining(settings, directory, tasks, model_config="tiny")
    losses[compiled] = [now.loss for now in run]
    assert run.model.compiled == compiled
    run.finish(directory / "model")
    assert not load(str(directory / "model")).compiled
assert abs(losses[True][0] - losses[False][0]) < 1e-3 * losses[False][0], losses
"""


def text(rows: int = 2, length: int = SIZE * COUNT) -> TextBatch:
    """Random tokens: a prompt, and a response of this length."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(8, 60, (rows, PROMPT + length), generator=draw)
    return TextBatch(ids, (torch.arange(ids.shape[1]) >= PROMPT).expand(rows, -1))


def in_blocks(batch: TextBatch) -> tuple[MaskedBatch, Tensor]:
    """Blocks of SIZE with every other token masked."""
    noisy, _ = mask_blocks(batch, torch.Generator().manual_seed(0))
    places = torch.arange(batch.ids.shape[1])
    masked = batch.response & (places % 2 == 0)
    blocks = torch.where(batch.response, (places - PROMPT) // SIZE, -1)
    return replace(noisy, masked=masked, asked=masked), blocks


def model_like(name: str, **changes: int) -> MaskedDiffusionModel:
    return build({**read_shape(name), **changes}, seed=1).eval()


@torch.no_grad()
@pytest.mark.parametrize("changed", range(COUNT))
def test_a_block_sees_itself_with_masks_and_what_is_before_it_clean(changed: int) -> None:
    model, batch = model_like("tiny"), text()
    before = block_logits(model, *in_blocks(batch)).unflatten(1, (COUNT, SIZE))
    # an even place is masked in its own block and clean in later ones; an odd one shows in both
    for place, sees in ((0, range(changed + 1, COUNT)), (1, range(changed, COUNT))):
        ids = batch.ids.clone()
        ids[:, PROMPT + SIZE * changed + place] += 1
        other = TextBatch(ids, batch.response)
        after = block_logits(model, *in_blocks(other)).unflatten(1, (COUNT, SIZE))
        moved = [bool((before[:, b] != after[:, b]).any()) for b in range(COUNT)]
        assert moved == [b in sees for b in range(COUNT)]


@torch.no_grad()
def test_all_blocks_at_once_are_a_block_causal_model_one_block_after_the_other() -> None:
    model = model_like("tiny-moe", block_size=PROMPT)
    batch = text(length=PROMPT * COUNT)
    noisy, _ = in_blocks(batch)
    places = torch.arange(batch.ids.shape[1])
    blocks = (places // PROMPT - 1).expand_as(batch.ids)  # the prompt is a block of the model
    found = block_logits(model, noisy, blocks).unflatten(1, (COUNT, PROMPT))
    shown = noisy.shown(model.special.mask)
    for b in range(COUNT):
        start, end = PROMPT * (b + 1), PROMPT * (b + 2)
        ids = torch.cat((batch.ids[:, :start], shown[:, start:end]), 1)
        inputs = torch.nn.functional.embedding(ids, model.embedding)
        read = places[:end].expand(len(ids), -1)
        alone = model.logits(inputs, read, read[:, start:])
        torch.testing.assert_close(found[:, b], alone, atol=1e-4, rtol=1e-4)


def test_masks_are_drawn_for_each_block_by_itself() -> None:
    batch = text(rows=64)
    seen = set()
    for seed in range(24):
        noisy, blocks = mask_blocks(batch, torch.Generator().manual_seed(seed))
        assert (blocks[~batch.response] == -1).all()
        assert not noisy.masked[~batch.response].any()
        own = blocks[0, PROMPT:]
        assert (own.diff() >= 0).all()
        assert own[0] == 0
        size = int(own.bincount().max())
        seen.add(size)
        shares = [noisy.masked[0, PROMPT:][own == b].float().mean().item() for b in own.unique()]
        if size == 1:
            assert shares == [1.0] * len(shares)
        else:
            assert 0.3 < noisy.masked[batch.response].float().mean() < 0.7
    assert len(seen) >= len(set(SIZES))


def test_rows_have_two_streams_until_whole_rows_begin(tmp_path: Path) -> None:
    config = PretrainConfig(updates=4, batch=4, block_share=1.0, whole_from=2, lr=1e-3, warmup=1)
    training = make(config, tmp_path, "tiny")
    layers, _, _ = training.model.trunk()
    widths: list[int] = []
    next(iter(layers)).register_forward_pre_hook(lambda _, given: widths.append(given[0].shape[1]))
    batches = training._batches()
    assert all(0 < now.loss < 20 for now in training)
    assert len(widths) == 4
    for width, batch, streams in zip(widths, batches, (2, 2, 1, 1), strict=False):
        prompt = int(batch.response.any(0).int().argmax())
        assert width == prompt + streams * (batch.ids.shape[1] - prompt)


def test_compiled_layers_learn_the_same(tmp_path: Path) -> None:
    script = [sys.executable, "-c", COMPILED, str(tmp_path)]
    ended = subprocess.run(script, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr


def test_models_that_see_less_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"block_share is 0\.5, which is for models that see"):
        make(PretrainConfig(updates=1, block_share=0.5), tmp_path, "tiny-moe")


def make(config: PretrainConfig, directory: Path, shape: str) -> Pretraining:
    """A run on minimath alone."""
    return Pretraining(config, directory, (make_source("minimath"),), model_config=shape)
