"""From what the user names, a directory or a hub id, to what stands beside the weights.

Only data is read, never code.
"""

import re
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.files import read_object

SMALL = ["*.json", "*.jinja", "tokenizer*", "merges.txt"]
WEIGHTS = [*SMALL, "*.safetensors"]
# Tokenizers of vocab.json and merges.txt by the class that tokenizer_config.json names, and the
# class of transformers that splits text in the same way.
_BYTE_LEVEL = {
    "DreamTokenizer": "Qwen2Tokenizer",
    "Qwen2Tokenizer": "Qwen2Tokenizer",
    "Qwen2TokenizerFast": "Qwen2Tokenizer",
    "GPT2Tokenizer": "GPT2Tokenizer",
}


def locate(source: str | Path, revision: str | None, patterns: list[str]) -> Path:
    """The directory itself, or the local copy of the hub repository."""
    path = Path(source).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise InputError(f"{source} is a file; expected the checkpoint's directory")
    if not isinstance(source, str) or not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", source):
        raise InputError(
            f"no directory {str(source)!r}; expected a checkpoint's directory or a hub id "
            "such as 'GSAI-ML/LLaDA-8B-Instruct'"
        )
    return _download(source, revision, patterns)


def _download(hub_id: str, revision: str | None, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download  # slow to import, not needed for directories

    try:
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=patterns))
    # The hub's errors have no common base: connection, HTTP, missing repository, bad name.
    except Exception as error:
        at = f" at revision {revision!r}" if revision else ""
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f"{hub_id!r} is no directory here, and downloading it{at} from the Hugging Face hub "
            f"failed: {type(error).__name__}: {reason}. Check the name and the connection, or "
            f"download it elsewhere (hf download {hub_id} --local-dir DIR) and pass the directory"
        ) from error


def read_config(directory: Path) -> dict[str, Any]:
    """config.json as a dict."""
    file = directory / "config.json"
    if not file.is_file():
        raise InputError(
            f"{directory} has no config.json: expected the directory of a whole checkpoint"
        )
    config = read_object(file, "download it again")
    named = config.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise InputError(
            f"{file}: architectures is {named!r:.60}; expected a list of names: download it again"
        )
    remote = config.get("auto_map") or {}
    if not isinstance(remote, dict):
        raise InputError(
            f"{file}: auto_map is {remote!r:.60}; expected an object: download it again"
        )
    return config


def load_tokenizer(directory: Path) -> Any:
    """The fast tokenizer in this directory, or None if there is none that we know how to read."""
    if (directory / "tokenizer.json").is_file():
        # This class by name: tokenizer_config.json may ask for one that only remote code has.
        name = "PreTrainedTokenizerFast"
    elif all((directory / file).is_file() for file in ("vocab.json", "merges.txt")):
        name = _BYTE_LEVEL.get(_tokenizer_settings(directory).get("tokenizer_class", ""))
    else:
        name = None
    if name is None:
        return None
    import transformers  # takes seconds to import

    try:
        return getattr(transformers, name).from_pretrained(str(directory))
    # tokenizers raises bare Exception on a bad file.
    except Exception as error:
        raise InputError(
            f"the tokenizer in {directory} cannot be read ({type(error).__name__}: {error}): "
            "download its files again"
        ) from error


def stored_id(directory: Path, token: str) -> int | None:
    """The id of a token as the files hold it.

    A token that tokenizer_config.json names though no file has it gets the next free id when the
    tokenizer is loaded; that id means nothing to the model.
    """
    for number, entry in (_tokenizer_settings(directory).get("added_tokens_decoder") or {}).items():
        if entry.get("content") == token:
            return int(number)
    for name in ("added_tokens.json", "vocab.json"):
        if (directory / name).is_file():
            found = read_object(directory / name, "download it again").get(token)
            if isinstance(found, int):
                return found
    if not (directory / "tokenizer.json").is_file():
        return None
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(directory / "tokenizer.json")).token_to_id(token)


def _tokenizer_settings(directory: Path) -> dict[str, Any]:
    file = directory / "tokenizer_config.json"
    return read_object(file, "download it again") if file.is_file() else {}


def check_vocabulary(tokenizer: Any, rows: int, directory: Path) -> None:
    """Refuse a tokenizer with ids that the embedding table has no rows for."""
    token, largest = max(
        (() if tokenizer is None else tokenizer.get_vocab().items()),
        key=lambda pair: pair[1],
        default=("", -1),
    )
    if largest >= rows:
        raise InputError(
            f"the tokenizer in {directory} has the token {token!r:.40} with id {largest}, but the"
            f" embedding has {rows} rows: tokenizer.json belongs to another model, download it"
            " again"
        )
