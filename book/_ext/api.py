"""The page on the package: its modules, by what they are for, each from its docstrings."""

from __future__ import annotations

import pkgutil
import re
from importlib.util import find_spec
from typing import Any

from sphinx.application import Sphinx

PAGE, PLACE = "book/api", "<!-- modules -->"
#: What belongs together, in the order of the page. Modules that are not named here come last, so none is forgotten.
GROUPS = {
    "A model and its attention": ("encoder", "attention", "tap"),
    "The measures of the chapters": (
        "positional",
        "surface",
        "sinks",
        "syntax",
        "probing",
        "coreference",
        "clustering",
    ),
    "Texts, trees and chains": (
        "corpora",
        "corpora.text",
        "corpora.treebank",
        "corpora.schemes",
        "corpora.gum",
        "corpora.silver",
        "corpora.coreference",
        "corpora.markup",
    ),
    "Numbers, figures, pages": ("statistics", "agreement", "results", "figures", "explorer", "published"),
    "Other modules": (),
}
#: The command line and what it stands on: described elsewhere.
NOT_LISTED = {"cli", "book"}


def modules() -> list[str]:
    """Names of the package's modules, below ``bertlook``."""
    spec = find_spec("bertlook")
    assert spec and spec.submodule_search_locations
    found = pkgutil.walk_packages(spec.submodule_search_locations, "bertlook.")
    return [
        name for each in found if not (name := each.name.removeprefix("bertlook.")).rpartition(".")[2].startswith("_")
    ]


def text(known: list[str]) -> str:
    """The sections of the page, as MyST Markdown."""
    named = {name for group in GROUPS.values() for name in group} | NOT_LISTED
    rest = sorted(set(known) - named)
    parts = []
    for title, group in GROUPS.items():
        present = [name for name in group if name in known] if group else rest
        if present:
            parts.append(f"## {title}\n")
        for name in present:
            options = "   :members:\n   :member-order: bysource\n"
            parts.append(f"### bertlook.{name}\n\n```{{eval-rst}}\n.. automodule:: bertlook.{name}\n{options}```\n")
    return "\n".join(parts)


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the modules in their place on the page that is about to be read."""
    if page == PAGE:
        source[0] = source[0].replace(PLACE, text(modules()))


def escape(app: Sphinx, kind: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """Shapes such as ``[group, *total]`` are no markup: keep their stars, bars and underscores from being read so."""

    def plain(shape: re.Match[str]) -> str:
        return re.sub(r"(?<!\\)([*|_])", r"\\\1", shape[0])

    for i, line in enumerate(lines):
        parts = re.split(r"(`+[^`]*`+)", line)
        parts[::2] = [re.sub(r"\[[^\]]*\]", plain, part) for part in parts[::2]]
        lines[i] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    # As parameters are, so that "a, b : int" is two attributes and not one of a strange type.
    app.config.napoleon_custom_sections = [("Attributes", "params_style")]
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", escape, priority=100)  # before napoleon reads the sections
    return {"parallel_read_safe": True, "parallel_write_safe": True}
