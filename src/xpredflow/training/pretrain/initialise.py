"""What a pretraining run begins with: a tokenizer of its own and weights that know nothing, or
both from a checkpoint that is to be trained further."""

from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from xpredflow.errors import InputError
from xpredflow.models import MaskedDiffusionModel, build
from xpredflow.models.embedded import load
from xpredflow.models.source import load_tokenizer
from xpredflow.training.pretrain.batches import Source
from xpredflow.training.pretrain.copying import start_copying
from xpredflow.training.pretrain.shapes import SHAPES
from xpredflow.training.pretrain.tokenizer import END, MASK, START, TURN, train_tokenizer

FRESH = ("copying", "plain")  # starts that need no checkpoint


def learn_tokenizer(
    directory: Path, tasks: tuple[Source, ...], vocabulary: int, examples: int
) -> None:
    """Write a tokenizer that is trained on examples of the tasks, unless there is one already."""
    if (directory / "tokenizer.json").is_file():
        return
    texts = []
    for number in range(examples):
        task = tasks[number % len(tasks)]
        problem = task.problem("train", number)
        texts += [problem.prompt, task.answer(problem, Random(number))]
    train_tokenizer(texts, vocabulary, directory)


def fresh_model(directory: Path, shape: str, start: str, seed: int) -> MaskedDiffusionModel:
    """An untrained model for the tokenizer in this directory."""
    config = _config(directory, shape)
    model = build(config, seed, tokenizer=load_tokenizer(directory))
    if start == "copying":
        start_copying(model, seed)
    return model


def given_model(directory: Path, shape: str, start: str) -> MaskedDiffusionModel:
    """A checkpoint in fp32, if it has the shape that the run names; its tokenizer is copied."""
    try:
        model = load(start, dtype="float32")
    except InputError as error:
        raise InputError(f"start is {start!r}, none of {', '.join(FRESH)}: {error}") from error
    if model.tokenizer is None:
        raise InputError(f"start is {start!r}, which has no tokenizer.json: training needs it too")
    model.tokenizer.save_pretrained(str(directory))
    for name, value in _config(directory, shape).items():
        if model.config.get(name) != value:
            raise InputError(
                f"start is {start!r}, whose {name} is {model.config.get(name)!r} where shape"
                f" {shape!r} has {value!r}: give a checkpoint of that shape"
            )
    return model.train().requires_grad_()


def _config(directory: Path, shape: str) -> dict:
    vocabulary = Tokenizer.from_file(str(directory / "tokenizer.json")).get_vocab()
    missing = [token for token in (START, TURN, END, MASK) if token not in vocabulary]
    if missing:
        raise InputError(f"the tokenizer in {str(directory)!r} lacks {missing[0]!r}: train another")
    return SHAPES[shape](len(vocabulary), vocabulary[MASK], vocabulary[END])
