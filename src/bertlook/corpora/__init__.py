"""Readers: from files of the field's formats to texts, sentences and documents."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from bertlook import BertlookError

T = TypeVar("T")


@dataclass
class Corpus(Generic[T]):
    """What a reader found: the items, what it left out and why, and where it all came from.

    ``name`` is what to call the data in a caption, for example ``"GUM (gold), dev"``; ``items`` are sentences,
    documents or segments; ``left_out`` counts items by the reason they were left out for; ``source`` is the provenance
    as it goes into ``provenance.json``: files, checksums, licence, version.
    """

    name: str
    items: list[T]
    left_out: Counter[str] = field(default_factory=Counter)
    source: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def left_out_text(self) -> str:
        """What was left out, as a sentence part: ``"3 over the limit, 1 of one word"`` or ``"nothing"``."""
        return ", ".join(f"{n:,} {reason}" for reason, n in sorted(self.left_out.items())) or "nothing"


def read_text(file: Path) -> str:
    """The text of a file in UTF-8, without a byte order mark, lines ended by ``\\n``."""
    try:
        raw = file.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise BertlookError(f"{file}: cannot be read ({error.strerror}). Check the file.") from error
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BertlookError(f"{file}:{line}: not UTF-8. Save the file as UTF-8.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def checksum(files: Iterable[Path]) -> str:
    """SHA-256 over the bytes of files, one after the other, as hexadecimal digits."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
