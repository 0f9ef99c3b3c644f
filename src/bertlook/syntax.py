"""One head as a parser: how often it attends from word to head word, for each relation (§4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, to_words, word_segment
from bertlook.corpora import Corpus
from bertlook.corpora.schemes import POSSESSIVES
from bertlook.corpora.treebank import Sentence
from bertlook.encoder import Encoder
from bertlook.results import published
from bertlook.statistics import HeadOutcomes, halves, held_out, interval, resample_mean

DIRECTIONS = ("dependent→head", "head→dependent")
POSSESSIVE_RELATIONS = {"poss", "nmod:poss"}
REACH = 10


def fit(encoder: Encoder, corpus: Corpus[Sentence], max_tokens: int = 128) -> tuple[Corpus[Sentence], list[Segment]]:
    """The sentences that fit the model, one segment each, ``[CLS] sentence [SEP]``.

    Sentences of one word (nothing to choose from), those of more than ``max_tokens`` wordpieces and words that
    yield no wordpiece are left out, and counted.
    """
    limit = min(max_tokens, encoder.max_tokens)
    kept, segments, left_out = [], [], Counter(corpus.left_out)
    documents: dict[str, int] = {}
    for sentence in corpus:
        segment = word_segment(encoder, sentence.words, documents.setdefault(sentence.document, len(documents)))
        present = len(set(segment.words) - {-1})
        if len(segment) > limit:
            left_out[f"sentences over {limit} wordpieces"] += 1
        elif present < 2:
            left_out["sentences of one word"] += 1
        else:
            if present < len(sentence):
                left_out["words without a wordpiece"] += len(sentence) - present
            kept.append(sentence)
            segments.append(segment)
    return Corpus(corpus.name, kept, +left_out, corpus.source), segments


def stand_ins(sentence: Sentence) -> list[int]:
    """The word whose choice counts for each word, by position from 0: itself, but ``'s`` for a possessor before it.

    In *the company's plan*, *company* depends on *plan*; the paper lets attention of the ``'s`` count for the
    noun (§4.2), in both directions.
    """
    places = list(range(len(sentence)))
    for i, relation in enumerate(sentence.relations[:-1]):
        if relation in POSSESSIVE_RELATIONS and sentence.words[i + 1] in POSSESSIVES:
            places[i] = i + 1
    return places


class HeadParser(HeadOutcomes):
    """How often each head attends most between a word and its head word (§4.2).

    The predicted head word of word ``i`` is ``argmax_j α[i, j]`` (dependent→head) or ``argmax_j α[j, i]``
    (head→dependent), over the other words, special tokens left out; among equals the first in the text. Scored
    are all words but roots and punctuation; of a possessor, the choice of its ``'s`` (:func:`stand_ins`).

    An item is a word: number of its sentence, and its position from 0.

    Parameters
    ----------
    layers, heads : int
    sentences : sequence of Sentence
        In the order of the segments that the stream is given (:func:`fit` makes both).
    """

    def __init__(self, layers: int, heads: int, sentences: Sequence[Sentence]) -> None:
        super().__init__(DIRECTIONS, layers, heads, columns=2)
        self.sentences = sentences

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key] between wordpieces."""
        maps = to_words(attention, batch.words)[..., :-1]  # [layer, batch, head, word, word]
        maps.diagonal(0, -2, -1).fill_(-1)
        here = [set(row) - {-1} for row in batch.words.tolist()]
        about, rows, places, golds = [], [], [], []
        for row, number in enumerate(batch.index):
            sentence = self.sentences[number]
            stand_in = stand_ins(sentence)
            for i in set(range(len(sentence))) - here[row]:  # no wordpiece: no choice
                maps[:, row, :, i] = maps[:, row, :, :, i] = -1
            for i, head in enumerate(sentence.heads):
                if head and not sentence.punct[i] and {stand_in[i], head - 1} <= here[row]:
                    about.append((number, i))
                    rows.append(row)
                    places.append(stand_in[i])
                    golds.append(head - 1)
        if not about:
            return
        choices = (maps[:, rows, :, places], maps[:, rows, :, :, places])  # each [scored, layer, head, word]
        # numpy's argmax is twice as fast here as torch's.
        chosen = torch.stack([torch.from_numpy(choice.float().cpu().numpy().argmax(-1)) for choice in choices], 1)
        self.about.append(torch.tensor(about))
        self.correct.append(chosen == torch.tensor(golds)[:, None, None, None])

    def words(self) -> pd.DataFrame:
        """The scored words: ``sentence, word`` (from 0), ``document, relation, offset`` (to the head word)."""
        stand_in = [stand_ins(sentence) for sentence in self.sentences]
        rows = [
            (s, i, own.document, own.relations[i], own.heads[i] - 1 - stand_in[s][i])
            for s, i in self.items().tolist()
            for own in [self.sentences[s]]
        ]
        return pd.DataFrame(rows, columns=["sentence", "word", "document", "relation", "offset"])


# ------------------------------------------------------------------------------------------------------- the tables


def heads_table(parser: HeadParser) -> pd.DataFrame:
    """``relation, direction, layer, head, n, accuracy`` of every head, in both directions; layers and heads from 1."""
    return parser.accuracies("relation", _by_relation(parser.words()))


def relations_table(parser: HeadParser, minimum: int = 30, reach: int = REACH) -> pd.DataFrame:
    """The best head and the best fixed offset for each relation, on the same words and held out (Table 1).

    Held out means: chosen on one half of the documents (sentences, where there is but one document), scored on the
    other, and the other way round, so that each word is scored by a choice that did not see it. Intervals are 95%
    bootstrap over sentences.

    Parameters
    ----------
    minimum : int
        Relations with fewer words are left out.
    reach : int
        Offsets from −reach to reach are tried.

    Returns
    -------
    DataFrame
        ``relation, n, layer, head, direction, accuracy, heldout_accuracy, ci_low, ci_high, offset, offset_accuracy,
        paper_accuracy``, the columns of the paper's table with the held-out accuracy and its interval; then
        ``chosen`` (the heads chosen on the two halves), ``offset_heldout, offset_low, offset_high``, and
        ``difference, difference_low, difference_high`` (head minus offset, paired). Relation ``all`` first, then by
        frequency.
    """
    outcomes, words = parser.outcomes().flatten(1).numpy(), parser.words()
    offsets = np.array([o for o in range(-reach, reach + 1) if o])
    near = words["offset"].to_numpy()[:, None] == offsets
    several = words["document"].nunique() > 1
    half = halves(words["document" if several else "sentence"].to_numpy())
    theirs = {row["relation"]: row["accuracy"] / 100 for row in published()["table1"]}

    def name(option: int) -> tuple[int, int, str]:
        direction, layer, head = np.unravel_index(option, parser.shape)
        return int(layer) + 1, int(head) + 1, DIRECTIONS[direction]

    rows = []
    for relation, chosen in _by_relation(words):
        if len(chosen) < minimum:
            continue
        sentences = words["sentence"].to_numpy()[chosen]
        right, by_offset = outcomes[chosen], near[chosen]
        best, best_offset = int(right.sum(0).argmax()), int(by_offset.sum(0).argmax())
        score, picked = held_out(right, half[chosen])
        baseline, _ = held_out(by_offset, half[chosen])
        samples = resample_mean(np.stack([score, baseline, score - baseline], 1), sentences)
        low, high = interval(samples)
        layer, head, direction = name(best)
        rows.append(
            {
                "relation": relation,
                "n": len(chosen),
                "layer": layer,
                "head": head,
                "direction": direction,
                "accuracy": right[:, best].mean(),
                "heldout_accuracy": score.mean(),
                "ci_low": low[0],
                "ci_high": high[0],
                "offset": int(offsets[best_offset]),
                "offset_accuracy": by_offset[:, best_offset].mean(),
                "paper_accuracy": theirs.get(relation, np.nan),
                "chosen": ", ".join("{}-{} {}".format(*name(option)) for option in picked if option >= 0),
                "offset_heldout": baseline.mean(),
                "offset_low": low[1],
                "offset_high": high[1],
                "difference": (score - baseline).mean(),
                "difference_low": low[2],
                "difference_high": high[2],
            }
        )
    if not rows:
        raise BertlookError(
            f"no relation has {minimum} words in these sentences. Give more of them, or a lower minimum."
        )
    return pd.DataFrame(rows)


#: The columns of ``relations_table`` that make up the paper's Table 1.
TABLE1 = list(
    "relation n layer head direction accuracy heldout_accuracy ci_low ci_high offset offset_accuracy "
    "paper_accuracy".split()
)


def several_relations(heads: pd.DataFrame, table: pd.DataFrame, margin: float = 0.1) -> pd.DataFrame:
    """Heads that beat the best offset by ``margin`` or more on at least two relations.

    Parameters
    ----------
    heads, table : DataFrame
        As from :func:`heads_table` and :func:`relations_table`.

    Returns
    -------
    DataFrame
        ``layer, head, direction, count, relations``, the strongest relation first in ``relations``.
    """
    both = heads.merge(table[["relation", "offset_accuracy"]], on="relation")
    both = both[(both["relation"] != "all") & (both["accuracy"] - both["offset_accuracy"] >= margin)]
    both = both.sort_values("accuracy", ascending=False, kind="stable")
    groups = both.groupby(["layer", "head", "direction"])["relation"]
    result = groups.agg(count="size", relations=", ".join).reset_index()
    return result[result["count"] > 1].sort_values("count", ascending=False, kind="stable", ignore_index=True)


def example(sentences: Sequence[Sentence], relation: str, shortest: int = 8, longest: int = 14) -> int:
    """The sentence that shows a relation best, by a rule that does not look at attention.

    Of the sentences with ``shortest`` to ``longest`` words (of all, if there are none), the one with the most words
    of this relation; among equals the one where they stand farthest from their head words, then the first.

    Returns
    -------
    int
        Its number.

    Raises
    ------
    BertlookError
        No sentence has the relation.
    """

    def key(number: int) -> tuple[bool, int, int, int]:
        own = sentences[number]
        far = [abs(h - 1 - i) for i, (h, r) in enumerate(zip(own.heads, own.relations, strict=True)) if r == relation]
        return bool(far) and shortest <= len(own) <= longest, len(far), sum(far), -number

    best = max(range(len(sentences)), key=key)
    if relation not in sentences[best].relations:
        raise BertlookError(f"no sentence has the relation {relation!r}. Choose one of the treebank's.")
    return best


def _by_relation(words: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    """``all`` and each relation with the rows it holds, the most frequent first."""
    rows = words.groupby("relation").indices
    order = sorted(rows, key=lambda relation: (-len(rows[relation]), relation))
    return [("all", np.arange(len(words))), *((relation, rows[relation]) for relation in order)]
