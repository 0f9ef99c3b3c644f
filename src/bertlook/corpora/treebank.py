"""Treebanks (§4.2): files of four formats, GUM, the NLTK sample and spaCy's silver trees, to sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from bertlook import BertlookError
from bertlook.corpora import Corpus, checksum, gum, read_text, schemes
from bertlook.corpora.coreference import PTB_BRACKETS
from bertlook.corpora.silver import parser, parser_version, spacy_sentence
from bertlook.corpora.text import WIKIPEDIA, articles, text_source

if TYPE_CHECKING:
    from spacy.tokens import Span

#: File endings and their formats; other files are recognised by their first line.
ENDINGS = {".conllu": "conllu", ".conllx": "conllx", ".conll": "conllx"}
FORMATS = ("conllu", "conllx", "authors")
SCHEMES = ("paper", "raw")
MARKS = frozenset(".,;:!?…()[]{}'\"`‘’“”«»–—-/")
PUNCTUATION_TAGS = frozenset(". , : `` '' \" -LRB- -RRB- ( ) HYPH NFP".split())
UPOS = frozenset("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
#: CoNLL-X may lack its last two columns.
COLUMNS = (8, 10)
SHORT, UNNUMBERED = "sentences with missing columns", "sentences with wrong word numbers"
#: First and last file of the NLTK sample; it has no splits of its own.
NLTK_SPLITS = {"train": (1, 159), "dev": (160, 179), "test": (180, 199), "all": (1, 199)}
#: spaCy's limit for one text.
MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class Sentence:
    """A sentence and its dependency tree.

    Attributes
    ----------
    words : tuple of str
    heads : tuple of int
        Position of each word's head word, from 1; 0 is the root.
    relations : tuple of str
    document : str
    tags : tuple of str
        Penn Treebank parts of speech, or what the treebank has instead; ``""`` where it has none.
    punct : tuple of bool
        Which words are punctuation, by their tags, or by their characters where there are no tags.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    document: str
    tags: tuple[str, ...]
    punct: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.words)


class _Malformed(BertlookError):
    """A sentence that is no tree, or a line that is no word; ``reason`` is what it is counted under."""

    def __init__(self, file: str, line: int, what: str, remedy: str, reason: str) -> None:
        super().__init__(f"{file}:{line}: {what}. {remedy}, or leave such sentences out with skip_invalid.")
        self.reason = reason


@dataclass(frozen=True)
class _Row:
    line: int
    word: str
    head: str
    relation: str
    tag: str = ""
    upos: str = ""
    number: int | None = None


RowReader = Callable[[str, int, str], _Row | None]


def treebank(
    source: str | Path,
    split: str = "all",
    scheme: str = "paper",
    format: str | None = None,
    skip_invalid: bool = False,
    limit: int | None = None,
    text: str = WIKIPEDIA,
) -> Corpus[Sentence]:
    """Read a treebank.

    Parameters
    ----------
    source : str or Path
        ``"gum"``; ``"silver"``, running text parsed by spaCy; ``"nltk"``, the Penn Treebank sample with gold heads
        and no relations (all are ``dep``); or a file or folder of CoNLL-U, CoNLL-X, or lines ``word head-relation``
        as the paper's authors use them.
    split : str
        ``"train"``, ``"dev"``, ``"test"`` or ``"all"``. GUM's are its own; of the NLTK sample, files 1–159, 160–179
        and 180–199; in a folder, the files with that word in their name. Of a text, every tenth article is ``dev``,
        the one after it ``test``, the others ``train``.
    scheme : str
        ``"paper"``: trees and labels as in Stanford Dependencies, see :func:`bertlook.corpora.schemes.from_ud`;
        a treebank that has these already is left as it is. ``"raw"``: as they are.
    format : str, optional
        ``"conllu"``, ``"conllx"`` or ``"authors"``, where file endings (``.conllu``, ``.conllx``, ``.conll``) and
        the first line do not tell.
    skip_invalid : bool
        Leave out malformed sentences and count them, by reason, rather than stop at the first.
    limit : int, optional
        At most so many sentences, evenly spaced over the treebank; of silver, which is parsed as it is read, the
        first.
    text : str
        The text for silver, as in :func:`bertlook.corpora.text.articles`.

    Returns
    -------
    Corpus of Sentence

    Raises
    ------
    BertlookError
        There is nothing to read, or a sentence is malformed; says file and line.
    """
    if scheme not in SCHEMES:
        raise BertlookError(f"treebank scheme {scheme!r} is not known. Use paper or raw.")
    if split not in (*gum.SPLITS, "all"):
        raise BertlookError(f"treebank split {split!r} is not known. Use train, dev, test or all.")
    if format not in (*FORMATS, None):
        raise BertlookError(f"treebank format {format!r} is not known. Use conllu, conllx or authors.")
    if limit is not None and limit < 1:
        raise BertlookError(f"limit={limit}. Ask for one sentence at least.")
    left_out: Counter[str] = Counter()
    about: dict[str, Any] = {"treebank": str(source), "split": split}
    if source == "silver":
        parsed = silver(_paragraphs(text, split, left_out), scheme, limit, f"{text} (silver: parsed by spaCy), {split}")
        return replace(parsed, left_out=parsed.left_out + left_out, source=about | text_source(text) | parsed.source)
    if source == "gum":
        found = gum.paths(split)
        sentences = [s for name, file in found.items() for s in _read(file, "conllu", skip_invalid, left_out, name)]
        name, about = f"GUM (gold), {split}", gum.source(split)
    elif source == "nltk":
        sentences = list(_read_nltk(split, skip_invalid, left_out))
        name = f"Penn Treebank sample of NLTK (gold heads), {split}"
        about |= {"from": "nltk_data, dependency_treebank", "licence": "non-commercial use"}
    else:
        files = _files(Path(source).expanduser(), split)
        sentences = [s for file in files for s in _read(file, format, skip_invalid, left_out)]
        name = Path(source).name if split == "all" else f"{Path(source).name}, {split}"
        about |= {"files": len(files), "sha256": checksum(files)}
    if not sentences:
        left = Corpus(name, sentences, left_out).left_out_text()
        raise BertlookError(f"treebank {str(source)!r}: no sentence in it (left out: {left}). Give one that has some.")
    if scheme == "paper" and schemes.is_ud({relation for s in sentences for relation in s.relations}):
        sentences = [_convert(s, schemes.from_ud) for s in sentences]
    if limit and limit < len(sentences):
        sentences = [sentences[i * len(sentences) // limit] for i in range(limit)]
    return Corpus(name, sentences, left_out, about | _size(sentences, scheme))


def _paragraphs(text: str, split: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Document and text of each paragraph of a split: articles are dealt out by turns."""
    turns = {"dev": {0}, "test": {1}, "train": set(range(2, 10)), "all": set(range(10))}[split]
    for number, article in enumerate(articles(text, left_out)):
        if number % 10 in turns:
            yield from ((article.title, paragraph) for paragraph in article.paragraphs)


def silver(
    paragraphs: Iterable[tuple[str, str]], scheme: str = "paper", limit: int | None = None, name: str = "silver"
) -> Corpus[Sentence]:
    """Sentences of running text with spaCy's trees.

    Parameters
    ----------
    paragraphs : iterable of (str, str)
        Document and text of each paragraph. Read as a stream; with a ``limit`` not to its end.
    scheme : str
        ``"paper"``, see :func:`bertlook.corpora.schemes.from_spacy`, or ``"raw"``.
    limit : int, optional
        At most so many sentences: the first.
    name : str
        What to call the corpus.
    """
    left_out: Counter[str] = Counter()

    def texts() -> Iterator[tuple[str, str]]:
        for document, paragraph in paragraphs:
            text = " ".join(paragraph.split())
            if len(text) > MAX_CHARACTERS:
                left_out[f"paragraphs over {MAX_CHARACTERS:,} characters"] += 1
            elif text:
                yield text, document

    parsed = parser().pipe(texts(), as_tuples=True, batch_size=64)
    found = (_from_spacy(span, document, scheme) for doc, document in parsed for span in doc.sents)
    sentences = list(islice(found, limit))
    if not sentences:
        raise BertlookError("silver treebank: the text has no sentences. Give running text.")
    return Corpus(name, sentences, left_out, _silver_source() | _size(sentences, scheme))


def reparsed(corpus: Corpus[Sentence], scheme: str = "paper") -> Corpus[Sentence]:
    """The same sentences, word by word, with spaCy's trees instead of their own: what silver does to a result."""
    docs = parser().pipe((spacy_sentence(sentence.words) for sentence in corpus), batch_size=256)
    sentences = [
        replace(_from_spacy(doc[:], own.document, scheme), punct=own.punct)
        for own, doc in zip(corpus, docs, strict=True)
    ]
    source = corpus.source | _silver_source() | _size(sentences, scheme)
    return Corpus(f"{corpus.name}, parsed by spaCy", sentences, corpus.left_out.copy(), source)


def _silver_source() -> dict[str, Any]:
    return {"parser": parser_version()}


def _size(sentences: Sequence[Sentence], scheme: str) -> dict[str, Any]:
    return {"scheme": scheme, "sentences": len(sentences), "words": sum(map(len, sentences))}


def _convert(sentence: Sentence, view: Callable[..., schemes.Tree]) -> Sentence:
    heads, relations = view(sentence.words, sentence.tags, sentence.heads, sentence.relations)
    return replace(sentence, heads=heads, relations=relations)


# ------------------------------------------------------------------------------------------------------------- spaCy


def _from_spacy(span: Span, document: str, scheme: str) -> Sentence:
    sentence = Sentence(
        tuple(token.text for token in span),
        tuple(0 if token.head.i == token.i else token.head.i - span.start + 1 for token in span),
        tuple(token.dep_ for token in span),
        document,
        tuple(token.tag_ for token in span),
        tuple(is_punctuation(token.text, token.tag_, token.pos_) for token in span),
    )
    return _convert(sentence, schemes.from_spacy) if scheme == "paper" else sentence


def is_punctuation(word: str, tag: str = "", upos: str = "") -> bool:
    """Whether a word is punctuation: by UD's part of speech, else by the Penn Treebank's, else by its characters."""
    if upos in UPOS:
        return upos == "PUNCT"
    return tag in PUNCTUATION_TAGS if tag else set(word) <= MARKS


# ----------------------------------------------------------------------------------------------------- files, formats


def _files(path: Path, split: str) -> list[Path]:
    if not path.exists():
        raise BertlookError(
            f"treebank {str(path)!r}: no such file or folder. Give CoNLL-U, CoNLL-X or the authors' files, or one of "
            "the names gum, silver and nltk."
        )
    if not path.is_dir():
        if split != "all":
            raise BertlookError(f"treebank {path}: one file has no {split} split. Give a folder with train and dev.")
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in {*ENDINGS, ".txt"} and file.is_file())
    chosen = [file for file in files if split == "all" or split in file.stem.lower()]
    if not chosen:
        what = "treebank file" if split == "all" else f"treebank file with {split} in its name"
        raise BertlookError(f"treebank {path}: no {what} (.conllu, .conllx, .conll, .txt). Put one there.")
    return chosen


def _read(
    file: Path, format: str | None, skip_invalid: bool, left_out: Counter[str], document: str = ""
) -> Iterator[Sentence]:
    """The sentences of a file; ``document`` is what to call it where it names none itself."""
    try:
        lines = [part for line in read_text(file).split("\n") for part in line.split("\r")]
    except OSError as error:
        raise BertlookError(f"{file}: cannot be read ({error.strerror}). Check the file.") from error
    row = ROWS[format or ENDINGS.get(file.suffix) or _recognise(file, lines)]
    return _sentences(str(file), lines, row, document or file.stem, skip_invalid, left_out)


def _sentences(
    file: str, lines: list[str], row: RowReader, document: str, skip_invalid: bool, left_out: Counter[str]
) -> Iterator[Sentence]:
    has_comments = row in (_conllu_row, _conllx_row)
    empty = True
    for start, block in _blocks(lines):
        comments = [line for line in block if has_comments and line[0] == "#"]
        document = _document(comments) or document
        if len(comments) == len(block):
            continue
        empty = False
        try:
            numbered = [(n, line) for n, line in enumerate(block, start) if not (has_comments and line[0] == "#")]
            rows = [found for n, line in numbered if (found := row(file, n, line))]
            yield _sentence(file, numbered[0][0], rows, document)
        except _Malformed as error:
            if not skip_invalid:
                raise
            left_out[error.reason] += 1
    if empty:
        if not skip_invalid:
            raise BertlookError(f"{file}:1: no sentence in this file. Fill it, take it away, or use skip_invalid.")
        left_out["files without sentences"] += 1


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank ones, with the number of their first line."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _document(comments: Iterable[str]) -> str:
    """The id in ``# newdoc id``, if there is one."""
    pairs = (pair for comment in comments for pair in parse_comment_line(comment))
    return next((value or "" for key, value in pairs if key == "newdoc id"), "")


def _recognise(file: Path, lines: Iterable[str]) -> str:
    number, line = next(((n, line) for n, line in enumerate(lines, 1) if line.strip()), (1, ""))
    if not line:
        raise BertlookError(f"{file}:1: no sentence in this file. Fill it, or take it away.")
    if re.fullmatch(r"\s*\S+[ \t]+\d+-\S+\s*", line):
        return "authors"
    if line[0] == "#" or len(line.split("\t")) in COLUMNS:
        return "conllu" if line[0] == "#" else "conllx"
    raise BertlookError(f"{file}:{number}: not a line of any format known here. Say which it is, with format.")


def _conllu_row(file: str, line: int, text: str) -> _Row | None:
    cells = text.split("\t")
    if len(cells) != 10:
        raise _Malformed(file, line, f"{len(cells)} columns, but CoNLL-U has 10", "Separate them by tabs", SHORT)
    return _conll_row(file, line, cells)


def _conllx_row(file: str, line: int, text: str) -> _Row | None:
    cells = text.split("\t")
    if len(cells) not in COLUMNS:
        raise _Malformed(file, line, f"{len(cells)} columns, but CoNLL-X has 10", "Separate them by tabs", SHORT)
    cells[1] = PTB_BRACKETS.get(cells[1], cells[1])
    return _conll_row(file, line, cells)


def _conll_row(file: str, line: int, cells: list[str]) -> _Row | None:
    try:
        number = parse_id_value(cells[0])
    except (ParseException, ValueError):
        number = None
    if isinstance(number, tuple):  # a multiword token or an empty node
        return None
    if number is None:
        raise _Malformed(file, line, f"{cells[0]!r} is no word number", "Correct column ID", UNNUMBERED)
    upos, xpos = (cell.replace("_", "") for cell in cells[3:5])
    return _Row(line, cells[1].strip(), cells[6], cells[7], xpos or upos, upos, number)


def _authors_row(file: str, line: int, text: str) -> _Row:
    cells = re.split(r"[ \t]+", text.strip())
    if len(cells) != 2 or "-" not in cells[1]:
        raise _Malformed(
            file, line, f"not a word and head-relation: {text[:40]!r}", "Write them as in The 2-det", SHORT
        )
    head, _, relation = cells[1].partition("-")
    return _Row(line, PTB_BRACKETS.get(cells[0], cells[0]), head, relation)


def _nltk_row(file: str, line: int, text: str) -> _Row:
    cells = text.split("\t")
    if len(cells) != 3:
        raise _Malformed(file, line, f"{len(cells)} columns, but this format has 3", "Download the sample again", SHORT)
    word, tag, head = cells
    return _Row(line, PTB_BRACKETS.get(word, word), head, "root" if head == "0" else "dep", tag)


ROWS: dict[str, RowReader] = {"conllu": _conllu_row, "conllx": _conllx_row, "authors": _authors_row}


def _sentence(file: str, start: int, rows: Sequence[_Row], document: str) -> Sentence:
    """Check that the rows form a tree."""
    if not rows:
        raise _Malformed(file, start, "a sentence without words", "Take it away", "sentences without words")
    heads = []
    for position, row in enumerate(rows, 1):
        if row.number not in (None, position):
            what = f"word {row.number} where {position} is due"
            raise _Malformed(file, row.line, what, "Correct column ID", UNNUMBERED)
        if not row.word or not row.relation:
            what = "an empty cell where a word and its relation should be"
            raise _Malformed(file, row.line, what, "Fill it", "sentences with an empty cell")
        heads.append(_head(file, row, len(rows)))
    roots = [row for row, head in zip(rows, heads, strict=True) if not head]
    if not roots:
        what = "no word of the sentence is its root"
        raise _Malformed(file, start, what, "Give one word head 0", "sentences without a root")
    if len(roots) > 1:
        what = f"a second root, after that in line {roots[0].line}"
        raise _Malformed(file, roots[1].line, what, "Keep one head 0", "sentences with several roots")
    if cycle := _cycle(heads):
        what = f"word {cycle[0]} hangs on itself, over a cycle of {len(cycle)} head words"
        raise _Malformed(file, rows[cycle[0] - 1].line, what, "Correct their heads", "sentences with a cycle")
    return Sentence(
        tuple(row.word for row in rows),
        tuple(heads),
        tuple(row.relation for row in rows),
        document,
        tuple(row.tag for row in rows),
        tuple(is_punctuation(row.word, row.tag, row.upos) for row in rows),
    )


def _head(file: str, row: _Row, words: int) -> int:
    try:
        head = parse_int_value(row.head)
    except (ParseException, ValueError):
        head = None
    if head is None:
        what = f"head {row.head[:20]!r} is no number"
        raise _Malformed(file, row.line, what, "Correct column HEAD", "sentences with a head that is no number")
    if not 0 <= head <= words:
        what = f"head {head}, but the sentence has {words} words"
        raise _Malformed(file, row.line, what, "Correct column HEAD", "sentences with a head out of range")
    return head


def _cycle(heads: Sequence[int]) -> list[int]:
    """The positions of one cycle, in order, or an empty list."""
    settled = {0}
    for start in range(1, len(heads) + 1):
        path: dict[int, None] = {}
        word = start
        while word not in settled and word not in path:
            path[word] = None
            word = heads[word - 1]
        if word in path:
            steps = list(path)
            return sorted(steps[steps.index(word) :])
        settled.update(path)
    return []


def _read_nltk(split: str, skip_invalid: bool, left_out: Counter[str]) -> Iterator[Sentence]:
    from nltk.corpus import dependency_treebank as sample

    first, last = NLTK_SPLITS[split]
    try:
        texts = {file: sample.raw(file) for file in sample.fileids() if first <= int(file[4:8]) <= last}
    except (LookupError, OSError, BadZipFile) as error:
        raise BertlookError(
            "treebank 'nltk': the sample is not on this machine. Run python -m nltk.downloader dependency_treebank, "
            "or set NLTK_DATA to a folder that holds corpora/dependency_treebank.zip."
        ) from error
    for file, text in texts.items():
        yield from _sentences(file, text.splitlines(), _nltk_row, file[:8], skip_invalid, left_out)
