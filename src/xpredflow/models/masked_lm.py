"""Masked language models of transformers (BERT, RoBERTa, ModernBERT, ...), adapted at the edge.

model = load("answerdotai/ModernBERT-base")
print(generate(model, "The [MASK] sat on the mat.", decoder="mask")[0].text)

Any class that transformers itself defines as ...ForMaskedLM loads; code of a checkpoint never runs.
"""

import re
from pathlib import Path
from typing import Any

import torch

from xpredflow.errors import InputError
from xpredflow.models.defaults import read_defaults
from xpredflow.models.module_adapter import Wrapped
from xpredflow.models.shards import stored_tensors
from xpredflow.models.source import WEIGHTS, locate
from xpredflow.models.wrap import adapt
from xpredflow.registry import FAMILIES

SUFFIX = "ForMaskedLM"
# vocabularies of tokenizers that have no tokenizer.json
FILES = [*WEIGHTS, "*.txt", "*.model"]
VOCABULARIES = ["tokenizer.json", "vocab.*", "*.model"]
# Parts that published checkpoints carry for other uses: sentence vectors, next-sentence prediction.
_UNUSED = re.compile(r"(^|\.)(pooler|seq_relationship|discriminator_predictions)\.|position_ids$")


class MaskedLM(Wrapped):
    """A masked language model: fills gaps in a text that is framed as its tokenizer frames it."""

    family = "masked-lm"

    @property
    def mask_text(self) -> str:
        """What stands for one gap in a prompt, beside [[mask:n]]."""
        return self.tokenizer.mask_token

    def encode_text(self, text: str, *, whole: bool) -> list[int]:
        """Ids framed as the tokenizer does, -1 at its mask; `whole`: no response follows."""
        ids = list(self.tokenizer(text)["input_ids"])
        while not whole and ids and ids[-1] == self.special.eos:
            ids.pop()
        return [-1 if token == self.special.mask else token for token in ids]


def is_masked_lm(config: dict[str, Any]) -> bool:
    """Whether config.json names a masked language model that is none of our own families."""
    names = config.get("architectures") or []
    return any(n.endswith(SUFFIX) for n in names) and not any(n in FAMILIES for n in names)


def load_masked_lm(
    source: str | Path,
    config: dict[str, Any],
    dtype: torch.dtype | None,
    device: torch.device,
    revision: str | None,
) -> MaskedLM:
    """The checkpoint in transformers' own class; special tokens are those of its tokenizer."""
    kind = _class_of(config)
    directory = locate(source, revision, FILES)
    stored_tensors(directory)  # refuses pickles and truncated files before anything is read
    tokenizer = _tokenizer(directory)
    module = _read(kind, directory, dtype).to(device)
    end = tokenizer.eos_token_id
    model = adapt(MaskedLM, module, tokenizer, eos=tokenizer.sep_token_id if end is None else end)
    if len(tokenizer) > len(model.embedding):
        raise InputError(
            f"the tokenizer in {directory} has {len(tokenizer)} tokens, but the weights have"
            f" {len(model.embedding)} embeddings: it belongs to another model"
        )
    _check_embeddings(model)
    model.defaults = read_defaults(directory)
    model.name = str(source) if directory != Path(source).expanduser() else directory.resolve().name
    return model


def _class_of(config: dict[str, Any]) -> Any:
    import transformers  # takes seconds to import

    name = next(n for n in config["architectures"] if n.endswith(SUFFIX))
    found = getattr(transformers, name, None)
    if found is None or found.config_class.model_type != config.get("model_type"):
        raise InputError(
            f"{name} (model_type {config.get('model_type')!r}) is no class of transformers"
            f" {transformers.__version__}: it needs code that comes with the checkpoint, which is"
            " never run. Load it with code that you trust and wrap it: xpredflow.wrap(module,"
            " tokenizer)"
        )
    return found


def _tokenizer(directory: Path) -> Any:
    from transformers import AutoTokenizer

    if not any(found for pattern in VOCABULARIES for found in directory.glob(pattern)):
        raise InputError(  # transformers would make up an empty one
            f"{directory} has no tokenizer ({', '.join(VOCABULARIES)}): a masked language model"
            " needs it for its mask token; download its files too"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(directory), trust_remote_code=False)
    except Exception as error:  # tokenizers raises bare Exception on a bad file
        raise InputError(
            f"the tokenizer in {directory} cannot be read ({type(error).__name__}: {error}):"
            " download its files again"
        ) from error
    if tokenizer.mask_token_id is None:
        raise InputError(
            f"the tokenizer in {directory} names no mask token, which is never guessed: set"
            " mask_token in its tokenizer_config.json"
        )
    return tokenizer


def _read(kind: Any, directory: Path, dtype: torch.dtype | None) -> Any:
    """The module with every tensor that it needs, from safetensors only."""
    from transformers.utils import logging

    bar, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        module, found = kind.from_pretrained(
            str(directory),
            dtype=dtype or "auto",
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as error:  # transformers raises RuntimeError, OSError, ValueError, ...
        raise InputError(
            f"{directory} cannot be read as {kind.__name__} ({type(error).__name__}: {error})"
        ) from error
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
    missing = sorted(found["missing_keys"])
    extra = sorted(key for key in found["unexpected_keys"] if not _UNUSED.search(key))
    for keys, what in ((missing, "lacks"), (extra, "has unknown")):
        if keys:
            raise InputError(
                f"the checkpoint {what} tensors of {kind.__name__}: {', '.join(keys[:3])}"
                f"{', ...' if len(keys) > 3 else ''}; does config.json belong to another one?"
            )
    return module


@torch.no_grad()
def _check_embeddings(model: MaskedLM) -> None:
    """Refuse a class that reads token ids in a way that their embeddings cannot stand for."""
    unwanted = {model.special.mask, *model.tokenizer.all_special_ids}
    plain = [i for i in range(min(len(model.embedding), 64)) if i not in unwanted]
    ids = [*plain[:3], model.special.mask, *plain[3:5]]
    tokens = torch.tensor([ids], device=model.embedding.device)
    places = torch.arange(len(ids), device=tokens.device).unsqueeze(0)
    ours = model.run(model.embedding[tokens], places).float()
    theirs = model.module(input_ids=tokens).logits.float()
    if not (ours - theirs).abs().max() <= 1e-3 * theirs.abs().max():
        raise InputError(
            f"{type(model.module).__name__} gives other logits for inputs_embeds than for the same"
            " token ids: decoding in the space of embeddings would misread it"
        )
