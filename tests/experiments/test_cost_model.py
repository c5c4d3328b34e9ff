"""The cost model's counts, by hand and as published; and how times follow from them."""

from dataclasses import replace

import pytest

from xpredflow.experiments.cost_model import (
    Architecture,
    Part,
    PassShape,
    Rates,
    parts_of,
    seconds_of,
)
from xpredflow.experiments.projection import (
    H100,
    RTX_4090,
    Decoding,
    alignment,
    decoding_bytes,
    pass_seconds,
    pass_shape,
    published,
    rollouts_seconds,
)

JOB = Decoding(rows=8, prompt=256, gen_length=256, passes=64)


@pytest.fixture(scope="module")
def llada():
    return published("LLaDA-8B")


@pytest.fixture(scope="module")
def mini():
    return published("LLaDA2.0-mini")


def test_a_dense_model_by_hand(llada):
    arch = Architecture.of(llada)
    width, inner, layers, vocabulary = 4096, 12288, 32, 126464
    assert arch.weights == 8_015_581_184
    assert arch.active == arch.touched(1) == layers * (4 * width**2 + 3 * width * inner)
    parts = parts_of(arch, PassShape(rows=2, inputs=10, read=4, keys=10), 2)
    assert parts["layers"].flops == 2 * 20 * arch.active
    assert parts["attention"].flops == 2 * (2 * 10 * 10 * width) * 2 * layers
    assert parts["head"].flops == 2 * 8 * vocabulary * width
    assert parts["head"].weights == 2 * vocabulary * width


def test_experts_as_published(mini):
    arch = Architecture.of(mini)
    assert arch.weights == 16_255_643_392
    everything = arch.active + 2 * arch.vocabulary * arch.width
    assert round(everything / 1e9, 1) == 1.4  # as its authors say of it
    assert (arch.expert, arch.expert_layers, arch.experts, arch.chosen) == (
        3 * 512 * 2048,
        19,
        256,
        8,
    )
    one, many = arch.touched(1), arch.touched(10_000)
    assert one == pytest.approx(arch.active)
    assert many == pytest.approx(arch.dense + 19 * 256 * arch.expert)


def test_a_block_causal_model_reads_its_block(llada, mini):
    assert pass_shape(llada, JOB) == PassShape(8, 512, 256, 512)
    assert pass_shape(mini, JOB) == PassShape(8, 32, 32, 400)


def test_on_a_cpu_one_thing_comes_after_the_other():
    part = Part(flops=6.0, weights=100.0, moved=8.0, exps=3.0, ranked=5.0, kernels=2, syncs=1)
    here = Rates(flops=2.0, bytes=4.0, exps=1.0, ranked=5.0, launch=0.5, sync=0.25)
    assert here.seconds(part) == 3 + 2 + 3 + 1 + 1
    # on an accelerator the slowest of products, memory and the host decides
    there = replace(here, overlaps=True)
    assert there.seconds(part) == 27 + 0.25
    parted = part._replace(moved=2.0, copied=1.0, rotated=4.0, gated=1.0)
    assert here.seconds(parted) == here.seconds(part)
    assert there.seconds(parted) == there.seconds(part)
    assert replace(here, copied=1.0, rotated=2.0).seconds(parted) == 3 + (0.5 + 1 + 2 + 0.25) + 5
    assert replace(there, bytes=1e9).seconds(part) == 3 + 0.25
    assert seconds_of({"a": part, "b": part}, {"a": here, "b": there}) == 10 + 27.25


def test_several_devices_share_products_and_weights(llada):
    one, eight = (decoding_bytes(llada, JOB, n) for n in (1, 8))
    table = 2 * llada.embedding.numel()
    weights = 2 * Architecture.of(llada).weights
    assert one - eight == pytest.approx((weights - table) * 7 / 8)
    times = [pass_seconds(llada, JOB, H100, n) for n in (1, 2, 8)]
    assert times == sorted(times, reverse=True)
    assert times[0] < 8 * times[2]  # sums cost something
    assert pass_seconds(llada, JOB, RTX_4090) > times[0]


def test_what_fits(llada, mini):
    assert decoding_bytes(llada, JOB) < RTX_4090.memory
    assert decoding_bytes(mini, JOB) > RTX_4090.memory
    assert decoding_bytes(mini, JOB, quantize="int8") < RTX_4090.memory


def test_an_alignment_is_shared_out(llada):
    alone, together = (alignment(llada, H100, n, rows=32, length=512) for n in (1, 8))
    assert alone.bytes > H100.memory > together.bytes
    assert alone.bytes / 8 < together.bytes < alone.bytes / 7
    assert alone.seconds / 8 == pytest.approx(together.seconds, rel=0.2)
    adapters = alignment(llada, H100, 1, rows=32, length=512, lora_rank=16)
    assert adapters.bytes < H100.memory
    assert adapters.seconds < alone.seconds


def test_rollouts_fill_the_devices(llada):
    one = rollouts_seconds(llada, replace(JOB, rows=32), H100, 1, 64)
    assert one == pytest.approx(2 * 64 * pass_seconds(llada, replace(JOB, rows=32), H100))
    eight = rollouts_seconds(llada, replace(JOB, rows=32), H100, 8, 64)
    assert eight == pytest.approx(64 * pass_seconds(llada, JOB, H100))
