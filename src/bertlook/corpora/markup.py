"""The sample corpus' inline markup: checked, and converted to CoNLL-2012.

``[name words]`` marks a mention of the entity ``name``; the rules are in ``sample/MARKUP.md``. From the command line:
``python -m bertlook.corpora.markup check FILE …``, and ``… convert FILE …``, which writes ``<name>.v4_gold_conll``
beside each file.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bertlook import BertlookError
from bertlook.corpora import read_text, silver
from bertlook.corpora.coreference import to_conll
from bertlook.corpora.mentions import Document, Span, make_mentions, starts

LENGTH = range(60, 121)
#: Parts of speech a mention's head word may have: nouns, pronouns, determiners, numbers, adjectives.
HEAD_TAGS = ("N", "PRP", "DT", "PDT", "W", "CD", "JJ", "EX", "FW", "$")

#: A sentence: the number of its line, its text, and start, end (in characters) and entity of its mentions.
Line = tuple[int, str, list[Span]]


def parse_line(line: str) -> tuple[str, list[Span]]:
    """A sentence without its brackets, and start, end (in characters) and entity of each mention.

    Raises
    ------
    BertlookError
        Brackets that do not balance, without a name, or around nothing; spans that end in a space or comma.
    """
    text = ""
    spans: list[Span] = []
    stack: list[tuple[int, str]] = []
    for piece in re.findall(r"\[[^\s\[\]]* ?|\]|[^\[\]]+", line):
        if piece.startswith("["):
            match = re.fullmatch(r"\[([a-z][a-z0-9-]*) ", piece)
            if not match:
                raise BertlookError(f"{piece.strip()!r} names no entity. Write [name words].")
            stack.append((len(text), match[1]))
        elif piece == "]":
            if not stack:
                raise BertlookError(f"a bracket closes that was not opened, after {text[-20:]!r}. Remove it.")
            start, name = stack.pop()
            words = text[start:]
            if not words or words != words.strip() or words.endswith(","):
                raise BertlookError(
                    f"the mention {words!r} of {name} is empty, or begins or ends in a space or comma. "
                    "Put the brackets around the noun phrase."
                )
            spans.append((start, len(text), name))
        else:
            text += piece
    if stack:
        raise BertlookError(f"the mention of {stack[-1][1]} is not closed. Add ].")
    if text != " ".join(text.split()):
        raise BertlookError("a space too many, or a tab. Write single spaces.")
    return text, spans


def parse_file(path: Path) -> tuple[list[Document], list[str]]:
    """The documents of a file of markup, and its problems, each as ``file:line: what. Remedy.``

    Checked are balance and place of the brackets, names, that entities have two mentions, that no span is
    marked twice, that head words (by the silver parse) are nominal, and the documents' length in words.
    """
    problems: list[tuple[int, str]] = []
    texts: dict[str, tuple[int, list[Line]]] = {}
    name = ""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if match := re.fullmatch(r"# id: *(\S+) *", line):
            name = match[1]
            if name in texts:
                problems.append((number, f"document {name} begins a second time. Give it an id of its own."))
            texts[name] = (number, [])
        elif line.strip() and not line.startswith("#"):
            try:
                sentence = parse_line(line)
                if not name:
                    raise BertlookError("text before the first header. Begin a document: # id: name.")
                texts[name][1].append((number, *sentence))
            except BertlookError as error:
                problems.append((number, str(error)))
    documents = []
    for name, (number, lines) in texts.items():
        count = sum(len(re.findall(r"[^\W_][\w'’-]*", text)) for _, text, _ in lines)
        if count not in LENGTH:
            remedy = f"Make it {LENGTH.start} to {LENGTH.stop - 1} words long."
            problems.append((number, f"{name} has {count} words. {remedy}"))
        if lines:
            documents.append(_document(name, number, lines, problems))
    return documents, [f"{path}:{number}: {problem}" for number, problem in problems]


def _document(name: str, number: int, lines: list[Line], problems: list[tuple[int, str]]) -> Document:
    tokenized = [silver.parser().tokenizer(text) for _, text, _ in lines]
    words = [token.text for tokens in tokenized for token in tokens]
    spans: list[Span] = []
    for start, tokens, (line, text, marked) in zip(starts(tokenized), tokenized, lines, strict=True):
        for first, last, entity in marked:
            if span := tokens.char_span(first, last):
                spans.append((start + span.start, start + span.end, entity))
            else:
                told = f"the brackets of {entity} around {text[first:last]!r} cut a word. Put them at words' edges: "
                problems.append((line, f"{told}{' '.join(token.text for token in tokens)!r}."))
    parsed = list(silver.parsed([token.text for token in tokens] for tokens in tokenized))
    tags = [token.tag_ for doc in parsed for token in doc]
    mentions = make_mentions(set(spans), words, tags, [silver.heads(doc[:]) for doc in parsed])
    line_of = [line for tokens, (line, *_) in zip(tokenized, lines, strict=True) for _ in tokens]
    for entity, n in Counter(m.entity for m in mentions).items():
        if n == 1:
            problems.append((number, f"entity {entity} of {name} has one mention only. Mark all, or none."))
    for (start, end), n in Counter((start, end) for start, end, _ in spans).items():
        if n > 1:
            problems.append((line_of[start], f"{' '.join(words[start:end])!r} is marked {n} times. Mark it once."))
    for m in mentions:
        if not tags[m.head].startswith(HEAD_TAGS):
            told = f"the parser takes {words[m.head]!r} ({tags[m.head]}) for the head word of "
            told += f"{' '.join(words[m.start : m.end])!r}. Check the span, or reword."
            problems.append((line_of[m.start], told))
    return Document(name, tuple(words), tuple(tags), starts(tokenized), mentions, "silver parse")


def check(paths: Iterable[Path]) -> list[str]:
    """All problems of these files, in their order."""
    problems: list[str] = []
    seen: dict[str, Path] = {}
    for path in paths:
        documents, found = parse_file(path)
        problems += found
        for document in documents:
            if seen.setdefault(document.name, path) != path:
                problems.append(f"{path}:1: document {document.name} is also in {seen[document.name]}. Rename one.")
    return problems


def convert(path: Path) -> str:
    """The file as CoNLL-2012. Entities are numbered by first mention; parts of speech are spaCy's (silver).

    Raises
    ------
    BertlookError
        The first problem that :func:`check` finds.
    """
    documents, problems = parse_file(path)
    if problems:
        raise BertlookError(problems[0])
    return (
        f"# Generated from {path.name} by python -m bertlook.corpora.markup convert {path.name}\n"
        f"# Tokens and parts of speech are silver: {silver.parser_version()}. Mentions are annotated by hand.\n"
        + to_conll(map(_numbered, documents))
    )


def _numbered(document: Document) -> Document:
    numbers = {name: str(i) for i, name in enumerate(dict.fromkeys(m.entity for m in document.mentions))}
    return replace(document, mentions=tuple(replace(m, entity=numbers[m.entity]) for m in document.mentions))


def main(arguments: list[str]) -> int:
    """``check`` or ``convert``, then files; the exit status is 1 if there are problems."""
    if len(arguments) < 2 or arguments[0] not in {"check", "convert"}:
        print("usage: python -m bertlook.corpora.markup check|convert FILE …", file=sys.stderr)
        return 2
    paths = [Path(name) for name in arguments[1:]]
    try:
        if problems := check(paths):
            print("\n".join(problems))
            return 1
        for path in paths if arguments[0] == "convert" else []:
            path.with_suffix(".v4_gold_conll").write_text(convert(path), encoding="utf-8")
    except BertlookError as error:
        print(f"bertlook: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
