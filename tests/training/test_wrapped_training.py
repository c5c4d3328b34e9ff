"""A foreign module, wrapped, is aligned and trains a step-size policy; or says why it cannot."""

from copy import deepcopy

import pytest
import torch
from foreign_modules import EOS, MASK, Mean, transformers_module
from own_answers import own_answer
from parity_task import Parity, Words

from xpredflow import InputError, generate
from xpredflow.models import MaskedDiffusionModel, wrap
from xpredflow.training.align.consistency import consistency
from xpredflow.training.align.lora import add_adapters
from xpredflow.training.align.objective import XPrediction
from xpredflow.training.common.answer_batches import text_batch
from xpredflow.training.common.answers import Answer
from xpredflow.training.common.masking import MaskedBatch, draw_masks
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.run import PolicyTraining


def answers() -> list[Answer]:
    """With the tokens of the small modules."""
    made = [own_answer(number) for number in range(6)]
    for answer in made:
        answer.prompt_ids[:] = [token % 80 for token in answer.prompt_ids]
        answer.response_ids[:] = [min(token, EOS) for token in answer.response_ids]
    return made


def noisy(model: MaskedDiffusionModel) -> MaskedBatch:
    batch = text_batch(answers(), model.special, model.block_size)
    draw = torch.Generator().manual_seed(0)
    return draw_masks(batch, model.block_size, model.special.eos, draw)


@pytest.mark.parametrize("options", [{}, {"block": 8}, {"shift": 1}], ids=str)
def test_alignment_lowers_its_loss(options: dict) -> None:
    model = wrap(transformers_module("llama"), mask=MASK, eos=EOS, **options)
    model.requires_grad_()
    model.embedding.requires_grad_(False)
    before = consistency(model, answers())
    objective, batch = XPrediction(model), noisy(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, 1e-2)
    losses = []
    for _ in range(12):
        read = objective(batch)
        losses.append(read.total.item())
        read.total.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0] / 2
    assert consistency(model, answers()).distance < before.distance


def test_hidden_states_give_the_logits() -> None:
    model = wrap(transformers_module("qwen2"), mask=MASK, eos=EOS)
    batch, (_, _, head) = noisy(model), model.trunk()
    inputs = model.embedding[batch.shown(MASK)]
    at = (batch.positions, batch.columns)
    torch.testing.assert_close(head(model.hidden(inputs, *at)), model.logits(inputs, *at))


def test_adapters_are_put_beside_the_head() -> None:
    model = wrap(transformers_module("llama"), mask=MASK, eos=EOS)
    add_adapters(model, 2, "q_proj,v_proj", seed=0)
    names = {name for name, p in model.named_parameters() if p.requires_grad}
    assert names
    assert all("q_proj" in name or "v_proj" in name for name in names)
    add_adapters(other := wrap(transformers_module("llama"), mask=MASK, eos=EOS), 2, "", seed=0)
    assert not any("lm_head.lora" in name for name, _ in other.named_parameters())


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (lambda: transformers_module("bert"), "no linear layer without a bias"),
        (Mean, "none was found"),
    ],
)
def test_what_cannot_be_aligned_says_why(module, why: str) -> None:
    model = wrap(module(), mask=MASK, eos=EOS, max_length=64)
    with pytest.raises(InputError, match=rf"cannot be aligned: .* get_output_embeddings.*{why}"):
        XPrediction(model)(noisy(model))


def test_checkpointing_is_the_modules_own() -> None:
    model = wrap(transformers_module("llama"), mask=MASK, eos=EOS)
    model.checkpointing = True
    assert model.module.is_gradient_checkpointing
    own = wrap(Mean(), mask=MASK, eos=EOS, max_length=64)
    own.checkpointing = False
    with pytest.raises(InputError, match="no gradient checkpointing"):
        own.checkpointing = True


def test_a_policy_is_trained_on_it(tmp_path) -> None:
    module = transformers_module("bert")
    before = deepcopy(module.state_dict())
    model = wrap(module, Words(), mask=MASK, eos=EOS, max_length=40)
    config = PolicyConfig(
        updates=2, prompts=2, group=3, hidden=8, gen_length=8, init_prompts=2, init_fits=5
    )
    training = PolicyTraining(Setup(model, Parity(), config), list(range(5)), tmp_path)
    snapshots = [deepcopy(training.network.state_dict()) for _ in training]
    assert len(snapshots) >= 2
    assert any(not torch.equal(w, snapshots[-1][name]) for name, w in snapshots[0].items())
    assert all(torch.equal(before[name], w) for name, w in module.state_dict().items())
    [done] = generate(model, [[1, 2]], policy=f"learned:{tmp_path / 'policy'}", gen_length=8)
    assert len(done.all_ids) == 8
