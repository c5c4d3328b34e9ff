"""`xpredflow view`: traces as a page to look at, play and hand on."""

from pathlib import Path
from typing import Annotated

import typer

from xpredflow.cli.options import RowNumber, Traces


def view(
    traces: Traces,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page, a file that ends in .html.")
    ] = Path("page.html"),
    row: RowNumber = None,
    title: Annotated[str, typer.Option(help="What stands at the top of the page.")] = "",
) -> None:
    """Make one HTML file of traces: the answer settles pass by pass, token by token.

    Record a trace with `xpredflow generate --trace FILE`. Two to four decoders on the same prompt
    stand side by side, in lock-step by pass, with the first difference marked. The page needs no
    network, no server and no tokenizer.

    \b
    Examples:
      xpredflow view run.jsonl -o page.html
      xpredflow view flow.jsonl mask.jsonl -o both.html --title "Flow beside mask prediction"
    """
    from xpredflow.watch.trace_file import read_chosen
    from xpredflow.watch.viewer import page_path, write_page

    page_path(out)
    written = write_page(out, read_chosen(traces, row), title)
    typer.echo(f"{written} ({written.stat().st_size / 1000:.0f} kB): open it in a browser")
