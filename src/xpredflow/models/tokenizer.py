"""The checkpoint's own tokenizer; only data is read, never code."""

from pathlib import Path
from typing import Any

from xpredflow.errors import InputError


def load_tokenizer(directory: Path) -> Any:
    """The fast tokenizer in this directory, or None if there is none."""
    if not (directory / "tokenizer.json").is_file():
        return None
    from transformers import PreTrainedTokenizerFast  # takes seconds to import

    try:
        # This class by name: tokenizer_config.json may ask for one that only remote code has.
        return PreTrainedTokenizerFast.from_pretrained(str(directory))
    # tokenizers raises bare Exception on a bad file.
    except Exception as error:
        raise InputError(
            f"the tokenizer in {directory} cannot be read ({type(error).__name__}: {error}): "
            "download tokenizer.json and tokenizer_config.json again"
        ) from error
