"""The command line: ``bertlook run``, ``bertlook book``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bertlook.errors import BertlookError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="What Does BERT Look At?, rebuilt for any encoder.",
)


@app.command()
def run(
    chapter: Annotated[str, typer.Argument(help="surface, positional, syntax, probing, coreference, …")],
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter of the notebook.")
    ] = None,
    profile: Annotated[str, typer.Option(help="Parameters to start from: profiles/NAME.yaml.")] = "sample",
    out: Annotated[Path, typer.Option("--out", "-o", help="Where notebook and results go.")] = Path("_build/run"),
) -> None:
    """Run one chapter, with any model and text; leaves its notebook and its results."""
    from bertlook import book

    notebook = book.run_chapter(chapter, profile, book.parse(parameter or []), out)
    typer.echo(f"{notebook}\n{out / 'results' / chapter}")


@app.command(name="book")
def book_(
    profile: Annotated[str, typer.Option(help="Parameters of all chapters: profiles/NAME.yaml, or a file.")] = "sample",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where all goes; _build/PROFILE unless said.")] = None,
) -> None:
    """Run the chapters that changed and render the book."""
    from bertlook import book

    typer.echo(f"{book.build(profile, out)}")


def main() -> None:
    """Run the command; a user's mistake is one line on standard error and exit code 1."""
    try:
        app()
    except BertlookError as error:
        sys.exit(f"bertlook: {error}")
    except KeyboardInterrupt:
        sys.exit("bertlook: interrupted. Chapters that had ended are kept.")
