"""`xpredflow push`: publish a checkpoint on the hub, with a card that says what it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from xpredflow.errors import InputError


def push(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The checkpoint, such as runs/aligned/model.")
    ],
    name: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Its name on the hub.")],
    license: Annotated[
        str | None,
        typer.Option(help="Licence as the hub names it, such as apache-2.0: your base model's."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Hub id of the base model; default: what the alignment began with."),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            help="What `eval --json` printed, or the directory of `eval --out`; repeatable."
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A learned policy to publish too, and to be decoded with."
        ),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="For you alone.")] = False,
    card_only: Annotated[
        bool, typer.Option("--card-only", help="Write DIR/README.md and upload nothing.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a README.md that is there already.")
    ] = False,
) -> None:
    """Publish a checkpoint: weights, tokenizer, defaults, and a model card in README.md.

    The card states the decoder and its rules, accuracy and passes, the base model and how it was
    aligned, all of it from the files. A README.md that is there stays as it is. The hub knows you
    by `hf auth login` or HF_TOKEN.

    \b
    Examples:
      xpredflow eval -m runs/aligned/model -t minimath --limit 100 --out runs/measured
      xpredflow push runs/aligned/model you/tiny-aligned --license apache-2.0 --card-only
      xpredflow push DIR you/Qwen3-0.6B-flow --license apache-2.0 --results runs/measured \\
          --policy runs/policy/best --private
    """
    from xpredflow.files import write_atomically
    from xpredflow.models.card import Origin, model_card
    from xpredflow.models.publishing import add_policy, check_checkpoint, check_name, upload
    from xpredflow.policies.beta import policy_files

    check_name(name)
    if license is None:
        raise InputError(
            "no licence was given: --license apache-2.0, or what your base model's card says"
        )
    check_checkpoint(directory)
    rows = [row for path in results or [] for row in _rows(path)]
    origin = Origin(name, license, base)
    card = directory / "README.md"
    keeps = card.exists() and not overwrite
    if policy is not None:
        add_policy(directory, *policy_files(policy.removeprefix("learned:")))
    if not keeps:
        write_atomically(card, model_card(directory, origin, rows))
    typer.echo(f"card: {card}" + (", as it was (--overwrite replaces it)" if keeps else ""))
    if not card_only:
        typer.echo(f"published: {upload(directory, name, private=private)}")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a table from JSON lines, or from the samples that an evaluation kept."""
    from dataclasses import asdict

    from xpredflow.evaluation.samples import kept_samples
    from xpredflow.evaluation.statistics import summarise
    from xpredflow.jsonl import read_lines

    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"--results {str(path)!r} does not exist: give a file or a directory")
        yield from read_lines(path)
        return
    files = sorted(path.glob("*.jsonl"))
    if not files:
        raise InputError(f"--results {str(path)!r} holds no samples: give `eval --out`'s directory")
    for job, samples in kept_samples(files):
        yield asdict(summarise(samples, job, rules=job.identity.get("rules")))
