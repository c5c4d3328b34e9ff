"""A larger model that begins as a smaller one: the same function, with room to learn more.

What is new in width reads the stream and writes nothing, and a new layer adds nothing, until
training lets them; what the small model knew is not lost. The ideas are those of Net2Net
(arXiv 1511.05641). A longer vocabulary keeps the old tokens and their merges, and adds merges that
new texts call for; a new token begins as the mean of the two it joins.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from torch import Tensor

from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.models.source import load_tokenizer

Words = Counter[tuple[str, ...]]


def extend_tokenizer(old: Path, texts: Iterable[str], vocabulary: int, new: Path) -> None:
    """Write the tokenizer of a directory with more merges, learned from texts, to another."""
    tokenizer = Tokenizer.from_file(str(old / "tokenizer.json"))
    about = json.loads(tokenizer.to_str())
    tokens, merges = about["model"]["vocab"], about["model"]["merges"]
    words: Words = Counter()
    for text in texts:
        assert tokenizer.pre_tokenizer is not None
        words.update((word,) for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
    words = Counter({tuple(_pieces(tokenizer, *word)): n for word, n in words.items()})
    while len(tokens) < vocabulary:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        # the pair itself decides between equals, so that every process finds the same
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        tokens.setdefault("".join(best), len(tokens))  # another pair may have made it
        merges.append(list(best))
        words = _merge(words, best)
    new.mkdir(parents=True, exist_ok=True)
    (new / "tokenizer.json").write_text(json.dumps(about, indent=2, ensure_ascii=False))
    (new / "tokenizer_config.json").write_text((old / "tokenizer_config.json").read_text())


def _pieces(tokenizer: Tokenizer, word: str) -> list[str]:
    """A word of the byte alphabet in the tokens of today."""
    return [token.value for token in tokenizer.model.tokenize(word)]


def _merge(words: Words, pair: tuple[str, str]) -> Words:
    merged: Words = Counter()
    for word, count in words.items():
        parts: list[str] = []
        for piece in word:
            if parts and (parts[-1], piece) == pair:
                parts[-1] += piece
            else:
                parts.append(piece)
        merged[tuple(parts)] += count
    return merged


@torch.no_grad()
def grow(
    small: MaskedDiffusionModel, directory: Path, shape: Mapping[str, Any], seed: int
) -> MaskedDiffusionModel:
    """A model of a larger LLaDA shape that computes what the small one does.

    `directory` has its tokenizer. New layers are spread evenly among the old ones.
    """
    tokenizer = load_tokenizer(directory)
    size = Tokenizer.from_file(str(directory / "tokenizer.json")).get_vocab_size()
    config = {**small.config, **shape, "vocab_size": size, "embedding_size": size}
    large = build(config, seed, tokenizer=tokenizer)
    old, new = small.state_dict(), large.state_dict()
    layers, wanted = small.config["n_layers"], config["n_layers"]
    # RMSNorm divides by the mean square of the whole width, of which the new part is zero
    scale = (small.config["d_model"] / config["d_model"]) ** 0.5
    kept = {round((i + 0.5) * wanted / layers - 0.5): i for i in range(layers)}
    assert len(kept) == layers
    for name, value in new.items():
        source = _source(name, kept)
        if source is None:  # of a new layer
            if _writes(name):
                value.zero_()
            continue
        _place(value, old[source], name, scale)
    _join_tokens(large, small, directory)
    return large


def _source(name: str, kept: Mapping[int, int]) -> str | None:
    """The old weight that a new one begins as, by its published name."""
    parts = name.split(".")
    if "blocks" not in parts:
        return name
    place = parts.index("blocks") + 1
    layer = kept.get(int(parts[place]))
    return None if layer is None else ".".join([*parts[:place], str(layer), *parts[place + 1 :]])


def _writes(name: str) -> bool:
    """Whether a matrix of a layer writes to the stream."""
    return "blocks" in name and name.endswith(("attn_out.weight", "ff_out.weight"))


def _place(value: Tensor, old: Tensor, name: str, scale: float) -> None:
    """Put an old weight into the corner of a larger one."""
    if value.ndim == 1:  # a norm
        value.fill_(float(old.mean()) * scale)
        value[: len(old)] = old * scale
        return
    if _writes(name) or name.endswith("wte.weight"):
        value.zero_()
    else:
        value.mul_(old.std() / value.std())
    value[: old.shape[0], : old.shape[1]] = old


def _join_tokens(large: MaskedDiffusionModel, small: MaskedDiffusionModel, directory: Path) -> None:
    """Let every new token begin as the mean of the two that it joins."""
    about = json.loads((directory / "tokenizer.json").read_text())["model"]
    _, _, head = large.trunk()
    count = len(small.embedding)
    for left, right in about["merges"]:
        token = about["vocab"][left + right]
        if token >= count:
            parts = [about["vocab"][left], about["vocab"][right]]
            for table in (large.embedding, cast(Tensor, head.weight)):
                table[token] = table[parts].mean(0)
