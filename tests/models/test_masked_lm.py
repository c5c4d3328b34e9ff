"""Masked language models as transformers writes them: loaded, decoded, infilled, saved."""

import json

import pytest
import torch
from foreign_modules import MASKED, SMALL, transformers_module
from masked_checkpoints import TEMPLATE, word_tokenizer, write_masked_lm

from xpredflow import InputError, generate, load, save
from xpredflow.engine.prompts import encode
from xpredflow.models.masked_lm import MaskedLM


@pytest.fixture(scope="module", params=MASKED)
def written(request, tmp_path_factory):
    """A checkpoint's directory and the module that wrote it."""
    directory = tmp_path_factory.mktemp(request.param)
    return directory, write_masked_lm(directory, request.param)


@pytest.fixture(scope="module")
def model(written):
    return load(written[0], device="cpu")


def test_logits_are_those_of_transformers(written, model):
    ids = torch.tensor([[0, 5, 6, 4, 8, 4, 2]])
    places = torch.arange(7)[None]
    ours = model.logits(model.embedding[ids], places, places)
    theirs = written[1](input_ids=ids).logits
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    # the first row of a batch, with padding that transformers hides by its attention mask
    both = torch.tensor([[0, 5, 4, 2, 1, 1, 1], [0, 5, 6, 4, 8, 4, 2]])
    short = written[1](input_ids=both, attention_mask=(both != 1).long()).logits[:1, :4]
    padded = model.logits(
        torch.cat((torch.randn(1, 3, 32), model.embedding[both[:1, :4]]), 1),
        torch.tensor([[-1, -1, -1, 0, 1, 2, 3]]),
        torch.arange(3, 7)[None],
    )
    torch.testing.assert_close(padded, short, atol=1e-4, rtol=1e-4)


def test_special_tokens_and_length_are_the_tokenizers(written, model):
    assert isinstance(model, MaskedLM)
    assert model.special == (4, 2, None)  # BERT's end is its separator
    assert model.name == written[0].name
    # RoBERTa counts its positions from behind padding
    assert model.max_length == (62 if model.config["model_type"] == "roberta" else 64)
    longest = [0] + [-1] * (model.max_length - 1)
    assert generate(model, [longest], decoder="mask", budget=1)[0].passes == 1


@pytest.mark.parametrize("decoder", ["mask", "threshold:0.3", "flow", "soft", "editing"])
def test_gaps_are_filled_and_everything_else_is_kept(model, decoder):
    mask = model.tokenizer.mask_token
    [done] = generate(model, f"the {mask} sat on the {mask} .", decoder=decoder)
    before, after = done.text.split(" sat on the ")
    assert before.startswith("the")
    assert after.endswith(".")
    assert len(done.ids) == 2
    assert 4 not in done.all_ids
    [same] = generate(model, "the [[mask:1]] sat on the [[mask:1]] .", decoder=decoder)
    assert same == done


def test_the_text_is_framed_as_the_tokenizer_frames_it(model):
    mask = model.tokenizer.mask_token
    assert encode(model, f"the {mask} sat", chat=None, system=None).ids == [0, 5, -1, 8, 2]
    assert encode(model, "the [[mask:2]] sat", chat=None, system=None).ids == [0, 5, -1, -1, 8, 2]
    assert encode(model, "the cat", chat=None, system=None).ids == [0, 5, 6]  # the answer follows
    with pytest.raises(InputError, match="leave out chat and system"):
        encode(model, f"the {mask}", chat=True, system=None)
    with pytest.raises(InputError, match="has no positions"):
        encode(model, "the [[mask:0]] sat", chat=None, system=None)


def test_rows_are_the_same_alone_and_together(model):
    asked = ["the [[mask:1]] sat", "a [[mask:3]] ran under the [[mask:1]] .", "[[mask:2]]"]
    together = generate(model, asked, decoder="threshold:0.3")
    for i, prompt in enumerate(asked):
        [alone] = generate(model, [prompt], decoder="threshold:0.3", first_row=i)
        assert (alone.all_ids, alone.passes) == (together[i].all_ids, together[i].passes)


def test_a_chat_template_is_used_where_there_is_one(model, written):
    plain = generate(model, "what is this", decoder="mask", gen_length=3)
    model.tokenizer.chat_template = TEMPLATE
    try:
        assert encode(model, "what is this", chat=None, system=None).ids[-1] in (2, 3)
        assert len(generate(model, "what is this", decoder="mask", gen_length=3)) == len(plain)
        assert encode(model, "the [[mask:1]]", chat=None, system=None).ids == [0, 5, -1, 2]
    finally:
        model.tokenizer.chat_template = None


def test_what_is_saved_loads_here_and_in_transformers(model, written, tmp_path):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    save(model, tmp_path)
    theirs = AutoModelForMaskedLM.from_pretrained(str(tmp_path))
    ids = torch.tensor([[0, 5, 4, 2]])
    torch.testing.assert_close(theirs(input_ids=ids).logits, written[1](input_ids=ids).logits)
    assert AutoTokenizer.from_pretrained(str(tmp_path)).mask_token_id == 4
    asked = "the [[mask:2]] on the mat"
    assert generate(load(tmp_path), asked)[0].text == generate(model, asked)[0].text


def test_the_dtype_is_the_stored_one_or_the_one_asked_for(tmp_path):
    write_masked_lm(tmp_path, "bert").to(torch.bfloat16).save_pretrained(str(tmp_path))
    assert load(tmp_path, device="cpu").embedding.dtype == torch.bfloat16
    assert load(tmp_path, dtype="float32", device="cpu").embedding.dtype == torch.float32


def _change(directory, name, **changes):
    file = directory / name
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_what_cannot_be_loaded_is_refused_by_name(tmp_path):
    write_masked_lm(tmp_path, "bert")
    _change(tmp_path, "config.json", architectures=["Lfm2BidirectionalForMaskedLM"])
    with pytest.raises(InputError, match=r"Lfm2BidirectionalForMaskedLM .* never run"):
        load(tmp_path)
    _change(tmp_path, "config.json", architectures=["RobertaForMaskedLM"])
    with pytest.raises(InputError, match=r"RobertaForMaskedLM \(model_type 'bert'\)"):
        load(tmp_path)
    _change(tmp_path, "config.json", architectures=["BertForSequenceClassification"])
    with pytest.raises(InputError, match="BertForSequenceClassification"):
        load(tmp_path)


def test_missing_parts_are_named(tmp_path):
    from safetensors.torch import load_file, save_file

    write_masked_lm(tmp_path, "bert")
    weights = load_file(tmp_path / "model.safetensors")
    trunk = {k: v for k, v in weights.items() if "transform.dense" not in k}
    save_file(trunk, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lacks tensors of BertForMaskedLM: cls\.predictions"):
        load(tmp_path)
    extra = {"bert.pooler.dense.bias": torch.zeros(2)}  # for sentence vectors: of no use here
    save_file(weights | extra, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert load(tmp_path).special.mask == 4
    strange = {"bert.adapter.weight": torch.zeros(2)}
    save_file(weights | strange, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"has unknown tensors .*bert\.adapter\.weight"):
        load(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="only pickle weights"):
        load(tmp_path)


def test_a_mask_token_is_never_guessed(tmp_path):
    write_masked_lm(tmp_path, "bert")
    word_tokenizer(mask_token=None).save_pretrained(str(tmp_path))
    with pytest.raises(InputError, match="names no mask token, which is never guessed"):
        load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(InputError, match=r"tokenizer in .* cannot be read"):
        load(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="has no tokenizer"):
        load(tmp_path)


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    write_masked_lm(tmp_path, "bert")
    transformers_module("bert", vocab_size=20).save_pretrained(str(tmp_path))
    with pytest.raises(InputError, match="has 22 tokens, but the weights have 20 embeddings"):
        load(tmp_path)


def test_classes_that_embeddings_do_not_reproduce_are_refused(tmp_path):
    import transformers as hf

    # ESM scales what it embeds by the share of masks, which only token ids tell
    config = hf.EsmConfig(**{**SMALL, "vocab_size": 22}, pad_token_id=1, mask_token_id=4)
    config.token_dropout = True
    hf.EsmForMaskedLM(config).save_pretrained(str(tmp_path))
    word_tokenizer("roberta").save_pretrained(str(tmp_path))
    with pytest.raises(InputError, match="EsmForMaskedLM"):
        load(tmp_path)


def test_a_class_without_inputs_embeds_is_refused(tmp_path):
    import transformers as hf

    config = hf.PerceiverConfig(
        vocab_size=22, d_model=16, d_latents=16, num_latents=4, num_self_attends_per_block=1
    )
    config.num_self_attention_heads = config.num_cross_attention_heads = 2
    config.qk_channels = config.v_channels = 16
    hf.PerceiverForMaskedLM(config).save_pretrained(str(tmp_path))
    word_tokenizer().save_pretrained(str(tmp_path))
    with pytest.raises(InputError, match="PerceiverForMaskedLM"):
        load(tmp_path)
