"""The rendered book, in a real browser where there is one."""

import html as markup
import json
import pkgutil
import re
import struct
from html.parser import HTMLParser
from importlib.metadata import version
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import yaml

import bertlook
from bertlook import BertlookError, book
from browsing import AXE, LOOKS

ROOT = book.root()


@pytest.fixture(scope="session")
def html():
    """The small book, built now if it is not up to date."""
    return book.build("smoke").parent


def pages(html):
    """All pages but the first, which only leads to the book's index."""
    return [p for p in sorted(html.rglob("*.html")) if "_static" not in p.parts and p != html / "index.html"]


class Links(HTMLParser):
    """What a page links to, loads, and offers as anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a":  # in figures too
            self.links += [found[name] for name in ("href", "xlink:href") if found.get(name)]
        if tag in {"script", "img", "iframe", "source"} and found.get("src"):
            self.loads.append(found["src"])
        if tag == "link" and found.get("rel") not in {
            "canonical",
            "search",
            "next",
            "prev",
            "index",
            "author",
            "license",
        }:
            self.loads.append(found["href"])


def executed(*cells):
    """A notebook of (tags, source, outputs): code where there are outputs, else prose."""
    made = [
        nbformat.v4.new_markdown_cell(source, metadata={"tags": tags})
        if outputs is None
        else nbformat.v4.new_code_cell(
            source, metadata={"tags": tags, "execution": {}, "papermill": {}}, outputs=outputs
        )
        for tags, source, outputs in cells
    ]
    return nbformat.v4.new_notebook(cells=made, metadata={"papermill": {}})


def glued(**words):
    return nbformat.v4.new_output("display_data", metadata={"bertlook": {"glue": words}})


def test_the_lead_comes_below_the_opening_and_words_stand_in_the_prose():
    chapter = executed(
        ([], "# Title\n\nAnswer: {glue:text}`sink`, {glue:text}`share`.", None),
        (["injected-parameters"], "seed = 1", []),
        (["lead", "hide-input"], "draw()", [nbformat.v4.new_output("stream", name="stderr", text="a bar")]),
        (
            [],
            "glue()",
            [glued(sink="[CLS] *", share="5.0%"), nbformat.v4.new_output("stream", name="stdout", text="1")],
        ),
        ([], "Again {glue:text}`sink`.", None),
    )
    done = book.arrange(chapter, "x")
    assert [cell.source for cell in done.cells] == [
        "# Title\n\nAnswer: \\[CLS\\] \\*, 5.0%.",
        "draw()",
        "seed = 1",
        "glue()",
        "Again \\[CLS\\] \\*.",
    ]
    assert [[output.name for output in cell.get("outputs", [])] for cell in done.cells] == [[], [], [], ["stdout"], []]
    assert done.cells[2].metadata == {"tags": ["injected-parameters", "hide-input"]} and not done.metadata
    nbformat.validate(done)


def test_words_that_nothing_glued_are_an_error_with_the_notebook_and_the_name():
    chapter = executed(([], "It is {glue:text}`snik`.", None), ([], "glue()", [glued(sink="[CLS]")]))
    with pytest.raises(BertlookError, match=r"^notebooks/x\.ipynb: nothing has glued 'snik'\. .* glued are sink\.$"):
        book.arrange(chapter, "x")


COMMAND = re.compile(r"bertlook run (\S+)((?: (?:-p|--profile|-o) \S+)*)")


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *sorted((ROOT / "book").glob("*.md")), *sorted((ROOT / "notebooks").glob("*.ipynb"))],
    ids=lambda p: p.stem,
)
def test_commands_that_pages_give_name_chapters_and_parameters_that_exist(path):
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
    else:
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for chapter, options in COMMAND.findall(text):
        assert chapter in book.chapters(), chapter
        given = book.parse(re.findall(r"-p ([^\s`]+)", options))
        assert book.parameters(chapter, "sample", given) | given, (chapter, given)


def test_links_and_anchors_resolve_and_nothing_is_loaded_from_elsewhere(html):
    parsed = {page: Links(page.read_text(encoding="utf-8")) for page in pages(html)}
    missing = []
    for page, found in parsed.items():
        assert not [url for url in found.loads if urlsplit(url).scheme not in {"", "data"}], page
        for url in (*found.links, *found.loads):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = parsed.get(target)
            if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.anchors):
                missing.append((page.name, url))
    assert not missing


def test_every_chapter_says_how_to_run_it_again_and_gives_its_data(html):
    for chapter in book.chapters():
        text = (html / "notebooks" / f"{chapter}.html").read_text(encoding="utf-8")
        box = text[text.index('id="run-it-again-take-its-data"') :]
        command = markup.unescape(re.sub(r"<[^>]+>", "", box.partition("<pre>")[2].partition("</pre>")[0]))
        assert command.strip() == f".venv/bin/bertlook run {chapter} --profile smoke"
        for file in (html / "results" / chapter).glob("*.csv"):
            assert f'href="../results/{chapter}/{file.name}" download' in box
        assert (
            f'href="../_sources/notebooks/{chapter}.ipynb" download' in box or not (html / "results" / chapter).exists()
        )
        assert f"/edit/main/notebooks/{chapter}.ipynb" in text
    assert "on results of surface and of " in (html / "notebooks/scorecard.html").read_text(encoding="utf-8")


def previews(page):
    """The meta elements that other sites read, by name."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r'<meta (?:property|name)="((?:og|twitter):[\w:]+|description)" content="([^"]*)" />', text)
    assert len(found) == len(dict(found)), page
    return {name: markup.unescape(value) for name, value in found}


def test_links_to_pages_have_a_preview(html):
    prose = [p for p in pages(html) if p.name not in {"genindex.html", "search.html"}]
    for page in [html / "index.html", *prose]:
        found = previews(page)
        assert found["og:title"] and 20 < len(found["og:description"]) <= 300, page
        picture = (page.parent / found["og:image"]).resolve()
        head = picture.read_bytes()[:24]
        assert head[:4] == b"\x89PNG" and struct.unpack(">II", head[16:]) == (1200, 630)
        assert picture.stat().st_size < 1e5
        assert re.search(
            r"How much each of the 72 heads of minilm looks at the .* from \d+% to \d+%", found["og:image:alt"]
        )
    surface = previews(html / "notebooks/surface.html")
    assert surface["og:title"] == "What do heads look at?" and surface["og:description"].startswith("For minilm, ")
    assert previews(html / "book/method.html")["og:description"].startswith("As in the paper")


def test_a_workflow_gives_links_their_own_repository_and_address(monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    plain = yaml.safe_load(book.configuration(ROOT / "_config.yml", "mine.yaml"))
    assert plain["sphinx"]["config"]["bertlook_profile"] == "mine.yaml" and "baseurl" not in plain["html"]
    monkeypatch.setenv("GITHUB_REPOSITORY", "Some/one")
    mine = yaml.safe_load(book.configuration(ROOT / "_config.yml"))
    assert mine["html"]["baseurl"] == "https://some.github.io/one/"
    assert mine["repository"]["url"] == "https://github.com/Some/one"


def test_the_package_page_has_every_public_module_and_its_example_runs(html):
    text = (html / "book/api.html").read_text(encoding="utf-8")
    names = {m.name for m in pkgutil.walk_packages(bertlook.__path__, "bertlook.")} - {"bertlook.book"}
    assert {f"module-{name}" for name in names} <= Links(text).anchors
    assert "bertlook.encoder.load" in Links(text).anchors and "bertlook.surface.Surface.means" in Links(text).anchors
    prose = (ROOT / "book/api.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", prose, flags=re.S)[0]
    known: dict = {}
    exec(code.replace("count=60", "count=2"), known)
    assert known["surface"].means()["cls"].shape == (6, 12)


def test_the_citation_is_that_of_the_repository(html):
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    text = markup.unescape(re.sub(r"<[^>]+>", "", (html / "book/cite.html").read_text(encoding="utf-8")))
    assert f"version = {{{known['version']}}}" in text and f"version = {{{version('bertlook')}}}" in text
    assert known["repository-code"] in text and "@inproceedings{clark2019," in text and "devlin" not in text


def test_pages_and_book_are_light(html):
    for page in pages(html):
        assert page.stat().st_size < 3e6, page
    assert sum(p.stat().st_size for p in html.rglob("*") if p.is_file()) < 25e6


def test_every_figure_says_what_is_to_be_seen(html):
    for chapter in book.chapters():
        text = (html / "notebooks" / f"{chapter}.html").read_text(encoding="utf-8")
        labels = re.findall(r'<svg role="img" aria-label="([^"]*)"', text)
        assert labels or not (html / "results" / chapter / "claims.csv").exists()
        assert all(len(label) > 40 for label in labels)
        assert len(labels) == len(set(labels))


def test_the_answer_comes_first_and_prose_is_computed(html):
    for chapter in book.chapters():
        done = nbformat.read(html.parent / "notebooks" / f"{chapter}.ipynb", as_version=4)
        assert "**Answer.**" in done.cells[0].source and "{glue" not in json.dumps(done)
        assert not [o for c in done.cells for o in c.get("outputs", []) if o.output_type in {"stream", "error"}]


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_pages_load_without_errors_requests_or_sideways_scrolling(html, browser, width, theme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    complaints = []
    for path in pages(html):
        page = context.new_page()
        page.on("console", lambda m, p=path: m.type == "error" and complaints.append((p.name, m.text)))
        page.on("pageerror", lambda e, p=path: complaints.append((p.name, str(e))))
        page.on("requestfailed", lambda r, p=path: complaints.append((p.name, f"failed {r.url}")))
        page.on("request", lambda r, p=path: r.url.startswith(("file:", "data:")) or complaints.append((p.name, r.url)))
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            complaints.append((path.name, "scrolls sideways"))
        page.close()
    context.close()
    assert not complaints


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: make js, or set AXE_CORE to its file")
@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_axe_finds_no_violation(html, browser, width, theme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    violations = []
    for path in pages(html):
        page = context.new_page()
        page.goto(path.as_uri())
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run({preload: false}).then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
        violations += [(path.name, *violation) for violation in found]
        page.close()
    context.close()
    assert not violations


def test_on_paper_there_is_only_the_text_in_dark_ink(html, browser):
    page = browser.new_page(color_scheme="dark")
    page.goto((html / "notebooks/surface.html").as_uri())
    assert page.locator("details.hide").first.is_visible()
    page.emulate_media(media="print")
    for gone in (
        ".bd-sidebar-primary",
        ".bd-sidebar-secondary",
        ".prev-next-footer",
        ".bd-header-article",
        "details.hide",
    ):
        assert not any(each.is_visible() for each in page.locator(gone).all()), gone
    inks = ".bd-article p, .bertlook-figure text, .bertlook-figure figcaption, .bertlook-claims td, .cell_input span"
    colours = page.eval_on_selector_all(
        inks, "all => all.map(e => getComputedStyle(e).color.match(/\\d+/g).map(Number))"
    )
    assert len(colours) > 50 and all(max(rgb[:3]) < 0x90 for rgb in colours)
    assert page.eval_on_selector_all(
        ".bertlook-figure", "all => all.every(e => getComputedStyle(e).breakInside === 'avoid')"
    )
    page.close()


def test_the_first_page_leads_to_the_index(html, browser):
    page = browser.new_page()
    page.goto((html / "index.html").as_uri())
    page.wait_for_url("**/book/index.html")
    page.close()


def test_dark_mode_and_search_work_without_a_network(html, browser):
    page = browser.new_page()
    page.goto((html / "notebooks/surface.html").as_uri())
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):
        page.locator(".theme-switch-button:visible").first.click()
    themes = page.evaluate("document.documentElement.dataset.theme")
    assert themes in {"light", "dark"} and before
    page.goto((html / "search.html").as_uri() + "?q=entropy")
    page.wait_for_selector("#search-results li", timeout=10_000)
    page.close()
