"""GUM, the Georgetown University Multilayer corpus: gold trees and coreference in 16 genres, at a pinned commit."""

from __future__ import annotations

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pooch
from tqdm.auto import tqdm

from bertlook import BertlookError

COMMIT = "72ce5ac14978a324c2fd18d49484e65292cbe316"
URL = f"https://raw.githubusercontent.com/amir-zeldes/gum/{COMMIT}/"
FOLDER = "coref/ontogum/conllu"
LICENCE = "annotations CC BY 4.0; texts under Creative Commons licences by genre, some non-commercial"
SPLITS = ("train", "dev", "test")
#: Names a folder that mirrors the sources' layout, here ``gum/<commit>/coref/ontogum/conllu/``.
MIRROR = "BERTLOOK_DATA"


def registry(split: str = "all") -> dict[str, str]:
    """The documents of a split and their SHA-256."""
    if split not in (*SPLITS, "all"):
        raise BertlookError(f"GUM has no split {split!r}. Use train, dev, test or all.")
    known = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {name: digest for part in SPLITS if split in (part, "all") for name, digest in known[part].items()}


def paths(split: str = "all") -> dict[str, Path]:
    """Document id → CoNLL-U file, of a split, in a mirror or in the user's cache; what is missing there is downloaded.

    Each file is checked against its SHA-256.

    Raises
    ------
    BertlookError
        There is no such split, or a document is neither there nor to be had.
    """
    documents = registry(split)
    root = Path(os.environ.get(MIRROR) or pooch.os_cache("bertlook")).expanduser() / "gum" / COMMIT
    files = {name: f"{FOLDER}/{name}.conllu" for name in documents}
    store = pooch.create(
        path=root, base_url=URL, registry={file: f"sha256:{documents[name]}" for name, file in files.items()}
    )
    pooch.get_logger().setLevel(logging.WARNING)
    missing = not all((root / file).is_file() for file in files.values())
    pool = ThreadPoolExecutor(8)
    try:
        if missing:
            (root / FOLDER).mkdir(parents=True, exist_ok=True)  # pooch's threads would race for it
        found = pool.map(store.fetch, files.values())
        found = tqdm(found, desc="GUM", total=len(files), unit=" documents", disable=not missing)
        return {name: Path(file) for name, file in zip(files, found, strict=True)}
    except (OSError, ValueError) as error:
        reason = "a file differs from its checksum" if isinstance(error, ValueError) else type(error).__name__
        raise BertlookError(
            f"GUM: its documents are not all in {root / FOLDER}, and cannot be downloaded ({reason}). Connect to the "
            f"network once, or set {MIRROR} to a folder that holds gum/{COMMIT}/{FOLDER}/ unchanged."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def source(split: str = "all") -> dict[str, object]:
    """Provenance of a split: version, documents and licence."""
    return {
        "treebank": "GUM (without Reddit)",
        "split": split,
        "from": f"github.com/amir-zeldes/gum, commit {COMMIT}, {FOLDER}",
        "documents": len(registry(split)),
        "licence": LICENCE,
    }
