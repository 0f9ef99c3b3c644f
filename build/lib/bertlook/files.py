"""Files as they come from users: read as text, and identified by their checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from bertlook.errors import BertlookError


def read_text(file: Path) -> str:
    """The text of a file that must be UTF-8, without a byte order mark, lines ended by ``\\n``.

    Raises
    ------
    BertlookError
        The file is not UTF-8.
    """
    raw = file.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BertlookError(f"{file}:{line}: not UTF-8. Save the file as UTF-8.") from error
    return text.replace("\r\n", "\n")


def checksum(files: Iterable[Path]) -> str:
    """SHA-256 over the bytes of files, one after the other, as hexadecimal digits."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
