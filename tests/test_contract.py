"""What every decoder owes the engine and its users; a new one joins by its name."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import EOT, MASK, CachedToy, ToyModel, prompts

from xpredflow import decode_steps, generate
from xpredflow.decoders import DECODERS, POLICIES

SPECS = [
    *DECODERS,
    *(f"flow:{name}" for name in POLICIES if name != "learned"),
    "flow:learned:tiny",
]
VARIANTS = [
    *((spec, {}) for spec in SPECS),
    ("mask:random", {}),
    ("mask", {"temperature": 0.8}),
    ("threshold", {"temperature": 0.5}),
    ("flow", {"reedit_margin": None}),
    ("flow", {"reedit_when": "after", "commit": "after", "final": "prediction"}),
    ("flow", {"commit": "off", "top_k": 4}),
    ("flow", {"top_k": None, "tau": 0.7}),
    ("soft", {"k": 1, "omega_s": 0.5}),
    ("klass", {"threshold": 0.3, "kl_threshold": 1.0, "history": 1}),
    ("hierarchy", {"threshold": 0.5, "low_threshold": 0.1}),
    ("wino", {"threshold": 0.3, "threshold_back": 0.5, "temperature": 0.5}),
    ("lopa", {"threshold": 0.5, "branches": 3, "temperature": 0.5}),
    ("saber", {"n": 5}),
    ("editing", {"threshold": 0.3, "edit_threshold": 0.3}),
    ("llada2.1:speed", {}),
    ("factor", {"ending": "paper"}),
    ("dmax", {"threshold": 0.0, "stop_confidence": 1.0}),
    ("dmax", {"threshold": 0.9, "temperature": 0.5}),
    ("mask", {"early_exit": "cosine", "early_exit_high": 3.0}),
    ("flow", {"early_exit": "exp", "early_exit_high": 2.0, "rules": "paper"}),
    ("remdm:rescale", {"eta": 1.0}),
    ("remdm:conf", {}),
    ("remdm:loop", {"eta": 0.5, "temperature": 0.0}),
    ("remix", {"threshold": 0.5, "beta": 1.0, "k": 3}),
]
every_decoder = pytest.mark.parametrize(("decoder", "extra"), VARIANTS, ids=str)

settings_of_a_run = st.fixed_dictionaries(
    {
        "gen_length": st.integers(1, 20),
        "block_length": st.sampled_from([None, 3, 8]),
        "max_batch": st.integers(1, 4),
        "seed": st.integers(0, 1000),
    }
)


@every_decoder
@given(run=settings_of_a_run, model_seed=st.integers(0, 50), share=st.integers(1, 8))
@settings(max_examples=12)
def test_invariants(decoder: str, extra: dict, run: dict, model_seed: int, share: int) -> None:
    blocks = -(-run["gen_length"] // (run["block_length"] or run["gen_length"]))
    cap = max(blocks, run["gen_length"] // share, 1)
    model = ToyModel(model_seed)
    last: dict[tuple[int, int], float] = {}
    for step in decode_steps(
        model, prompts(3, model_seed), decoder=decoder, budget=cap, **run, **extra
    ):
        assert not step.canvas.progress.isnan().any()
        for frame in step.frames():
            for i, place in enumerate(frame.positions):
                before, now = last.get((frame.row, place), 0.0), frame.progress[i]
                assert 0 <= now <= 1
                assert now >= before - 1e-6 or frame.reedited[i]
                last[frame.row, place] = now
            assert MASK not in frame.tokens
        for done in step.finished:
            assert 1 <= done.passes <= cap
            assert MASK not in done.all_ids
            assert len(done.all_ids) == len(done.progress) <= run["gen_length"]


@every_decoder
def test_the_same_seed_gives_the_same_text(decoder: str, extra: dict) -> None:
    def run(seed: int) -> list[tuple[list[int], int]]:
        done = generate(ToyModel(), prompts(4), decoder=decoder, gen_length=16, seed=seed, **extra)
        return [(d.all_ids, d.passes) for d in done]

    assert run(7) == run(7)


@every_decoder
@pytest.mark.parametrize("block_length", [None, 5])
def test_a_row_is_the_same_whatever_its_neighbours(decoder, extra, block_length) -> None:
    """Alone, in any order, with other lengths beside it, and when it has to wait for a place."""
    shared = {
        "decoder": decoder,
        "gen_length": 12,
        "block_length": block_length,
        "seed": 5,
        **extra,
    }
    several = prompts(5)
    together = generate(ToyModel(), several, **shared)
    squeezed = generate(ToyModel(), several, max_batch=2, **shared)
    alone = [generate(ToyModel(), [p], first_row=i, **shared)[0] for i, p in enumerate(several)]
    for a, b, c in zip(together, squeezed, alone, strict=True):
        assert a.all_ids == b.all_ids == c.all_ids
        assert a.passes == b.passes == c.passes


@every_decoder
@pytest.mark.parametrize("cache", ["prefix", "dual"])
def test_an_approximate_cache_leaves_out_what_does_not_change(decoder, extra, cache) -> None:
    """The toy has one layer, where what stands outside a block is the same until the block ends."""
    model, plain = CachedToy(), ToyModel()
    run = {"gen_length": 12, "block_length": 5, "stop_at_eos": False, "max_batch": 2}
    shared = {"decoder": decoder, "seed": 5, **run, **extra}
    expected = generate(plain, prompts(3), **shared)
    found = generate(model, prompts(3), cache=cache, **shared)
    assert [(d.all_ids, d.passes) for d in found] == [(d.all_ids, d.passes) for d in expected]
    is_cached = decoder != "lopa"  # whose branches are read whole
    assert (model.inputs_read < plain.inputs_read) == (
        is_cached and any(d.passes > 3 for d in expected)
    )


@every_decoder
def test_everything_but_the_gaps_is_frozen(decoder: str, extra: dict) -> None:
    draw = torch.Generator().manual_seed(2)
    text = torch.randint(0, EOT, (20,), generator=draw).tolist()
    gaps = [3, 4, 5, 11, 19]
    prompt = [-1 if i in gaps else token for i, token in enumerate(text)]
    model = ToyModel()
    [done] = generate(model, [prompt], decoder=decoder, **extra)
    assert len(done.ids) == len(gaps)
    assert done.passes <= len(gaps)
    # the head ran on nothing else, and what a longer pass reads beside the row is stated
    assert model.positions_read == done.passes * len(gaps) + done.shadow_positions
    for step in decode_steps(model, [prompt], decoder=decoder, **extra):
        assert step.positions.tolist() == [gaps]


@every_decoder
def test_one_pass_is_enough_to_answer(decoder: str, extra: dict) -> None:
    [done] = generate(ToyModel(), prompts(1), decoder=decoder, gen_length=9, budget=1, **extra)
    assert done.passes == 1
    assert len(done.all_ids) == 9


@every_decoder
def test_forward_passes_are_counted_per_row(decoder: str, extra: dict) -> None:
    model = ToyModel(3)
    done = generate(model, prompts(5), decoder=decoder, gen_length=10, max_batch=8, **extra)
    assert model.passes == max(d.passes for d in done)
