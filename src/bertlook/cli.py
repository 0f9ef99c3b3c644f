"""The command line: ``bertlook run``, ``bertlook book``, ``bertlook show``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bertlook import BertlookError

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


@app.command()
def show(
    text: Annotated[str, typer.Argument(help="A sentence, in quotes.")] = "",
    pair: Annotated[str | None, typer.Option(help="A second text, which the model reads beside the first.")] = None,
    model: Annotated[str, typer.Option(help="minilm, an id of the model hub, or a folder.")] = "minilm",
    revision: Annotated[str, typer.Option(help="Branch, tag or commit on the hub.")] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("attention.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Attention explorer",
) -> None:
    """Write a page with the attention of all heads on a text: one file, which asks nothing of the network."""
    import logging

    from bertlook import encoder, explorer
    from bertlook.results import write

    if not text.strip():  # said before the model is loaded
        raise BertlookError("no text to show. Give a sentence, such as: bertlook show 'The dog barked.'")
    for given in (text, pair or "", title):
        if any("\ud800" <= letter <= "\udfff" for letter in given):  # bytes that the shell could not decode
            raise BertlookError(f"{given!a} is not UTF-8. Give text as UTF-8.")
    if out.is_dir():
        raise BertlookError(f"{out}: a folder. Name a file for the page, for example -o {out / 'page.html'}.")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # each retry of a request would be a line
    example = explorer.example(encoder.load(model, revision=revision), text, pair)
    page = explorer.page([example], title)
    write(out, page)
    layers, heads, tokens, _ = example.codes.shape
    size = f"{len(page.encode()) / 1e6:.2f} MB"
    typer.echo(f"{out}\n{size}: {layers} layers of {heads} heads on {tokens} wordpieces. Open it in a browser.")


def main() -> None:
    """Run the command; a user's mistake is one line on standard error and exit code 1."""
    try:
        app()
    except BertlookError as error:
        sys.exit(f"bertlook: {error}")
    except KeyboardInterrupt:
        sys.exit("bertlook: interrupted. Chapters that had ended are kept.")
