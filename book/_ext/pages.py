"""What the book asks of Sphinx beyond its theme: formulas without scripts, link previews, and no blemishes."""

from __future__ import annotations

import html
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from bertlook.figures import heat_maps

PICTURE = "_static/preview.png"

# ---------------------------------------------------------------------------------------------------- formulas
# MathML, made when the book is built: nothing to load, nothing to run, readable by screen readers. The extensions that
# are maintained (mathjax, its offline variants, KaTeX) all load a script of some hundred kB and its fonts.


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="math-block" tabindex="0" role="group" aria-label="Formula">{formula}</div>')
    raise nodes.SkipNode


# ---------------------------------------------------------------------------------------------------- previews
# sphinxext-opengraph writes the elements that other sites read; here is what they say of this copy.


def draw(app: Sphinx) -> None:
    """The picture beside a link, from this copy's own numbers: how much each head looks at the model's sink."""
    folder = Path(app.srcdir, "extra", "results", "surface")
    if not (folder / "heads.csv").exists() or not (folder / "provenance.json").exists():
        return
    heads = pd.read_csv(folder / "heads.csv")
    model = Path(json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["model"]).name
    name, token = max((("cls", "start token"), ("sep", "end token")), key=lambda pair: heads[pair[0]].mean())
    says = f"How much each of the {len(heads)} heads of {model} looks at the {token}"
    figure = heat_maps(heads, name, label="attention", top=1, name="preview").figure
    figure.set_size_inches(6, 3.15)
    figure.suptitle("What does BERT look at?", fontsize=22, fontweight="bold")
    figure.axes[0].set_title(textwrap.fill(says, 50), fontsize=11, parse_math=False)
    path = Path(app.outdir, PICTURE)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, facecolor="white", metadata={"Software": None})
    app.config.ogp_image = PICTURE
    app.config.ogp_image_alt = f"{says}: from {heads[name].min():.0%} to {heads[name].max():.0%}."


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """A page is described by its answer, else by its first paragraph of prose, else by the title of the book."""
    if doctree is None:
        return
    prose = [p.astext() for p in doctree.findall(nodes.paragraph) if isinstance(p.parent, nodes.section)]
    answers = [text.removeprefix("Answer.") for text in prose if text.startswith("Answer.")]
    about = html.escape(textwrap.shorten((answers + prose + [app.config.html_title])[0], 300, placeholder=" …"))
    said = {"og:description": about}
    if app.config.ogp_image and not app.config.ogp_site_url:  # relative to the page, since nobody knows the address
        said |= {"og:image": "../" * page.count("/") + PICTURE, "og:image:alt": app.config.ogp_image_alt}
    context["meta"] = (context["meta"] or {}) | said
    context["metatags"] += f'<meta name="description" content="{about}" />\n'


def lead(app: Sphinx, failed: Exception | None) -> None:
    """The first page only leads to the index; give it the index' description, for that is what people link to."""
    name, title = f"{app.config.root_doc}.html", html.escape(app.config.html_title)
    if not failed and Path(app.outdir, name).exists():
        index = Path(app.outdir, name).read_text(encoding="utf-8")
        found = re.findall(r'<meta (?:property="og:|name="(?:description|twitter:)).*?/>', index)
        about = "\n".join(found).replace(f"../{PICTURE}", PICTURE)
        page = (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n<title>{title}</title>\n{about}\n'
            f'<meta http-equiv="Refresh" content="0; url={name}" />\n</head>\n'
            f'<body><a href="{name}">{title}</a></body>\n</html>\n'
        )
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


# --------------------------------------------------------------------------------------------------- blemishes


def without_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The book does not use Thebe, but Jupyter Book adds its settings to each page, twice: a script error."""

    def belongs(script: Any) -> bool:
        attributes = getattr(script, "attributes", {})
        return "thebe" not in f"{getattr(script, 'filename', script)} {attributes.get('body', '')}".lower()

    context["script_files"] = [script for script in context["script_files"] if belongs(script)]


#: What the theme's and Sphinx's templates get wrong for screen readers, and what should stand there.
MENDED = [
    # A label that contradicts the visible text hides the text.
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    (r'(<button[^>]*search-button-field[^>]*?) aria-label="Search"', r"\1"),
    (r'(<button[^>]*theme-switch-button[^>]*?) aria-label="Color mode"', r"\1"),
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    (r' role="doc-biblioentry"', ""),
    (
        r'(class="bd-sidebar-primary.*?<div class="sidebar-primary-item")',
        r'\1 role="navigation" aria-label="Title and search"',
    ),
    # The lines of a long signature are no list of definitions.
    (r'(class="sig-paren">\(</span>)\s*<dl>\n', r"\1"),
    (r'<dd>(<em class="sig-param">.*?)</dd>\n?', r'<span class="sig-line">\1</span>'),
    (r'</dl>\s*(<span class="sig-paren">\))', r"\1"),
]


def mend(app: Sphinx, failed: Exception | None) -> None:
    """Correct the pages of a finished book."""
    for path in [] if failed else Path(app.outdir).rglob("*.html"):
        if "_static" not in path.relative_to(app.outdir).parts:
            page = path.read_text(encoding="utf-8")
            for wrong, right in MENDED:
                page = re.sub(wrong, right, page, flags=re.S)
            path.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("builder-inited", draw)
    app.connect("html-page-context", describe, priority=400)  # before sphinxext.opengraph
    app.connect("html-page-context", without_thebe, priority=900)
    app.connect("build-finished", mend)
    app.connect("build-finished", lead)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
