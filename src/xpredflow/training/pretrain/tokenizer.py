"""Train a byte-level BPE tokenizer with LLaDA's special tokens and a compact chat template."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from xpredflow.files import write_atomically

START, END, MASK, TURN = "<|startoftext|>", "<|endoftext|>", "<|mdm_mask|>", "<|eot_id|>"
SPECIAL = (START, END, MASK, TURN)
# One token opens the conversation and one closes each turn: prompts this small cannot spare more.
CHAT_TEMPLATE = START + "{% for m in messages %}{{ m['content'] }}" + TURN + "{% endfor %}"


def train_tokenizer(texts: Iterable[str], vocabulary: int, directory: Path) -> Tokenizer:
    """Write tokenizer.json and tokenizer_config.json; digits stand apart, so that sums show."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    write_atomically(directory / "tokenizer.json", tokenizer.to_str(pretty=True))
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": START,
        "eos_token": END,
        "pad_token": END,
        "additional_special_tokens": [MASK, TURN],
        "clean_up_tokenization_spaces": False,
        "padding_side": "left",
        "chat_template": CHAT_TEMPLATE,
    }
    write_atomically(directory / "tokenizer_config.json", json.dumps(about, indent=2) + "\n")
    return tokenizer
