"""Coreference corpora: the readers, their errors, head words, the markup of the sample."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertlook import BertlookError
from bertlook.corpora import markup
from bertlook.corpora.antecedents import questions
from bertlook.corpora.coreference import SAMPLE, documents, read_conll, read_ontogum, second_reading, to_conll
from bertlook.corpora.mentions import KINDS, head_child, kind

PARTS = """\
# a comment
#begin document (nw/old/00/old_0001); part 000
nw/old/00/old_0001 0 0 The DT (TOP(S(NP(NP* - - - - * (0
nw/old/00/old_0001 0 1 mayor NN *) - - - - * -
nw/old/00/old_0001 0 2 of IN (PP* - - - - * -
nw/old/00/old_0001 0 3 Rome NNP (NP*))) - - - - * (1)|0)
nw/old/00/old_0001 0 4 -LRB- -LRB- (PRN* - - - - * -
nw/old/00/old_0001 0 5 her PRP$ (NP(NP* - - - - * (2|(0)
nw/old/00/old_0001 0 6 friend NN *) - - - - * 2)|(1
nw/old/00/old_0001 0 7 there RB (ADVP*)) - - - - * 1)
nw/old/00/old_0001 0 8 -RRB- -RRB- *) - - - - * -
nw/old/00/old_0001 0 9 slept VBD (VP*))) - - - - * -

nw/old/00/old_0001 0 0 She PRP (TOP(S(NP*) - - - - * (0)|(0)
nw/old/00/old_0001 0 1 woke VBD (VP*))) - - - - * -

#end document
#begin document (nw/old/00/old_0001); part 001
nw/old/00/old_0001 1 0 Bees NNS - - - - - * (0)
nw/old/00/old_0001 1 1 hum VBP - - - - - * -

nw/old/00/old_0001 1 0 They PRP - - - - - * (0)
nw/old/00/old_0001 1 1 fly VBP - - - - - * -

#end document
"""

ONTO = """\
# newdoc id = GUM_toy_one
# global.Entity = GRP
# sent_id = 1
1-2\tAnna's\t_\t_\t_\t_\t_\t_\t_\t_
1\tAnna\tAnna\tPROPN\tNNP\t_\t4\tnmod:poss\t_\tEntity=(2(1
2\t's\t's\tPART\tPOS\t_\t1\tcase\t_\tEntity=1)
3\told\told\tADJ\tJJ\t_\t4\tamod\t_\t_
4\tcar\tcar\tNOUN\tNN\t_\t5\tnsubj\t_\tEntity=2)
5\tbroke\tbreak\tVERB\tVBD\t_\t0\troot\t_\tSpaceAfter=No
5.1\tbroke\tbreak\tVERB\tVBD\t_\t_\t_\t_\tEntity=(9)
6\t.\t.\tPUNCT\t.\t_\t5\tpunct\t_\t_

1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\tEntity=(1)
2\tsold\tsell\tVERB\tVBD\t_\t0\troot\t_\t_
3\tit\tit\tPRON\tPRP\t_\t2\tobj\t_\tMSeg=it|Entity=(2)|SpaceAfter=No

# newdoc id = GUM_toy_two
1\tNobody\tnobody\tPRON\tNN\t_\t2\tnsubj\t_\t_
2\tcame\tcome\tVERB\tVBD\t_\t0\troot\t_\t_
"""

FILLER = "Nothing else happened for weeks, and the river went on to rise and to fall as rivers do in a wet spring. " * 3
MARKED = f"""\
# id: toy-001
# title: The bridge
[council The city council] closed [bridge the old bridge, which was built in 1911].
[council It] said that [bridge the bridge] was unsafe; [singh [council the council's] engineer, Meera Singh], agreed.
[singh She]'s the one who knew.
{FILLER.strip()}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def found(document):
    return [(document.text(m), m.entity, document.words[m.head], m.kind) for m in document.mentions]


def test_conll_parts_nested_crossing_and_repeated_mentions(tmp_path):
    corpus = documents(write(tmp_path, "old.v4_gold_conll", PARTS))
    first, second = corpus
    assert found(first) == [
        ("The mayor of Rome", "0", "mayor", "nominal"),
        ("Rome", "1", "Rome", "proper"),
        ("her friend", "2", "friend", "nominal"),
        ("her", "0", "her", "pronoun"),
        ("friend there", "1", "friend", "nominal"),
        ("She", "0", "She", "pronoun"),
    ]
    assert first.words[4] == "("
    assert (first.part, first.spans(), first.heads_from) == (0, [(0, 10), (10, 12)], "constituency")
    assert (second.part, found(second), second.heads_from) == (
        1,
        [("Bees", "0", "Bees", "nominal"), ("They", "0", "They", "pronoun")],
        "silver parse",
    )
    assert corpus.left_out == {"mentions marked twice": 1}
    assert corpus.source["heads"] == {"constituency": 1, "silver parse": 1}
    assert "parser" in corpus.source


def test_read_write_read_is_the_same(tmp_path):
    once = documents(write(tmp_path, "one.v4_gold_conll", PARTS)).items
    text = to_conll(once)
    assert documents(write(tmp_path, "two.v4_gold_conll", text).parent / "two.v4_gold_conll").items == once
    assert to_conll(once) == text


def test_a_folder_is_read_gold_files_only(tmp_path):
    (tmp_path / "a").mkdir()
    write(tmp_path / "a", "old.v4_gold_conll", PARTS)
    write(tmp_path / "a", "old.v4_auto_conll", "not a word of CoNLL")
    assert len(documents(tmp_path)) == 2
    write(tmp_path, "copy.v4_gold_conll", PARTS)
    with pytest.raises(BertlookError, match=r"document nw/old/00/old_0001 part 0 was already read from .*:2\. "):
        documents(tmp_path)


def test_ontogum_mentions_words_and_heads(tmp_path):
    corpus = documents(write(tmp_path, "toy.conllu", ONTO))
    (document,) = corpus
    assert document.words == ("Anna", "'s", "old", "car", "broke", ".", "She", "sold", "it")
    assert document.sentences == (0, 6)
    assert found(document) == [
        ("Anna 's old car", "2", "car", "nominal"),
        ("Anna 's", "1", "Anna", "proper"),
        ("She", "1", "She", "pronoun"),
        ("it", "2", "it", "pronoun"),
    ]
    assert document.heads_from == "dependencies"
    assert corpus.left_out == {"documents with fewer than two mentions": 1}


def test_ontogum_with_more_fields_takes_the_group(tmp_path):
    text = ONTO.replace("= GRP", "= etype-GRP").replace("(2(1", "(object-2(person-1").replace("=(", "=(x-")
    text = text.replace("(x-object", "(object")
    assert found(documents(write(tmp_path, "a.conllu", text)).items[0]) == found(
        documents(write(tmp_path, "b.conllu", ONTO)).items[0]
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("* (1)|0)", "* (1)|3)", 6, "entity 3 is closed but was not opened"),
        ("* (0\n", "* (0|(5\n", 3, "entity 5 is opened but not closed by the end of the part"),
        ("* (1)|0)", "* (1)|[0)", 6, "cannot read '|[0)'"),
        ("* (1)|0)", "* (1)|0]", 6, "cannot read '|0]'"),
        ("* (1)|0)", "* ()|0)", 6, "cannot read '()|0)'"),
        ("#end document\n#begin", "#begin", 17, "a document begins before the last one, begun in line 2"),
        ("nw/old/00/old_0001 1 0 Bees", "nw/old/00/old_0001 1 0 Bees NNS\nx", 19, "5 columns"),
        ("part 001", "part 000", 18, "was already read from"),
        ("# a comment\n#begin", "# a comment\n#end document\n#begin", 2, "a document ends that has not begun"),
        ("# a comment", "word", 1, "a word outside a document"),
        ("); part 001", "; part", 18, "unknown header"),
        ("(PRN*", "(PRN(*", 3, "does not form a tree"),
        ("(TOP(S(NP*)", "(TOP(S*)", 14, "does not form a tree"),
    ],
)
def test_a_malformed_conll_file_is_told_by_line(tmp_path, old, new, line, what):
    assert old in PARTS
    path = write(tmp_path, "old_conll", PARTS.replace(old, new, 1))
    with pytest.raises(BertlookError) as error:
        documents(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


def test_a_conll_document_without_end(tmp_path):
    path = write(tmp_path, "old_conll", PARTS.rstrip().removesuffix("#end document"))
    with pytest.raises(BertlookError, match=r":18: the document has no end\. Add #end document\."):
        documents(path)


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("Entity=2)", "Entity=3)", 8, "entity 3 is closed but was not opened"),
        ("Entity=1)", "_", 5, "entity 1 is opened but not closed"),
        ("Entity=(1)", "Entity=(1}", 13, "cannot read '}' of the mentions '(1}'"),
        ("\t0\troot", "\t42\troot", 9, "head 42, but the sentence has 6 words"),
        ("3\told", "5\told", 7, "word 5 where 3 is due"),
        ("\tJJ\t", "\t", 7, "9 columns"),
        ("\tcar\tcar", "\t\tcar", 8, "an empty cell"),
        ("= GRP", "= etype", 2, "have no GRP"),
        ("_two", "_one", 17, "was already read"),
    ],
)
def test_a_malformed_ontogum_file_is_told_by_line(tmp_path, old, new, line, what):
    assert old in ONTO
    path = write(tmp_path, "toy.conllu", ONTO.replace(old, new, 1))
    with pytest.raises(BertlookError) as error:
        documents(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(BertlookError, match="no such file or folder"):
        documents(tmp_path / "nowhere")
    with pytest.raises(BertlookError, match=r"no \*_conll and no \.conllu files here"):
        documents(tmp_path)
    write(tmp_path, "empty_conll", "#begin document (x); part 000\n#end document\n")
    with pytest.raises(BertlookError, match="left out: 1 documents without words"):
        documents(tmp_path)
    (tmp_path / "latin_conll").write_bytes(b"#begin\n\xe9")
    with pytest.raises(BertlookError, match="latin_conll:2: not UTF-8"):
        documents(tmp_path / "latin_conll")


def test_kinds():
    assert kind(["It"], "PRP") == kind(["this"], "DT") == kind(["himself"], "PRP") == "pronoun"
    assert kind(["US"], "NNP") == kind(["The", "Bank"], "NNP") == "proper"
    assert kind(["these", "two"], "CD") == kind(["mine"], "NN") == kind(["both"], "DT") == "nominal"


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("NP", "DT JJ NN", 2),
        ("NP", "NP NN", 1),
        ("NP", "NNP POS", 0),
        ("NP", "NP PP", 0),
        ("NP", "NP CC NP", 0),
        ("NP-SBJ", "NP , SBAR ,", 0),
        ("NP", "DT CD", 1),
        ("NP", "DT JJ", 1),
        ("S", "NP VP .", 1),
        ("PP", "IN NP", 0),
        ("FRAG", "NP .", 0),
        ("NP", "-LRB- -RRB-", 1),
    ],
)
def test_head_rules(label, children, head):
    assert head_child(label, children.split()) == head


def test_markup_is_converted_and_read_back(tmp_path):
    path = write(tmp_path, "toy.txt", MARKED)
    assert markup.main(["check", str(path)]) == 0
    assert markup.main(["convert", str(path)]) == 0
    text = (tmp_path / "toy.v4_gold_conll").read_text(encoding="utf-8")
    assert text.startswith("# Generated from toy.txt")
    assert "silver" in text.split("#begin")[0]
    (document,) = documents(tmp_path)
    assert found(document) == [
        ("The city council", "0", "council", "nominal"),
        ("the old bridge , which was built in 1911", "1", "bridge", "nominal"),
        ("It", "0", "It", "pronoun"),
        ("the bridge", "1", "bridge", "nominal"),
        ("the council 's engineer , Meera Singh", "2", "engineer", "nominal"),
        ("the council 's", "0", "council", "nominal"),
        ("She", "2", "She", "pronoun"),
    ]
    assert len(document.sentences) == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("[singh She]'s", "[singh She's", 5, "the mention of singh is not closed"),
        ("[singh She]'s", "singh She]'s", 5, "a bracket closes that was not opened"),
        ("[singh She]'s", "[Singh She]'s", 5, "'[Singh' names no entity"),
        ("[singh She]'s", "[singh ]'s", 5, "is empty"),
        ("in 1911]", "in 1911 ]", 3, "ends in a space"),
        ("Meera Singh],", "Meera Singh,]", 4, "comma"),
        ("[singh She]'s", "[singh Sh]e's", 5, "cut a word"),
        ("[singh She]'s", "She's", 1, "entity singh of toy-001 has one mention only"),
        ("[singh She]'s", "[singh [council She]]'s", 5, "'She' is marked 2 times"),
        ("said that", "said  that", 4, "a space too many"),
        ("knew.", "[knew knew]; she [knew knew].", 5, "for the head word of 'knew'"),
        ("# id: toy-001\n", "", 2, "text before the first header"),
        ("# title: The bridge", "# id: toy-001", 2, "begins a second time"),
        (FILLER.strip(), "", 1, "toy-001 has 30 words. Make it 60 to 120"),
    ],
)
def test_the_checker_tells_the_line(tmp_path, old, new, line, what, capsys):
    assert old in MARKED
    path = write(tmp_path, "toy.txt", MARKED.replace(old, new, 1))
    problems = markup.check([path])
    assert any(p.startswith(f"{path}:{line}: ") and what in p and "\n" not in p for p in problems), problems
    with pytest.raises(BertlookError):
        markup.convert(path)
    assert markup.main(["check", str(path)]) == 1
    assert what in capsys.readouterr().out


def test_a_document_in_two_files_is_told(tmp_path):
    paths = [write(tmp_path, name, MARKED) for name in ("a.txt", "b.txt")]
    assert [p.split(": ")[1] for p in markup.check(paths)] == [
        "document toy-001 is also in " + f"{paths[0]}. Rename one."
    ]


READERS = {
    "old_conll": (PARTS, lambda path: read_conll([path], "toy")),
    "toy.conllu": (ONTO, lambda path: read_ontogum([path], "toy")),
    "toy.txt": (MARKED, markup.convert),
}


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_file_is_read_or_refused_in_one_line(tmp_path, name, data):
    text, read = READERS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 8))
        text = text[:start] + data.draw(st.text("()[]|*-_=\t\n #10aé\x00\u2028", max_size=4)) + text[end:]
    path = write(tmp_path, name, text)
    try:
        read(path)
    except BertlookError as error:
        assert "\n" not in str(error)


GENRES = sorted(SAMPLE.glob("*_conll"))


def test_the_sample_is_what_its_markup_says():
    sources = [path.with_suffix(".txt") for path in GENRES]
    assert markup.check(sources) == []
    for source, path in zip(sources, GENRES, strict=True):
        assert markup.convert(source) == path.read_text(encoding="utf-8")
    corpus = documents("sample")
    counts = Counter(d.mentions[q.mention].kind for d in corpus for q in questions(d)[0])
    assert len(corpus) >= 120
    assert counts.total() >= 1200
    assert min(counts[kind] for kind in KINDS) >= 300


@pytest.fixture(scope="session")
def ontogum(open_data):
    files = sorted(open_data.glob("gum/*/coref/ontogum/conllu/*.conllu"))
    return files, read_ontogum(files, "OntoGUM")


def test_ontogum_has_as_many_entities_and_mentions_as_its_files(ontogum):
    files, corpus = ontogum
    assert len(corpus) == len(files) == 237
    for file, document in zip(files, corpus, strict=True):
        cells = re.findall(r"^\d+\t.*Entity=([^|\n]*)", file.read_text(encoding="utf-8"), re.MULTILINE)
        opened = [name for cell in cells for name in re.findall(r"\((\d+)", cell)]
        assert document.name == file.stem
        assert Counter(m.entity for m in document.mentions) == Counter(opened)
        assert all(m.start <= m.head < m.end for m in document.mentions)


def test_ontogum_by_another_reader(ontogum):
    conllu = pytest.importorskip("conllu")
    for file, document in list(zip(*ontogum, strict=True))[::60]:
        sentences = conllu.parse(file.read_text(encoding="utf-8"))
        words = [[token for token in sentence if isinstance(token["id"], int)] for sentence in sentences]
        assert document.words == tuple(token["form"] for sentence in words for token in sentence)
        assert document.tags == tuple(token["xpos"] for sentence in words for token in sentence)
        starts = [sum(map(len, words[:i])) for i in range(len(words))]
        assert document.sentences == tuple(starts)
        heads = [s + t["head"] - 1 if t["head"] else -1 for s, ts in zip(starts, words, strict=True) for t in ts]
        for m in document.mentions:
            assert not m.start <= heads[m.head] < m.end


def test_ontogum_goes_through_conll(ontogum, tmp_path):
    before = ontogum[1].items[:3]
    once = documents(write(tmp_path, "gum_conll", to_conll(before))).items
    for a, b in zip(before, once, strict=True):
        assert (a.name, a.words, a.tags, a.sentences) == (b.name, b.words, b.tags, b.sentences)
        assert [(m.start, m.end, m.entity) for m in a.mentions] == [(m.start, m.end, m.entity) for m in b.mentions]
    assert documents(write(tmp_path, "gum_conll", to_conll(once))).items == once


@pytest.mark.parametrize("name", ["second-reading.tsv", "third-reading.tsv"])
def test_the_record_of_a_reading_is_of_this_corpus(name):
    record = (SAMPLE / name).read_text(encoding="utf-8")
    counts = {key: int(n) for key, n in re.findall(r"^# (\w+): (\d+)$", record, re.MULTILINE)}
    corpus = documents("sample")
    assert counts["of"] == len(corpus)
    assert counts["documents"] <= len(corpus) and counts["same"] <= counts["mentions"]
    assert counts["mentions"] <= sum(len(d.mentions) for d in corpus)
    names, *rows = [line.split("\t") for line in record.splitlines() if not line.startswith("#")]
    assert names == ["document", "line", "mention", "first", "second", "decision", "reason"]
    assert counts["disputed"] == len(rows)
    assert counts["corrected"] == sum(row[5] == "second" for row in rows)
    sentences = {d.name: len(d.sentences) for d in corpus}
    for document, line, *rest in rows:
        assert 1 <= int(line) <= sentences[document]
        assert len(rest) == 5 and all(rest) and rest[3] in {"first", "second"}


def test_the_sentence_on_the_second_reading_has_the_records_numbers():
    assert "of 3,142 mentions 99.1% got the same chain both times" in second_reading()
    assert "Each of the 40 mentions" in second_reading() and "37 had to be corrected" in second_reading()


@pytest.mark.parametrize(
    ("name", "mentions"),
    [
        ("instructions-004", ["an arrow", "the arrow"]),
        ("instructions-007", ["the weaver Yemisi Alade", "Alade", "her", "Alade"]),
        ("instructions-013", ["this", "the trick"]),
    ],
)
def test_what_readers_marked_in_the_instructions_is_one_chain(name, mentions):
    (document,) = [d for d in documents("sample") if d.name == name]
    chains: dict[str, list[str]] = {}
    for m in document.mentions:
        chains.setdefault(m.entity, []).append(document.text(m))
    assert mentions in chains.values()


def test_the_table_of_the_sample_is_of_this_corpus():
    genres: dict[str, Counter[str]] = {}
    for d in documents("sample"):
        counts = genres.setdefault(d.name.rsplit("-", 1)[0], Counter())
        counts.update(["documents"])
        counts["mentions"] += len(d.mentions)
        counts.update(d.mentions[q.mention].kind for q in questions(d)[0])
    columns = ("documents", "mentions", *KINDS)
    table = [f"| {genre} | {' | '.join(str(n[c]) for c in columns)} |" for genre, n in sorted(genres.items())]
    assert "\n".join(table) in (SAMPLE / "README.md").read_text(encoding="utf-8")
