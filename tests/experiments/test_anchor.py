"""The probe of anchors on a model whose every prediction is known."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from xpredflow.experiments.anchor import ALPHAS, ENDPOINTS, recovery
from xpredflow.training.common.answers import Answer
from xpredflow.types import SpecialTokens

VOCABULARY, MASK, EOS = 300, 299, 298
SHARPNESS = 5.0


class Nearest:
    """W_e is the identity and the logits are the input itself, sharpened; sees no context."""

    name = "nearest"
    special = SpecialTokens(mask=MASK, eos=EOS)
    max_length, tokenizer = 512, None

    def __init__(self, block_size: int | None = None) -> None:
        self.block_size = block_size
        self.embedding = torch.eye(VOCABULARY)
        self.seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def logits(self, inputs: Tensor, positions: Tensor, columns: Tensor, cache=None, slots=None):
        self.seen.append((inputs.clone(), positions, columns))
        index = columns.unsqueeze(-1).expand(-1, -1, VOCABULARY)
        return SHARPNESS * inputs.gather(1, index)

    def new_cache(self, slots: int, length: int) -> None:
        return None


def answers(count: int = 3) -> list[Answer]:
    made = []
    for number in range(count):
        response = [*range(20 * number, 20 * number + 7 + number), EOS]
        made.append(Answer(number, "toy", "prompt", "answer", [290, 291, 292], response, 0))
    return made


def test_recovery_has_a_closed_form() -> None:
    found = recovery(Nearest(), answers())
    assert found.positions == 4 + round(4.5) + 5
    assert found.accuracy["mask"] == [1.0] * 5  # the mask is ruled out, so the token stays nearest
    assert found.accuracy["token"] == [1.0, 1.0, 1.0, 0.0, 0.0]
    for alpha, value in zip(ALPHAS, found.cross_entropy["mask"], strict=True):
        own = SHARPNESS * (1 - alpha)
        assert value == pytest.approx(log(exp(own) + VOCABULARY - 2) - own, rel=1e-5)
    for alpha, value in zip(ALPHAS, found.cross_entropy["token"], strict=True):
        if alpha > 0:
            own, other = SHARPNESS * (1 - alpha), SHARPNESS * alpha
            total = exp(own) + exp(other) + VOCABULARY - 3
            assert value == pytest.approx(log(total) - own, rel=1e-5)


def test_half_of_the_response_is_displaced_and_nothing_else() -> None:
    model = Nearest()
    [answer] = answers(1)
    recovery(model, [answer])
    clean = model.embedding[answer.prompt_ids + answer.response_ids]
    assert len(model.seen) == len(ENDPOINTS)
    for inputs, _, columns in model.seen:
        displaced = (inputs[1:] != clean).any(-1)
        assert (displaced.nonzero()[:, 1].reshape(4, -1) == columns[1:]).all()
        assert columns.shape == (len(ALPHAS), 4)
        assert columns.min() >= 3
        assert torch.equal(inputs[0], clean)
    end = [inputs[4, columns[4]] - 0.2 * clean[columns[4]] for inputs, _, columns in model.seen]
    torch.testing.assert_close(end[1].norm(dim=-1), torch.full((4,), 0.8))  # ‖g‖ = ‖m‖ = 1


def test_draws_depend_on_an_answers_number_alone() -> None:
    whole = recovery(Nearest(), answers())
    parts = [recovery(Nearest(), [answer]) for answer in answers()]
    mean = sum(p.cross_entropy["gaussian"][3] * p.positions for p in parts) / whole.positions
    assert whole.cross_entropy["gaussian"][3] == pytest.approx(mean)


def test_a_block_causal_model_reads_whole_blocks() -> None:
    model = Nearest(block_size=8)
    recovery(model, answers(1))
    inputs, positions, _ = model.seen[0]
    assert positions.tolist() == [list(range(16))] * len(ALPHAS)
    assert torch.equal(inputs[0, 11:], model.embedding[MASK].expand(5, -1))
