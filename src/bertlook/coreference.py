"""One head as a coreference resolver (§4.3); the task and the baselines are in :mod:`bertlook.corpora.antecedents`."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import torch
from IPython.display import HTML
from torch import Tensor

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, attend, to_words, word_segment
from bertlook.claims import listed, number, published
from bertlook.corpora import Corpus
from bertlook.corpora.antecedents import BASELINES, Question, cut, questions, score_baselines
from bertlook.corpora.mentions import KINDS, Document
from bertlook.encoder import Encoder
from bertlook.statistics import HeadOutcomes, estimates, halves, held_out, interval, resample_mean

DIRECTIONS = ("mention→antecedent", "antecedent→mention")
SAME, HELD_OUT = "head, same documents", "head, held out"
#: Our systems, with the paper's rows.
SYSTEMS = {name: name.replace(" ", "_").replace("-", "_") for name in BASELINES} | {
    SAME: "head_5_4",
    HELD_OUT: "head_5_4",
}


# ----------------------------------------------------------------------------------------------------- the measure


def fit(encoder: Encoder, corpus: Corpus[Document], max_tokens: int = 128) -> tuple[Corpus[Document], list[Segment]]:
    """Each document cut to the whole words among its first ``max_tokens`` wordpieces, one segment each.

    Words and mentions beyond the cut are counted as left out, and so are :func:`questions`' reasons.
    """
    room = min(max_tokens, encoder.max_tokens) - len(word_segment(encoder, []))
    kept, segments, left_out = [], [], Counter(corpus.left_out)
    for n, document in enumerate(corpus):
        words = list(document.words)
        owners = encoder.tokenizer(words, is_split_into_words=True, add_special_tokens=False, verbose=False).word_ids()
        fitting = words if len(owners) <= room else words[: owners[room]]
        segments.append(word_segment(encoder, fitting, n))
        kept.append(cut(document, max(segments[-1].words, default=-1) + 1))
        left_out["words beyond the cut"] += len(words) - len(kept[-1].words)
        left_out["mentions beyond the cut"] += len(document.mentions) - len(kept[-1].mentions)
        left_out += questions(kept[-1])[1]
    return Corpus(corpus.name, kept, +left_out, corpus.source), segments


def select(maps: Tensor, asked: Sequence[Question]) -> Tensor:
    """The word that each head selects for each question, [direction, layer, head, question]; positions from 0.

    With ``m`` the mention's head word and ``C`` the candidates' head words, it is ``argmax_{c in C} α[m, c]``
    (mention→antecedent, the paper's) or ``argmax_{c in C} α[c, m]`` (antecedent→mention); among equals the first
    in the text. ``maps`` [layer, head, word, word].
    """
    mentions, places = [question.word for question in asked], range(maps.shape[-1])
    possible = torch.tensor([[place in question.words for place in places] for question in asked], device=maps.device)
    both = torch.stack((maps[:, :, mentions], maps[..., mentions].transpose(-1, -2)))
    return both.masked_fill(~possible, -1).argmax(-1).cpu()


class AntecedentSelection(HeadOutcomes):
    """How often each head selects a true antecedent, as it attends to words (§4.3); see :func:`select`.

    An item is a mention: number of its document, and its place in the document's mentions. ``documents`` are in the
    order of the segments that the stream is given; :func:`fit` makes both.
    """

    def __init__(self, layers: int, heads: int, documents: Sequence[Document]) -> None:
        super().__init__(DIRECTIONS, layers, heads, columns=2)
        self.documents = documents

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key] between wordpieces."""
        maps = to_words(attention, batch.words)[..., :-1]  # [layer, batch, head, word, word]
        for row, n in enumerate(batch.index):
            if asked := questions(self.documents[n])[0]:
                chosen = select(maps[:, row], asked)
                places = range(maps.shape[-1])
                right = torch.tensor([[place in question.right for place in places] for question in asked])
                self.correct.append(right[torch.arange(len(asked)), chosen].movedim(-1, 0))
                self.about.append(torch.tensor([(n, question.mention) for question in asked]))

    def mentions(self) -> pd.DataFrame:
        """The scored mentions, as from :func:`score_baselines`."""
        table = score_baselines(self.documents)
        return table[table["document"].isin(self.items()[:, 0].tolist())].reset_index(drop=True)

    def table(self) -> pd.DataFrame:
        """``layer, head, direction, mention_type, n, accuracy`` of every head; layers and heads from 1."""
        columns = ["layer", "head", "direction", "mention_type", "n", "accuracy"]
        return self.accuracies("mention_type", by_kind(self.mentions()))[columns]


def contest(selection: AntecedentSelection) -> pd.DataFrame:
    """Heads, read from mention to antecedent as in the paper, and baselines on the same mentions.

    ``document, mention, kind, distance``, then a column for each of ``SYSTEMS``, 1 where it is right: ``head, same
    documents`` is the best head of all mentions, the paper's way; ``head, held out`` the one that was the best on the
    other half of the documents, named in ``chosen`` (``4-10``); NaN where that half is empty.

    Raises
    ------
    BertlookError
        No document has a mention with an antecedent.
    """
    mentions = selection.mentions()
    if mentions.empty:
        raise BertlookError("no mention has an antecedent before the cut. Give longer documents, or more.")
    outcomes = selection.outcomes()[:, 0].flatten(1).cpu().numpy()
    half = halves(mentions["document"].to_numpy())
    score, chosen = held_out(outcomes, half)
    names = [f"{k // selection.shape[2] + 1}-{k % selection.shape[2] + 1}" if k >= 0 else "" for k in chosen]
    right = {SAME: outcomes[:, outcomes.sum(0).argmax()].astype(float), HELD_OUT: score}
    table = mentions.astype(dict.fromkeys(BASELINES, float)).assign(**right)
    return table.assign(chosen=np.where(half, names[0], names[1]))


def best_head(heads: pd.DataFrame, direction: str = DIRECTIONS[0]) -> tuple[int, int, float]:
    """Layer and head with the best accuracy on all mentions, read in one direction, and that accuracy."""
    whole = heads[(heads["direction"] == direction) & (heads["mention_type"] == "all")]
    best = whole.loc[whole["accuracy"].idxmax()]
    return best["layer"], best["head"], best["accuracy"]


# ------------------------------------------------------------------------------------------------------ the tables


def by_kind(mentions: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    """``all`` and each kind of mention, with which mentions are of it."""
    kind = mentions["kind"].to_numpy()
    return [("all", np.ones(len(kind), dtype=bool)), *((name, kind == name) for name in KINDS)]


def accuracies(mentions: pd.DataFrame, column: str, groups: Sequence[tuple[str, np.ndarray]]) -> pd.DataFrame:
    """``system, n, accuracy, ci_low, ci_high`` of each system in each group that has mentions, named in ``column``.

    Intervals are 95%, bootstrapped over documents.
    """
    rows = []
    for system in SYSTEMS:
        for name, some in groups:
            if some.any():
                right = mentions[system][some]
                low, high = interval(resample_mean(right.to_numpy(), mentions["document"][some]))
                rows.append([system, name, len(right), right.mean(), low, high])
    return pd.DataFrame(rows, columns=["system", column, "n", "accuracy", "ci_low", "ci_high"])


def table2(mentions: pd.DataFrame) -> pd.DataFrame:
    """The paper's Table 2: :func:`accuracies` by ``mention_type``, with ``paper_accuracy``."""
    table = accuracies(mentions, "mention_type", by_kind(mentions))
    theirs = [paper(system, kind) / 100 for system, kind in zip(table["system"], table["mention_type"], strict=True)]
    return table.assign(paper_accuracy=theirs)


def paper(system: str, kind: str = "all") -> int:
    """The paper's accuracy, in percent."""
    theirs = published()["table2"]
    return theirs[SYSTEMS[system]][theirs["columns"].index(kind)]


def table2_columns(table: pd.DataFrame) -> dict[str, list[str]]:
    """:func:`table2` for reading: a row a system, a column a kind; in percent, the paper's in brackets."""
    cells = [f"{100 * a:.1f} ({100 * b:.0f})" for a, b in zip(table["accuracy"], table["paper_accuracy"], strict=True)]
    kinds = table.assign(cell=cells).groupby("mention_type", sort=False)
    return {"System": list(SYSTEMS)} | {f"{kind} ({part['n'].iloc[0]:,})": list(part["cell"]) for kind, part in kinds}


def distance_table(mentions: pd.DataFrame) -> pd.DataFrame:
    """:func:`accuracies` by ``distance`` to the nearest antecedent, in words; of the heads, the one held out."""
    distance, edges = mentions["distance"].to_numpy(), (0, 5, 10, 20, 40)
    groups = [(f"{a + 1}–{b}", (a < distance) & (distance <= b)) for a, b in pairwise(edges)]
    groups.append((f"over {edges[-1]}", distance > edges[-1]))
    return accuracies(mentions, "distance", groups).query("system != @SAME").reset_index(drop=True)


def cases_table(mentions: pd.DataFrame) -> pd.DataFrame:
    """``mention_type, case, n, share``: which of the head (held out) and head match are right."""
    head, match = mentions[HELD_OUT].to_numpy() == 1, mentions["head match"].to_numpy() == 1
    cases = {"both right": head & match, "only the head": head & ~match}
    cases |= {"only head match": ~head & match, "both wrong": ~head & ~match}
    rows = [
        (kind, case, (some & is_so).sum(), is_so[some].mean())
        for kind, some in by_kind(mentions)
        if some.any()
        for case, is_so in cases.items()
    ]
    return pd.DataFrame(rows, columns=["mention_type", "case", "n", "share"])


def case_columns(table: pd.DataFrame) -> dict[str, list[str]]:
    """:func:`cases_table` for reading: a row a kind of mention, a column a case."""
    counts = table.groupby("mention_type", sort=False)["n"].sum()
    shares = table.groupby("case", sort=False)["share"]
    cells = {case: [number(share, "share") for share in column] for case, column in shares}
    return {"Mentions": [f"{kind} ({n:,})" for kind, n in counts.items()]} | cells


def forms_table(mentions: pd.DataFrame, documents: Sequence[Document]) -> pd.DataFrame:
    """``form, kind, n`` of the mentions that only the head (held out) gets right, not head match; frequent first."""
    only = mentions[(mentions[HELD_OUT] == 1) & (mentions["head match"] == 0)]
    where = [documents[n] for n in only["document"]]
    forms = [own.text(own.mentions[i]).lower() for own, i in zip(where, only["mention"], strict=True)]
    counts = only.assign(form=forms).groupby(["form", "kind"]).size().reset_index(name="n")
    return counts.sort_values("n", ascending=False, kind="stable", ignore_index=True)


def examples(mentions: pd.DataFrame) -> list[int]:
    """Three documents by rule: of each third by the best head's accuracy, the one with the most anaphoric mentions."""
    per = mentions.groupby("document")[SAME].agg(["mean", "size"]).sort_values(["mean", "size"], ascending=False)
    edges = [len(per) * k // 3 for k in range(4)]
    return [int(per["size"].iloc[a:b].idxmax()) for a, b in pairwise(edges) if a < b]


def examples_table(documents: Sequence[Document], layer: int, head: int) -> pd.DataFrame:
    """``document, layer, head, words, chains``: chains as positions of head words, from 1; for the explorer."""
    rows = []
    for document in documents:
        chains: dict[str, set[int]] = {}
        for mention in document.mentions:
            chains.setdefault(mention.entity, set()).add(mention.head + 1)
        linked = " ".join(",".join(map(str, sorted(chain))) for chain in chains.values() if len(chain) > 1)
        rows.append([document.name, layer, head, " ".join(document.words), linked])
    return pd.DataFrame(rows, columns=["document", "layer", "head", "words", "chains"])


def choices(
    encoder: Encoder,
    documents: Sequence[Document],
    segments: Sequence[Segment],
    shown: list[int],
    layer: int,
    head: int,
) -> pd.DataFrame:
    """What one head selects in the documents ``shown``: ``document`` (from 0), ``word, choice`` (from 1), ``right``."""
    rows = []
    for n in shown:
        ((attention, batch),) = attend(encoder, [segments[n]], progress=None)
        maps = to_words(attention[layer - 1 : layer, :, head - 1 : head], batch.words)[:, 0, ..., :-1]
        if asked := questions(documents[n])[0]:
            chosen = select(maps, asked)[0, 0, 0].tolist()
            rows += [(n, q.word + 1, word + 1, word in q.right) for q, word in zip(asked, chosen, strict=True)]
    return pd.DataFrame(rows, columns=["document", "word", "choice", "right"])


def annotated(documents: Sequence[Document], table: pd.DataFrame) -> HTML:
    """Documents as text; after each mention of :func:`choices`' table what was selected for it, and whether right."""
    shown = []
    for n, own in table.groupby("document", sort=False):
        notes: dict[int, str] = {}
        words = [html.escape(word) for word in documents[n].words]
        for row in own.itertuples():
            note = f" <small>→&nbsp;{words[row.choice - 1]}&nbsp;{'✓' if row.right else '✗'}</small>"
            notes[row.word - 1] = notes.get(row.word - 1, "") + note
        text = " ".join(f"<b>{word}</b>{notes[i]}" if i in notes else word for i, word in enumerate(words))
        title = f"{html.escape(documents[n].name)}, {own['right'].sum()} of {len(own)} right."
        shown.append(f"<p><strong>{title}</strong> {text}</p>")
    return HTML(f"<div class='bertlook-documents'>{''.join(shown)}</div>")


# ------------------------------------------------------------------------------------------------- claims and words

#: Claim → the system that the held-out head is set against, and on which mentions.
CONTRASTS = {
    "over-nearest": ("nearest", "all"),
    "over-head-match": ("head match", "all"),
    "near-rules": ("rule-based", "all"),
    "pronouns": ("head match", "pronoun"),
    "nominal": ("head match", "nominal"),
}


def quantities(mentions: pd.DataFrame) -> pd.DataFrame:
    """``quantity, value, low, high, n`` of ``CONTRASTS``: accuracy of the held-out head minus the other's, paired."""
    whole = f"{len(mentions):,} mentions of {mentions['document'].nunique():,} documents"
    kinds, found, n = dict(by_kind(mentions)), {}, {}
    for name, (other, kind) in CONTRASTS.items():
        some = mentions[kinds[kind]]
        gap = (some[HELD_OUT] - some[other]).to_numpy()
        if len(gap) and not np.isnan(gap).any():
            found[name] = (gap.mean(), resample_mean(gap, some["document"]))
            n[name] = whole if kind == "all" else f"{len(gap):,} of {whole}"
    table = estimates(found, whole)
    return table.assign(n=table["quantity"].map(n))


def words(mentions: pd.DataFrame, heads: pd.DataFrame, forms: pd.DataFrame, numbers: pd.DataFrame) -> dict[str, str]:
    """What the prose says besides the verdicts, from the tables that the functions above make."""
    said: dict[str, str] = {}
    for name, system in (("head", HELD_OUT), ("match", "head match"), ("rules", "rule-based")):
        said |= {name: number(mentions[system].mean(), "share"), f"paper-{name}": f"{paper(system)}%"}
    farther = (mentions[HELD_OUT] == 1) & (mentions["nearest"] == 0)
    best, other = best_head(heads), best_head(heads, DIRECTIONS[1])
    return said | {
        "best": f"{best[0]}-{best[1]}",
        "halves": listed(list(mentions["chosen"].unique())),
        "other-way": f"{other[0]}-{other[1]} with {number(other[2], 'share')}",
        "against-match": against(numbers, "over-head-match"),
        "against-rules": against(numbers, "near-rules"),
        "only-head": only_head(forms),
        "not-nearest": number(farther.mean(), "share"),
    }


def against(numbers: pd.DataFrame, contrast: str) -> str:
    """Whether the head does better than the other system of a contrast, by the interval of the difference."""
    found, (other, _) = numbers[numbers["quantity"] == contrast], CONTRASTS[contrast]
    if found.empty:
        return f"was not compared with {other}"
    value, low, high = found[["value", "low", "high"]].to_numpy()[0]
    which = "neither clearly better nor clearly worse"
    if low > 0 or high < 0:
        which = f"{100 * abs(value):.1f} points {'better' if low > 0 else 'worse'}"
    return f"does {which} than {other} (95% interval {100 * low:+.1f} to {100 * high:+.1f} points)"


def only_head(forms: pd.DataFrame, most: int = 6) -> str:
    """What mentions they are that only the head gets right; as from :func:`forms_table`."""
    if forms.empty:
        return "There is no mention that only the head gets right"
    total, pronouns = forms["n"].sum(), forms.loc[forms["kind"] == "pronoun", "n"].sum()
    frequent = ", ".join(f"“{form}” ({n})" for form, n in zip(forms["form"][:most], forms["n"][:most], strict=True))
    return (
        f"Of the {total:,} mentions that only the head gets right, {number(pronouns / total, 'share')} are pronouns; "
        f"the most frequent are {frequent}"
    )
