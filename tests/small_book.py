"""A book of a few chapters, for tests of what a page does to what a notebook shows."""

import shutil
from pathlib import Path

import pytest

from bertlook import book

ROOT = book.root()


def small_book(out: Path, chapters: list[str]) -> Path:
    """Render chapters whose executed notebooks lie in ``out/notebooks``; the folder of their pages."""
    home = out / "home"
    shutil.copytree(ROOT / "book", home / "book")
    shutil.copyfile(ROOT / "_config.yml", home / "_config.yml")
    for name in ("index", "method"):  # without links to the other chapters
        (home / f"book/{name}.md").write_text(f"# {name}\n\nA page.\n", encoding="utf-8")
    pages = ["book/method", "book/glossary", "book/references", *(f"notebooks/{chapter}" for chapter in chapters)]
    toc = "format: jb-book\nroot: book/index\nchapters:\n" + "".join(f"- file: {page}\n" for page in pages)
    (home / "_toc.yml").write_text(toc, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "root", lambda: home)
        patch.setattr(book, "chapters", lambda: chapters)
        return book.render(out, "smoke").parent / "notebooks"
