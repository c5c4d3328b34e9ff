"""Every family can be aligned, trained and served; or it says why not, as the table states.

One step of each: whole runs are those of test_families_contract.py and of the recipes.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from dense_checkpoints import SHIFTED
from family_models import FAMILIES, MASKED_LM, load_family
from own_answers import EOS, own_answers
from parity_task import Parity, Words
from running_server import TEXT, running

from xpredflow import Engine, InputError, generate
from xpredflow.models import MaskedDiffusionModel
from xpredflow.training.align.objective import XPrediction
from xpredflow.training.common.answer_batches import text_batch
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.masking import MaskedBatch, draw_masks, masked_cross_entropy
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.run import PolicyTraining
from xpredflow.training.softmask.trainer import Omega, soft_inputs


def answers(model: MaskedDiffusionModel) -> list[Answer]:
    """With the tokens of a small vocabulary where the model has one."""
    made, rows = own_answers(4), len(model.embedding)
    for answer in made if rows < EOS else []:
        answer.prompt_ids[:] = [5 + token % (rows - 5) for token in answer.prompt_ids]
        own = [model.special.eos if token == EOS else token for token in answer.response_ids]
        answer.response_ids[:] = own
    return made


def noisy(model: MaskedDiffusionModel) -> MaskedBatch:
    batch = text_batch(answers(model), model.special, model.block_size)
    draw = torch.Generator().manual_seed(0)
    return draw_masks(batch, model.block_size, model.special.eos, draw)


def alignment(model: MaskedDiffusionModel, out: Path) -> None:
    model.requires_grad_()
    model.embedding.requires_grad_(False)
    XPrediction(model)(noisy(model)).total.backward()
    for name, weight in model.named_parameters():
        if weight is not model.embedding:
            assert weight.grad is not None, name
            assert weight.grad.isfinite().all(), name


def soft_masks(model: MaskedDiffusionModel, out: Path) -> None:
    model.requires_grad_()
    batch, omega = noisy(model), Omega()
    inputs = soft_inputs(model, batch, omega, k=3)
    loss, _ = masked_cross_entropy(model, batch, inputs)
    loss.backward()
    assert all(weight.grad is not None for weight in omega.parameters())
    assert model.embedding.grad is not None
    assert model.embedding.grad.any()


def policy(model: MaskedDiffusionModel, out: Path) -> None:
    model.tokenizer = Words()
    small: dict[str, Any] = {
        "hidden": 4,
        "gen_length": 4,
        "init_prompts": 1,
        "init_fits": 1,
        "validate_every": 0,
    }
    config = PolicyConfig(updates=1, prompts=1, group=2, **small)
    assert list(PolicyTraining(Setup(model, Parity(), config), list(range(3)), out))


def shadows(model: MaskedDiffusionModel, out: Path) -> None:
    [done] = generate(model, [[5, 6]], decoder="wino", gen_length=4, stop_at_eos=False)
    assert done.shadow_positions


def server(model: MaskedDiffusionModel, out: Path) -> None:
    with running(Engine(model)) as served:
        answer = served.post(TEXT, prompt="the [[mask:2]] sat", max_tokens=4)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"]


ABILITIES: dict[str, Callable[[MaskedDiffusionModel, Path], None]] = {
    "alignment": alignment,
    "soft masks": soft_masks,
    "policy": policy,
    "shadows": shadows,
    "server": server,
}
REASONS = {
    **{(name, "shadows"): "reads shadows" for name in SHIFTED},
    (MASKED_LM, "alignment"): "cannot be aligned",
    (MASKED_LM, "shadows"): "reads shadows",
}


@pytest.fixture(scope="module", params=[*FAMILIES, MASKED_LM])
def loaded(request, tmp_path_factory) -> tuple[str, MaskedDiffusionModel]:
    directory = tmp_path_factory.mktemp("family")
    return request.param, load_family(directory, request.param, tokenizer=True)


@pytest.mark.parametrize("ability", ABILITIES)
def test_it_can_or_says_why_not(loaded, ability: str, tmp_path) -> None:
    name, model = loaded
    model = deepcopy(model)
    reason = REASONS.get((name, ability))
    if reason is None:
        ABILITIES[ability](model, tmp_path)
        return
    with pytest.raises(InputError, match=reason):
        ABILITIES[ability](model, tmp_path)
