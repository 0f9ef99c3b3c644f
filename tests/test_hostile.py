"""A token that looks like markup, in a corpus or a vocabulary, is text wherever it is shown.

In the explorer: test_explorer.py; from ``bertlook show``: test_cli.py; here tables, figures and the pages of the book.
"""

import json
import re
import shutil
from html.parser import HTMLParser

import nbformat
import pandas as pd
import pytest
import yaml
from docutils import nodes
from docutils.core import publish_doctree
from hypothesis import example, given, settings
from hypothesis import strategies as st
from myst_parser.parsers.docutils_ import Parser

from bertlook import book, results
from bertlook import encoder as encoders
from bertlook.claims import Claim
from bertlook.figures import View, head_views, scatter_heads
from bertlook.results import Results, claims_table, head_link, reading_table
from small_book import small_book

HOSTILE = "</script><img/src=x/onerror=alert(1)>"
QUOTING = f"'\"{HOSTILE}"


class Page(HTMLParser):
    """Tags, attributes and text of a fragment."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes
        assert not [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def test_tables_for_reading_show_it():
    shown = Page(reading_table({QUOTING: [QUOTING, 1], "head": [head_link(4, 10), "none"]}, QUOTING).data)
    assert shown.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "a"}
    assert shown.text.count(QUOTING) == 2 and ("aria-label", QUOTING) in shown.attributes
    assert ("href", "explorer.html#4-10") in shown.attributes


def test_claims_show_it(tmp_path, monkeypatch):
    plain, claim = (Claim(x, x, x, x, threshold=0.5, evidence=x) for x in ("a", QUOTING))
    output = Results("surface", {"results": str(tmp_path)})
    tags = []
    for each in (plain, claim):
        row = {"quantity": each.id, "value": 0.6, "low": 0.5, "high": 0.7, "n": each.id}
        monkeypatch.setattr(results, "claims", lambda chapter, each=each: [each])
        verdicts = output.claims(pd.DataFrame([row]))
        shown = Page(verdicts._repr_html_())
        tags.append(shown.tags)
    for table in (shown, Page(claims_table(pd.read_csv(tmp_path / "surface/claims.csv"), QUOTING).data)):
        assert table.tags == tags[0] and table.text.count(QUOTING) == 4
        assert ("id", f"claim-{QUOTING}") in table.attributes


def test_provenance_shows_it(tmp_path, tiny_folder):
    output = Results("surface", {"results": str(tmp_path), "example": QUOTING})
    shown = Page(output.provenance(encoders.load(str(tiny_folder))).data)
    assert shown.tags == {"details", "summary", "pre"}
    assert json.loads(shown.text.removeprefix("Provenance"))["parameters"]["example"] == QUOTING


MARKUP = """<script> [x](y) {cite}`x` *x* _x_ ` $x$ www.x.org a@x.org http://x.org a|b # ## \\ \\| &lt; {{x}} ~~x~~ [^1]
(x)= % +++ - 1. : ::: ``` --- $$ !""".split()


@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=5), min_size=1).map(" ".join).filter(str.split))
@example("#\n\n# two\nlines")
@settings(max_examples=60, deadline=None)
def test_words_glued_into_prose_are_text_whatever_they_look_like(words):
    config = yaml.safe_load((book.root() / "_config.yml").read_text(encoding="utf-8"))
    options = {
        "myst_enable_extensions": config["parse"]["myst_enable_extensions"],
        "myst_disable_syntax": config["sphinx"]["config"]["myst_disable_syntax"],
        "warning_stream": "",
    }
    role = "{glue:text}`words`"
    page = f"{role}\n\n# It is {role}\n\n| {role} | b |\n|---|---|\n| c | {role} |\n\nterm\n: {role}\n\n- {role}\n"
    glued = nbformat.v4.new_output("display_data", metadata={"bertlook": {"glue": {"words": words}}})
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(page), nbformat.v4.new_code_cell(outputs=[glued])]
    )
    tree = publish_doctree(book.arrange(notebook, "x").cells[0].source, parser=Parser(), settings_overrides=options)
    plain = " ".join(words.replace("\0", "\ufffd").split())
    found = [part.astext() for part in tree.findall(lambda n: isinstance(n, nodes.paragraph | nodes.title))]
    assert found == [plain, f"It is {plain}", plain, "b", "c", plain, plain, plain]
    assert all(isinstance(part.parent, nodes.paragraph | nodes.title | nodes.term) for part in tree.findall(nodes.Text))


def test_figures_show_it_in_picture_alternative_text_and_caption():
    tokens = [HOSTILE, "$", "a$b$c", "&lt;", "\\frac"]
    view = View(HOSTILE, tokens, pd.DataFrame(0.5, range(5), range(5)).to_numpy())
    picture = head_views([view], name="hostile", caption=QUOTING, data=[f"surface/{HOSTILE}.csv"])
    shown = Page(picture._repr_html_())
    assert not {"img", "script"} & shown.tags and ("aria-label", picture.alt) in shown.attributes
    assert (
        HOSTILE in picture.alt and shown.text.count(HOSTILE) == 2 * 1 + 1 + 1 + 1
    )  # left, right, title, caption, link
    assert [each for each in ("$", "a$b$c", "&lt;", "\\frac") if shown.text.count(each) < 2] == []


def test_tooltips_and_legends_show_it():
    heads = pd.DataFrame({"layer": [1, 1], "head": [1, 2], "x": [0, 1], "y": [0, 1], "does": [HOSTILE, "words"]})
    shown = Page(scatter_heads(heads, "does", tooltips=[QUOTING, "b"], name="dots")._repr_html_())
    assert not {"img", "script"} & shown.tags and "title" in shown.tags
    assert shown.text.count(QUOTING) == 1 and shown.text.count(HOSTILE) == 2


@pytest.fixture(scope="module")
def hostile_model(tiny_folder, tmp_path_factory):
    """A model whose start and end token look like markup."""
    folder = tmp_path_factory.mktemp("hostile") / "model"
    shutil.copytree(tiny_folder, folder)
    for file in (folder / "tokenizer.json", folder / "tokenizer_config.json"):
        text = file.read_text(encoding="utf-8")
        for name in ("CLS", "SEP"):
            text = text.replace(f'"[{name}]"', json.dumps(f"[{name}{HOSTILE}]"))
        file.write_text(text, encoding="utf-8")
    return folder


def test_pages_of_the_book_show_it(hostile_model, tmp_path, request):
    text = tmp_path / "text.txt"
    sentence = f"The old {HOSTILE} bridge was closed in May, which nobody minded at all."
    text.write_text("\n\n".join([sentence] * 9), encoding="utf-8")
    given = {"model": str(hostile_model), "text": str(text), "segments": 8, "example": f"See {HOSTILE} there"}
    book.run_chapter("surface", "smoke", given, tmp_path)

    page = small_book(tmp_path, ["surface"]) / "surface.html"
    source = page.read_text(encoding="utf-8")
    assert "<img/" not in source and "&lt;img/src=x/onerror=alert(1)&gt;" in source
    assert f"[CLS{HOSTILE}]" in re.sub(r"\s+", " ", Page(source[source.index("<article") :]).text)

    browser = request.getfixturevalue("browser")
    tab, seen = browser.new_page(), []
    tab.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    tab.on("pageerror", lambda error: seen.append(str(error)))
    tab.goto(page.as_uri())
    assert f"[CLS{HOSTILE}]" in tab.locator("article").inner_text()
    assert not tab.locator("article img").count() and not seen
    assert HOSTILE in tab.locator("#fig-patterns svg").get_attribute("aria-label")
    tab.close()
