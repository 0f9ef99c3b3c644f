"""At the end of each chapter: the command that computes it again, and its data to take away."""

from __future__ import annotations

import html
import json
import shlex
from pathlib import Path

import pandas as pd
from sphinx.application import Sphinx


def rerun(chapter: str, profile: str, needs: list[str], repository: str) -> str:
    """The box with the command, as Markdown."""
    first = f" It builds on results of {' and of '.join(needs)}: run these first, in the same way." if needs else ""
    return (
        ":::{admonition} Re-run this chapter\n"
        f"In a checkout of [the repository]({repository}), once `make book` has made its environment:\n\n"
        f"```bash\n.venv/bin/bertlook run {chapter} --profile {shlex.quote(profile)}\n```\n\n"
        "Notebook and tables go to `_build/run`. Add `-p NAME=VALUE` to change a parameter; they stand in the "
        f"first code cell of the page.{first}\n:::\n"
    )


def downloads(chapter: str, folder: Path) -> str:
    """The box with the chapter's files, as Markdown; empty if it left none."""
    lines = []
    for path in sorted(folder.glob("*.csv")):
        frame = pd.read_csv(path)
        names = html.escape(", ".join(map(str, frame.columns)))
        lines.append((f"../results/{chapter}/{path.name}", f"{len(frame):,} rows: {names}"))
    if (folder / "provenance.json").exists():
        lines.append((f"../results/{chapter}/provenance.json", "model, texts, parameters, versions and date"))
    if not lines:
        return ""
    lines.append((f"../_sources/notebooks/{chapter}.ipynb", "this page as an executed notebook"))
    items = "".join(
        f'<li><a href="{html.escape(address)}" download>{html.escape(address.rpartition("/")[2])}</a>, {what}</li>'
        for address, what in lines
    )
    return f":::{{admonition}} Data of this chapter\n```{{raw}} html\n<ul>{items}</ul>\n```\n:::\n"


def add(app: Sphinx, page: str, source: list[str]) -> None:
    """Append both boxes to a notebook that is about to be read."""
    if not page.startswith("notebooks/"):
        return
    chapter = page.removeprefix("notebooks/")
    notebook = json.loads(source[0])
    needs = notebook["metadata"].get("bertlook", {}).get("needs", [])
    repository = app.config.html_theme_options["repository_url"]
    text = "## Run it again, take its data\n\n" + rerun(chapter, app.config.bertlook_profile, needs, repository)
    text += "\n" + downloads(chapter, Path(app.srcdir, "extra", "results", chapter))
    notebook["cells"].append({"cell_type": "markdown", "id": "boxes", "metadata": {}, "source": text})
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("bertlook_profile", "sample", "html", types=(str,))
    app.connect("source-read", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
