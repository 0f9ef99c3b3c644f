"""At the end of each chapter: the command that computes it again, and its data to take away."""

from __future__ import annotations

import html
import json
import shlex
from pathlib import Path

import pandas as pd
from sphinx.application import Sphinx

BOXES = """## Run it again, take its data

:::{{admonition}} Re-run this chapter
In a checkout of [the repository]({repository}), once `make book` has made its environment:

```bash
.venv/bin/bertlook run {chapter} --profile {profile}
```

Notebook and tables go to `_build/run`. Add `-p NAME=VALUE` to change a parameter; they stand in the first code cell of
the page.{first}
:::
"""
DATA = ":::{{admonition}} Data of this chapter\n```{{raw}} html\n<ul>{items}</ul>\n```\n:::\n"
ITEM = '<li><a href="../{folder}/{name}" download>{name}</a>, {what}</li>'


def add(app: Sphinx, page: str, source: list[str]) -> None:
    """Append both boxes to a notebook that is about to be read."""
    if not page.startswith("notebooks/"):
        return
    chapter, notebook = page.removeprefix("notebooks/"), json.loads(source[0])
    needs = " and of ".join(notebook["metadata"].get("bertlook", {}).get("needs", []))
    text = BOXES.format(
        repository=app.config.html_theme_options["repository_url"],
        chapter=chapter,
        profile=shlex.quote(app.config.bertlook_profile),
        first=f" It builds on results of {needs}: run these first, in the same way." if needs else "",
    )
    items, folder = [], Path(app.srcdir, "extra", "results", chapter)
    for path in sorted(folder.glob("*.csv")):
        frame = pd.read_csv(path)
        columns = html.escape(f"{len(frame):,} rows: {', '.join(map(str, frame.columns))}")
        items.append(ITEM.format(folder=f"results/{chapter}", name=html.escape(path.name), what=columns))
    if items:
        if (folder / "provenance.json").exists():
            about = "model, texts, parameters, versions and date"
            items.append(ITEM.format(folder=f"results/{chapter}", name="provenance.json", what=about))
        items.append(ITEM.format(folder="_sources/notebooks", name=f"{chapter}.ipynb", what="this page, executed"))
        text += "\n" + DATA.format(items="".join(items))
    notebook["cells"].append({"cell_type": "markdown", "id": "boxes", "metadata": {}, "source": text})
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("bertlook_profile", "sample", "html", types=(str,))
    app.connect("source-read", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
