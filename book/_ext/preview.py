"""What other sites show of a link to the book: a title, what was asked and found, and a picture of all heads."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pandas as pd
from docutils import nodes
from sphinx.application import Sphinx

PICTURE = "_static/preview.png"
SIZE = (1200, 630)  # pixels, what such sites cut pictures to
LONGEST = 300  # letters of a description


def shorten(text: str, room: int = LONGEST) -> str:
    """Cut at the end of a sentence if one ends in time, else of a word."""
    text = " ".join(text.split())
    if len(text) <= room:
        return text
    cut = text[:room]
    sentence = re.match(r"(?s).{120,}[.?!](?= )", cut)
    return sentence[0] if sentence else f"{cut[: room - 1].rpartition(' ')[0].rstrip(',;:')}…"


def description(doctree: nodes.document) -> str:
    """The page's answer if it has one, else its question, else its first paragraph of prose."""
    paragraphs = list(doctree.findall(nodes.paragraph))
    for opening in ("Answer.", "Question."):
        for paragraph in paragraphs:
            if paragraph.astext().startswith(opening):
                return shorten(paragraph.astext().removeprefix(opening))
    prose = (paragraph for paragraph in paragraphs if isinstance(paragraph.parent, nodes.section))
    return next((shorten(paragraph.astext()) for paragraph in prose), "")


def tags(app: Sphinx, title: str, about: str, page: str) -> str:
    """The meta elements of a page; without a base address, that of the picture is relative."""
    base = app.config.html_baseurl
    steps = "../" * page.count("/")
    picture = urljoin(base, PICTURE) if base else steps + PICTURE
    found = {
        "og:type": "article" if page.startswith("notebooks/") else "website",
        "og:site_name": app.config.html_title,
        "og:title": title,
        "og:description": about or app.config.html_title,
        "og:image": picture,
        "og:image:width": SIZE[0],
        "og:image:height": SIZE[1],
        "og:image:alt": app.config.bertlook_preview_alt,
        "og:locale": "en",
    }
    if base:
        found["og:url"] = urljoin(base, f"{page}.html")
    lines = [f'<meta property="{name}" content="{html.escape(str(value))}" />' for name, value in found.items()]
    lines += [f'<meta name="description" content="{html.escape(found["og:description"])}" />']
    lines += ['<meta name="twitter:card" content="summary_large_image" />']
    return "\n    " + "\n    ".join(lines)


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Add the meta elements to a page that has text of its own."""
    if doctree is None:
        return
    title = html.unescape(re.sub(r"<[^>]+>", "", context["title"]))
    context["metatags"] = context.get("metatags", "") + tags(app, title, description(doctree), page)


def draw(app: Sphinx) -> None:
    """Draw the picture from this copy's own numbers: how much each head looks at the model's sink."""
    import matplotlib as mpl

    from bertlook.figures import plt

    folder = Path(app.srcdir, "extra", "results", "surface")
    alt = f"{app.config.html_title}."
    with mpl.rc_context({"figure.constrained_layout.use": False, "text.parse_math": False}):
        figure = plt.figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), facecolor="white")
        figure.text(0.055, 0.86, "What does BERT look at?", fontsize=50, fontweight="bold", va="center")
        if (folder / "heads.csv").exists() and (folder / "provenance.json").exists():
            heads = pd.read_csv(folder / "heads.csv")
            model = Path(json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["model"]).name
            name, token = max((("cls", "start token"), ("sep", "end token")), key=lambda pair: heads[pair[0]].mean())
            values = heads.pivot(index="layer", columns="head", values=name)
            says = f"How much each of the {values.size} heads of {model}\nlooks at the {token}"
            figure.text(0.055, 0.705, says, fontsize=23, va="center", linespacing=1.3)
            axes = figure.add_axes((0.055, 0.08, 0.78, 0.52))
            picture = axes.imshow(values, cmap="cividis", vmin=0, vmax=1, aspect="auto")
            axes.set_xticks([x - 0.5 for x in range(1, values.shape[1])], [], minor=True)
            axes.set_yticks([y - 0.5 for y in range(1, values.shape[0])], [], minor=True)
            axes.grid(which="minor", color="white", lw=3)
            axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
            axes.set_ylabel("layers", fontsize=18)
            axes.set_xlabel("heads", fontsize=18)
            for spine in axes.spines.values():
                spine.set_visible(False)
            bar = figure.colorbar(picture, cax=figure.add_axes((0.865, 0.08, 0.025, 0.52)), ticks=[0, 0.5, 1])
            bar.ax.set_yticklabels(["0%", "50%", "100%"], fontsize=18)
            bar.outline.set_visible(False)
            bar.ax.tick_params(length=0)
            low, high = heads[name].min(), heads[name].max()
            alt += f" {' '.join(says.split())}: from {low:.0%} to {high:.0%}."
        path = Path(app.outdir, PICTURE)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100, metadata={"Software": None})
        plt.close(figure)
    app.config.bertlook_preview_alt = alt


def lead(app: Sphinx, failed: Exception | None) -> None:
    """The first page only leads to the index; give it the index' meta elements, for that is what people link to."""
    name = f"{app.config.root_doc}.html"
    if failed or not Path(app.outdir, name).exists():
        return
    lines = re.findall(
        r"<meta (?:property=\"og:|name=\"(?:description|twitter:)).*?/>", Path(app.outdir, name).read_text("utf-8")
    )
    title = html.escape(app.config.html_title)
    head = [
        '<meta charset="utf-8" />',
        f"<title>{title}</title>",
        f'<meta http-equiv="Refresh" content="0; url={name}" />',
    ]
    found = "\n".join([*head, *lines]).replace(f'content="../{PICTURE}"', f'content="{PICTURE}"')
    body = f'<body><a href="{name}">{title}</a></body>'
    page = f'<!doctype html>\n<html lang="en">\n<head>\n{found}\n</head>\n{body}\n</html>\n'
    Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("bertlook_preview_alt", "", "", types=(str,))
    app.connect("builder-inited", draw)
    app.connect("html-page-context", describe)
    app.connect("build-finished", lead)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
