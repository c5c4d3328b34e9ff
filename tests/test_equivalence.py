"""What ties the worlds together: flow contains threshold decoding, ours agree with references."""

from dataclasses import asdict

import pytest
import torch
from toy import MASK, ToyModel, prompts

from xpredflow import Flow, Rules, generate
from xpredflow.decoders.discrete import predict
from xpredflow.engine.signals import read
from xpredflow.flow_extensions import make_flow
from xpredflow.policies.heuristic import Constant, Jump
from xpredflow.types import SpecialTokens, StepInfo

THRESHOLD_AS_FLOW = Rules(reedit_margin=None, commit="before", final="state")
STAY = Constant(0.0)


@pytest.mark.parametrize("theta", [0.2, 0.4, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("block_length", [None, 8])
@pytest.mark.parametrize("steps", [None, "1/4"])
@pytest.mark.parametrize("by", ["jump", "commit_threshold"])
def test_flow_contains_threshold_decoding(theta, block_length, steps, by) -> None:
    """Token by token and step by step, whether it converges or the budget ends it."""
    as_flow = Flow(Jump(theta), THRESHOLD_AS_FLOW)
    if by == "commit_threshold":
        as_flow = make_flow(STAY, {**asdict(THRESHOLD_AS_FLOW), "commit_threshold": theta})
    shared = {"gen_length": 24, "block_length": block_length, "budget": steps, "trace": True}
    for seed in range(3):
        model = ToyModel(seed)
        discrete = generate(model, prompts(4, seed), decoder=f"threshold:{theta}", **shared)
        flow = generate(model, prompts(4, seed), decoder=as_flow, **shared)
        for a, b in zip(discrete, flow, strict=True):
            assert (a.all_ids, a.passes) == (b.all_ids, b.passes)
            assert a.trace is not None
            assert b.trace is not None
            for left, right in zip(a.trace, b.trace, strict=True):
                assert left.confidence == pytest.approx(right.confidence, abs=1e-4)
                # a discrete decoder closes what is open in a block's last pass, flow reads it off
                if not all(t == 1 for t in left.progress):
                    assert [t == 1 for t in left.progress] == [t == 1 for t in right.progress]


def reference_mask_prediction(
    model: ToyModel, prompt: list[int], length: int, steps: int, block: int, remasking: str
) -> list[int]:
    """LLaDA's published procedure on one row, written on its own: ids in, ids out, no engine."""
    ids = torch.tensor(prompt + [MASK] * length)
    blocks = length // block
    for b in range(blocks):
        start, end = len(prompt) + b * block, len(prompt) + (b + 1) * block
        per_step = [steps // blocks] * blocks
        quota = [block // per_step[b] + (i < block % per_step[b]) for i in range(per_step[b])]
        for n in quota:
            everywhere = torch.arange(len(ids)).unsqueeze(0)
            logits = model.logits(model.embedding[ids].unsqueeze(0), everywhere, everywhere)[0]
            logits[:, MASK] = -torch.inf
            probs = logits.softmax(-1)
            token = probs.argmax(-1)
            score = {
                "low_confidence": probs.max(-1).values,
                "margin": probs.topk(2, -1).values @ torch.tensor([1.0, -1.0]),
                "entropy": torch.special.entr(probs).sum(-1).neg(),
            }[remasking]
            score[ids != MASK] = -torch.inf
            score[:start] = score[end:] = -torch.inf
            for place in score.topk(n).indices:
                ids[place] = token[place]
    return ids[len(prompt) :].tolist()


BLOCKS_AND_BUDGETS = [
    (block, steps)
    for block in (1, 2, 4, 8, 16)
    for steps in range(1, 17)
    if steps % (16 // block) == 0  # LLaDA wants the budget to divide by the number of blocks
]


@pytest.mark.parametrize("remasking", ["low_confidence", "margin", "entropy"])
@pytest.mark.parametrize(("block", "steps"), BLOCKS_AND_BUDGETS)
def test_mask_prediction_agrees_with_the_reference(remasking, block, steps) -> None:
    for seed in range(2):
        model = ToyModel(seed)
        ours = generate(
            model,
            prompts(3, seed),
            decoder="mask",
            remasking=remasking,
            gen_length=16,
            block_length=block,
            budget=steps,
            stop_at_eos=False,
        )
        for done, prompt in zip(ours, prompts(3, seed), strict=True):
            expected = reference_mask_prediction(model, prompt, 16, steps, block, remasking)
            assert done.all_ids == expected
            assert done.passes == steps


def test_drawn_tokens_follow_the_tempered_distribution() -> None:
    """Gumbel noise at temperature T draws from softmax(z/T), as LLaDA's sampler does."""
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, -torch.inf]).expand(1, 4000, 5)
    seen = read(logits, SpecialTokens(mask=4, eos=3))
    info = StepInfo(torch.tensor([0]), torch.tensor([1]), rows=(0,), seed=3)
    for temperature in (0.5, 1.0, 2.0):
        drawn = predict(seen, temperature, info)
        share = torch.bincount(drawn.tokens.flatten(), minlength=5) / 4000
        torch.testing.assert_close(
            share, (logits[0, 0] / temperature).softmax(-1), atol=0.025, rtol=0
        )
        probs = logits[0, 0].softmax(-1)
        torch.testing.assert_close(
            drawn.confidence, probs[drawn.tokens]
        )  # ranked without the noise


@pytest.mark.parametrize("ending", ["code", "paper"])
def test_factor_commits_the_largest_prefix_above_its_bound(ending) -> None:
    done = generate(
        ToyModel(1), prompts(6, 1), decoder="factor", ending=ending, gen_length=16, trace=True
    )
    singles = 0
    for row in done:
        assert row.trace is not None
        settled = [False] * 16
        for frame in row.trace[:-1]:
            c = sorted(
                (c for c, s in zip(frame.confidence, settled, strict=True) if not s), reverse=True
            )
            n = max([i for i in range(1, len(c) + 1) if c[i - 1] >= 1 - 1 / (i + 1)], default=1)
            single = n == len(c) - 1
            assert sum(frame.committed) == n + (ending == "code" and single)
            singles += single
            settled = [t == 1 for t in frame.progress]
        if ending == "code":  # nothing was left for a pass of its own
            assert sum(row.trace[-1].committed) > 1
    assert (singles > 0) == (ending == "paper")
