"""A tokenizer that spells a word alike wherever it stands, so that any word can be copied.

Byte-level BPE joins a space to the word behind it before it looks at the word, so that an unknown
name is cut up differently after a space, after a bracket and at the start of a line: `( ter ms )`
but ` t er ms`. To copy it a model would have to know how it is spelt. Here words are joined first,
as if nothing stood before them, and the space last, and only to words that are known as a whole.
Tokens keep their numbers; known words without a space get one where they had none.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

SPACE = "Ġ"


def spell_alike(old: Path, texts: Iterable[str], least: int, new: Path) -> None:
    """Write the tokenizer of a directory with other merges to another.

    A word is known if it has a token with its space and stands in the texts `least` times.
    """
    tokenizer = Tokenizer.from_file(str(old / "tokenizer.json"))
    about = json.loads(tokenizer.to_str())
    tokens, merges = about["model"]["vocab"], about["model"]["merges"]
    known = [word for word, n in _spaced_words(tokenizer, texts).items() if n >= least]
    known = sorted((w for w in known if SPACE + w in tokens), key=lambda w: tokens[SPACE + w])
    merges[:] = [merge for merge in merges if not _joins_a_space(merge)]
    for word in known:
        pieces = [t.value for t in _read(about).model.tokenize(word)]
        while len(pieces) > 1:
            left, right, *rest = pieces
            tokens.setdefault(left + right, len(tokens))
            merges.append([left, right])
            pieces = [left + right, *rest]
    merges += [[SPACE, word] for word in known]
    new.mkdir(parents=True, exist_ok=True)
    (new / "tokenizer.json").write_text(json.dumps(about, indent=2, ensure_ascii=False))
    (new / "tokenizer_config.json").write_text((old / "tokenizer_config.json").read_text())


def _spaced_words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """Words behind a space, without it."""
    found: Counter[str] = Counter()
    assert tokenizer.pre_tokenizer is not None
    for text in texts:
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text):
            if piece.startswith(SPACE) and piece[1:].isalpha():
                found[piece[1:]] += 1
    return found


def _joins_a_space(merge: list[str]) -> bool:
    """Whether a merge makes a space and letters one token."""
    joined = "".join(merge)
    return joined.startswith(SPACE) and joined[1:2].isascii() and joined[1:2].isalpha()


def _read(about: dict) -> Tokenizer:
    return Tokenizer.from_str(json.dumps(about))
