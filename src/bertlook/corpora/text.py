"""Running text: Wikipedia dumps and plain text, to articles of paragraphs, to the paper's segments."""

from __future__ import annotations

import bz2
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import gensim
from gensim.corpora.wikicorpus import extract_pages, filter_wiki
from tqdm.auto import tqdm

from bertlook import BertlookError
from bertlook.attention import Segment, pair_segment
from bertlook.corpora import Corpus, checksum, read_text
from bertlook.encoder import Encoder, first_line

#: The name of the Wikipedia extract that is installed with gensim.
WIKIPEDIA = "wikipedia"
EXTRACT = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
#: A paragraph has at least so many words, and ends as a sentence does.
MIN_WORDS = 10


@dataclass(frozen=True)
class Article:
    """One document of running text: its title and its paragraphs."""

    title: str
    paragraphs: tuple[str, ...]


def text_file(source: str) -> Path:
    """The file or folder that a text's name stands for."""
    if source == WIKIPEDIA:
        return Path(gensim.__file__).parent / "test" / "test_data" / EXTRACT
    path = Path(source).expanduser()
    if not path.exists():
        raise BertlookError(
            f"text {source!r}: no such file or folder. Give a Wikipedia dump (.xml or .xml.bz2), a text file or a "
            f"folder of .txt files, or use text={WIKIPEDIA}, which is packaged."
        )
    return path


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.txt")) if path.is_dir() else [path]


def text_source(source: str) -> dict[str, object]:
    """Provenance of a text: name, size and SHA-256 over its files."""
    files = _files(text_file(source))
    about = {"text": source, "files": len(files), "sha256": checksum(files)}
    if source == WIKIPEDIA:
        about |= {"from": f"gensim {version('gensim')}", "licence": "CC BY-SA 3.0 (Wikipedia)"}
    return about


def articles(source: str = WIKIPEDIA, left_out: Counter[str] | None = None) -> Iterator[Article]:
    """Stream the articles of a text.

    Parameters
    ----------
    source : str
        ``"wikipedia"``; a dump (``.xml``, ``.xml.bz2``), read as a stream; a text file; or a folder of
        ``.txt`` files. In plain text a blank line ends a paragraph, and each file is an article.
    left_out : Counter, optional
        Counts what is not running text, by reason.

    Raises
    ------
    BertlookError
        The file does not exist, breaks off, or is not what its ending says.
    """
    path = text_file(source)
    left_out = Counter() if left_out is None else left_out
    plain = path.is_dir() or path.suffix not in {".xml", ".bz2"}
    for title, blocks in _plain(path) if plain else _dump(path, left_out):
        if paragraphs := tuple(_paragraphs(blocks, left_out)):
            yield Article(title, paragraphs)


def _dump(path: Path, left_out: Counter[str]) -> Iterator[tuple[str, list[str]]]:
    pages = 0
    with bz2.open(path) if path.suffix == ".bz2" else path.open("rb") as stream:
        try:
            for title, wikitext, _ in extract_pages(stream, filter_namespaces=("0",)):
                pages += 1
                if wikitext is None or wikitext.lstrip()[:9].lower() == "#redirect":
                    left_out["pages that are redirects or empty"] += 1
                else:
                    yield title, re.split(r"\n+", filter_wiki(wikitext))
        except Exception as error:  # gensim lets through whatever the decompressor and the XML parser raise
            raise BertlookError(
                f"{path}: breaks off or is not a Wikipedia dump, after {pages:,} pages ({first_line(error)}). "
                "Download it again, or check its ending (.xml, .xml.bz2, .txt)."
            ) from error


def _plain(path: Path) -> Iterator[tuple[str, list[str]]]:
    files = _files(path)
    if not files:
        raise BertlookError(f"{path}: a folder without .txt files. Put the text there, one article a file.")
    for file in files:
        yield file.stem, re.split(r"\n\s*\n", read_text(file))


def _paragraphs(blocks: list[str], left_out: Counter[str]) -> Iterator[str]:
    """Those blocks that are running text, white space and leftover marks of emphasis tidied."""
    for block in blocks:
        text = " ".join(re.sub(r"'{2,}", "", block).split())
        if not text:
            continue
        if text[0] in "=*#:;|!{}<":
            left_out["headings, list items and table cells"] += 1
        elif len(text.split()) < MIN_WORDS:
            left_out[f"paragraphs of fewer than {MIN_WORDS} words"] += 1
        elif not re.search(r"[.!?][\"”’')]*$", text):
            left_out["paragraphs that do not end as a sentence"] += 1
        else:
            yield text


def segments(
    encoder: Encoder,
    source: str = WIKIPEDIA,
    count: int = 1000,
    max_tokens: int = 128,
    seed: int = 0,
    progress: bool = True,
) -> Corpus[Segment]:
    """Random segments ``[CLS] paragraph-A [SEP] paragraph-B [SEP]`` as in §3, A and B consecutive.

    A pair that is too long is cut token by token from the longer side, at random from the front or the back.

    Parameters
    ----------
    encoder : Encoder
    source : str
        As for :func:`articles`. A dump is streamed once; pairs are drawn by reservoir sampling.
    count, max_tokens, seed : int
        How many segments, their greatest length in wordpieces with special tokens, and the seed of all chance.

    Returns
    -------
    Corpus of Segment, in the order of the text; ``document`` numbers the articles.

    Raises
    ------
    BertlookError
        Too few paragraph pairs, or ``max_tokens`` does not suit the model.
    """
    special = sum(map(len, encoder.template[:3]))
    if not special + 2 <= max_tokens <= encoder.max_tokens:
        raise BertlookError(
            f"max_tokens={max_tokens}, but model {encoder.name!r} takes {special + 2} to {encoder.max_tokens}. "
            "Choose a number between."
        )
    if count < 1:
        raise BertlookError(f"segments={count}. Ask for one at least.")
    left_out: Counter[str] = Counter()
    chance = random.Random(seed)
    drawn: list[tuple[int, int, str, str]] = []
    pairs, number = 0, -1
    stream = tqdm(articles(source, left_out), desc="reading", unit="article", disable=not progress)
    for number, article in enumerate(stream):
        for a, b in pairwise(article.paragraphs):
            pairs += 1
            place = pairs - 1 if pairs <= count else chance.randrange(pairs)
            if place < count:
                drawn[place : place + 1] = [(number, pairs, a, b)]
    if pairs < count:
        raise BertlookError(
            f"text {source!r} has {pairs:,} pairs of consecutive paragraphs in {number + 1:,} articles, but "
            f"{count:,} segments were asked for. Set segments={pairs} or less, or give more text."
            if pairs
            else f"text {source!r} has no two consecutive paragraphs of {MIN_WORDS} words or more. Give running text, "
            "paragraphs apart by blank lines."
        )
    drawn.sort()
    items = []
    for number, _, *texts in drawn:
        first, second = encoder.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        a, b = cut(first, second, max_tokens - special, chance)
        items.append(pair_segment(encoder, a, b, document=number))
    sizes = {"articles": len({s.document for s in items}), "wordpieces": sum(map(len, items))}
    about = text_source(source) | {"pairs": pairs, "segments": count} | sizes
    return Corpus(f"{source} ({count:,} segments)", items, left_out, about)


def cut(a: list[int], b: list[int], room: int, chance: random.Random) -> tuple[list[int], list[int]]:
    """Shorten two texts to ``room`` tokens together, token by token from the longer, front or back at random."""
    left, right = [0, 0], [len(a), len(b)]
    while sum(right) - sum(left) > room:
        longer = int(right[1] - left[1] > right[0] - left[0])
        if chance.random() < 0.5:
            left[longer] += 1
        else:
            right[longer] -= 1
    return a[left[0] : right[0]], b[left[1] : right[1]]
