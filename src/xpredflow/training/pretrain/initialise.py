"""What a pretraining run begins with: a tokenizer of its own and weights that know nothing, or
both from a checkpoint that is to be trained further."""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tokenizers import Tokenizer

from xpredflow.errors import InputError
from xpredflow.files import read_object, writing
from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.models.embedded import ALIGNED, assets, load
from xpredflow.models.source import load_tokenizer
from xpredflow.training.pretrain.batches import Source, train_problem
from xpredflow.training.pretrain.tokenizer import END, MASK, START, TURN, train_tokenizer

# Overwrites fresh weights in place; the seed is the run's.
Initialise = Callable[[MaskedDiffusionModel, int], None]
SHAPES = tuple(ALIGNED)  # names of embedded models whose layout a fresh model may have


def read_shape(shape: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """What config.json says of a layout: of an embedded model by name, of a file, or as it is."""
    if isinstance(shape, Mapping):
        return dict(shape)
    path = assets(str(shape)) / "config.json" if str(shape) in SHAPES else Path(shape)
    path = path / "config.json" if path.is_dir() else path
    try:
        return read_object(path, "mend it")
    except (OSError, ValueError) as error:
        raise InputError(
            f"shape is {str(shape)!r}, which cannot be read ({error}): give {' or '.join(SHAPES)},"
            " or a config.json in the published layout"
        ) from error


def learn_tokenizer(
    directory: Path, tasks: tuple[Source, ...], vocabulary: int, examples: int
) -> None:
    """Write a tokenizer that is trained on examples of the tasks."""
    texts = []
    for number in range(examples):
        task = tasks[number % len(tasks)]
        problem = train_problem(task, number)
        answer = task.answer(problem, Random(number))
        pieces = [answer] if isinstance(answer, str) else ["".join(text for text, _ in answer)]
        texts += [problem.prompt, *pieces]
    train_tokenizer(texts, vocabulary, directory)


def fresh_model(
    directory: Path, shape: Mapping[str, Any], seed: int, initialise: Initialise | None = None
) -> MaskedDiffusionModel:
    """An untrained model for the tokenizer in this directory, where models are loaded to."""
    fitted, tokenizer = _fitted(directory, shape), load_tokenizer(directory)
    model = build(fitted, seed, device=None, tokenizer=tokenizer)
    if initialise is not None:
        initialise(model, seed)
    return model


def given_model(directory: Path, start: str) -> MaskedDiffusionModel:
    """A checkpoint in fp32; its tokenizer is copied."""
    model = load(start, dtype="float32")
    if model.tokenizer is None:
        raise InputError(f"start is {start!r}, which has no tokenizer.json: training needs it too")
    with writing(directory, "nothing was trained yet"):
        model.tokenizer.save_pretrained(str(directory))
    special_tokens(directory)
    return model.train().requires_grad_()


def special_tokens(directory: Path) -> tuple[int, int, int, int]:
    """Start of text, end of turn, EOS and mask of the tokenizer in a directory."""
    vocabulary = Tokenizer.from_file(str(directory / "tokenizer.json")).get_vocab()
    missing = [token for token in (START, TURN, END, MASK) if token not in vocabulary]
    if missing:
        raise InputError(f"the tokenizer in {str(directory)!r} lacks {missing[0]!r}: train another")
    return vocabulary[START], vocabulary[TURN], vocabulary[END], vocabulary[MASK]


def _fitted(directory: Path, shape: Mapping[str, Any]) -> dict[str, Any]:
    """The shape with the vocabulary of the tokenizer, and nothing about how weights are stored."""
    size = Tokenizer.from_file(str(directory / "tokenizer.json")).get_vocab_size()
    _, _, end, mask = special_tokens(directory)
    own = {"vocab_size": size, "embedding_size": size, "mask_token_id": mask}
    own |= {"eos_token_id": end, "pad_token_id": end}
    config = {name: own.get(name, value) for name, value in shape.items() if "dtype" not in name}
    return {**config, "mask_token_id": mask, "eos_token_id": end}
