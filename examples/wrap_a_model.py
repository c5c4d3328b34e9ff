"""A model that is none of ours: any module from `inputs_embeds` to logits decodes once wrapped.

    python examples/wrap_a_model.py

Here a small masked language model of transformers with random weights, so that nothing is
downloaded: its text means nothing. With weights, load it as always and wrap what you have:

    wrap(AutoModelForMaskedLM.from_pretrained(DIR), AutoTokenizer.from_pretrained(DIR), eos="[SEP]")
"""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from xpredflow import generate, wrap


def letters() -> PreTrainedTokenizerFast:
    """A tokenizer of single letters, the mask and the end of the text."""
    alphabet = "abcdefghijklmnopqrstuvwxyz ."
    words = {letter: i for i, letter in enumerate([*alphabet, "[MASK]", "[SEP]"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="."))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")  # type: ignore[assignment]
    tokenizer.decoder = decoders.Fuse()  # type: ignore[assignment]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]")


def small_bert(tokenizer: PreTrainedTokenizerFast) -> BertForMaskedLM:
    """Two layers, freshly drawn."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return BertForMaskedLM(config)


if __name__ == "__main__":
    tokenizer = letters()
    model = wrap(small_bert(tokenizer), tokenizer, eos="[SEP]", name="small BERT")
    for decoder in ("flow:power:8", "threshold:0.5"):
        [answer] = generate(model, "to be or not", decoder=decoder, gen_length=16, budget=8)
        print(f"{decoder}: {answer.passes} passes, {answer.text!r}")
