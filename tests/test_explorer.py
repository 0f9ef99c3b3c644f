"""The attention explorer: its rounding, what it makes of hostile text, and how it behaves in a browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import nbformat
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertlook import BertlookError, book, explorer
from bertlook import encoder as encoders
from bertlook.attention import Segment, to_words
from bertlook.explorer import (
    ROUNDING,
    Example,
    chain,
    example,
    page,
    quantise,
    spelled,
    telling_head,
    widget,
)
from browsing import AXE, LOOKS
from small_book import small_book

HOSTILE = "</script><img src=x onerror=window.hit=1><!--&amp;\u2028'\""
FARMERS = "The dog that the unaffordable farmers bought barked .".split()


def dequantise(codes: torch.Tensor) -> torch.Tensor:
    """The weights that a page shows for these codes."""
    return (codes.float() / 255).square()


def rounding(weights: torch.Tensor) -> torch.Tensor:
    """How far a weight can be from the one shown: √w/255, and half a step squared."""
    return weights.sqrt() / 255 + 1 / 510**2


def random_example(tokens: int, layers: int = 12, heads: int = 12) -> Example:
    """An example of this size whose maps are random: they deflate worse than real ones."""
    torch.manual_seed(0)
    maps = torch.softmax(2 * torch.randn(layers, heads, tokens, tokens), -1)
    words = [f"word{i}" for i in range(tokens - 2)]
    return Example(
        title="random",
        note="",
        model="none",
        tokens=("[CLS]", *words, "[SEP]"),
        labels=tuple(words),
        words=(-1, *range(tokens - 2), -1),
        parts=(0,) * tokens,
        codes=quantise(maps),
        start=(4, 10),
    )


class Tags(HTMLParser):
    """The tags of a page, and the text of its data block."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.data, self.inside = [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not [name for name, _ in attributes if name.startswith("on")]
        self.inside = ("type", "application/json") in attributes

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "script"

    def handle_data(self, data):
        self.data += data if self.inside else ""


# ---- weights ---------------------------------------------------------------------------------------------------


@given(st.floats(0, 1, width=32))
def test_a_weight_comes_back_within_the_stated_rounding(weight):
    weight = torch.tensor(weight)
    assert (dequantise(quantise(weight)) - weight).abs() <= rounding(weight) + 1e-7


def test_readers_are_told_the_rounding_that_holds():
    at_most, small = re.findall(r"0\.0\d+", ROUNDING)[:2]
    assert float(at_most) == pytest.approx(rounding(torch.tensor(1.0)).item(), abs=5e-4)
    assert float(small) == pytest.approx(rounding(torch.tensor(0.01)).item(), abs=5e-5)


def test_rows_of_real_maps_still_sum_to_one(maps):
    for each in maps:
        shown = dequantise(quantise(each))
        assert ((shown - each).abs() <= rounding(each) + 1e-6).all()
        torch.testing.assert_close(shown.sum(-1), torch.ones(shown.shape[:-1]), atol=0.02, rtol=0)


# ---- from text to an example -------------------------------------------------------------------------------------


def test_a_text_is_read_as_the_tokenizer_reads_it(encoder):
    shown = example(encoder, "The unaffordable  truffles, [MASK].")
    assert shown.title == "The unaffordable truffles, [MASK]."
    assert shown.labels == ("The", "unaffordable", "truffles", ",", "[MASK]", ".")
    assert shown.tokens[0] == "[CLS]" and shown.tokens[-1] == "[SEP]" and "##ff" in shown.tokens
    assert [shown.labels[i] for i in shown.words if i >= 0].count("unaffordable") > 1
    assert shown.codes.shape == (6, 12, len(shown.tokens), len(shown.tokens)) and shown.codes.dtype == torch.uint8


def test_a_pair_has_two_parts_and_counts_its_words_through(encoder):
    shown = example(encoder, "Who barked?", "The dog did.", start=(2, 3))
    assert shown.labels == ("Who", "barked", "?", "The", "dog", "did", ".")
    assert shown.parts == (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)
    assert shown.words == (-1, 0, 1, 2, -1, 3, 4, 5, 6, -1)
    assert shown.start == (2, 3)


def test_words_keep_their_marks(encoder):
    marks = [(1, 7, "nsubj"), *chain([5, 1, 7])]
    shown = example(encoder, FARMERS, marks=marks)
    assert shown.labels == tuple(FARMERS) and max(shown.words) == 8
    assert shown.marks == ((1, 7, "nsubj"), (5, 1, "coreference"), (7, 5, "coreference"))


def test_the_head_to_open_is_the_one_that_looks_most_decidedly_at_other_words():
    weights = torch.full((2, 3, 4, 4), 0.25)
    weights[1, 2, 1] = torch.tensor([0.0, 0.1, 0.9, 0.0])
    weights[0, 1, :, 0] = 1  # to a special token only
    assert telling_head(weights, torch.tensor([-1, 0, 1, -1])) == (2, 3)


def test_mistakes_are_told_in_one_line(encoder):
    for wrong in (
        lambda: example(encoder, "  "),
        lambda: example(encoder, "A text", pair=""),
        lambda: example(encoder, "word " * 600),
        lambda: example(encoder, "A text", start=(7, 1)),
        lambda: example(encoder, []),
    ):
        with pytest.raises(BertlookError) as raised:
            wrong()
        assert "\n" not in str(raised.value)


def test_the_chapters_examples_are_opened_at_the_heads_they_found(encoder, tmp_path):
    (tmp_path / "syntax").mkdir()
    (tmp_path / "syntax/examples.csv").write_text(
        "relation,layer,head,direction,words,pairs\ndobj,3,1,dependent→head,Dogs chase cats and null,3>2 5>2\n",
        encoding="utf-8",
    )
    (shown,) = examples = explorer.examples_of(encoder, tmp_path)
    assert shown.title == "dobj: Dogs chase cats and null" and shown.labels[-1] == "null"
    assert shown.start == (3, 1) and shown.marks == ((2, 1, "dobj"), (4, 1, "dobj"))
    assert shown.note == "Head 3-1 is the best at dobj, dependent→head."
    assert explorer.table(examples).to_dict("list") == {"title": [shown.title], "layer": [3], "head": [1]}
    assert explorer.words(encoder, examples) == {"model": encoder.name, "heads": "72", "texts": "1 text"}


def test_two_documents_are_shown_up_to_the_length_asked_for(encoder, tmp_path):
    (tmp_path / "coreference").mkdir()
    row = 'a,2,4,"Ann saw Bo . She waved to him and he left her .","1,5,11 3,8,10"\n'
    (tmp_path / "coreference/examples.csv").write_text("document,layer,head,words,chains\n" + 3 * row, encoding="utf-8")
    shown = explorer.examples_of(encoder, tmp_path, longest=9)
    assert len(shown) == 2 and explorer.words(encoder, shown)["texts"] == "2 texts"
    assert shown[0].labels == tuple("Ann saw Bo . She waved to him and".split())
    assert shown[0].marks == ((4, 0, "coreference"), (7, 2, "coreference"))  # what comes later is not marked
    assert shown[0].title == "coreference: Ann saw Bo . She waved to him and …"
    assert shown[0].note == "Head 2-4 is the best at finding antecedents. The document is a."


def test_before_the_other_chapters_have_run_a_sentence_of_our_own_is_shown(encoder, tmp_path):
    (shown,) = explorer.examples_of(encoder, tmp_path)
    assert "bridge" in shown.labels and not shown.marks


def test_pieces_of_bytes_are_spelled_so_that_one_can_read_them():
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(["the dogs bark", "the dogs barked"], vocab_size=270, show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer)
    coded = tokenizer("dogs barked é")
    pieces = spelled(tokenizer, Segment(tuple(coded["input_ids"]), (), words=tuple(coded.word_ids())))
    assert "".join(pieces[:-3]).replace("##", "") == "dogsbarked"
    assert pieces[-3:] == ["Ġ", "##Ã", "##©"]  # a bare space and the halves of a letter, as the vocabulary has them


# ---- the page ----------------------------------------------------------------------------------------------------


def test_a_page_is_light_even_with_144_heads():
    assert len(page([random_example(55)]).encode()) < 1e6  # 40 words, with their pieces and special tokens
    assert len(page([random_example(128)]).encode()) < 3e6


def test_text_titles_and_vocabulary_cannot_become_markup(tiny_folder):
    encoder = encoders.load(str(tiny_folder))
    encoder.tokenizer.add_tokens([HOSTILE])
    encoder.model.resize_token_embeddings(len(encoder.tokenizer))
    shown = [
        example(encoder, f"A {HOSTILE} token", title=HOSTILE, note=HOSTILE),
        example(encoder, ["A", HOSTILE], marks=[(0, 1, HOSTILE)]),
    ]
    assert any("</script><img src=x onerror" in piece for piece in shown[0].tokens)
    text = page(shown, title=HOSTILE)
    plain = page([random_example(4, 2, 3)])
    found = Tags(text)
    assert [tag for tag in found.tags if tag != "span"] == [tag for tag in Tags(plain).tags if tag != "span"]
    assert not {"<", ">", "&", "\u2028"} & set(found.data)
    data = json.loads(found.data)
    assert data["examples"][0]["title"] == data["examples"][1]["labels"][1] == HOSTILE


def test_nothing_in_the_page_leads_outside():
    text = page([random_example(4, 2, 3)])
    assert not re.findall(r"https?:|//\w+\.|\burl\(|@import|\beval\(|innerHTML|document\.write", text)
    assert "default-src 'none'" in text


def test_every_head_is_an_anchor_once():
    fragment = widget([random_example(4, 2, 3)])
    assert re.findall(r'id="([\d-]+)"', fragment) == ["1-1", "1-2", "1-3", "2-1", "2-2", "2-3"]
    assert 'id="1-1"' not in widget([random_example(4, 2, 3)], anchors=False)


MODULES = book.root() / "src" / "explorer"


@pytest.fixture
def npm():
    """Run a script of the explorer's package.json."""
    if not shutil.which("npm") or not (MODULES / "node_modules/esbuild").exists():
        pytest.skip("the explorer's modules cannot be built here: install node and npm, then make js")

    def run(*script):
        return subprocess.run(["npm", "run", "--silent", *script], cwd=MODULES, capture_output=True, text=True)

    return run


@pytest.mark.parametrize("script", ["check", "test"])
def test_the_scripts_modules_hold_by_themselves(npm, script):
    done = npm(script)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_that_is_shipped_is_what_its_modules_build(npm, tmp_path):
    assert npm("build", "--", f"--outfile={tmp_path / 'explorer.js'}").returncode == 0
    assert (tmp_path / "explorer.js").read_bytes() == (MODULES.parent / "bertlook/explorer.js").read_bytes(), "make js"


def test_styles_stay_within_the_explorer():
    from bertlook.explorer import _source

    css = re.sub(r"/\*.*?\*/", "", _source("explorer.css"), flags=re.S)
    selectors = [s.strip() for s in re.findall(r"([^{}]+)\{", css) if not s.strip().startswith("@")]
    assert selectors and not [s for s in selectors if not re.search(r"\.bertlook-(explorer|page)", s)]


# ---- in a browser ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(encoder):
    """The sentences of the page that is opened."""
    return [
        example(encoder, FARMERS, marks=[(1, 7, "nsubj"), (5, 6, "nsubj")], note="A note.", start=(3, 9)),
        example(encoder, "Who barked?", "The dog did.", title="A pair", start=(2, 1)),
        example(encoder, f"It said {HOSTILE} aloud.", title=HOSTILE, note=HOSTILE),
    ]


@pytest.fixture(scope="module")
def file(shown, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(page(shown, title=HOSTILE), encoding="utf-8")
    return path


@pytest.fixture
def visit(browser, file):
    """Open the page; at the end nothing may have been complained of, asked of the network, or run."""
    opened, complaints = [], []

    def open_(address="", width=1280, theme="light", path=file, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
        tab = context.new_page()
        tab.set_default_timeout(5000)
        tab.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda r: r.url.split("#")[0] == path.as_uri() or complaints.append(r.url))
        tab.goto(path.as_uri() + address)
        tab.wait_for_selector(".bertlook-explorer[data-ready]")
        opened.append(tab)
        return tab

    yield open_

    for tab in opened:
        assert tab.evaluate("window.hit === undefined && !document.querySelector('main img')")
        tab.context.close()
    assert not complaints


def settle(tab):
    """Wait until what was asked for is drawn."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def heading(tab):
    return tab.locator(".one .name").inner_text()


def status(tab):
    settle(tab)
    return tab.locator(".status").inner_text()


def rows(tab, number=0):
    """A table as the page has it: the words, their place, their weights."""
    cells = tab.locator(".tables table").nth(number).locator("tbody tr")
    return [row.split("\t") for row in cells.all_inner_texts()]


def ink(tab, canvas):
    """How many pixels of a canvas are drawn on."""
    settle(tab)
    return tab.locator(canvas).first.evaluate(
        "(c) => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length"
    )


def word(tab, label):
    return tab.locator(".text").get_by_role("button", name=label, exact=True)


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_the_page_opens_in_any_look_and_axe_finds_nothing(visit, width, theme):
    tab = visit("#3-9+2-1@1", width=width, theme=theme)
    word(tab, "dog").click()
    assert not tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert ink(tab, ".lines canvas") and ink(tab, ".grid canvas")
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (theme == "dark")
    tab.get_by_text("matrix", exact=True).click()
    assert ink(tab, ".matrix canvas")
    if AXE.exists():
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = tab.evaluate("axe.run({preload: false}).then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
        assert not found


def test_the_theme_of_a_book_goes_before_that_of_the_system(visit):
    tab = visit("#3-9@1", theme="light")
    ask = "(c) => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data.slice(0, 3)]"
    seen = []
    for theme in ("dark", "light"):
        tab.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        settle(tab)
        settle(tab)
        colours = tab.locator(".bertlook-explorer").evaluate("(e) => getComputedStyle(e).color")
        seen.append((colours, tab.locator(".grid canvas").first.evaluate(ask)))
    assert seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: make js, or set AXE_CORE to its file")
def test_axe_was_asked():
    assert AXE.stat().st_size > 1e5


def test_numbers_are_those_of_the_model(visit, shown):
    first = shown[0]
    words = torch.tensor([first.words])
    weights = to_words(dequantise(first.codes)[:, None], words)[:, 0]  # the last key is the special tokens together
    tab = visit("#3-9@1")
    word(tab, "farmers").click()
    asked = FARMERS.index("farmers")
    for label, place, weight in rows(tab):
        if not label.startswith("["):
            expected = weights[2, 8, asked, int(place) - 2]
            assert float(weight) == pytest.approx(float(expected), abs=0.0051), label
    for label, place, weight in rows(tab, 1):
        if not label.startswith("["):
            assert float(weight) == pytest.approx(float(weights[2, 8, int(place) - 2, asked]), abs=0.0051), label


def test_heads_are_chosen_by_click_keyboard_and_address(visit):
    tab = visit()
    assert heading(tab) == "Layer 3, head 9"  # the suggestion
    tab.get_by_role("button", name="Layer 4, head 10").click()
    assert heading(tab) == "Layer 4, head 10" and tab.url.endswith("#4-10@1")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowLeft")
    assert heading(tab) == "Layer 5, head 9" and tab.url.endswith("#5-9@1")
    assert tab.evaluate("document.activeElement.dataset.head") == "5-9"
    assert tab.locator(".grid [tabindex='0']").count() == 1
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowLeft")
    assert heading(tab) == "Layer 5, head 1"
    tab.evaluate("location.hash = '#2-7'")
    tab.get_by_text("Layer 2, head 7", exact=True).wait_for()
    tab.evaluate("location.hash = '#1-2@2'")
    tab.get_by_text("Layer 1, head 2", exact=True).wait_for()
    assert tab.locator("select").first.evaluate("(s) => s.selectedIndex") == 1
    tab.evaluate("location.hash = '#9-99@7'")  # no such head: nothing happens
    settle(tab)
    assert heading(tab) == "Layer 1, head 2"


def test_heads_are_overlaid_in_colours(visit):
    tab = visit("#3-9@1")
    tab.get_by_label("Compare: choosing adds a head").check()
    tab.get_by_role("button", name="Layer 1, head 3").click()
    tab.get_by_role("button", name="Layer 6, head 12").click()
    assert heading(tab) == "3 heads" and tab.url.endswith("#3-9+1-3+6-12@1")
    colours = tab.locator(".chips i").evaluate_all("(all) => all.map((i) => getComputedStyle(i).color)")
    assert len(set(colours)) == 3
    assert len(status(tab).splitlines()) == 3
    assert [len(row) for row in rows(tab)] == [5] * 8
    tab.get_by_role("button", name="Remove layer 1, head 3").click()
    assert heading(tab) == "2 heads" and tab.url.endswith("#3-9+6-12@1")
    tab.get_by_label("Compare: choosing adds a head").uncheck()
    tab.get_by_role("button", name="Layer 2, head 2").click()
    assert heading(tab) == "Layer 2, head 2"
    tab.get_by_role("button", name="Layer 2, head 3").click(modifiers=["Shift"])
    assert heading(tab) == "2 heads"


def test_a_word_is_seen_from_both_sides_with_pointer_and_keyboard(visit):
    tab = visit("#3-9@1")
    all_lines = ink(tab, ".lines canvas")
    word(tab, "dog").hover()
    assert re.search(r"“dog” attends 0\.\d+ to “", status(tab))
    assert "nsubj" in status(tab)
    assert ink(tab, ".lines canvas") != all_lines
    tab.mouse.move(0, 0)
    assert "strongest" in status(tab)
    word(tab, "dog").click()
    tab.mouse.move(0, 0)
    assert "“dog” attends" in status(tab) and word(tab, "dog").get_attribute("aria-pressed") == "true"
    tab.keyboard.press("ArrowRight")
    assert "“that” attends" in status(tab)
    tab.get_by_text("is looked at by", exact=True).click()
    assert "“that” receives" in status(tab)
    tab.locator(".lines ol").nth(1).get_by_text("barked").hover()
    assert "“barked” receives" in status(tab)
    tab.locator(".lines ol").first.get_by_text("barked").click()
    tab.mouse.move(0, 0)
    assert "“barked” attends" in status(tab)
    tab.locator(".lines").focus()
    tab.keyboard.press("ArrowUp")
    assert "“bought” attends" in status(tab)
    tab.keyboard.press("Escape")
    assert "strongest" in status(tab)


def test_the_matrix_tells_its_cells(visit):
    tab = visit("#3-9@1")
    tab.get_by_text("matrix", exact=True).click()
    settle(tab)
    box = tab.locator(".matrix canvas").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] - 30)
    assert re.search(r"“[^”]+” attends [\d.]+ to “[^”]+”\.$", status(tab))
    tab.locator(".matrix").focus()
    for key, said in [("ArrowDown", "attends"), ("ArrowRight", "receives")]:
        tab.keyboard.press(key)
        tab.mouse.move(0, 0)
        assert said in status(tab)
    before = tab.locator(".matrix .spacer").bounding_box()["width"]
    tab.get_by_label("Cell size").fill("8")
    settle(tab)
    assert tab.locator(".matrix .spacer").bounding_box()["width"] < before


def test_special_tokens_are_hidden_and_rows_renormalised(visit):
    tab = visit("#3-9@2")
    word(tab, "barked").click()
    assert any(label == "[CLS]" for label, *_ in rows(tab))
    tab.get_by_label("Hide special tokens").check()
    assert not any(label.startswith("[") for label, *_ in rows(tab))
    assert len(rows(tab)) == 7
    assert sum(float(weight) for *_, weight in rows(tab)) == pytest.approx(1, abs=0.02)
    assert "Special tokens, left out, had 0." in status(tab)
    tab.locator("select").nth(1).select_option("01")
    assert {label for label, *_ in rows(tab)} <= {"The", "dog", "did", "."}
    tab.locator("select").nth(1).select_option("11")
    assert "strongest" in status(tab)  # the word cannot be seen there


def test_words_and_wordpieces(visit):
    tab = visit("#3-9@1")
    assert word(tab, "unaffordable").count() == 1
    word(tab, "farmers").click()
    tab.get_by_text("wordpieces", exact=True).click()
    assert word(tab, "unaffordable").count() == 0 and word(tab, "##ff").count() == 1
    assert "“farmers” attends" in status(tab)  # the choice stays
    tab.get_by_text("words", exact=True).click()
    assert word(tab, "unaffordable").count() == 1


def test_sentences_are_chosen_and_hostile_ones_are_text(visit):
    tab = visit()
    assert tab.locator("h1").inner_text().startswith("</script><img")
    tab.locator("select").first.select_option(index=2)
    word(tab, "onerror").wait_for()
    assert tab.locator(".note").inner_text().startswith("</script><img src=x onerror=window.hit=1>")
    assert tab.locator("select").first.locator("option").nth(2).inner_text().startswith("</script><img")
    word(tab, "onerror").click()
    tab.get_by_text("matrix", exact=True).click()
    assert "“onerror” attends" in status(tab)
    assert not tab.get_by_text("Show marks").is_visible()


def test_words_are_tapped_on_a_narrow_touch_screen(visit):
    tab = visit("#3-9@1", width=390, has_touch=True, is_mobile=True, reduced_motion="reduce")
    tab.get_by_role("button", name="Layer 2, head 1", exact=True).tap()
    assert heading(tab) == "Layer 2, head 1"
    word(tab, "dog").tap()
    assert "“dog” attends" in status(tab)
    tab.locator(".lines ol").nth(1).get_by_text("bought").tap()
    assert "“bought” receives" in status(tab)
    word(tab, "bought").tap()
    assert "strongest" in status(tab)  # a second tap lets go
    assert not tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_two_explorers_of_a_page_are_two(visit, shown, tmp_path):
    path = tmp_path / "two.html"
    path.write_text(widget(shown[:1], anchors=False) + widget(shown[1:2], anchors=False), encoding="utf-8")
    tab = visit(path=path)
    tab.locator(".bertlook-explorer[data-ready]").nth(1).wait_for()
    tab.get_by_text("matrix", exact=True).first.click()
    settle(tab)
    assert [panel.is_visible() for panel in tab.locator(".matrix").all()] == [True, False]
    tab.get_by_text("matrix", exact=True).nth(1).click()
    settle(tab)
    assert [panel.is_visible() for panel in tab.locator(".matrix").all()] == [True, True]


def test_an_address_that_is_not_of_the_explorer_is_left_alone(visit):
    assert heading(visit("#%E0%A4%A")) == "Layer 3, head 9"
    assert visit().evaluate("Object.keys(window).filter((name) => /bertlook|explore/i.test(name))") == []


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "long.html"
    path.write_text(page([random_example(128)]), encoding="utf-8")
    return path


def test_128_tokens_and_144_heads_stay_smooth(visit, long_file):
    tab = visit(path=long_file, width=390)
    spent = tab.evaluate(
        """async () => {
          const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          const times = [];
          for (const node of document.querySelectorAll('.text button:nth-child(10n)')) {
            await frame();
            const start = performance.now();
            node.dispatchEvent(new PointerEvent('pointerenter', { pointerType: 'mouse' }));
            await frame();
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
        }"""
    )
    assert spent < 250  # milliseconds; about 30 on an idle machine
    assert tab.locator(".lines").evaluate("(panel) => panel.scrollHeight > panel.clientHeight")
    assert not tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    tab.locator(".lines").focus()
    for _ in range(40):
        tab.keyboard.press("ArrowDown")
    assert tab.locator(".lines").evaluate("(panel) => panel.scrollTop") > 0


def test_all_heads_are_drawn_on_paper(visit, long_file):
    tab = visit(path=long_file, width=390)
    below = tab.locator(".grid canvas").last
    assert below.evaluate("(c) => c.width") == 300  # as a canvas is before anything is drawn on it
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert below.evaluate("(c) => c.width") < 100


# ---- in a page of the book ---------------------------------------------------------------------------------------

LONG = [
    "The old bridge , which the council of the town had closed in May after long debates , was never repaired .",
    "The dog that the farmers bought barked at the men who came along the road to the market with carts on Saturday .",
    "She told her brother that the letter he had written to the newspaper would be printed if it were short .",
    "Engineers from three countries met in the capital to decide how the tunnel under the mountain could be safe .",
]


@pytest.fixture(scope="module")
def in_book(encoder, tmp_path_factory):
    """A page with an explorer of four long sentences, as Jupyter Book renders it."""
    out = tmp_path_factory.mktemp("book")
    examples = [example(encoder, text.split(), marks=[(0, 2, "det")], note=HOSTILE) for text in LONG]
    cell = nbformat.v4.new_code_cell("HTML(widget(examples))", metadata={"tags": ["hide-input"]})
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/html": widget(examples)}, execution_count=1)]
    cells = [nbformat.v4.new_markdown_cell("# Explorer\n\n## Four sentences"), cell]
    (out / "notebooks").mkdir()
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    about = kernel | {"language_info": {"name": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=about), out / "notebooks/explorer.ipynb")
    return small_book(out, ["explorer"]) / "explorer.html"


def test_a_page_of_the_book_is_light_and_has_an_anchor_for_each_head(in_book):
    text = in_book.read_text(encoding="utf-8")
    assert len(text.encode()) < 3e6
    anchors = re.findall(r'<span id="(\d+-\d+)"></span>', text)
    assert anchors == [f"{layer}-{head}" for layer in range(1, 7) for head in range(1, 13)]


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_the_explorer_works_in_a_page_of_the_book(in_book, browser, width, theme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    tab, complaints = context.new_page(), []
    tab.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda r: r.url.startswith(("file:", "data:")) or complaints.append(r.url))
    tab.goto(in_book.as_uri() + "#4-10")
    tab.wait_for_selector(".bertlook-explorer[data-ready]")
    assert heading(tab) == "Layer 4, head 10"
    tab.wait_for_function("document.querySelector('.bertlook-explorer').getBoundingClientRect().top < innerHeight / 2")
    assert not tab.evaluate("document.documentElement.scrollWidth > window.innerWidth")

    ask = "(e) => getComputedStyle(e).color.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) > 384"
    light_ink = [tab.locator(".bertlook-explorer").evaluate(ask)]
    if AXE.exists():
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = tab.evaluate("axe.run({preload: false}).then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
        assert not found
    tab.evaluate(
        "document.documentElement.dataset.theme = document.documentElement.dataset.theme == 'dark' ? 'light' : 'dark'"
    )
    settle(tab)
    light_ink.append(tab.locator(".bertlook-explorer").evaluate(ask))
    assert light_ink == [theme == "dark", theme == "light"]  # the page's theme is followed, then its button

    word(tab, "bridge").click()
    assert "“bridge” attends" in status(tab) and ink(tab, ".lines canvas")
    tab.locator("select").first.select_option(index=1)
    word(tab, "farmers").wait_for()
    assert tab.locator(".note").inner_text().startswith("</script><img src=x")
    assert tab.evaluate("window.hit === undefined && !document.querySelector('article img')") and not complaints
    context.close()
