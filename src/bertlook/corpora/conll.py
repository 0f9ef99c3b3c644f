"""Files of one word a line, CoNLL-U, CoNLL-X and two like them, to words that are checked to form a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

# conllu parses cells and comments. Its reader of files is not used: it tells no line, takes two spaces for a tab, and
# passes over missing columns, roots and cycles. udapi, which reads CorefUD too, is GPL, and this project MIT.
from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from bertlook import BertlookError

T = TypeVar("T")
PTB_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
parse_id, parse_int = lru_cache(1024)(parse_id_value), lru_cache(1024)(parse_int_value)
SHORT, UNNUMBERED = "sentences with missing columns", "sentences with wrong word numbers"


class Row(NamedTuple):
    """A word, the number of its line, and its cells as they are written."""

    line: int
    word: str
    head: str
    relation: str
    tag: str = ""
    upos: str = ""
    number: int | None = None
    misc: str = ""


#: What a line with this number says; None if it is a multiword token or an empty node.
ReadRow = Callable[[int, str], Row | None]


class Malformed(Exception):
    """A sentence that is no tree, or a line that is no word; ``reason`` is what it is counted under."""

    def __init__(self, line: int, what: str, remedy: str, reason: str = "") -> None:
        super().__init__(f"{line}: {what}. {remedy}")
        self.reason = reason


def plain(word: str) -> str:
    """A word with the Penn Treebank's names of brackets undone."""
    return PTB_BRACKETS.get(word, word)


def _value(parse: Callable[[str], T], cell: str) -> T | None:
    try:
        return parse(cell)
    except (ParseException, ValueError):
        return None


def _conll(line: int, text: str, name: str, columns: tuple[int, ...]) -> Row | None:
    cells = text.split("\t")
    if len(cells) not in columns:
        what = f"{len(cells)} columns, but {name} has {columns[0]}"
        raise Malformed(line, what, "Separate them by tabs", SHORT)
    number = _value(parse_id, cells[0])
    if number is None:
        raise Malformed(line, f"{cells[0]!r} is no word number", "Correct column ID", UNNUMBERED)
    if isinstance(number, tuple):
        return None
    upos, xpos = cells[3].replace("_", ""), cells[4].replace("_", "")
    return Row(line, plain(cells[1].strip()), cells[6], cells[7], xpos or upos, upos, number, cells[-1])


conllu: ReadRow = partial(_conll, name="CoNLL-U", columns=(10,))
conllx: ReadRow = partial(_conll, name="CoNLL-X", columns=(10, 8))  # may lack its last two columns


def authors(line: int, text: str) -> Row:
    """A line ``word head-relation``, the format of the paper's authors."""
    cells = text.split()
    if len(cells) != 2 or "-" not in cells[1]:
        raise Malformed(line, f"not a word and head-relation: {text[:40]!r}", "Write them as in The 2-det", SHORT)
    head, _, relation = cells[1].partition("-")
    return Row(line, plain(cells[0]), head, relation)


def penn(line: int, text: str) -> Row:
    """A line of NLTK's sample of the Penn Treebank: word, tag and head."""
    cells = text.split("\t")
    if len(cells) != 3:
        raise Malformed(line, f"{len(cells)} columns, but this format has 3", "Download the sample again", SHORT)
    word, tag, head = cells
    return Row(line, plain(word), head, "dep" if head != "0" else "root", tag)


ENDINGS: dict[str, ReadRow] = {".conllu": conllu, ".conllx": conllx, ".conll": conllx}


def format_of(file: Path, text: str) -> ReadRow:
    """How to read a file's lines: by its ending, else by its first line."""
    if file.suffix in ENDINGS:
        return ENDINGS[file.suffix]
    number, line = next(((n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()), (1, "#"))
    if re.fullmatch(r"\s*\S+[ \t]+\d+-\S+\s*", line):
        return authors
    if line[0] == "#":
        return conllu
    if len(line.split("\t")) in (8, 10):
        return conllx
    raise BertlookError(
        f"{file}:{number}: not a line of any format known here. Give CoNLL-U, CoNLL-X or the authors' files, the "
        "first two with the ending .conllu or .conllx."
    )


def blocks(text: str, row: ReadRow) -> Iterator[tuple[list[tuple[int, str, str]], list[tuple[int, str]]]]:
    """Each run of lines between blank ones: its comments (number, key, value), and its other lines, numbered."""
    commented = row in ENDINGS.values()
    for blank, block in groupby(enumerate(text.split("\n"), 1), lambda line: not line[1].strip()):
        if not blank:
            comments, lines = [], []
            for number, line in block:
                if commented and line[0] == "#":
                    comments += [(number, key, value or "") for key, value in parse_comment_line(line)]
                else:
                    lines.append((number, line))
            yield comments, lines


def tree(lines: Sequence[tuple[int, str]], row: ReadRow) -> tuple[list[Row], list[int]]:
    """The words of a sentence, and where each one's head word is, from 1, 0 for the root: a tree, or Malformed."""
    rows = [found for number, text in lines if (found := row(number, text))]
    start = lines[0][0]
    if not rows:
        raise Malformed(start, "a sentence without words", "Take it away", "sentences without words")
    heads = []
    for position, word in enumerate(rows, 1):
        if word.number not in (None, position):
            what = f"word {word.number} where {position} is due"
            raise Malformed(word.line, what, "Correct column ID", UNNUMBERED)
        if not word.word or not word.relation:
            what = "an empty cell where a word and its relation should be"
            raise Malformed(word.line, what, "Fill it", "sentences with an empty cell")
        head = _value(parse_int, word.head)
        if head is None:
            what, reason = f"head {word.head[:20]!r} is no number", "sentences with a head that is no number"
            raise Malformed(word.line, what, "Correct column HEAD", reason)
        if not 0 <= head <= len(rows):
            what, reason = f"head {head}, but the sentence has {len(rows)} words", "sentences with a head out of range"
            raise Malformed(word.line, what, "Correct column HEAD", reason)
        heads.append(head)
    roots = [word.line for word, head in zip(rows, heads, strict=True) if not head]
    if not roots:
        what = "no word of the sentence is its root"
        raise Malformed(start, what, "Give one word head 0", "sentences without a root")
    if len(roots) > 1:
        what = f"a second root, after that in line {roots[0]}"
        raise Malformed(roots[1], what, "Keep one head 0", "sentences with several roots")
    if cycle := _cycle(heads):
        what = f"word {min(cycle)} hangs on itself, over a cycle of {len(cycle)} head words"
        raise Malformed(rows[min(cycle) - 1].line, what, "Correct their heads", "sentences with a cycle")
    return rows, heads


def _cycle(heads: Sequence[int]) -> list[int]:
    """The positions of one cycle, or none."""
    settled = {0}
    for word in range(1, len(heads) + 1):
        path: dict[int, None] = {}
        while word not in settled and word not in path:
            path[word] = None
            word = heads[word - 1]
        if word in path:
            return list(path)[list(path).index(word) :]
        settled.update(path)
    return []
