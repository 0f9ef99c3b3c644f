"""Documents with coreferent mentions (§4.3): CoNLL-2012, OntoGUM and the project's own sample."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bertlook import BertlookError
from bertlook.corpora import Corpus, checksum, gum, read_text, silver
from bertlook.corpora.conll import Malformed, blocks, conllu, plain, tree
from bertlook.corpora.mentions import Document, Span, constituency_heads, make_mentions, starts

SAMPLE = Path(__file__).parent / "sample"
#: What opens a mention, and closes it at once or not, or closes one.
BRACKET = r"\|?(?:\(([^][(){}|]+)(\))?|([^][(){}|]+)\))"


def documents(source: str | Path, split: str = "all") -> Corpus[Document]:
    """Read a coreference corpus, without documents that have no words, or fewer than two mentions.

    Parameters
    ----------
    source : str or Path
        ``"sample"``, the documents written for this project; ``"gum"``, OntoGUM; or a file or folder:
        CoNLL-2012 (names that end in ``_conll`` or ``.conll``; in a folder with ``gold_conll`` files only
        those) or OntoGUM (``.conllu``).
    split : str
        Of ``"gum"``: ``"train"``, ``"dev"``, ``"test"`` or ``"all"``.

    Raises
    ------
    BertlookError
        There is nothing to read, or a file is malformed; says file and line.
    """
    if source == "sample":
        corpus = read_conll(sorted(SAMPLE.glob("*_conll")), "the project's own documents")
        corpus.source["licence"] = "CC0 1.0"
        return corpus
    if source == "gum":
        corpus = read_ontogum(gum.paths(split).values(), f"OntoGUM (gold), {split}")
        corpus.source |= {key: value for key, value in gum.source(split).items() if key in {"from", "licence"}}
        return corpus
    path = Path(source).expanduser()
    if not path.exists():
        raise BertlookError(
            f"coreference {str(source)!r}: no such file or folder. Give CoNLL-2012 (*_conll) or OntoGUM (.conllu) "
            "files, or one of the names sample and gum."
        )
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    if conll := [file for file in files if file.name.endswith(("_conll", ".conll"))]:
        return read_conll([file for file in conll if file.name.endswith("gold_conll")] or conll, path.name)
    if conllu := [file for file in files if file.suffix == ".conllu"]:
        return read_ontogum(conllu, path.name)
    raise BertlookError(f"{path}: no *_conll and no .conllu files here. Give CoNLL-2012 or OntoGUM files.")


def second_reading() -> str:
    """How the sample's links were checked, in words with its numbers, as the record beside the documents has them."""
    record = read_text(SAMPLE / "second-reading.tsv")
    counts = {name: int(n) for name, n in re.findall(r"^# (\w+): (\d+)$", record, re.MULTILINE)}
    same = 100 * counts["same"] / counts["mentions"]
    where = "Every link" if counts["documents"] == counts["of"] else f"In {counts['documents']} of them every link"
    return (
        f"{where} was annotated a second time, from the text and the bare mentions, by a reader that had not seen the "
        f"first annotation: of {counts['mentions']:,} mentions {same:.1f}% got the same chain both times. "
        f"Each of the {counts['disputed']:,} mentions whose chain or bracket was in dispute was looked at once "
        f"more, and {counts['corrected'] or 'none'} had to be corrected."
    )


# ------------------------------------------------------------------------------------------------------- the formats


class _Word(NamedTuple):
    """A word, the number of its line, and what its format says of it."""

    line: int
    word: str
    tag: str
    brackets: str
    parse: str = "-"
    head: int | None = None  # from 1 in the sentence, 0 for the root


@dataclass
class _Draft:
    """A document as its file has it; ``group`` is the entity's place among the fields of what opens a mention."""

    line: int
    name: str
    part: int = 0
    group: int | None = None
    sentences: list[list[_Word]] = field(default_factory=list)


def read_conll(files: Iterable[Path], name: str) -> Corpus[Document]:
    """CoNLL-2012 files: each part a document.

    Head words come from the constituency column by head rules, or from a silver parse where that column is
    empty. Words, parts of speech, that column and the last one are read; comments and the rest are passed over.
    """
    return _corpus(files, name, _conll_drafts)


def _conll_drafts(text: str, name: str) -> Iterator[_Draft]:
    # No library: conllu and NLTK's ConllCorpusReader know no documents, and want as many columns in every line.
    draft: _Draft | None = None
    sentence: list[_Word] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#begin document"):
            if draft:
                what = f"a document begins before the last one, begun in line {draft.line}, has ended"
                raise Malformed(number, what, "Add #end document")
            match = re.fullmatch(r"#begin document \((\S+)\);? *(?:part (\d{1,9}))? *", line)
            if not match:
                raise Malformed(number, "unknown header", "Write #begin document (name); part 000")
            draft, sentence = _Draft(number, match[1], int(match[2] or 0)), []
        elif line.startswith("#end document"):
            if not draft:
                raise Malformed(number, "a document ends that has not begun", "Add #begin document")
            yield draft
            draft = None
        elif not line.strip():
            sentence = []
        elif not line.startswith("#"):
            cells = line.split()
            if not draft:
                raise Malformed(number, "a word outside a document", "Add #begin document (name); part 000")
            if len(cells) < 12:
                what = f"{len(cells)} columns, but CoNLL-2012 has 12 or more"
                raise Malformed(number, what, "Complete the line")
            if not sentence:
                draft.sentences.append(sentence)
            brackets = cells[-1] if cells[-1] not in {"-", "_", "*"} else ""
            sentence.append(_Word(number, plain(cells[3]), cells[4], brackets, cells[5]))
    if draft:
        raise Malformed(draft.line, "the document has no end", "Add #end document")


def read_ontogum(files: Iterable[Path], name: str) -> Corpus[Document]:
    """OntoGUM: CoNLL-U with mentions in the ``Entity`` field of MISC; head words come from the dependencies.

    Tokens are the syntactic words; multiword tokens and empty nodes are passed over.
    """
    return _corpus(files, name, _ontogum_drafts)


def _ontogum_drafts(text: str, name: str) -> Iterator[_Draft]:
    draft, group = None, None
    for comments, lines in blocks(text, conllu):
        for number, key, value in comments:
            if key in {"newdoc", "newdoc id"}:
                if draft:
                    yield draft
                draft = _Draft(number, value or name)
            elif key == "global.Entity":
                layout = value.split("-")
                if "GRP" not in layout:
                    raise Malformed(number, "the Entity fields have no GRP", "Use files of the GUM project")
                group = layout.index("GRP") if len(layout) > 1 else None
        if lines:
            draft = draft or _Draft(lines[0][0], name)
            draft.group = group
            sentence = []
            for row, head in zip(*tree(lines, conllu), strict=True):
                entity = row.misc != "_" and re.search(r"(?:^|\|)Entity=([^|]*)", row.misc)
                sentence.append(_Word(row.line, row.word, row.tag, entity[1] if entity else "", head=head))
            draft.sentences.append(sentence)
    if draft:
        yield draft


def to_conll(documents: Iterable[Document]) -> str:
    """Documents as a CoNLL-2012 file, which :func:`read_conll` reads back.

    What the format has and a :class:`Document` has not stays empty; dependencies are lost, for the format has no
    place for them; a space in a name or word becomes an underline.
    """
    lines = []
    for document in documents:
        cells: list[list[str]] = [[] for _ in document.words]
        for m in reversed(document.mentions):  # of those that end together the innermost closes first
            if m.end - m.start > 1:
                cells[m.end - 1].append(f"{m.entity})")
        for m in document.mentions:
            cells[m.start].append(f"({m.entity})" if m.end - m.start == 1 else f"({m.entity}")
        name = "_".join(document.name.split())
        lines.append(f"#begin document ({name}); part {document.part:03d}")
        for start, end in document.spans():
            for i in range(start, end):
                parse = document.parses[i] if document.parses else "-"
                word = "_".join(document.words[i].split())
                columns = [name, document.part, i - start, word, document.tags[i] or "-", parse]
                lines.append("\t".join([*map(str, columns), "-", "-", "-", "-", "*", "|".join(cells[i]) or "-"]))
            lines.append("")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------ drafts to documents


def _corpus(files: Iterable[Path], name: str, drafts: Callable[[str, str], Iterator[_Draft]]) -> Corpus[Document]:
    files = list(files)
    seen: dict[tuple[str, int], str] = {}
    left_out: Counter[str] = Counter()
    items = []
    for file in files:
        try:
            for draft in drafts(read_text(file), file.stem):
                here = f"{file}:{draft.line}"
                if (first := seen.setdefault((draft.name, draft.part), here)) != here:
                    what = f"document {draft.name} part {draft.part} was already read from {first}"
                    raise Malformed(draft.line, what, "Give it another name, or leave one of them out")
                marked = _marked(draft)
                spans = set(marked)
                if not draft.sentences:
                    left_out["documents without words"] += 1
                elif len(spans) < 2:
                    left_out["documents with fewer than two mentions"] += 1
                else:
                    left_out["mentions marked twice"] += len(marked) - len(spans)
                    items.append(_document(draft, spans))
        except Malformed as error:
            raise BertlookError(f"{file}:{error}.") from None
    left_out = +left_out  # no zeros
    if not items:
        left = Corpus(name, items, left_out).left_out_text()
        raise BertlookError(f"{name}: no document with two mentions (left out: {left}). Give files that hold some.")
    heads = Counter(document.heads_from for document in items)
    sha256 = checksum(sorted(files))
    source: dict[str, Any] = {"corpus": name, "files": len(files), "sha256": sha256, "heads": dict(heads)}
    if "silver parse" in heads:
        source["parser"] = silver.parser_version()
    return Corpus(name, items, left_out, source)


def _marked(draft: _Draft) -> list[Span]:
    """The spans between brackets; an id closes the mention of that id opened last."""
    spans: list[Span] = []
    opened: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for position, (line, _, _, cell, *_) in enumerate(chain(*draft.sentences)):
        if not cell:
            continue
        if rest := re.sub(f"^(?:{BRACKET})*", "", cell):
            what = f"cannot read {rest!r} of the mentions {cell!r}"
            raise Malformed(line, what, "Write (1 … 1) around a mention of entity 1 and (1) on a mention of one word")
        for opens, single, closes in re.findall(BRACKET, cell):
            entity = closes or (opens if draft.group is None else "".join(opens.split("-")[draft.group :][:1]))
            if opens:
                opened[entity].append((position, line))
            if not entity:
                raise Malformed(line, f"mention ({opens} names no entity", "Write (1 … 1) or (1)")
            if not opened[entity]:
                remedy = f"Add ({entity} where the mention starts, or take {entity}) away"
                raise Malformed(line, f"entity {entity} is closed but was not opened in this part", remedy)
            if closes or single:
                spans.append((opened[entity].pop()[0], position + 1, entity))
    for entity, places in opened.items():
        if places:
            what = f"entity {entity} is opened but not closed by the end of the part"
            remedy = f"Add {entity}) where the mention ends; a mention cannot go on in another part"
            raise Malformed(places[0][1], what, remedy)
    return spans


def _document(draft: _Draft, spans: Iterable[Span]) -> Document:
    _, words, tags, _, parses, heads = zip(*chain(*draft.sentences), strict=True)
    trees: Sequence[Sequence[int]]
    if None not in heads:
        heads_from, trees = "dependencies", [[word.head or 0 for word in sentence] for sentence in draft.sentences]
        parses = ()
    elif any("(" in parse for parse in parses):
        heads_from, trees = "constituency", [_constituency(sentence) for sentence in draft.sentences]
    else:
        docs = silver.parsed([word.word for word in sentence] for sentence in draft.sentences)
        heads_from, trees, parses = "silver parse", [silver.heads(doc[:]) for doc in docs], ()
    mentions = make_mentions(spans, words, tags, trees)
    return Document(draft.name, words, tags, starts(trees), mentions, heads_from, parses, draft.part)


def _constituency(sentence: Sequence[_Word]) -> list[int]:
    try:
        return constituency_heads([word.parse for word in sentence], [word.tag for word in sentence])
    except ValueError as error:
        what = "the constituency column of this sentence does not form a tree"
        remedy = "Correct it, or write - in the whole column for a silver parse"
        raise Malformed(sentence[0].line, what, remedy) from error
