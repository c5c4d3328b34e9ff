"""The approximate cache against the definition: keys and values outside a block are frozen."""

import pytest
import reference
import torch
from builders import LLADA, write_checkpoint
from toy import ToyModel

import xpredflow.models as models
from xpredflow import Engine, InputError, generate

MASK = LLADA["mask_token_id"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model and its tensors; sure enough that several tokens are committed at once."""
    directory = tmp_path_factory.mktemp("frozen")
    weights = write_checkpoint(directory, "llada")
    model = models.load(directory)
    head = model.get_parameter("model.transformer.ff_out.weight")
    head.data *= 4
    return model, weights | {"model.transformer.ff_out.weight": head.detach()}


def given(model, cache, rows, spans, slots):
    """Logits of one pass that gives a span of every row, left-padded as the engine does."""
    longest = max(len(span) for span in spans)
    inputs = torch.full((len(rows), longest, 32), 9.0)
    positions = torch.full((len(rows), longest), -1)
    for i, (row, span) in enumerate(zip(rows, spans, strict=True)):
        inputs[i, longest - len(span) :] = row[span.start : span.stop]
        positions[i, longest - len(span) :] = torch.tensor(span)
    columns = torch.arange(longest).expand(len(rows), -1)
    with torch.no_grad():
        logits = model.logits(inputs, positions, columns, cache, torch.tensor(slots))
    return [logits[i, longest - len(span) :] for i, span in enumerate(spans)]


@pytest.mark.parametrize("slots", [[0, 1], [2, 0]])
@pytest.mark.parametrize("ends", [None, 9])  # of the spans: the row's end (prefix), a block's
def test_passes_equal_a_forward_with_frozen_keys_and_values(tiny, slots, ends):
    model, weights = tiny
    draw = torch.Generator().manual_seed(1)
    rows = [torch.randn(length, 32, generator=draw) for length in (13, 11)]
    cache = model.new_frozen_cache(3, 13)
    for slot, row in zip(slots, rows, strict=True):
        cache.occupy(slot, len(row))
    held = [[], []]
    spans = [range(len(row)) for row in rows]
    for _ in range(3):  # the first pass reads all, as if there were no cache
        found = given(model, cache, rows, spans, slots)
        for row, logits, span, frozen in zip(rows, found, spans, held, strict=True):
            expected = reference.llada(weights, LLADA, row, frozen, span)[span.start : span.stop]
            torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)
        spans = [range(4, ends or len(rows[0])), range(5, ends or len(rows[1]))]
        for row, span in zip(rows, spans, strict=True):
            row[span.start : span.stop] += 0.7


def fast_dllm(weights, prompt, length, block, threshold, cache):
    """Fast-dLLM's loop over one row, literally, on the reference: its tokens and its passes."""
    ids = torch.tensor(prompt + [MASK] * length)
    table, passes = weights["model.transformer.wte.weight"], 0
    for start in range(len(prompt), len(prompt) + length, block):
        end, frozen, fresh = start + block, [], None
        while (ids[start:end] == MASK).any():
            logits = reference.llada(weights, LLADA, table[ids], frozen, fresh)
            passes += 1
            fresh = range(start, end if cache == "dual" else len(ids))
            logits[:, MASK] = -torch.inf
            confidence, tokens = logits[start:end].softmax(-1).max(-1)
            confidence[ids[start:end] != MASK] = -torch.inf
            chosen = confidence >= threshold
            chosen[confidence.argmax()] = True
            ids[start:end] = torch.where(chosen, tokens, ids[start:end])
    return ids[len(prompt) :].tolist(), passes


@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_decoding_is_fast_dllms(tiny, cache):
    model, weights = tiny
    prompts = [[5, 6, 7], [40, 41, 42, 43, 44]]
    shared = {"decoder": "threshold:0.45", "gen_length": 12, "block_length": 4, "max_batch": 2}
    done = generate(model, prompts, **shared, stop_at_eos=False, cache=cache)
    for prompt, row in zip(prompts, done, strict=True):
        expected, passes = fast_dllm(weights, prompt, 12, 4, 0.45, cache)
        assert (row.all_ids, row.passes) == (expected, passes)
        assert 3 < passes <= 12  # some passes are cached


def test_rows_that_join_later_change_nothing(tiny):
    """The cache grows for more and longer rows: what it holds of the others is kept."""
    model, _ = tiny
    options = {"gen_length": 12, "block_length": 6, "decoder": "mask", "cache": "dual"}
    several = [[5, 6, 7], [40, 41, 42, 43, 44], list(range(60, 80))]
    alone = [generate(model, [p], first_row=i, **options)[0] for i, p in enumerate(several)]
    session = Engine(model, **options).session(max_batch=3)
    found = {}
    for prompt in several:
        session.submit(prompt)
        for _ in range(2):
            session.step()
    while (step := session.step()) is not None:
        found |= {done.row: done.all_ids for done in step.finished}
    assert found == {i: done.all_ids for i, done in enumerate(alone)}


def test_nothing_of_an_earlier_row_is_left(tiny):
    model, weights = tiny
    cache = model.new_frozen_cache(2, 9)
    row, other = torch.randn(5, 32), torch.randn(9, 32)
    for slot in (0, 1):
        cache.occupy(slot, 9)
    given(model, cache, [other * torch.nan, other], [range(9)] * 2, [0, 1])
    cache.occupy(0, 5)
    [found, _] = given(model, cache, [row, other], [range(5), range(9)], [0, 1])
    expected = reference.llada(weights, LLADA, row)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_misuse_is_refused(tiny):
    model, _ = tiny
    cache = model.new_frozen_cache(1, 8)
    cache.occupy(0, 6)
    row = torch.randn(8, 32)
    with pytest.raises(ValueError, match="never read whole"):
        given(model, cache, [row], [range(2, 4)], [0])
    with pytest.raises(ValueError, match="of a row of 6"):
        given(model, cache, [row], [range(8)], [0])
    with pytest.raises(InputError, match="leave one of the two out"):
        generate(model, [[5]], cache="dual", cfg_scale=1.0)
    with pytest.raises(InputError, match="'prefix' or 'dual'"):
        generate(model, [[5]], cache="both")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not to be had"):
        generate(ToyModel(), [[5]], cache="prefix")
