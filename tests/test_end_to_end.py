"""Real checkpoints, generated here: load → generate → save → load, text in and text out."""

from itertools import groupby, pairwise
from pathlib import Path

import pytest
import torch
from builders import write_checkpoint

from xpredflow import InputError, decode_steps, generate, load, save
from xpredflow.decoders import DECODERS
from xpredflow.models import MaskedDiffusionModel

TEXTS = ["one", "a somewhat longer question?", "x = 3", "tell me " * 5, "end"]


@pytest.fixture(scope="module", params=["llada", "llada2"])
def directory(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp(request.param)
    write_checkpoint(path, request.param, tokenizer=True)
    return path


@pytest.fixture(scope="module")
def model(directory: Path) -> MaskedDiffusionModel:
    return load(directory)


@pytest.fixture(scope="module")
def again(model: MaskedDiffusionModel, tmp_path_factory) -> MaskedDiffusionModel:
    """The same model, saved in several files and loaded."""
    path = tmp_path_factory.mktemp("again")
    save(model, path, max_shard_bytes=50_000)
    assert len(list(path.glob("*.safetensors"))) > 1
    return load(path)


@pytest.mark.parametrize("decoder", DECODERS)
def test_save_and_load_decode_the_same(model, again, decoder: str) -> None:
    shared = {"decoder": decoder, "gen_length": 20, "budget": "1/2"}
    first, second = generate(model, TEXTS[:2], **shared), generate(again, TEXTS[:2], **shared)
    assert first == second


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_cache_is_exact(model, decoder: str, monkeypatch) -> None:
    """Rows of different lengths, refilled, in different blocks at the same time."""
    shared = {"decoder": decoder, "gen_length": 14, "max_batch": 3, "stop_at_eos": False}
    cached = generate(model, TEXTS, **shared)
    monkeypatch.setattr(model, "new_cache", lambda slots, length: None)
    uncached = generate(model, TEXTS, **shared)  # every pass reads the whole row
    assert [d.all_ids for d in cached] == [d.all_ids for d in uncached]
    assert [d.passes for d in cached] == [d.passes for d in uncached]


@pytest.mark.parametrize("decoder", ["flow", "mask", "threshold:0.3"])
def test_rows_do_not_depend_on_their_neighbours(model, decoder: str) -> None:
    shared = {"decoder": decoder, "gen_length": 18, "seed": 3}
    together = generate(model, TEXTS, max_batch=2, **shared)
    for i, text in enumerate(TEXTS):
        [alone] = generate(model, [text], first_row=i, **shared)
        assert (alone.all_ids, alone.passes) == (together[i].all_ids, together[i].passes)


def test_blocks_follow_each_other_and_never_change(model) -> None:
    size = model.block_size or 8
    shared = {"decoder": "flow", "gen_length": 30, "block_length": size, "stop_at_eos": False}
    frames = [f for step in decode_steps(model, [TEXTS[1]], **shared) for f in step.frames()]
    spans = [list(group) for _, group in groupby(frames, key=lambda f: f.positions)]
    assert len(spans) > 3
    assert all(a[-1].positions[-1] < b[0].positions[0] for a, b in pairwise(spans))
    [done] = generate(model, [TEXTS[1]], **shared)
    assert done.all_ids == [token for span in spans for token in span[-1].tokens]


def test_the_chat_template_is_applied_unless_told_otherwise(model) -> None:
    def prompt_length(**options) -> int:
        step = next(iter(decode_steps(model, "hello", gen_length=4, **options)))
        return int(step.positions[0, 0])

    plain = len(model.tokenizer("hello", add_special_tokens=False)["input_ids"])
    assert prompt_length(chat=False) == plain
    assert prompt_length() > plain
    assert prompt_length(system="Be brief.") > prompt_length()
    messages = [{"role": "user", "content": "hello"}]
    assert (
        next(iter(decode_steps(model, [messages], gen_length=4))).positions[0, 0] == prompt_length()
    )


def test_gaps_in_a_text_are_filled_and_nothing_else(model) -> None:
    text = "def f(x):\n    return [[mask:12]]\n# [[mask:3]]"
    if model.block_size is not None:
        text = "return [[mask:12]]\n# [[mask:3]]"
    [done] = generate(model, text, decoder="mask")
    before, between, after = text.replace("[[mask:3]]", "[[mask:12]]").split("[[mask:12]]")
    assert done.text.startswith(before)
    assert between in done.text
    assert done.text.endswith(after)
    assert len(done.ids) == 15
    assert done.passes == 15


def test_chat_does_not_go_with_gaps(model) -> None:
    with pytest.raises(InputError, match="leave out chat and system"):
        generate(model, "x [[mask:2]]", system="no")
    with pytest.raises(InputError, match=r"\[\[mask:0\]\].*no positions"):
        generate(model, "x [[mask:0]]")


def test_a_tokenizer_without_a_chat_template_is_named(model, monkeypatch) -> None:
    monkeypatch.setattr(model.tokenizer, "chat_template", None)
    with pytest.raises(InputError, match="has no chat template: pass chat=False"):
        generate(model, "hello", chat=True, gen_length=4)
    assert generate(model, "hello", gen_length=4)  # falls back to plain text by itself


def test_a_prompt_beyond_the_maximum_is_named(model) -> None:
    with pytest.raises(InputError, match=rf"prompt 0 is too long: .* at most {model.max_length}"):
        generate(model, "hello", gen_length=model.max_length)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_low_precision_models_decode(directory: Path, dtype: str) -> None:
    low = load(directory, dtype=dtype)
    for step in decode_steps(low, TEXTS[:2], gen_length=8, budget="1/2"):
        assert step.canvas.state.dtype == torch.float32
        assert step.event.signals.confidence.dtype == torch.float32
