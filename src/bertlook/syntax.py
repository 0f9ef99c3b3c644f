"""One head as a parser: how often it attends from word to head word, for each relation (§4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from IPython.display import HTML
from torch import Tensor

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, attend, to_words
from bertlook.claims import NOT_MEASURED, REPLICATES, listed, number, published
from bertlook.corpora.schemes import POSSESSIVES
from bertlook.corpora.treebank import Sentence
from bertlook.encoder import Encoder
from bertlook.figures import View
from bertlook.results import head_link, two_lines
from bertlook.statistics import HeadOutcomes, halves, held_out, interval, resample_mean

DIRECTIONS = ("dependent→head", "head→dependent")
POSSESSIVE_RELATIONS = {"poss", "nmod:poss"}
ARROWS = dict(zip(DIRECTIONS, ("d→h", "h→d"), strict=True))
REACH = 10


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

    An item is a word: number of its sentence, and its position from 0. ``sentences`` come in the order of the segments
    that the stream is given (:func:`bertlook.attention.fit` makes both).
    """

    def __init__(self, layers: int, heads: int, sentences: Sequence[Sentence]) -> None:
        super().__init__(DIRECTIONS, layers, heads, columns=2)
        self.sentences = sentences

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key] between wordpieces."""
        maps = to_words(attention, batch.words)[..., :-1]  # [layer, batch, head, word, word]
        maps.diagonal(0, -2, -1).fill_(-1)
        here = [set(row) - {-1} for row in batch.words.tolist()]
        scored = []
        for row, index in enumerate(batch.index):
            sentence = self.sentences[index]
            stand_in = stand_ins(sentence)
            for i in set(range(len(sentence))) - here[row]:  # no wordpiece: no choice
                maps[:, row, :, i] = maps[:, row, :, :, i] = -1
            for i, head in enumerate(sentence.heads):
                if head and not sentence.punct[i] and {stand_in[i], head - 1} <= here[row]:
                    scored.append((index, i, row, stand_in[i], head - 1))
        if not scored:
            return
        *about, rows, places, golds = torch.tensor(scored).T
        choices = (maps[:, rows, :, places], maps[:, rows, :, :, places])  # each [scored, layer, head, word]
        # numpy's argmax is twice as fast here as torch's.
        chosen = torch.stack([torch.from_numpy(choice.float().cpu().numpy().argmax(-1)) for choice in choices], 1)
        self.about.append(torch.stack(about, 1))
        self.correct.append(chosen == golds[:, None, None, None])

    def words(self) -> pd.DataFrame:
        """The scored words: ``sentence, word`` (from 0), ``document, relation, offset`` (to the head word)."""
        stand_in = [stand_ins(sentence) for sentence in self.sentences]
        rows = [
            (s, i, own.document, own.relations[i], own.heads[i] - 1 - stand_in[s][i])
            for s, i in self.items().tolist()
            for own in [self.sentences[s]]
        ]
        return pd.DataFrame(rows, columns=["sentence", "word", "document", "relation", "offset"])


# --------------------------------------------------------------------------------------------------------- tables

#: The columns of ``relations_table`` that make up the paper's Table 1, and those of its held-out comparison.
TABLE1 = (
    "relation n layer head direction accuracy heldout_accuracy ci_low ci_high offset offset_accuracy paper_accuracy"
).split()
HELD_OUT = "relation n chosen offset_heldout offset_low offset_high difference difference_low difference_high".split()
PAPER = {row["relation"]: row for row in published()["table1"]}


def heads_table(parser: HeadParser) -> pd.DataFrame:
    """``relation, direction, layer, head, n, accuracy`` of every head, in both directions; layers and heads from 1."""
    return parser.accuracies("relation", by_relation(parser.words()))


def relations_table(parser: HeadParser, minimum: int = 30) -> pd.DataFrame:
    """The best head and the best fixed offset for each relation, on the same words and held out (Table 1).

    Held out means: chosen on one half of the documents (sentences, where there is but one document), scored on the
    other, and the other way round, so that each word is scored by a choice that did not see it. Intervals are 95%
    bootstrap over sentences; ``ci_low, ci_high`` are those of ``heldout_accuracy``.

    Returns
    -------
    DataFrame
        The columns of ``TABLE1`` and of ``HELD_OUT``: ``chosen`` on the two halves, and the paired ``difference`` of
        head and offset. Relation ``all`` first, then by frequency those with at least ``minimum`` words.
    """
    outcomes, words = parser.outcomes().flatten(1).numpy(), parser.words()
    offsets = np.array([o for o in range(-REACH, REACH + 1) if o])
    near = words["offset"].to_numpy()[:, None] == offsets
    several = words["document"].nunique() > 1
    half = halves(words["document" if several else "sentence"].to_numpy())

    def name(option: int) -> dict[str, object]:
        direction, layer, head = np.unravel_index(option, parser.shape)
        return {"layer": int(layer) + 1, "head": int(head) + 1, "direction": DIRECTIONS[direction]}

    rows = []
    for relation, chosen in by_relation(words):
        if len(chosen) < minimum:
            continue
        right, by_offset = outcomes[chosen], near[chosen]
        best, best_offset = int(right.sum(0).argmax()), int(by_offset.sum(0).argmax())
        score, picked = held_out(right, half[chosen])
        baseline, _ = held_out(by_offset, half[chosen])
        values = np.stack([score, baseline, score - baseline], 1)
        low, high = interval(resample_mean(values, words["sentence"].to_numpy()[chosen]))
        row = {"relation": relation, "n": len(chosen), **name(best), "accuracy": right[:, best].mean()}
        row |= {"offset": int(offsets[best_offset]), "offset_accuracy": by_offset[:, best_offset].mean()}
        row["paper_accuracy"] = PAPER[relation]["accuracy"] / 100 if relation in PAPER else np.nan
        row["chosen"] = ", ".join("{layer}-{head} {direction}".format(**name(k)) for k in picked if k >= 0)
        row |= dict(zip(("heldout_accuracy", "offset_heldout", "difference"), values.mean(0), strict=True))
        row |= dict(zip(("ci_low", "offset_low", "difference_low"), low, strict=True))
        row |= dict(zip(("ci_high", "offset_high", "difference_high"), high, strict=True))
        rows.append(row)
    if len(rows) < 2:
        raise BertlookError(f"no relation has {minimum} words here. Give more sentences, or a lower minimum.")
    return pd.DataFrame(rows)[[*TABLE1, *HELD_OUT[2:]]]


def by_relation(words: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    """``all`` and each relation with the rows it holds, the most frequent first."""
    rows = words.groupby("relation").indices
    order = sorted(rows, key=lambda relation: (-len(rows[relation]), relation))
    return [("all", np.arange(len(words))), *((relation, rows[relation]) for relation in order)]


def shown(relations: pd.DataFrame) -> pd.DataFrame:
    """The rows worth printing: all together, the ten most frequent relations, and the others of the paper's table."""
    return relations[(relations.index < 11) | relations["relation"].isin(PAPER)].reset_index(drop=True)


def gains(relations: pd.DataFrame) -> pd.DataFrame:
    """Single relations, that first on which a head surely gains most over an offset."""
    return relations.iloc[1:].sort_values("difference_low", ascending=False, ignore_index=True)


def several_relations(heads: pd.DataFrame, table: pd.DataFrame, margin: float = 0.1) -> pd.DataFrame:
    """Heads that beat the best offset by ``margin`` or more on at least two relations, on the same words.

    ``layer, head, direction, count, relations``, the strongest relation first in ``relations``.
    """
    both = heads.merge(table[["relation", "offset_accuracy"]], on="relation")
    both = both[(both["relation"] != "all") & (both["accuracy"] - both["offset_accuracy"] >= margin)]
    both = both.sort_values("accuracy", ascending=False, kind="stable")
    groups = both.groupby(["layer", "head", "direction"])["relation"]
    result = groups.agg(count="size", relations=", ".join).reset_index()
    return result[result["count"] > 1].sort_values("count", ascending=False, kind="stable", ignore_index=True)


def beside_silver(relations: pd.DataFrame, gold: HeadParser, silver: HeadParser, minimum: int = 30) -> pd.DataFrame:
    """What the parser's trees do to the result: the same sentences and heads against gold and against silver trees.

    ``relation, n, heldout_accuracy, offset_heldout`` and the same with ``_silver``, for the relations of :func:`shown`
    that both have; ``same_head``, the share of the words whose head word is the same in both.
    """
    columns = ["relation", "n", "heldout_accuracy", "offset_heldout"]
    other = relations_table(silver, minimum)[columns]
    same = np.array([gold.sentences[s].heads[i] == silver.sentences[s].heads[i] for s, i in gold.items().tolist()])
    agree = {relation: same[chosen].mean() for relation, chosen in by_relation(gold.words())}
    side = shown(relations)[columns].merge(other, on="relation", suffixes=("", "_silver"))
    return side.assign(same_head=side["relation"].map(agree))


def example(sentences: Sequence[Sentence], relation: str) -> int:
    """Number of the sentence that shows a relation best, by a rule that does not look at attention.

    Of the sentences with 8 to 14 words (of all, if there are none), the one with the most words of this relation; among
    equals the one where they stand farthest from their head words, then the first. An error if none has it.
    """

    def key(number: int) -> tuple[bool, int, int, int]:
        pairs = pairs_of(sentences[number], relation)
        far = sum(abs(head - i) for i, head in pairs)
        return bool(pairs) and 8 <= len(sentences[number]) <= 14, len(pairs), far, -number

    best = max(range(len(sentences)), key=key)
    if relation not in sentences[best].relations:
        raise BertlookError(f"no sentence has the relation {relation!r}. Choose one of the treebank's.")
    return best


def pairs_of(sentence: Sentence, relation: str) -> list[tuple[int, int]]:
    """Words of a relation and their head words, by position from 0."""
    links = enumerate(zip(sentence.heads, sentence.relations, strict=True))
    return [(i, head - 1) for i, (head, own) in links if own == relation]


def examples(
    encoder: Encoder, sentences: Sequence[Sentence], segments: Sequence[Segment], relations: pd.DataFrame
) -> tuple[pd.DataFrame, list[View]]:
    """Each relation's best head on its :func:`example`: ``relation, layer, head, direction, words, pairs``, and views.

    ``pairs`` are words and head words from 1; in the views they are marked in the direction in which the head is read.
    """
    rows, views = [], []
    for row in relations.itertuples():
        number = example(sentences, row.relation)
        own = sentences[number]
        ((attention, batch),) = attend(encoder, [segments[number]], progress=None)
        weights = to_words(attention, batch.words)[row.layer - 1, 0, row.head - 1, :, :-1].cpu().numpy()
        pairs = pairs_of(own, row.relation)
        marks = pairs if row.direction == DIRECTIONS[0] else [pair[::-1] for pair in pairs]
        title = f"{row.relation}: head {row.layer}-{row.head}, {row.direction}"
        views.append(View(title, own.words, weights, marks))
        said = " ".join(f"{i + 1}>{head + 1}" for i, head in pairs)
        rows.append((row.relation, row.layer, row.head, row.direction, " ".join(own.words), said))
    return pd.DataFrame(rows, columns=["relation", "layer", "head", "direction", "words", "pairs"]), views


def table1_columns(relations: pd.DataFrame) -> dict[str, Sequence[HTML]]:
    """Table 1 as it is printed; in small, below a number, its interval and what the paper has."""
    rows = []
    for row in relations.itertuples():
        their = PAPER.get(row.relation)
        same, place = ("", "") if their is None else ("paper {accuracy}%", "paper {baseline}% at\u00a0{offset:+d}")
        offset = f"{number(row.offset_heldout, 'share')} at\u00a0{row.offset:+d}"
        gain = [f"{100 * value:+.1f}" for value in (row.difference, row.difference_low, row.difference_high)]
        rows.append(
            [
                two_lines(row.relation, f"{row.n:,} words"),
                two_lines(head_link(row.layer, row.head), ARROWS[row.direction]),
                two_lines(number(row.accuracy, "share"), same.format(**their or {})),
                two_lines(number(row.heldout_accuracy, "share"), f"{100 * row.ci_low:.0f}–{100 * row.ci_high:.0f}"),
                two_lines(offset, place.format(**their or {})),
                two_lines(gain[0], f"{gain[1]} to {gain[2]}"),
            ]
        )
    names = ("Relation", "Head", "Same words", "Held out", "Offset", "Gain")
    return dict(zip(names, zip(*rows, strict=True), strict=True))


# ------------------------------------------------------------------------------------------------ claims and words


def quantities(relations: pd.DataFrame, n: str) -> pd.DataFrame:
    """``quantity, value, low, high, n``: held-out accuracy over all relations, the gain over an offset for each one."""
    rows = []
    for row in relations.itertuples():
        gain = (f"head-{row.relation}", row.difference, row.difference_low, row.difference_high)
        every = ("no-parser", row.heldout_accuracy, row.ci_low, row.ci_high)
        rows.append((*(every if row.relation == "all" else gain), f"{row.n:,} words of {n}"))
    return pd.DataFrame(rows, columns=["quantity", "value", "low", "high", "n"])


def words(relations: pd.DataFrame, verdicts: Mapping[str, str], beside: pd.DataFrame | None) -> dict[str, str]:
    """What the chapter's prose says of :func:`relations_table` and, where the trees are gold, :func:`beside_silver`."""
    every, ranked = relations.iloc[0], gains(relations)
    best, most = ranked.iloc[0], ranked.head(4)
    return {
        "answer": answer(verdicts),
        "tree": whole_tree(verdicts["no-parser"], every["heldout_accuracy"]),
        "silver": silver_shift(beside),
        "relations": str(len(ranked)),
        "beaten": str((ranked["difference_low"] > 0).sum()),
        "below": str((ranked["difference_high"] < 0).sum()),
        "best": best["relation"],
        "best-head": number(best["heldout_accuracy"], "share"),
        "best-offset": number(best["offset_heldout"], "share"),
        "most": listed([f"{row.relation} ({100 * row.difference:+.0f} points)" for row in most.itertuples()]),
        "all": number(every["heldout_accuracy"], "share"),
        "all-offset": f"{number(every['offset_heldout'], 'share')} at {every['offset']:+d}",
    }


def answer(verdicts: Mapping[str, str]) -> str:
    """Whether single heads beat offsets on the relations that the paper singles out."""
    known = [verdict for claim, verdict in verdicts.items() if claim != "no-parser" and verdict != NOT_MEASURED]
    found = known.count(REPLICATES)
    start = "Yes, for single relations" if found else "Not for the relations that the paper singles out"
    have = "has" if found == 1 else "have"
    return f"{start}: {found} of the {len(known)} measured here {have} a head that beats every fixed offset"


def whole_tree(verdict: str, share: float) -> str:
    """What the verdict on a head for all relations comes to."""
    if verdict == REPLICATES:
        return f"No head knows the whole tree: the best gets {number(share, 'share')}"
    return f"Of the whole tree the best head gets {number(share, 'share')}"


def silver_shift(beside: pd.DataFrame | None) -> str:
    """How far the parser's trees move the held-out accuracies, or that there is nothing to compare them with."""
    if beside is None:
        return "The trees of this copy are silver themselves, so this is not measured here; profile gold does, on GUM."
    shift = 100 * (beside["heldout_accuracy_silver"] - beside["heldout_accuracy"]).abs()
    worst, same = beside["relation"][shift.idxmax()], beside.set_index("relation")["same_head"]["all"]
    return (
        f"The parser finds the gold head word of {number(same, 'share')} of the words. Against its trees the held-out "
        f"accuracies differ by {shift.mean():.1f} points on average, at most by {shift.max():.1f} ({worst})."
    )
