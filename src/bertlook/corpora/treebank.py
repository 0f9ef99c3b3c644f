"""Treebanks (§4.2): files of trees, GUM, the NLTK sample and spaCy's silver trees, to sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from bertlook import BertlookError
from bertlook.corpora import Corpus, checksum, gum, read_text, schemes
from bertlook.corpora import silver as spacy
from bertlook.corpora.conll import ENDINGS, Malformed, ReadRow, blocks, conllu, format_of, penn, tree
from bertlook.corpora.text import WIKIPEDIA, articles, text_source

if TYPE_CHECKING:
    from spacy.tokens import Span

MARKS = frozenset(".,;:!?…()[]{}'\"`‘’“”«»–—-/")
PUNCTUATION_TAGS = frozenset(". , : `` '' \" -LRB- -RRB- ( ) HYPH NFP".split())
UPOS = frozenset("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
#: First and last file of the NLTK sample; it has no splits of its own.
NLTK_SPLITS = {"train": (1, 159), "dev": (160, 179), "test": (180, 199), "all": (1, 199)}
#: spaCy's limit for one text.
MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class Sentence:
    """A sentence and its dependency tree.

    ``heads`` has the position of each word's head word, from 1, and 0 for the root; ``tags`` are Penn Treebank parts of
    speech, or what the treebank has instead, ``""`` where it has none; ``punct`` tells which words are punctuation.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    document: str
    tags: tuple[str, ...]
    punct: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.words)


def is_punctuation(word: str, tag: str = "", upos: str = "") -> bool:
    """Whether a word is punctuation: by UD's part of speech, else by the Penn Treebank's, else by its characters."""
    if upos in UPOS:
        return upos == "PUNCT"
    return tag in PUNCTUATION_TAGS if tag else set(word) <= MARKS


def treebank(
    source: str | Path,
    split: str = "all",
    scheme: str = "paper",
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
        as the paper's authors use them, told by ending (``.conllu``, ``.conllx``, ``.conll``) or first line.
    split : str
        ``"train"``, ``"dev"``, ``"test"`` or ``"all"``. GUM's are its own; of the NLTK sample, files 1–159, 160–179
        and 180–199; in a folder, the files with that word in their name. Of a text, every tenth article is ``dev``,
        the one after it ``test``, the others ``train``.
    scheme : str
        ``"paper"``: trees and labels as in Stanford Dependencies, see :func:`bertlook.corpora.schemes.from_ud`;
        a treebank that has these already is left as it is. ``"raw"``: as they are.
    skip_invalid : bool
        Leave out malformed sentences and count them, by reason, rather than stop at the first.
    limit : int, optional
        At most so many sentences, evenly spaced over the treebank; of silver, which is parsed as it is read, the
        first.
    text : str
        The text for silver, as in :func:`bertlook.corpora.text.articles`.

    Raises
    ------
    BertlookError
        There is nothing to read, or a sentence is malformed; says file and line.
    """
    if scheme not in ("paper", "raw"):
        raise BertlookError(f"treebank scheme {scheme!r} is not known. Use paper or raw.")
    if split not in (*gum.SPLITS, "all"):
        raise BertlookError(f"treebank split {split!r} is not known. Use train, dev, test or all.")
    if limit is not None and limit < 1:
        raise BertlookError(f"limit={limit}. Ask for one sentence at least.")
    left_out: Counter[str] = Counter()
    about: dict[str, Any] = {"treebank": str(source), "split": split}
    if source == "silver":
        parsed = silver(_paragraphs(text, split, left_out), scheme, limit)
        about |= text_source(text) | parsed.source
        return Corpus(f"{text} (silver: parsed by spaCy), {split}", parsed.items, parsed.left_out + left_out, about)
    if source == "gum":
        texts: Iterable[Text] = ((str(f), read_text(f), conllu, document) for document, f in gum.paths(split).items())
        name, about = f"GUM (gold), {split}", gum.source(split)
    elif source == "nltk":
        texts, name = _nltk(split), f"Penn Treebank sample of NLTK (gold heads), {split}"
        about |= {"from": "nltk_data, dependency_treebank", "licence": "non-commercial use"}
    else:
        files = _files(Path(source).expanduser(), split)
        texts = ((str(f), found := read_text(f), format_of(f, found), f.stem) for f in files)
        name = Path(source).name if split == "all" else f"{Path(source).name}, {split}"
        about |= {"files": len(files), "sha256": checksum(files)}
    sentences = [sentence for one in texts for sentence in _read(*one, skip_invalid, left_out)]
    if not sentences:
        left = Corpus(name, sentences, left_out).left_out_text()
        raise BertlookError(f"treebank {str(source)!r}: no sentence in it (left out: {left}). Give one that has some.")
    if scheme == "paper" and schemes.is_ud({relation for s in sentences for relation in s.relations}):
        sentences = [_in_scheme(s, schemes.from_ud) for s in sentences]
    if limit and limit < len(sentences):
        sentences = [sentences[i * len(sentences) // limit] for i in range(limit)]
    return Corpus(name, sentences, left_out, about | _size(sentences, scheme))


def _sentence(document: str, heads: Iterable[int], cells: Iterable[tuple[str, str, str, str]]) -> Sentence:
    """``cells`` are each word, its relation, its tag and its part of speech in UD."""
    words, relations, tags, upos = zip(*cells, strict=True)
    return Sentence(words, tuple(heads), relations, document, tags, tuple(map(is_punctuation, words, tags, upos)))


def _size(sentences: Sequence[Sentence], scheme: str) -> dict[str, Any]:
    return {"scheme": scheme, "sentences": len(sentences), "words": sum(map(len, sentences))}


def _in_scheme(sentence: Sentence, view: schemes.View) -> Sentence:
    heads, relations = view(sentence.words, sentence.tags, sentence.heads, sentence.relations)
    return replace(sentence, heads=heads, relations=relations)


# ------------------------------------------------------------------------------------------------------------- files

#: What to call a text in an error, its lines, how to read one, and what to call its document if it does not say.
Text = tuple[str, str, ReadRow, str]


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


def _nltk(split: str) -> list[Text]:
    from nltk.corpus import dependency_treebank as sample  # its parsed sentences would not tell their lines

    first, last = NLTK_SPLITS[split]
    try:
        files = [file for file in sample.fileids() if first <= int(file[4:8]) <= last]
        return [(file, sample.raw(file), penn, file[:8]) for file in files]
    except (LookupError, OSError, BadZipFile) as error:
        raise BertlookError(
            "treebank 'nltk': the sample is not on this machine. Run python -m nltk.downloader dependency_treebank, "
            "or set NLTK_DATA to a folder that holds corpora/dependency_treebank.zip."
        ) from error


def _read(
    where: str, text: str, row: ReadRow, document: str, skip_invalid: bool, left_out: Counter[str]
) -> Iterator[Sentence]:
    empty = True
    for comments, lines in blocks(text, row):
        document = next((value for _, key, value in comments if key == "newdoc id"), document)
        if not lines:
            continue
        empty = False
        try:
            rows, heads = tree(lines, row)
        except Malformed as error:
            if not skip_invalid:
                raise BertlookError(f"{where}:{error}, or leave such sentences out with skip_invalid.") from None
            left_out[error.reason] += 1
            continue
        yield _sentence(document, heads, ((row.word, row.relation, row.tag, row.upos) for row in rows))
    if empty:
        if not skip_invalid:
            raise BertlookError(f"{where}:1: no sentence in this file. Fill it, take it away, or use skip_invalid.")
        left_out["files without sentences"] += 1


# ------------------------------------------------------------------------------------------------------------ silver


def _paragraphs(text: str, split: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Document and text of each paragraph of a split: articles are dealt out by turns."""
    for number, article in enumerate(articles(text, left_out)):
        if split in ("all", {0: "dev", 1: "test"}.get(number % 10, "train")):
            yield from ((article.title, paragraph) for paragraph in article.paragraphs)


def silver(paragraphs: Iterable[tuple[str, str]], scheme: str = "paper", limit: int | None = None) -> Corpus[Sentence]:
    """Sentences of running text with spaCy's trees.

    Parameters
    ----------
    paragraphs : iterable of (str, str)
        Document and text of each paragraph. Read as a stream; with a ``limit`` not to its end.
    scheme : str
        ``"paper"``, see :func:`bertlook.corpora.schemes.from_spacy`, or ``"raw"``.
    limit : int, optional
        At most so many sentences: the first.
    """
    left_out: Counter[str] = Counter()

    def texts() -> Iterator[tuple[str, str]]:
        for document, paragraph in paragraphs:
            text = " ".join(paragraph.split())
            if len(text) > MAX_CHARACTERS:
                left_out[f"paragraphs over {MAX_CHARACTERS:,} characters"] += 1
            elif text:
                yield text, document

    parsed = spacy.parser().pipe(texts(), as_tuples=True, batch_size=64)
    found = (_from_spacy(span, document, scheme) for doc, document in parsed for span in doc.sents)
    sentences = list(islice(found, limit))
    if not sentences:
        raise BertlookError("silver treebank: the text has no sentences. Give running text.")
    source = {"parser": spacy.parser_version()} | _size(sentences, scheme)
    return Corpus("silver", sentences, left_out, source)


def reparsed(corpus: Corpus[Sentence], scheme: str = "paper") -> Corpus[Sentence]:
    """The same sentences, word by word, with spaCy's trees instead of their own: what silver does to a result."""
    docs = spacy.parsed(sentence.words for sentence in corpus)
    sentences = [
        replace(_from_spacy(doc[:], own.document, scheme), punct=own.punct)
        for own, doc in zip(corpus, docs, strict=True)
    ]
    source = corpus.source | {"parser": spacy.parser_version()} | _size(sentences, scheme)
    return Corpus(f"{corpus.name}, parsed by spaCy", sentences, corpus.left_out.copy(), source)


def _from_spacy(span: Span, document: str, scheme: str) -> Sentence:
    cells = ((token.text, token.dep_, token.tag_, token.pos_) for token in span)
    sentence = _sentence(document, spacy.heads(span), cells)
    return _in_scheme(sentence, schemes.from_spacy) if scheme == "paper" else sentence
