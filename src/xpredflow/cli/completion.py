"""What the shell offers after --decoder, --policy, --model and reproduce."""

from pathlib import Path


def decoder_names(incomplete: str) -> list[tuple[str, str]]:
    """Decoders with their summaries."""
    from xpredflow.decoders import DECODERS

    return _matching(
        incomplete, {name: entry.summary for name, entry in DECODERS.entries().items()}
    )


def policy_names(incomplete: str) -> list[tuple[str, str]]:
    """Policies with their summaries."""
    from xpredflow.cli.commands.models import policies

    return _matching(incomplete, policies())


def model_names(incomplete: str) -> list[tuple[str, str]]:
    """Embedded models, and directories below that hold a checkpoint."""
    from xpredflow.models.embedded import embedded_names

    offers = dict.fromkeys(embedded_names(), "embedded")
    for directory in Path(incomplete).parent.glob("*/"):
        if (directory / "config.json").is_file():
            offers[str(directory)] = "checkpoint"
    return _matching(incomplete, offers)


def table_names(incomplete: str) -> list[tuple[str, str]]:
    """Tables that `reproduce` makes."""
    from xpredflow.experiments.tables import ALL
    from xpredflow.registry import TABLES

    titles = {name: entry.summary for name, entry in TABLES.entries().items()}
    return _matching(incomplete, {**titles, ALL: "every table whose inputs are there"})


def _matching(incomplete: str, offers: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, text) for name, text in offers.items() if name.startswith(incomplete)]
