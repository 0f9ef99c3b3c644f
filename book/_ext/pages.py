"""What the book asks of Sphinx beyond its theme: formulas without scripts, and pages without the theme's blemishes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """MathML, made when the book is built: nothing to load, nothing to run, readable by screen readers."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    formula = convert(node.astext(), display="block")
    self.body.append(f'<div class="math-block" tabindex="0" role="group" aria-label="Formula">{formula}</div>')
    raise nodes.SkipNode


def without_thebe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The book does not use Thebe, but Jupyter Book adds its settings to each page, twice: a script error."""

    def belongs(script: Any) -> bool:
        attributes = getattr(script, "attributes", {})
        return "thebe" not in f"{getattr(script, 'filename', script)} {attributes.get('body', '')}".lower()

    context["script_files"] = [script for script in context["script_files"] if belongs(script)]


def signature(found: re.Match[str]) -> str:
    """The lines of a long signature are no list of definitions, as Sphinx has it."""
    lines = re.sub(r"<dd>(.*?)</dd>", r'<span class="sig-line">\1</span>', found[2], flags=re.S)
    return f"{found[1]}{lines}"


def mend(app: Sphinx, failed: Exception | None) -> None:
    """Correct what the theme's templates get wrong for screen readers."""
    if failed or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        if "_static" in path.relative_to(app.outdir).parts:
            continue
        page = old = path.read_text(encoding="utf-8")
        # A label that contradicts the visible text hides the text.
        page = page.replace('<summary aria-label="Toggle hidden content">', "<summary>")
        page = re.sub(r'(<button[^>]*search-button-field[^>]*?) aria-label="Search"', r"\1", page)
        page = re.sub(r'(<button[^>]*theme-switch-button[^>]*?) aria-label="Color mode"', r"\1", page)
        page = page.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
        page = page.replace(' role="doc-biblioentry"', "")
        page = re.sub(r'(class="sig-paren">\(</span>)\s*<dl>\n(.*?)</dl>', signature, page, flags=re.S)
        brand = '<div class="sidebar-primary-item">'
        page = page.replace(brand, f'{brand[:-1]} role="navigation" aria-label="Title and search">', 1)
        if page != old:
            path.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("html-page-context", without_thebe, priority=900)
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
