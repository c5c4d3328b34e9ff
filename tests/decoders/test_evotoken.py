"""EvoToken: soft inputs before and after commitment, and tokens that evolve."""

import torch
from scene import SPACE, at, believing, canvas_of, committed, sure
from toy import ToyModel, prompts

from xpredflow import generate
from xpredflow.decoders.evotoken import EvoToken

SEEN = believing({0: 0.6, 1: 0.3, 2: 0.1}, {3: 0.4, 4: 0.3, 5: 0.2, 0: 0.1})
E = SPACE.table


def test_inputs_are_mixtures_with_a_share_of_the_mask_where_open() -> None:
    canvas, _ = EvoToken().step(canvas_of(None, None), SEEN, at(0, 2), SPACE)
    assert committed(canvas) == [0]
    torch.testing.assert_close(canvas.state[0, 0], 0.6 * E[0] + 0.3 * E[1] + 0.1 * E[2])
    mixed = (0.4 * E[3] + 0.3 * E[4] + 0.2 * E[5]) / 0.9
    torch.testing.assert_close(canvas.state[0, 1], 0.7 * SPACE.mask + 0.3 * mixed)


def test_a_committed_token_gives_way_to_a_surer_one_only() -> None:
    decoder = EvoToken()
    start, _ = decoder.step(canvas_of(None, None), SEEN, at(0, 3), SPACE)
    weaker, event = decoder.step(start, believing(sure(5, 0.55), sure(3, 0.5)), at(1, 4), SPACE)
    assert weaker.tokens[0, 0].item() == 0
    assert not event.reedited.any()
    surer, event = decoder.step(start, believing(sure(5, 0.65), sure(3, 0.5)), at(1, 4), SPACE)
    assert surer.tokens[0, 0].item() == 5
    assert event.reedited.tolist() == [[True, False]]
    # both follow the present prediction as inputs
    torch.testing.assert_close(surer.state[0, 0], 0.65 * E[5] + 0.35 * E[0])
    torch.testing.assert_close(weaker.state[0, 0], 0.55 * E[5] + 0.45 * E[0])


def test_the_limits_are_plain_masks_and_plain_tokens() -> None:
    hard, _ = EvoToken(alpha=1.0, k=1).step(canvas_of(None, None), SEEN, at(0, 2), SPACE)
    torch.testing.assert_close(hard.state[0], torch.stack([E[0], SPACE.mask]))
    soft, _ = EvoToken(alpha=0.0, k=1).step(canvas_of(None, None), SEEN, at(0, 2), SPACE)
    torch.testing.assert_close(soft.state[0], torch.stack([E[0], E[3]]))


def test_while_no_state_matters_it_is_mask_prediction() -> None:
    class Blind(ToyModel):
        """Predicts by position alone, so that soft and hard inputs are the same to it."""

        def logits(self, inputs, positions, columns, cache=None, slots=None):
            return super().logits(torch.zeros_like(inputs), positions, columns)

    shared = {"gen_length": 12, "budget": "1/2", "trace": True}
    evolved = generate(Blind(), prompts(3), decoder="evotoken", **shared)
    assert evolved == generate(Blind(), prompts(3), decoder="mask", **shared)
