"""Foreign modules as models: the same tokens alone and in a batch, and honest refusals."""

import copy
from typing import Any

import pytest
import torch
from byte_tokenizer import byte_tokenizer
from foreign_modules import CAUSAL, EOS, MASK, MASKED, Mean, Next, transformers_module
from torch import nn

from xpredflow import InputError, generate
from xpredflow.models import check_model, save, wrap
from xpredflow.models.module_adapter import Wrapped
from xpredflow.types import Model

PROMPTS = [[3, 4, 5], [6, 7, 8, 9, 10, 11, 12], [1]]
IDS: dict[str, Any] = {"mask": MASK, "eos": EOS}


def wrapped(kind: str, **options) -> Wrapped:
    if kind == "own":
        return wrap(Mean(), **{**IDS, "max_length": 64, **options})
    return wrap(transformers_module(kind), **{**IDS, "max_length": 40, **options})


def decoded(model, prompts, decoder, first_row=0):
    done = generate(model, prompts, decoder=decoder, gen_length=12, first_row=first_row)
    return [(one.all_ids, one.passes) for one in done]


@pytest.mark.parametrize("decoder", ["flow", "threshold:0.1", "soft", "mask:random"])
@pytest.mark.parametrize("kind", [*MASKED, *CAUSAL, "own"])
def test_a_row_is_the_same_alone_and_in_a_batch(kind, decoder):
    model = wrapped(kind)
    assert isinstance(model, Model)
    together = decoded(model, PROMPTS, decoder)
    alone = [decoded(model, [prompt], decoder, i)[0] for i, prompt in enumerate(PROMPTS)]
    assert together == alone
    assert len({tuple(ids) for ids, _ in together}) > 1


@pytest.mark.parametrize("kind", [*MASKED, *CAUSAL])
def test_logits_are_those_of_the_module_itself(kind):
    model = wrapped(kind)
    ids = torch.tensor([[5, 6, 7, 8, 9, MASK, MASK]])
    everything = torch.arange(7)[None]
    ours = model.logits(model.embedding[ids], everything, everything)
    if kind in MASKED:
        theirs = model.module(input_ids=ids).logits
    else:
        theirs = model.module(input_ids=ids, attention_mask=torch.zeros(1, 1, 7, 7)).logits
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    # padding in front changes nothing, as the engine gives it
    inputs = torch.cat((torch.randn(1, 3, 32), model.embedding[ids]), 1)
    places = torch.cat((torch.full((1, 3), -1), everything), 1)
    padded = model.logits(inputs, places, everything + 3)
    torch.testing.assert_close(padded, ours, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", CAUSAL)
def test_a_causal_class_sees_both_ways_or_is_refused(kind):
    model = wrapped(kind)
    assert model.full_mask
    inputs = model.embedding[torch.tensor([[5, 6, 7, 8], [5, 6, 7, 30]])]
    places = torch.arange(4).expand(2, -1)
    first = model.logits(inputs, places, torch.zeros(2, 1, dtype=torch.long))
    assert not torch.allclose(first[0], first[1])


class Causal(Mean):
    def forward(self, inputs_embeds):
        count = torch.arange(1, inputs_embeds.shape[1] + 1).reshape(1, -1, 1)
        return self.head(torch.tanh(inputs_embeds + inputs_embeds.cumsum(1) / count))


def test_a_module_that_stays_causal_is_refused():
    with pytest.raises(InputError, match="is causal: no position sees a later one"):
        wrap(Causal(), **IDS, max_length=64)


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_blocks_see_no_later_block(kind):
    model = wrapped(kind, block=4, max_length=38)
    assert (model.block_size, model.max_length) == (4, 36)
    ids = torch.randint(0, 80, (1, 8), generator=torch.Generator().manual_seed(0))
    other = ids.clone()
    other[0, 6] += 1
    places = torch.arange(8)[None]
    a, b = (model.logits(model.embedding[i], places, places) for i in (ids, other))
    torch.testing.assert_close(a[:, :4], b[:, :4], atol=1e-5, rtol=1e-5)
    assert (a[:, 4:] - b[:, 4:]).abs().amax(-1).min() > 1e-4
    together = decoded(model, PROMPTS, "threshold:0.1")
    assert together[1] == decoded(model, PROMPTS[1:2], "threshold:0.1", first_row=1)[0]


def test_blocks_need_a_module_that_follows_the_mask():
    with pytest.raises(InputError, match=r"block is 8 but .* does not follow a 4-D attention_mask"):
        wrapped("own", block=8)


def test_shifted_logits_predict_the_next_position():
    model = wrap(Next(), mask=9, eos=8, shift=1, max_length=32)
    # each token is its predecessor plus one: position by position, from the left
    [done] = generate(model, [[0, 1]], decoder="mask", gen_length=5, block_length=1)
    assert done.all_ids == [2, 3, 4, 5, 6]
    inputs = model.embedding[torch.tensor([[3, 5, 7]])]
    places = torch.arange(3)[None]
    predicted = model.logits(inputs, places, places).argmax(-1).tolist()
    assert predicted == [[4, 4, 6]]  # the first column keeps its own
    unshifted = wrap(Next(), mask=9, eos=8, max_length=32)
    assert unshifted.logits(inputs, places, places).argmax(-1).tolist() == [[4, 6, 8]]


def test_shadows_are_refused_with_the_reason():
    model = wrapped("bert")
    with pytest.raises(InputError, match=r"reads shadows .* cannot hide them"):
        generate(model, PROMPTS, decoder="wino", gen_length=4)


def test_special_tokens_and_length_come_from_tokenizer_and_config():
    tokenizer = byte_tokenizer()
    module = transformers_module("bert", vocab_size=262)
    model = wrap(module, tokenizer, mask="<|mdm_mask|>", eot="<|eot_id|>")
    assert model.special == (258, 257, 261)
    assert model.max_length == 64
    assert model.name == "BertForMaskedLM"
    assert isinstance(generate(model, "Hi", decoder="threshold", gen_length=4)[0].text, str)
    tokenizer.mask_token = "<|mdm_mask|>"
    assert wrap(module, tokenizer, name="mine").special == (258, 257, None)
    module.config.mask_token_id = 200
    assert wrap(module, eos=1).special.mask == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": None}, "mask is unknown: .* pass mask=ID"),
        ({"eos": None}, "eos is unknown"),
        ({"mask": 90}, "mask is 90: expected a token, or its id from 0 to 89"),
        ({"mask": "[MASK]"}, "no tokenizer: give the token's id"),
        ({"mask": True}, "mask is True"),
        ({"mask": EOS}, "mask and an end token are both 87"),
        ({"shift": 2}, "shift is 2: give 0, or 1"),
        ({"block": 0}, "block is 0"),
        ({"max_length": None}, "max_length is unknown"),
        ({"block": 65}, "block is 65 but the module takes 64"),
    ],
)
def test_wrong_options_are_explained(options, message):
    with pytest.raises(InputError, match=message):
        wrap(Mean(), **{**IDS, "max_length": 64, **options})


def test_an_unknown_token_is_no_mask():
    with pytest.raises(InputError, match=r"mask is '\[MASK\]': expected a token"):
        wrap(transformers_module("bert", vocab_size=262), byte_tokenizer(), mask="[MASK]")


class Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(90, 8)

    def forward(self, input_ids):
        return self.tokens(input_ids)


class Two(Mean):
    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(64, 16)


class Scaled(Mean):
    def __init__(self):
        super().__init__()
        self.tokens = type("Scale", (nn.Embedding,), {"forward": lambda s, i: 4 * s.weight[i]})(
            90, 16
        )


class Encoder(Mean):
    def forward(self, inputs_embeds):
        return ("no", "logits")


class Failing(Mean):
    def forward(self, inputs_embeds):
        raise RuntimeError("three positions only")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Ids, "Ids takes no inputs_embeds"),
        (nn.Sequential, "has no embedding table"),
        (Two, r"give it a method get_input_embeddings\(\)"),
        (Scaled, "does more than look tokens up"),
        (Encoder, "returned tuple: expected a tensor of logits"),
        (Failing, "failed on inputs_embeds .*three positions only"),
        (lambda: Mean(out=91), r"logits of shape \(2, 4, 91\); expected \(2, 4, 90\)"),
        (lambda: "tiny", "loaded with xpredflow.load"),
    ],
)
def test_wrong_modules_are_explained(module, message):
    with pytest.raises(InputError, match=message):
        wrap(module(), **IDS, max_length=64)


def test_what_is_no_model_names_the_fix(model):
    assert check_model(model) is model
    with pytest.raises(InputError, match=r"load it first, load\('tiny'\)"):
        check_model("tiny")
    with pytest.raises(InputError, match=r"model is a Mean.*wrap it first, wrap\(module"):
        check_model(Mean())
    with pytest.raises(InputError, match=r"model is a int.*load\(\) or wrap\(\)"):
        check_model(3)
    with pytest.raises(InputError, match="is a model already"):
        wrap(model)
    with pytest.raises(InputError, match="reads shadows"):
        check_model(wrapped("own"), type("Doubter", (), {"shadows": True}))


def test_the_head_runs_on_the_asked_columns_alone():
    model = wrapped("llama")
    seen = []
    model.module.get_submodule("lm_head").register_forward_hook(
        lambda _, given, out: seen.append(given[0].shape[1])
    )
    generate(model, [[1, 2, 3, 4, 5]], decoder="mask", gen_length=4, budget=2)
    assert seen == [4, 4]


def test_a_copy_reads_its_own_weights():
    model = wrapped("bert")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.embedding.zero_()
    assert model.embedding.abs().sum() > 0


def test_it_is_saved_by_the_module_itself(tmp_path):
    from transformers import LlamaForCausalLM

    model = wrapped("llama")
    save(model, tmp_path / "saved")
    again = wrap(LlamaForCausalLM.from_pretrained(str(tmp_path / "saved")), **IDS, max_length=40)
    assert decoded(again, PROMPTS, "flow") == decoded(model, PROMPTS, "flow")
    with pytest.raises(InputError, match=r"no save_pretrained: save model.module.state_dict"):
        save(wrapped("own"), tmp_path / "own")
