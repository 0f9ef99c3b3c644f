import json
import subprocess
import sys

import pytest

from bertlook import BertlookError, book

SMALL = ("-p", "segments=12", "-p", "seed=5")


def bertlook(monkeypatch, capsys, *arguments):
    """Run the command line here: exit code, standard output, the message."""
    monkeypatch.setattr(sys, "argv", ["bertlook", *map(str, arguments)])
    monkeypatch.chdir(book.root())
    try:
        book.main()
        code = 0
    except SystemExit as stop:
        code = stop.code
    return code, capsys.readouterr().out


def test_a_chapter_runs_twice_to_the_same_tables(monkeypatch, capsys, tmp_path, prose):
    text = prose(40)
    for folder in ("one", "two"):
        code, out = bertlook(
            monkeypatch, capsys, "run", "positional", "-p", f"text={text}", *SMALL, "-o", tmp_path / folder
        )
        assert code == 0 and "positional.ipynb" in out
    for name in ("heads", "offsets", "claims"):
        one, two = (tmp_path / f / f"results/positional/{name}.csv" for f in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    record = json.loads((tmp_path / "one/results/positional/provenance.json").read_text())
    assert record["parameters"]["segments"] == 12 and record["data"][0]["text"] == str(text)


def test_another_model_gets_the_same_chapter(monkeypatch, capsys, tmp_path, prose, tiny_folder):
    arguments = ("-p", f"model={tiny_folder}", "-p", f"text={prose(40)}", *SMALL, "-o", tmp_path)
    code, _ = bertlook(monkeypatch, capsys, "run", "surface", *arguments)
    assert code == 0
    heads = (tmp_path / "results/surface/heads.csv").read_text().splitlines()
    assert len(heads) == 1 + 2 * 3
    executed = (tmp_path / "notebooks/surface.ipynb").read_text()
    assert "2 layers of 3 heads" in executed and "**Answer.**" in executed


def test_a_mistake_inside_a_notebook_is_one_line_and_keeps_the_last_run(monkeypatch, capsys, tmp_path, prose):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/surface.ipynb").write_text("the last good run")
    code, _ = bertlook(monkeypatch, capsys, "run", "surface", "-p", f"text={prose(4)}", "-o", tmp_path)
    assert code == (
        f"bertlook: text '{prose(4)}' has 3 pairs of consecutive paragraphs in 1 articles, but 1,000 segments were "
        "asked for. Set segments=3 or less, or give more text."
    )
    assert (tmp_path / "notebooks/surface.ipynb").read_text() == "the last good run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "surfaces"), "no chapter 'surfaces'. Chapters are surface, positional"),
        (("run", "surface", "-p", "segment=5"), "chapter 'surface' has no parameter 'segment'. It has model, "),
        (("run", "surface", "-p", "segments=many"), "parameter segments='many' of chapter 'surface' has to be int"),
        (("run", "surface", "-p", "segments=1.5"), "parameter segments=1.5 of chapter 'surface' has to be int"),
        (("run", "surface", "-p", "segments=true"), "parameter segments=True of chapter 'surface' has to be int"),
        (("run", "surface", "-p", "segments"), "parameter 'segments' has no '='. Write it as name=value"),
        (("run", "surface", "--profile", "gald"), "gald.yaml: no such profile. Choose one of "),
        (("book", "--profile", "no/such.yaml"), "no/such.yaml: no such profile"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(monkeypatch, capsys, arguments, message):
    code, _ = bertlook(monkeypatch, capsys, *arguments)
    assert str(code).startswith("bertlook: ") and message in code and "\n" not in code


def test_numbers_may_stand_for_names_and_whole_numbers_for_fractions(monkeypatch):
    monkeypatch.setattr(book, "defaults", lambda chapter: {"model": "minilm", "share": 0.5, "results": ""})
    monkeypatch.setattr(book, "load_profile", lambda profile: {"all": {"model": "a", "text": "b"}, "x": {"share": 1}})
    assert book.parameters("x", "p", {"model": 7}) == {"model": "7", "share": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all: {segmnts: 5}", r"mine\.yaml: no chapter has a parameter 'segmnts'\. They are .*segments"),
        ("surfaces: {seed: 1}", r"mine\.yaml: no chapter 'surfaces'"),
        ("all: [", r"mine\.yaml:\d+: not YAML"),
        ("[1, 2]", r"mine\.yaml: not a mapping"),
        ("all: 5", r"mine\.yaml: not a mapping"),
    ],
)
def test_a_profile_is_checked(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BertlookError, match=message) as error:
        book.load_profile(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("profile", sorted(p.stem for p in (book.root() / "profiles").glob("*.yaml")))
@pytest.mark.parametrize("chapter", book.chapters())
def test_every_profile_fits_every_chapter(profile, chapter):
    book.parameters(chapter, profile, {})


def test_a_fingerprint_changes_with_what_a_chapter_depends_on_and_with_nothing_else(monkeypatch, tmp_path):
    before = {c: book.fingerprint(c, "smoke", tmp_path) for c in ("surface", "positional")}
    assert before == {c: book.fingerprint(c, "smoke", tmp_path) for c in before}
    assert book.fingerprint("surface", "sample", tmp_path) != before["surface"]
    path = book.notebook_path("surface")
    other = tmp_path / "surface.ipynb"
    other.write_text(path.read_text().replace("What do heads look at?", "What do they look at?"))
    monkeypatch.setattr(book, "notebook_path", lambda c: other if c == "surface" else path.with_name(f"{c}.ipynb"))
    assert book.fingerprint("surface", "smoke", tmp_path) != before["surface"]
    assert book.fingerprint("positional", "smoke", tmp_path) == before["positional"]


HOSTILE = "</script><img src=x onerror=alert(1)>"


def embedded(path):
    """The data of an explorer's page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('<script type="application/json">')[2].partition("</script>")[0])


def test_show_writes_a_page_and_says_where_and_how_large(monkeypatch, capsys, tmp_path):
    path = tmp_path / "new" / "page.html"
    code, out = bertlook(monkeypatch, capsys, "show", "The dog barked.", "--pair", "It was late.", "-o", path)
    assert code == 0 and out.startswith(f"{path}\n{path.stat().st_size / 1e6:.2f} MB: 6 layers of 12 heads on 11 ")
    (example,) = embedded(path)["examples"]
    assert example["labels"] == "The dog barked . It was late .".split() and 1 in example["parts"]
    assert "<h1>Attention explorer</h1>" in path.read_text()


def test_show_takes_another_model_and_40_words_with_144_heads_stay_light(monkeypatch, capsys, tmp_path, bert_folder):
    text = "The old bridge, which the council closed in May, was never repaired, and nobody seemed to mind. " * 3
    words = " ".join(text.split()[:40])
    code, out = bertlook(monkeypatch, capsys, "show", words, "--model", bert_folder, "-o", tmp_path / "page.html")
    assert code == 0 and "12 layers of 12 heads" in out
    assert (tmp_path / "page.html").stat().st_size < 1e6


def test_hostile_text_is_shown_and_nothing_runs(monkeypatch, capsys, tmp_path, browser):
    path = tmp_path / "page.html"
    code, _ = bertlook(
        monkeypatch, capsys, "show", f"See {HOSTILE}", "--pair", f"Or {HOSTILE}", "--title", HOSTILE, "-o", path
    )
    assert code == 0
    tab = browser.new_page()
    seen = []
    tab.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    tab.on("console", lambda message: seen.append(message.text))
    tab.on("pageerror", lambda error: seen.append(str(error)))
    tab.on("request", lambda request: request.url == path.as_uri() or seen.append(request.url))
    tab.goto(path.as_uri())
    tab.wait_for_selector(".bertlook-explorer[data-ready]")
    assert tab.locator("h1").inner_text() == HOSTILE
    words = "".join(tab.locator(".text").first.locator("button").all_inner_texts())
    assert words == f"[CLS]See{HOSTILE.replace(' ', '')}[SEP]Or{HOSTILE.replace(' ', '')}[SEP]"
    assert not tab.locator("img").count() and not seen
    tab.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no text to show. Give a sentence"),
        (("  ",), "no text to show. Give a sentence"),
        (("A text", "--pair", " "), "the text to show is empty"),
        (("\u200b",), "finds no word in '\\u200b'"),
        (("A text", "--pair", "\u200b"), "finds no word in '\\u200b'"),
        (("\udcff text",), "'\\udcff text' is not UTF-8"),
        (("word " * 600,), "the text has 602 wordpieces with the special ones, but model 'minilm' takes 512. Shorten"),
        (("A text", "--model", "./none"), "model './none': cannot be loaded"),
        (("A text", "-o", "src"), "src: a folder. Name a file for the page, for example -o src/page.html."),
        (("A text", "-o", "README.md/page.html"), "README.md/page.html: cannot be written"),
    ],
)
def test_show_tells_a_mistake_in_one_line(monkeypatch, capsys, arguments, message):
    code, out = bertlook(monkeypatch, capsys, "show", *arguments)
    assert code.startswith("bertlook: ") and message in code and "\n" not in code and not out


def test_the_terminal_shows_progress_results_and_nothing_else(tmp_path, prose, tiny_folder):
    # The folder holds a head that the encoder does not use, of which transformers would print a table.
    command = [sys.executable, "-c", "from bertlook.book import main; main()"]
    given = ("-p", f"model={tiny_folder}", "-p", f"text={prose(40)}", *SMALL, "-o", str(tmp_path))
    done = subprocess.run([*command, "run", "surface", *given], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "surface: running\n")
    assert done.stdout == f"{tmp_path}/notebooks/surface.ipynb\n{tmp_path}/results/surface\n"
    given = ("--model", str(tiny_folder), "-o", str(tmp_path / "page.html"))
    done = subprocess.run([*command, "show", "The dog barked.", *given], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 2)
    done = subprocess.run([*command, "run", "surface", "-p", "model=./none"], capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("surface: running\nbertlook: model './none': ") and done.stderr.count("\n") == 2


def test_a_text_that_is_too_long_ends_the_command_with_one_line_and_exit_code_1():
    command = [sys.executable, "-c", "from bertlook.book import main; main()", "show", "word " * 600]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("bertlook: the text has 602 wordpieces") and done.stderr.count("\n") == 1
