"""One head as a coreference resolver, and the paper's three baselines (§4.3).

The task is antecedent selection. A mention is *anaphoric* if an earlier mention of its entity is in the text.
A system selects, for each anaphoric mention, one head word among those of the earlier mentions; it is right if
that is the head word of a mention of the same entity. The same rules hold for heads and baselines:

* Earlier is what comes before in text order: by start, the longer mention first.
* Mentions that end beyond the cut (the words that fit the model) do not take part.
* Candidates are distinct words: mentions with one head word (``Anna`` in ``[[Anna] and Tom]``) are one
  candidate, right if one of them is. An earlier mention with the very head word of the mention in question is no
  candidate, since a word's attention to itself says nothing. A mention that loses all of its antecedents this
  way is not scored, but counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bertlook import BertlookError
from bertlook.agreement import features
from bertlook.attention import Segment, attend, to_words, word_segment
from bertlook.corpora.mentions import KINDS, Document
from bertlook.encoder import Encoder
from bertlook.results import published
from bertlook.statistics import HeadOutcomes, halves, held_out, interval, resample_mean

DIRECTIONS = ("mention→antecedent", "antecedent→mention")
#: What is known of each scored mention; ``mention`` is its place in ``Document.mentions``.
COLUMNS = ("document", "mention", "kind", "distance")


@dataclass(frozen=True)
class Question:
    """One anaphoric mention and what a system may answer.

    Attributes
    ----------
    mention : int
        Its place in the document's mentions.
    candidates : list of int
        Places of the earlier mentions, without those that share its head word.
    right : set of int
        Positions of the head words of its antecedents.
    """

    mention: int
    candidates: list[int]
    right: set[int]


def questions(document: Document, words_kept: int | None = None) -> tuple[list[Question], Counter[str]]:
    """The anaphoric mentions of a document cut to ``words_kept`` words, and what was left out, by reason."""
    mentions = document.mentions
    kept = [i for i, m in enumerate(mentions) if words_kept is None or m.end <= words_kept]
    left_out: Counter[str] = Counter()
    if beyond := len(mentions) - len(kept):
        left_out["mentions beyond the cut"] = beyond
    result = []
    for n, i in enumerate(kept):
        earlier = kept[:n]
        candidates = [j for j in earlier if mentions[j].head != mentions[i].head]
        left_out["candidates with the mention's own head word"] += len(earlier) - len(candidates)
        right = {mentions[j].head for j in candidates if mentions[j].entity == mentions[i].entity}
        if right:
            result.append(Question(i, candidates, right))
        elif any(mentions[j].entity == mentions[i].entity for j in earlier):
            left_out["anaphoric mentions whose antecedents share their head word"] += 1
    return result, +left_out


def describe(document: Document, asked: Sequence[Question], number: int) -> Tensor:
    """Document number, mention, kind (place in ``KINDS``) and distance of each question, [question, 4].

    The distance is in words, from the mention's head word to the nearest head word of an antecedent.
    """
    rows = []
    for question in asked:
        mention = document.mentions[question.mention]
        distance = min(abs(mention.head - word) for word in question.right)
        rows.append([number, question.mention, KINDS.index(mention.kind), distance])
    return torch.tensor(rows, dtype=torch.long).view(-1, len(COLUMNS))


def mention_table(about: Tensor) -> pd.DataFrame:
    """:func:`describe`'s rows, the kinds by name: ``document, mention, kind, distance``."""
    table = pd.DataFrame(about.cpu().numpy(), columns=list(COLUMNS))
    return table.assign(kind=pd.Categorical.from_codes(table["kind"], list(KINDS)))


def by_kind(mentions: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    """``all`` and each mention type, with which mentions are of it."""
    kind = mentions["kind"].to_numpy()
    return [("all", np.ones(len(kind), dtype=bool)), *((name, kind == name) for name in KINDS)]


# ------------------------------------------------------------------------------------------------------- the heads


class AntecedentSelection(HeadOutcomes):
    """How often each head selects a true antecedent, as it attends to words (§4.3).

    With ``m`` the mention's head word and ``C`` the candidates' head words, the selected word is
    ``argmax_{c in C} α[m, c]`` (mention→antecedent, the paper's) or ``argmax_{c in C} α[c, m]``
    (antecedent→mention); among equals the first in the text.

    An item is a mention, described as by :func:`describe`. See the module for mentions and candidates.

    Parameters
    ----------
    layers, heads : int
    """

    def __init__(self, layers: int, heads: int) -> None:
        super().__init__(DIRECTIONS, layers, heads, columns=len(COLUMNS))

    def update(self, attention: Tensor, document: Document, words_kept: int, number: int) -> None:
        """Score one document.

        Parameters
        ----------
        attention : Tensor [layer, head, word, word or more]
            Attention between the first ``words_kept`` words; further rows and keys are not looked at.
        document : Document
        words_kept : int
            How many of its words are in the map.
        number : int
            Number of the document, the same for each system that is compared.
        """
        asked, _ = questions(document, words_kept)
        if not asked:
            return
        heads = [m.head for m in document.mentions]
        words = sorted({heads[j] for question in asked for j in question.candidates})
        column = {word: i for i, word in enumerate(words)}
        candidate = torch.zeros(len(asked), len(words), dtype=torch.bool)
        right = torch.zeros_like(candidate)
        for row, question in enumerate(asked):
            candidate[row, [column[heads[j]] for j in question.candidates]] = True
            right[row, [column[word] for word in question.right]] = True
        candidate, right = candidate.to(attention.device), right.to(attention.device)
        rows = torch.tensor([heads[question.mention] for question in asked], device=attention.device)
        columns = torch.tensor(words, device=attention.device)
        both = (attention[:, :, rows][..., columns], attention[:, :, columns][..., rows].transpose(-1, -2))
        chosen = torch.stack(both).masked_fill(~candidate, -1).argmax(-1)  # [direction, layer, head, question]
        correct = right[torch.arange(len(asked), device=attention.device), chosen]
        self.correct.append(correct.movedim(-1, 0))
        self.about.append(describe(document, asked, number).to(attention.device))

    def mentions(self) -> pd.DataFrame:
        """``document, mention, kind, distance`` of each scored mention, by document and mention."""
        return mention_table(self.items())

    def table(self) -> pd.DataFrame:
        """``layer, head, direction, mention_type, n, accuracy``, layers and heads from 1."""
        table = self.accuracies("mention_type", by_kind(self.mentions()))
        return table[["layer", "head", "direction", "mention_type", "n", "accuracy"]]


# --------------------------------------------------------------------------------------------------- the baselines


def nearest(document: Document, asked: Sequence[Question]) -> list[int]:
    """The nearest earlier mention."""
    return [question.candidates[-1] for question in asked]


def head_match(document: Document, asked: Sequence[Question]) -> list[int]:
    """The nearest earlier mention with the same head word, case aside; else the nearest."""
    heads = [document.words[m.head].casefold() for m in document.mentions]
    return [_sieve(question, [lambda a, b: heads[a] == heads[b]]) for question in asked]


def rule_based(document: Document, asked: Sequence[Question]) -> list[int]:
    """Four sieves after Lee et al. (2011): same string, same head word, agreement, any.

    The answer is the nearest mention in the first sieve that matches anything. Agreement is in number, gender,
    person and animacy (:mod:`bertlook.agreement`); what is not known agrees with everything.
    """
    strings = [document.text(m).casefold() for m in document.mentions]
    heads = [document.words[m.head].casefold() for m in document.mentions]
    known = features(document)
    sieves: list[Callable[[int, int], bool]] = [
        lambda a, b: strings[a] == strings[b],
        lambda a, b: heads[a] == heads[b],
        lambda a, b: known[a].agrees(known[b]),
    ]
    return [_sieve(question, sieves) for question in asked]


def _sieve(question: Question, sieves: Sequence[Callable[[int, int], bool]]) -> int:
    """The nearest candidate that passes the first sieve which any candidate passes; else the nearest."""
    for passes in sieves:
        for i in reversed(question.candidates):
            if passes(i, question.mention):
                return i
    return question.candidates[-1]


#: Name → the function that selects a mention, by its place in the document, for each question.
BASELINES: dict[str, Callable[[Document, Sequence[Question]], list[int]]] = {
    "nearest": nearest,
    "head match": head_match,
    "rule-based": rule_based,
}


def score_baselines(
    documents: Iterable[Document], words_kept: Sequence[int] | None = None
) -> tuple[pd.DataFrame, Tensor, Counter[str]]:
    """The baselines on the mentions that the heads are scored on.

    Parameters
    ----------
    documents : iterable of Document
        They are numbered from 0.
    words_kept : sequence of int, optional
        How many words of each document take part; all if not given.

    Returns
    -------
    mentions : DataFrame
        ``document, mention, kind, distance``, as from :meth:`AntecedentSelection.mentions`.
    correct : Tensor [mention, baseline], bool
        In the order of ``BASELINES``.
    left_out : Counter
        As in :func:`questions`.
    """
    about, rows, left_out = [], [], Counter[str]()
    for number, document in enumerate(documents):
        asked, out = questions(document, None if words_kept is None else words_kept[number])
        left_out += out
        about.append(describe(document, asked, number))
        chosen = zip(*(choose(document, asked) for choose in BASELINES.values()), strict=True)
        for question, answers in zip(asked, chosen, strict=True):
            rows.append([document.mentions[i].head in question.right for i in answers])
    correct = torch.tensor(rows, dtype=torch.bool).view(-1, len(BASELINES))
    return (
        mention_table(torch.cat(about) if about else torch.empty(0, len(COLUMNS), dtype=torch.long)),
        correct,
        left_out,
    )


# ------------------------------------------------------------------------------------- a corpus, from words to table


def fit(
    encoder: Encoder, documents: Sequence[Document], max_tokens: int = 128
) -> tuple[list[Segment], list[int], Counter[str]]:
    """Each document cut to the whole words among its first ``max_tokens`` wordpieces, special tokens included.

    Returns
    -------
    segments : list of Segment
    words_kept : list of int
        How many words of each document take part.
    left_out : Counter
        Words beyond the cut, mentions beyond it, and the rest of :func:`questions`' reasons.
    """
    room = min(max_tokens, encoder.max_tokens) - len(word_segment(encoder, []))
    segments, kept, left_out = [], [], Counter[str]()
    for number, document in enumerate(documents):
        coded = encoder.tokenizer(
            list(document.words), is_split_into_words=True, add_special_tokens=False, verbose=False
        )
        owners = coded.word_ids()
        count = len(document.words) if len(owners) <= room else int(owners[room])
        segments.append(word_segment(encoder, document.words[:count], number))
        kept.append(count)
        left_out["words beyond the cut"] += len(document.words) - count
        left_out += questions(document, count)[1]
    return segments, kept, +left_out


def score_heads(
    encoder: Encoder,
    documents: Sequence[Document],
    segments: Sequence[Segment],
    words_kept: Sequence[int],
    progress: str | None = "attention",
) -> AntecedentSelection:
    """All heads on all documents, in one pass; the last three as from :func:`fit`."""
    measure = AntecedentSelection(encoder.layers, encoder.heads)
    for attention, batch in attend(encoder, segments, progress=progress):
        words = to_words(attention, batch.words)
        for row, number in enumerate(batch.index):
            measure.update(words[:, row], documents[number], words_kept[number], number)
    return measure


@dataclass(frozen=True)
class Contest:
    """The heads and the baselines on the same mentions, with the head chosen fairly.

    Attributes
    ----------
    mentions : DataFrame
        ``document, mention, kind, distance``.
    right : dict
        System → array [mention], 0 or 1. ``head, same documents`` is the best head chosen on these mentions, the
        paper's way; ``head, held out`` the one chosen on one half of the documents and scored on the other, and
        the other way round.
    best : (int, int)
        Layer and head of the former, from 1.
    chosen : list of (int, int)
        Layers and heads chosen on the two halves, from 1.
    """

    mentions: pd.DataFrame
    right: dict[str, np.ndarray]
    best: tuple[int, int]
    chosen: list[tuple[int, int]]

    def kinds(self) -> list[tuple[str, np.ndarray]]:
        """``all`` and each mention type, with which mentions are of it."""
        return by_kind(self.mentions)

    def table(self) -> pd.DataFrame:
        """The paper's Table 2: ``system, mention_type, n, accuracy, ci_low, ci_high, paper_accuracy``.

        Intervals are 95%, bootstrapped over documents.
        """
        reference = published()["table2"]
        rows = []
        for system, right in self.right.items():
            theirs = dict(zip(reference["columns"], reference[PAPER[system]], strict=True))
            for kind, some in self.kinds():
                if not some.any():
                    continue
                low, high = interval(resample_mean(right[some], self.mentions["document"].to_numpy()[some]))
                rows.append([system, kind, int(some.sum()), right[some].mean(), low, high, theirs[kind] / 100])
        columns = ["system", "mention_type", "n", "accuracy", "ci_low", "ci_high", "paper_accuracy"]
        return pd.DataFrame(rows, columns=columns)

    def difference(self, system: str, other: str, kind: str = "all") -> tuple[float, float, float, int]:
        """Accuracy of one system minus another's on the same mentions: value, interval, number of mentions."""
        some = dict(self.kinds())[kind]
        gap = self.right[system][some].astype(float) - self.right[other][some]
        low, high = interval(resample_mean(gap, self.mentions["document"].to_numpy()[some]))
        return float(gap.mean()), float(low), float(high), int(some.sum())


SAME, HELD_OUT = "head, same documents", "head, held out"
#: Our systems and the paper's rows.
PAPER = {
    "nearest": "nearest",
    "head match": "head_match",
    "rule-based": "rule_based",
    SAME: "head_5_4",
    HELD_OUT: "head_5_4",
}


def contest(
    heads: AntecedentSelection, documents: Sequence[Document], words_kept: Sequence[int], direction: str = DIRECTIONS[0]
) -> Contest:
    """Set heads and baselines against each other; heads are read in one direction, the paper's unless said.

    Raises
    ------
    BertlookError
        No document has a mention with an antecedent.
    """
    mentions, baselines, _ = score_baselines(documents, words_kept)
    outcomes = heads.outcomes()[:, DIRECTIONS.index(direction)].flatten(1).cpu().numpy()
    if not len(mentions):
        raise BertlookError("no mention has an antecedent before the cut. Give longer documents, or more.")
    if not mentions.equals(heads.mentions()):
        raise ValueError("heads and baselines were scored on different mentions")
    score, chosen = held_out(outcomes, halves(mentions["document"].to_numpy()))
    best = int(outcomes.sum(0).argmax())

    def place(option: int) -> tuple[int, int]:
        layer, head = divmod(option, heads.shape[2])
        return layer + 1, head + 1

    right = {name: baselines[:, k].numpy() for k, name in enumerate(BASELINES)}
    right |= {SAME: outcomes[:, best], HELD_OUT: score}
    return Contest(mentions, right, place(best), [place(option) for option in chosen if option >= 0])


def corpus_table(documents: Sequence[Document]) -> pd.DataFrame:
    """What a corpus holds, by genre (the first part of a document's name): whole documents, nothing cut.

    Returns
    -------
    DataFrame
        ``genre, documents, words, entities, mentions, pronoun, proper, nominal``; the last three count mentions
        with an antecedent.
    """
    rows = []
    for document in documents:
        kinds = Counter(document.mentions[q.mention].kind for q in questions(document)[0])
        rows.append(
            {
                "genre": re.split(r"[-_]", document.name.removeprefix("GUM_"))[0],
                "documents": 1,
                "words": len(document.words),
                "entities": len({m.entity for m in document.mentions}),
                "mentions": len(document.mentions),
            }
            | {kind: kinds[kind] for kind in KINDS}
        )
    return pd.DataFrame(rows).groupby("genre", as_index=False).sum()
