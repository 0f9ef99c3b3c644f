import bz2
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlook import BertlookError
from bertlook.corpora.text import articles, cut, segments, text_file, text_source

PAGE = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">
{pages}</mediawiki>"""
ONE = "<page><title>{title}</title><ns>0</ns><id>{id}</id><revision><id>1</id><text>{text}</text></revision></page>\n"
PROSE = "The '''old bridge''' near the [[town|small town]] was closed by the council in the spring of 1911."


def dump(path, *texts):
    pages = "".join(ONE.format(title=f"T{i}", id=i, text=text) for i, text in enumerate(texts))
    path.write_text(PAGE.format(pages=pages), encoding="utf-8")
    return path


def test_a_dump_becomes_articles_of_running_text(tmp_path):
    wikitext = f"{PROSE}\n\n== History ==\n\n* a list item of some words\n\nToo short.\n\n{PROSE}\n\n" + "word " * 12
    left_out = Counter()
    found = list(articles(str(dump(tmp_path / "d.xml", "#REDIRECT [[T1]]", wikitext)), left_out))
    tidy = "The old bridge near the small town was closed by the council in the spring of 1911."
    assert [a.paragraphs for a in found] == [(tidy, tidy)]
    assert left_out == {
        "pages that are redirects or empty": 1,
        "headings, list items and table cells": 2,
        "paragraphs of fewer than 10 words": 1,
        "paragraphs that do not end as a sentence": 1,
    }


def test_a_compressed_dump_is_the_same(tmp_path):
    plain = dump(tmp_path / "d.xml", PROSE, PROSE)
    packed = tmp_path / "d.xml.bz2"
    packed.write_bytes(bz2.compress(plain.read_bytes()))
    assert list(articles(str(plain))) == list(articles(str(packed)))


def test_plain_text_has_paragraphs_apart_by_blank_lines(tmp_path):
    (tmp_path / "b.txt").write_bytes(f"{PROSE}\r\n\r\n{PROSE}\r\nand then\r\nit fell down.\r\n".encode("utf-8-sig"))
    (tmp_path / "a.txt").write_text(PROSE)
    found = list(articles(str(tmp_path)))
    assert [(a.title, len(a.paragraphs)) for a in found] == [("a", 1), ("b", 2)]
    assert found[1].paragraphs[1].endswith("1911. and then it fell down.")


def test_the_packaged_wikipedia_has_more_than_enough(encoder):
    corpus = segments(encoder, count=1000, progress=False)
    assert len(corpus) == 1000
    assert corpus.source["pairs"] > 4000 and corpus.source["articles"] > 80
    assert max(map(len, corpus)) == 128
    assert sum(corpus.left_out.values()) > 0


def test_segments_are_consecutive_paragraphs_cut_from_the_longer_side(encoder, prose):
    path = prose(30, words=40)
    (article,) = articles(str(path))
    corpus = segments(encoder, str(path), count=20, max_tokens=64, progress=False)
    sep = encoder.tokenizer.sep_token_id
    for segment in corpus:
        first = segment.ids.index(sep)
        a, b = segment.ids[1:first], segment.ids[first + 1 : -1]
        assert len(segment) <= 64 and abs(len(a) - len(b)) <= 1
        assert segment.ids[0] == encoder.tokenizer.cls_token_id and segment.ids[-1] == sep
        assert segment.types == (0,) * (first + 1) + (1,) * (len(b) + 1)
        texts = [encoder.tokenizer(p, add_special_tokens=False)["input_ids"] for p in article.paragraphs]

        assert any(stretch(a, x) and stretch(b, y) for x, y in pairwise(texts))


def stretch(part, whole):
    """Whether one sequence lies within the other without gaps."""
    n = len(part)
    return any(tuple(whole[i : i + n]) == tuple(part) for i in range(len(whole) - n + 1))


def test_the_seed_decides(encoder, prose):
    path = str(prose(60))
    same = [segments(encoder, path, 20, seed=3, progress=False).items for _ in range(2)]
    assert same[0] == same[1] != segments(encoder, path, 20, seed=4, progress=False).items


@given(
    st.lists(st.integers(), max_size=50), st.lists(st.integers(), max_size=50), st.integers(2, 60), st.integers(0, 99)
)
@settings(max_examples=200)
def test_cut_keeps_a_stretch_of_each_and_evens_them_out(a, b, room, seed):
    x, y = cut(a, b, room, random.Random(seed))
    assert len(x) + len(y) == min(room, len(a) + len(b))
    for whole, part in ((a, x), (b, y)):
        assert stretch(part, whole)
    if len(a) + len(b) > room:
        shorter = min(len(a), len(b))
        assert min(len(x), len(y)) >= min(shorter, room // 2)


def test_provenance_names_the_text_and_its_checksum(prose):
    about = text_source(str(prose(3)))
    assert about["files"] == 1 and len(about["sha256"]) == 64
    assert text_source("wikipedia")["licence"].startswith("CC BY-SA")


def fails(encoder, source, message, **arguments):
    with pytest.raises(BertlookError, match=message) as error:
        segments(encoder, str(source), **({"count": 5, "progress": False} | arguments))
    assert "\n" not in str(error.value)


def test_a_missing_text_is_one_line(encoder):
    fails(encoder, "no/such/dump.xml.bz2", r"text 'no/such/dump.xml.bz2': no such file or folder\. Give .*")


def test_a_truncated_dump_is_one_line_with_what_was_read(encoder, tmp_path):
    packed = text_file("wikipedia").read_bytes()
    path = tmp_path / "d.xml.bz2"
    path.write_bytes(packed[: len(packed) // 2])
    fails(encoder, path, r"d\.xml\.bz2: breaks off or is not a Wikipedia dump, after \d+ pages .*Download it again")


@pytest.mark.parametrize("content", [b"", b"<mediawiki><page>", b"not xml at all", b"<html></html>"])
def test_what_is_no_dump_is_one_line(encoder, tmp_path, content):
    path = tmp_path / "d.xml"
    path.write_bytes(content)
    fails(encoder, path, r"d\.xml: breaks off or is not a Wikipedia dump|has no two consecutive paragraphs")


def test_an_empty_text_is_one_line(encoder, tmp_path):
    (tmp_path / "t.txt").write_text("")
    fails(encoder, tmp_path / "t.txt", "no two consecutive paragraphs of 10 words or more")


def test_a_folder_without_text_is_one_line(encoder, tmp_path):
    fails(encoder, tmp_path, r"a folder without \.txt files")


def test_too_few_pairs_are_one_line_with_the_number_there_is(encoder, prose):
    fails(encoder, prose(4), r"has 3 pairs .* in 1 articles, but 5 segments .* Set segments=3 or less")


def test_text_that_is_not_utf8_names_the_line(encoder, tmp_path):
    (tmp_path / "t.txt").write_bytes(b"one\ntwo \xff\n")
    fails(encoder, tmp_path / "t.txt", r"t\.txt:2: not UTF-8\. Save")


@pytest.mark.parametrize("max_tokens", [4, 513, -1])
def test_a_length_the_model_cannot_take_is_one_line(encoder, prose, max_tokens):
    fails(encoder, prose(9), rf"max_tokens={max_tokens}, but model 'minilm' takes 5 to 512", max_tokens=max_tokens)


def test_no_segments_are_one_line(encoder, prose):
    fails(encoder, prose(9), r"segments=0\. Ask for one at least", count=0)
