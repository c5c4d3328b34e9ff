"""A tokenizer whose token ids are bytes: tests can write and read them by hand."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from xpredflow.models.source import load_tokenizer

SPECIAL = [
    "<|startoftext|>",
    "<|endoftext|>",
    "<|mdm_mask|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
]  # 256, 257, ...
TURN = "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim }}"
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}" + TURN + "<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def byte_tokenizer() -> Any:
    """Ids 0 to 255 are bytes, then the special tokens of LLaDA."""
    tokenizer = Tokenizer(BPE(vocab={c: b for b, c in enumerate(_letters())}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    tokenizer.add_special_tokens(SPECIAL)
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[0],
        "eos_token": SPECIAL[1],
        "pad_token": SPECIAL[1],
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    with TemporaryDirectory() as place:
        tokenizer.save(str(Path(place) / "tokenizer.json"))
        (Path(place) / "tokenizer_config.json").write_text(json.dumps(about))
        return load_tokenizer(Path(place))


def _letters() -> list[str]:
    """The letter that stands for each byte: itself if it is visible, else one from 256 on."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [b for b in range(256) if b not in visible]
    return [chr(b) if b in visible else chr(256 + hidden.index(b)) for b in range(256)]
