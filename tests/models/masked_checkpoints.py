"""Checkpoints of masked language models as transformers writes them, with random weights."""

from pathlib import Path
from typing import Any

from foreign_modules import transformers_module
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel

WORDS = [
    *("the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "rug", "."),
    *("what", "is", "this", "one", "two", "three"),
]
NAMES = {
    "bert": {"mask": "[MASK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"},
    "roberta": {"mask": "<mask>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"},
}
TEMPLATE = "[CLS] {{ messages[-1]['content'] }} [SEP]"


def word_tokenizer(style: str = "bert", **about: Any) -> Any:
    """Whole words, framed as the originals do: BERT knows no eos token, RoBERTa does."""
    from transformers import PreTrainedTokenizerFast

    names = NAMES[style]
    # RoBERTa's padding is token 1: its positions are counted from behind it
    special = [names[role] for role in ("cls", "pad", "sep", "unk", "mask")]
    tokenizer = Tokenizer(
        WordLevel({word: i for i, word in enumerate([*special, *WORDS])}, unk_token=names["unk"])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    ends = [(names["cls"], 0), (names["sep"], 2)]
    tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single=f"{names['cls']} $A {names['sep']}", special_tokens=ends
    )
    ending = {"eos_token": names["sep"]} if style == "roberta" else {}
    roles: dict[str, Any] = {f"{role}_token": name for role, name in names.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **(roles | ending | about))


def write_masked_lm(directory: Path, kind: str, **changes: Any) -> Any:
    """The checkpoint's module, after writing it; its tokenizer goes beside it."""
    tokenizer = word_tokenizer("roberta" if kind == "roberta" else "bert")
    module = transformers_module(kind, vocab_size=len(tokenizer), **changes)
    module.save_pretrained(str(directory))
    tokenizer.save_pretrained(str(directory))
    return module
