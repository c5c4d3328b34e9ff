"""The engine: blocks, budgets, end tokens, bad logits, interruption, options."""

from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy import EOS, EOT, ToyModel, prompts

from xpredflow import InputError, Interrupted, StopReason, decode_steps, generate
from xpredflow.engine.budget import resolve_budget, split_budget
from xpredflow.engine.rows import split_blocks


class EndsEarly(ToyModel):
    """Predicts EOS with certainty from a given position on."""

    def __init__(self, end: int) -> None:
        super().__init__()
        self.end = end

    def logits(self, inputs, positions, columns, cache=None, slots=None):
        logits = super().logits(inputs, positions, columns)
        logits[..., [EOS, EOT]] = -20.0
        at = positions.gather(1, columns)
        logits[..., EOS] += (at >= self.end) * 60.0
        return logits


class Breaks(ToyModel):
    """Returns a bad value for rows of one prompt length, from a given pass on."""

    def __init__(self, value: float, from_pass: int) -> None:
        super().__init__()
        self.value, self.from_pass = value, from_pass

    def logits(self, inputs, positions, columns, cache=None, slots=None):
        logits = super().logits(inputs, positions, columns)
        if self.passes >= self.from_pass:
            victim = (positions >= 0).sum(-1) == 3 + 8
            logits[victim, 2, 5] = self.value
        return logits


def test_text_is_trimmed_at_the_first_end_token() -> None:
    [done] = generate(EndsEarly(4 + 6), [[1, 2, 3, 4]], decoder="mask", gen_length=16)
    assert len(done.ids) == 6
    assert done.all_ids[6:] == [EOS] * 10
    assert done.tokens_per_forward == 6 / 16


def test_later_blocks_are_not_decoded_after_an_end_token() -> None:
    shared = {"decoder": "mask", "gen_length": 16, "block_length": 4}
    [done] = generate(EndsEarly(4 + 6), [[1, 2, 3, 4]], **shared)
    assert (done.passes, done.reason, len(done.all_ids)) == (8, StopReason.END_OF_TEXT, 8)
    [all_of_it] = generate(EndsEarly(4 + 6), [[1, 2, 3, 4]], stop_at_eos=False, **shared)
    assert (all_of_it.passes, len(all_of_it.all_ids)) == (16, 16)
    assert all_of_it.ids == done.ids


def test_eos_can_be_forbidden() -> None:
    [done] = generate(EndsEarly(6), [[1, 2]], decoder="mask", gen_length=8, logits_eos_inf=True)
    assert EOS not in done.all_ids


def test_end_tokens_can_be_committed_last() -> None:
    shared = {"decoder": "mask", "gen_length": 8, "trace": True}
    [plain] = generate(EndsEarly(6), [[1, 2]], **shared)
    [last] = generate(EndsEarly(6), [[1, 2]], confidence_eos_eot_inf=True, **shared)
    assert plain.trace is not None
    assert last.trace is not None
    first_four = [frame.committed.index(True) for frame in last.trace[:4]]
    assert sorted(first_four) == [0, 1, 2, 3]
    assert plain.trace[0].committed.index(True) >= 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("decoder", ["flow", "mask", "soft"])
def test_bad_logits_stop_their_row_and_no_other(value: float, decoder: str) -> None:
    three = [[1, 2], [1, 2, 3], [4, 5]]
    healthy = generate(ToyModel(), three, decoder=decoder, gen_length=8)
    done = generate(Breaks(value, from_pass=3), three, decoder=decoder, gen_length=8)
    assert [d.failed for d in done] == [False, True, False]
    assert done[1].reason is StopReason.BAD_LOGITS
    assert "position 5 of row 1 in pass 3" in done[1].stop_reason
    for i in (0, 2):
        assert done[i].all_ids == healthy[i].all_ids


def test_ctrl_c_keeps_what_is_finished() -> None:
    class Interrupts(ToyModel):
        def logits(self, *args, **kwargs):
            if self.passes == 10:
                raise KeyboardInterrupt
            return super().logits(*args, **kwargs)

    with pytest.raises(Interrupted) as caught:
        generate(Interrupts(), prompts(6), decoder="mask", gen_length=4, max_batch=2)
    assert [d.row for d in caught.value.finished] == [0, 1, 2, 3]
    whole = generate(ToyModel(), prompts(6), decoder="mask", gen_length=4)
    assert [d.all_ids for d in caught.value.finished] == [d.all_ids for d in whole[:4]]


def test_places_are_refilled_at_once() -> None:
    model = ToyModel()
    sizes = [
        len(s.rows)
        for s in decode_steps(model, prompts(5), decoder="mask", gen_length=4, max_batch=2)
    ]
    assert sizes == [2] * 8 + [1] * 4


def test_rows_that_stop_early_leave_the_batch() -> None:
    rows = [
        tuple(s.rows)
        for s in decode_steps(ToyModel(), prompts(5), decoder="threshold:0.5", gen_length=16)
    ]
    assert len(set(rows)) > 1
    assert all(len(a) >= len(b) for a, b in pairwise(rows))


def test_stream_is_what_generate_drains() -> None:
    finished = [d for s in decode_steps(ToyModel(), prompts(3), gen_length=8) for d in s.finished]
    assert sorted(d.row for d in finished) == [0, 1, 2]
    assert sorted(finished, key=lambda d: d.row) == generate(ToyModel(), prompts(3), gen_length=8)


def test_no_prompts_no_answers() -> None:
    assert generate(ToyModel(), []) == []


def test_max_new_tokens_is_another_name_for_gen_length() -> None:
    one = generate(ToyModel(), prompts(1), max_new_tokens=5)
    assert one == generate(ToyModel(), prompts(1), gen_length=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"gen_lenght": 8},
            "unknown option 'gen_lenght' for decoder 'flow': did you mean 'gen_length'",
        ),
        ({"treshold": 0.5, "decoder": "threshold"}, "did you mean 'threshold'"),
        ({"threshold": 0.5, "decoder": "mask"}, "unknown option 'threshold'"),
        ({"decoder": "flwo"}, "unknown decoder 'flwo': did you mean 'flow'"),
        ({"gen_length": 0}, "gen_length is 0: expected a number ≥ 1"),
        ({"gen_length": "many"}, "gen_length is 'many': expected a whole number"),
        ({"gen_length": 90}, "prompt 0 is too long: 9 tokens . gen_length 90 = 99.*at most 96"),
        ({"budget": 0, "gen_length": 8}, "budget is 0"),
        ({"budget": "1/0", "gen_length": 8}, "budget is '1/0'"),
        ({"budget": "3/2", "gen_length": 8}, "at most 1"),
        ({"budget": 3, "gen_length": 8, "block_length": 2}, "there are 4 blocks"),
        ({"decoder": "threshold:1.5"}, "threshold is 1.5: expected a number ≤ 1"),
        ({"decoder": "mask:best"}, "remasking is 'best'"),
        ({"commit": "sometimes"}, "commit is 'sometimes': expected 'before', 'after' or 'off'"),
        ({"seed": -1}, "seed is -1"),
        ({"decoder": "threshold:0.9+gen_length=4", "gen_length": 8}, "beside it: give it once"),
        ({"decoder": "threshold:0.9", "threshold": 0.8}, "beside it: give it once"),
        ({"gen_length": 4, "max_new_tokens": 5}, "given twice"),
    ],
)
def test_bad_options_are_explained(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate(ToyModel(), [[1] * 9], **options)


@pytest.mark.parametrize("prompt", [[1, 99], [1, -2], [1, True]])
def test_bad_token_ids_are_named(prompt: list) -> None:
    with pytest.raises(InputError, match=r"token id .* in a prompt"):
        generate(ToyModel(), [prompt])


def test_text_needs_a_tokenizer() -> None:
    with pytest.raises(InputError, match="model 'toy' has no tokenizer"):
        generate(ToyModel(), "hello")


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.integers(len(sizes), 200))
    )
)
def test_budgets_are_in_proportion_and_add_up(case: tuple[list[int], int]) -> None:
    sizes, steps = case
    budgets = split_budget(steps, [list(range(n)) for n in sizes])
    assert sum(budgets) == steps
    assert min(budgets) >= 1
    if steps == sum(sizes):
        assert budgets == sizes  # the full budget is one token per pass in every block


def test_blocks_of_a_block_causal_model_follow_absolute_positions() -> None:
    assert split_blocks(list(range(6, 13)), None, native=4) == [[6, 7], [8, 9, 10, 11], [12]]
    with pytest.raises(InputError, match="block-causal with blocks of 4"):
        split_blocks([1, 2], 8, native=4)


@pytest.mark.parametrize(
    ("budget", "cap"), [(None, 10), (3, 3), ("1/4", 3), (Fraction(1, 2), 5), ("7", 7), ("1/1", 10)]
)
def test_a_budget_is_a_number_or_a_share(budget, cap: int) -> None:
    assert resolve_budget(budget, 10) == cap


def test_state_is_fp32_whatever_the_model() -> None:
    model = ToyModel()
    model.embedding = model.embedding.bfloat16()

    def logits(inputs, positions, columns, cache=None, slots=None):
        assert inputs.dtype == torch.bfloat16
        return ToyModel.logits(model, inputs.float(), positions, columns).bfloat16()

    model.logits = logits
    for step in decode_steps(model, prompts(2), gen_length=6, policy="constant:1/256"):
        assert step.canvas.state.dtype == step.canvas.progress.dtype == torch.float32
