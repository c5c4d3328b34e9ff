"""Trainings, evaluation and the harness on the accelerator, and runs that go on there."""

from dataclasses import replace

import pytest
from own_answers import own_answers
from policy_toy import SMALL as SMALL_POLICY
from policy_toy import ToyTask
from small_alignment import SMALL, log_of

from xpredflow import load
from xpredflow.evaluation import Job, evaluate_job
from xpredflow.tasks import Problem
from xpredflow.tasks.generated.minimath.task import MiniMath
from xpredflow.training.align.trainer import Alignment
from xpredflow.training.common.start import start_from
from xpredflow.training.policy.rollouts import Setup
from xpredflow.training.policy.trainer import PolicyTraining
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.pretrain.initialise import read_shape
from xpredflow.training.pretrain.trainer import Pretraining
from xpredflow.training.softmask import SoftMaskConfig
from xpredflow.training.softmask.trainer import SoftMaskTraining

FAMILIES = ("llada", "llada2")
ALIGN = replace(SMALL, updates=3, save_every=2)


class Letters(ToyTask):
    """Prompts of letters; right is an answer of even length."""

    def problem(self, split: str, index: int) -> Problem:
        return Problem(f"{split}/{index}", "ab" * (1 + index % 3), 1, {})

    def score(self, problem, text, run=None):
        verdict = super().score(problem, "")
        return replace(verdict, passed=len(text.encode()) % 2 == 0)


def killed_and_resumed(begin, directory):
    """A run stopped after its second update and gone on with."""
    for now in begin(directory, resume=False):
        if now.step == 2:
            break
    again = begin(directory, resume=True)
    assert again.step == 2
    list(again)
    return again


@pytest.mark.parametrize(
    "changes", [{}, {"lora_rank": 2}, {"on_policy": 0.5, "checkpointing": True}]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_alignment(device, directories, tmp_path, family, changes):
    if "lora_rank" in changes:
        pytest.importorskip("peft")
    start = start_from(directories[family], own_answers(16))

    def begin(out, resume):
        return Alignment(start, replace(ALIGN, **changes), out, resume)

    training = killed_and_resumed(begin, tmp_path / "run")
    assert training.device == device
    training.finish(tmp_path / "model")
    assert len(log_of(training)) == ALIGN.updates
    assert load(tmp_path / "model", device="cpu").embedding.isfinite().all()


@pytest.mark.parametrize("family", FAMILIES)
def test_soft_masks(device, directories, tmp_path, family):
    config = SoftMaskConfig(updates=3, batch=4, save_every=2)

    def begin(out, resume):
        return SoftMaskTraining(
            start_from(directories[family], own_answers(16)), config, out, resume
        )

    training = killed_and_resumed(begin, tmp_path / "run")
    assert training.model.embedding.device == device


@pytest.mark.parametrize("family", FAMILIES)
def test_a_policy(device, model_on, tmp_path, family):
    config = replace(
        SMALL_POLICY,
        updates=2,
        prompts=1,
        group=2,
        gen_length=4,
        init_prompts=1,
        init_fits=2,
        validation=1,
    )
    setup = Setup(model_on(family, device), Letters(), config)

    def begin(out, resume):
        return PolicyTraining(setup, list(range(4)), out, resume)

    directory = tmp_path / "run"
    for _ in begin(directory, resume=False):
        break
    assert list(begin(directory, resume=True))


def test_pretraining(device, tmp_path):
    config = PretrainConfig(updates=3, batch=2, warmup=1, vocabulary=400, tokenizer_examples=200)
    widths = {"d_model": 32, "n_heads": 2, "n_kv_heads": 2, "n_layers": 2, "mlp_hidden_size": 48}
    shape = {**read_shape("tiny"), **widths}
    training = Pretraining(config, tmp_path / "run", (MiniMath(),), model_config=shape)
    list(training)
    assert training.model.embedding.device == device
    training.finish(tmp_path / "model")
    assert load(tmp_path / "model", device="cpu").embedding.isfinite().all()


@pytest.mark.parametrize("family", FAMILIES)
def test_an_evaluation_goes_on(device, model_on, tmp_path, family):
    job = Job("toytask", decoder="flow", limit=3, options={"max_batch": 2, "budget": 3})
    out = tmp_path / "samples.jsonl"
    first = evaluate_job(model_on(family, device), Letters(), job, out=out)
    out.write_text(
        "".join(out.read_text().splitlines(keepends=True)[:-1])
    )  # killed before the last
    again = evaluate_job(model_on(family, device), Letters(), job, out=out)
    assert again == first


@pytest.mark.parametrize("family", FAMILIES)
def test_the_harness(device, directories, family):
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance

    from xpredflow.harness.model import XpredflowLM

    lm = XpredflowLM(pretrained=str(directories[family]), decoder="flow", budget=3, gen_length=6)
    assert lm.model.embedding.device == device
    ask = Instance("generate_until", {}, ("one", {}), 0, ("some_task", 0, 1))
    score = Instance("loglikelihood", {}, ("one", " two"), 0, ("some_task", 0, 1))
    assert isinstance(lm.generate_until([ask])[0], str)
    assert lm.loglikelihood([score])[0][0] < 0
