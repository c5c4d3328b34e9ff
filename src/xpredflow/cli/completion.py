"""What the shell offers behind a flag; what it needs is imported when it is asked."""

from pathlib import Path

import typer

Offers = list[tuple[str, str]]


def decoder_names(incomplete: str) -> Offers:
    """Decoders with their summaries; behind `flow:` its policies."""
    from xpredflow.cli.commands.decoders import decoder_summaries

    if incomplete.startswith("flow:"):
        behind = policy_names(incomplete.removeprefix("flow:"))
        return [(f"flow:{name}", text) for name, text in behind]
    return _matching(incomplete, decoder_summaries())


def decoders_and_policies(incomplete: str) -> Offers:
    """What `xpredflow decoders` can say more about."""
    from xpredflow.cli.commands.decoders import policy_summaries

    return decoder_names(incomplete) + _matching(incomplete, policy_summaries())


def policy_names(incomplete: str) -> Offers:
    """Policies with their summaries; behind `learned:` the embedded ones."""
    from xpredflow.cli.commands.decoders import policy_summaries

    offers = policy_summaries()
    if incomplete.startswith("learned:"):
        from xpredflow.policies.beta import embedded_policies

        offers = {f"learned:{name}": "embedded" for name in embedded_policies()}
    return _matching(incomplete, offers)


def model_names(incomplete: str) -> Offers:
    """Embedded models, and directories below that hold a checkpoint."""
    from xpredflow.models.embedded import embedded_names

    offers = dict.fromkeys(embedded_names(), "embedded")
    for directory in Path(incomplete).parent.glob("*/"):
        if (directory / "config.json").is_file():
            offers[str(directory)] = "checkpoint"
    return _matching(incomplete, offers)


def task_names(incomplete: str) -> Offers:
    """Tasks; behind a comma, those that were not named before it."""
    from xpredflow.tasks import TASKS

    before, comma, word = incomplete.rpartition(",")
    named = before.split(",")
    offers = {name: one.summary for name, one in TASKS.entries().items() if name not in named}
    return [(f"{before}{comma}{name}", text) for name, text in _matching(word, offers)]


def split_names(incomplete: str) -> Offers:
    """The splits that tasks have."""
    offers = {
        "validation": "while you choose",
        "test": "once, at the end",
        "train": "never judged",
        "all": "the whole of a file of yours",
        "paraphrase": "the test problems of a generated task, as people write",
        "people": "training problems of a generated task, as people write",
    }
    return _matching(incomplete, offers)


def table_names(incomplete: str) -> Offers:
    """Tables that `reproduce` makes."""
    from xpredflow.experiments.tables import ALL
    from xpredflow.registry import TABLES

    titles = {name: entry.summary for name, entry in TABLES.entries().items()}
    return _matching(incomplete, {**titles, ALL: "every table whose inputs are there"})


def option_pairs(context: typer.Context, incomplete: str) -> Offers:
    """Options of the engine and of the decoder that was chosen, each with its default."""
    from xpredflow.cli.commands.decoders import options_of
    from xpredflow.engine.request import DEFAULT_DECODER, Options

    chosen = context.params.get("decoder") or DEFAULT_DECODER
    shown = [*options_of(_name(str(chosen))), *options_of(Options)]
    return _matching(incomplete, {f"{one.name}=": one.help for one in shown})


def dtype_names(incomplete: str) -> Offers:
    """Kinds of number that weights can be loaded as."""
    return _matching(incomplete, dict.fromkeys(("float32", "bfloat16", "float16", "auto"), ""))


def quantize_names(incomplete: str) -> Offers:
    """Formats that matrices can be packed in."""
    return _matching(incomplete, dict.fromkeys(("int8", "int4", "none"), ""))


def cache_names(incomplete: str) -> Offers:
    """What an approximate cache keeps."""
    offers = {"prefix": "what stands before a block", "dual": "what stands around it"}
    return _matching(incomplete, offers)


def _name(spec: str) -> str:
    return spec.partition(":")[0].partition("+")[0]


def _matching(incomplete: str, offers: dict[str, str]) -> Offers:
    return [(name, text) for name, text in offers.items() if name.startswith(incomplete)]
