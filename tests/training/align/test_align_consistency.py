"""The consistency probe on a model whose every prediction is known."""

import math
from dataclasses import replace

import pytest
import torch
from builders import CONFIGS
from own_answers import own_answer

from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.training.align.consistency import consistency

VOCABULARY, MASK, EOS = 8, 7, 6
SHARPNESS = 1.5


@pytest.fixture
def copier() -> MaskedDiffusionModel:
    """W_e is the identity and the layers add nothing: the norm's output is √V at the own token."""
    sizes = {"d_model": VOCABULARY, "n_heads": 2, "n_kv_heads": 2, "vocab_size": VOCABULARY}
    tokens = {"embedding_size": VOCABULARY, "mask_token_id": MASK, "eos_token_id": EOS}
    model = build({**CONFIGS["llada"], **sizes, **tokens, "rms_norm_eps": 1e-12})
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".blocks." in name and name.endswith("_out.weight"):
                parameter.zero_()
        model.embedding.copy_(torch.eye(VOCABULARY))
        head = model.trunk()[2].weight
        head.copy_(SHARPNESS * torch.eye(VOCABULARY))  # type: ignore[operator]
    return model


def answer(number: int, response: list[int]):
    return replace(own_answer(number), prompt_ids=[0, 1, 2], response_ids=response)


def readout() -> tuple[float, float]:
    """Probability of the own token and of each other that may be predicted."""
    own = math.exp(SHARPNESS * math.sqrt(VOCABULARY))
    return own / (own + VOCABULARY - 2), 1 / (own + VOCABULARY - 2)


def test_distance_and_agreement_have_a_closed_form(copier: MaskedDiffusionModel) -> None:
    found = consistency(copier, [answer(0, [1, 2, 3, EOS, EOS]), answer(1, [4, EOS])], chunk=3)
    own, other = readout()
    expected = math.sqrt((1 - own) ** 2 + (VOCABULARY - 2) * other**2)
    assert found.agreement == found.text_agreement == 1.0
    assert found.distance == pytest.approx(expected, rel=1e-5)
    assert found.text_distance == pytest.approx(expected, rel=1e-5)


def test_tokens_before_the_first_end_are_counted_apart(copier: MaskedDiffusionModel) -> None:
    with torch.no_grad():  # tokens 3 and 4 are taken for each other
        head = copier.trunk()[2].weight
        head[[3, 4]] = head[[4, 3]]  # type: ignore[index]
    answers = [answer(0, [1, 3, 5, EOS, EOS, EOS]), answer(1, [4, 2, EOS, 3])]
    found = consistency(copier, answers)
    own, other = readout()
    near = math.sqrt((1 - own) ** 2 + (VOCABULARY - 2) * other**2)
    far = math.sqrt(own**2 + (1 - other) ** 2 + (VOCABULARY - 3) * other**2)
    assert found.agreement == pytest.approx(7 / 10)
    assert found.distance == pytest.approx((7 * near + 3 * far) / 10, rel=1e-5)
    assert found.text_agreement == pytest.approx(3 / 5)
    assert found.text_distance == pytest.approx((3 * near + 2 * far) / 5, rel=1e-5)


def test_answers_without_text_have_no_figure_for_it(copier: MaskedDiffusionModel) -> None:
    found = consistency(copier, [answer(0, [EOS, EOS])])
    assert found.text_agreement is None
    assert found.text_distance is None


def test_a_block_causal_model_reads_an_answer_in_one_pass() -> None:
    """The order and the number of answers do not matter, nor how their last block is filled."""
    model = build(CONFIGS["llada2"], seed=1)
    answers = [own_answer(number, 16) for number in range(11)] + [own_answer(20, 6)]
    together = consistency(model, answers)
    apart = [consistency(model, [a]) for a in answers]
    positions = [len(a.response_ids) for a in answers]
    mean = sum(c.distance * n for c, n in zip(apart, positions, strict=True)) / sum(positions)
    assert together.distance == pytest.approx(mean, rel=1e-4)
