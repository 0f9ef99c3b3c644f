"""All heads together as a parser: probes trained on frozen attention (§5), and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from tqdm.auto import tqdm

from bertlook import figures
from bertlook.attention import Segment, attend, batches
from bertlook.corpora import Corpus
from bertlook.corpora.treebank import Sentence, reparsed
from bertlook.corpora.vectors import WordVectors
from bertlook.encoder import Encoder
from bertlook.figures import Picture
from bertlook.probes import (
    SEEDS,
    AttentionProbe,
    AttentionWordsProbe,
    DistanceWordsProbe,
    Probe,
    RightBranching,
    StructuralProbe,
    features,
)
from bertlook.results import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, Claim, Verdicts, number, published
from bertlook.statistics import estimates, halves, held_out, interval, resample_mean

#: The probes of Table 3 that are trained on the model itself.
KINDS = {
    "right-branching": RightBranching,
    "distances and words": DistanceWordsProbe,
    "attention": AttentionProbe,
    "attention and words": AttentionWordsProbe,
    "structural probe": StructuralProbe,
}
#: Those on a model with random weights, and whether it keeps the pre-trained embeddings.
RANDOM = {
    "random attention, embeddings kept, and words": True,
    "random attention, all random, and words": False,
}
RANDOM_KEPT, RANDOM_ALL = RANDOM
#: Rows of Table 3 in their order, and what the paper reports for each; the last is not UAS but UUAS.
PAPER = {
    name: published()["table3"][key] / 100
    for name, key in {
        "right-branching": "right_branching",
        "distances and words": "distances_glove",
        RANDOM_KEPT: "random_init_attention_glove",
        RANDOM_ALL: "random_init_attention_glove",
        "attention": "attention",
        "attention and words": "attention_glove",
        "structural probe": "structural_probe_uuas",
    }.items()
}
TRAIN_BUDGET = 512


# ------------------------------------------------------------------------------------------------- train, evaluate


def train(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    segments: Sequence[Segment],
    probes: Mapping[str, Probe],
    vectors: WordVectors,
    passes: int = 1,
    seed: int = 0,
    progress: str | None = "training",
) -> None:
    """Train the probes in place, in mini-batches, all in the same passes over the treebank; the model stays frozen.

    Each seed of a probe has its own bootstrap sample of the sentences: a sentence counts as often as a Poisson
    variable of mean 1 says. Adam; the rate falls linearly to 0. Sentences and segments as from
    :func:`bertlook.syntax.fit`; ``passes`` is how often each is seen.
    """
    copies = max(probe.seeds for probe in probes.values())
    drawn = [np.random.default_rng((seed, copy)).poisson(1, len(sentences)) for copy in range(copies)]
    counts = torch.from_numpy(np.stack(drawn)).float()
    steps = passes * sum(1 for _ in batches(encoder, segments, TRAIN_BUDGET))
    groups = [{"params": list(probe.parameters()), "lr": probe.rate} for probe in probes.values()]
    optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, max(steps, 2) - 1)
    stream = (batch for turn in range(passes) for batch in batches(encoder, segments, TRAIN_BUDGET, seed + turn))
    with tqdm(total=passes * len(segments), desc=progress, unit="sentence", disable=progress is None) as bar:
        for step, batch in enumerate(stream):
            seen = features(encoder, batch, sentences, vectors)
            weights = counts[:, batch.index].to(encoder.device) / len(batch.index)
            loss = torch.zeros((), device=encoder.device)
            for probe in probes.values():
                if not step:
                    probe.prepare(seen)
                # Neither probes nor seeds share weights, so the sum trains each by itself.
                loss = loss + (weights[: probe.seeds] * probe.loss(seen)).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update(len(batch.index))


@dataclass(frozen=True)
class Evaluation:
    """Which words and which edges each probe got right.

    Attributes
    ----------
    words, edges : array
        Number of the sentence of each scored word, and of each scored edge.
    right : dict
        Probe → array [word, seed], bool: the predicted head word (or the root) is the gold one.
    found : dict
        Probe → array [edge, seed, layer], bool. The edge, whatever its direction, is in the spanning tree that the
        probe likes best, over all words but punctuation.
    """

    words: np.ndarray
    edges: np.ndarray
    right: dict[str, np.ndarray]
    found: dict[str, np.ndarray]

    def uas(self, probe: str) -> tuple[np.ndarray, np.ndarray]:
        """Share of the seeds that find each word's head word, and the sentence it is of, both [word]."""
        return self.right[probe].mean(1), self.words

    def uuas(self, probe: str) -> tuple[np.ndarray, np.ndarray]:
        """Share of the seeds that find each edge, and the sentence it is of, both [edge].

        Of several layers, the one is read that was best on one half of the sentences for the other half, and the
        other way round.
        """
        found = self.found[probe].mean(1)
        one = found.shape[1] == 1
        return found[:, 0] if one else held_out(found, halves(self.edges))[0], self.edges

    def __or__(self, other: Evaluation) -> Evaluation:
        """Both evaluations' probes; they have to be of the same sentences."""
        if not (np.array_equal(self.words, other.words) and np.array_equal(self.edges, other.edges)):
            raise ValueError("these probes were scored on different words")
        return replace(self, right=self.right | other.right, found=self.found | other.found)


def evaluate(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    segments: Sequence[Segment],
    probes: Mapping[str, Probe],
    vectors: WordVectors,
    progress: str | None = "evaluating",
) -> Evaluation:
    """Score the probes on sentences they were not trained on.

    UAS: share of the words, punctuation left out, whose best head word (or root) is the gold one. UUAS: share of the
    gold edges between words that are no punctuation found by the spanning tree of the best sum of scores, those of
    both directions taken at their maximum.
    """
    words: list[int] = []
    edges: list[int] = []
    right: dict[str, list[np.ndarray]] = {name: [] for name, probe in probes.items() if probe.directed}
    found: dict[str, list[np.ndarray]] = {name: [] for name in probes}
    bar = tqdm(total=len(segments), desc=progress, unit="sentence", disable=progress is None)
    with bar, torch.no_grad():
        for batch in batches(encoder, segments):
            seen = features(encoder, batch, sentences, vectors)
            scores = {name: probe.scores(seen).cpu().numpy() for name, probe in probes.items()}
            for row, (number, own) in enumerate(zip(batch.index, seen.sentences, strict=True)):
                heads, present = seen.heads[row].cpu().numpy(), seen.present[row, : len(own)].cpu().numpy()
                scored, nodes = np.flatnonzero(heads >= 0), np.flatnonzero(present & ~np.array(own.punct))
                ends = [(int(i), int(heads[i])) for i in scored[np.isin(heads[scored], nodes)]]
                pairs = sorted((min(pair), max(pair)) for pair in ends)
                words += [number] * len(scored)
                edges += [number] * len(pairs)
                for name, each in scores.items():
                    maps = each[:, :, row]  # [seed, layer, word, word + 1]
                    if name in right:
                        right[name].append((maps[:, 0, scored].argmax(-1) == heads[scored]).T)
                    trees = [[spanning_tree(one, nodes) for one in layers] for layers in maps]
                    hits = [[[pair in tree for tree in layers] for layers in trees] for pair in pairs]
                    found[name].append(np.array(hits, dtype=bool).reshape(len(pairs), *maps.shape[:2]))
            bar.update(len(batch.index))
    joined = ({name: np.concatenate(rows) for name, rows in parts.items()} for parts in (right, found))
    return Evaluation(np.array(words), np.array(edges), *joined)


def spanning_tree(scores: np.ndarray, nodes: np.ndarray) -> set[tuple[int, int]]:
    """The tree over ``nodes`` with the greatest sum of ``max(s[i, j], s[j, i])``: pairs (i, j), i < j."""
    if len(nodes) < 2:
        return set()
    part = scores[np.ix_(nodes, nodes)]
    part = np.maximum(part, part.T)
    off = ~np.eye(len(nodes), dtype=bool)
    costs = np.where(off, part[off].max() - part + 1, 0)  # 0 is no edge, for scipy
    tree = minimum_spanning_tree(np.where(np.isfinite(costs), costs, 1e9)).tocoo()
    return {(min(a, b), max(a, b)) for a, b in zip(nodes[tree.row].tolist(), nodes[tree.col].tolist(), strict=True)}


@dataclass(frozen=True)
class Experiment:
    """Sentences to train on and to score on, with their segments, and how the probes are trained.

    Attributes
    ----------
    train, dev : Corpus of Sentence
    train_segments, dev_segments : list of Segment
    vectors : WordVectors
    passes, seeds, seed : int
        How often each sentence is seen, how many copies of each probe there are, and of what all chance depends on.
    """

    train: Corpus[Sentence]
    train_segments: list[Segment]
    dev: Corpus[Sentence]
    dev_segments: list[Segment]
    vectors: WordVectors
    passes: int = 3
    seeds: int = SEEDS
    seed: int = 0

    def run(self, encoder: Encoder, kinds: Mapping[str, type[Probe]]) -> Evaluation:
        """Train these probes in shared passes and score them."""
        probes = {name: kind(encoder, self.vectors, self.seeds) for name, kind in kinds.items()}
        train(encoder, self.train.items, self.train_segments, probes, self.vectors, self.passes, self.seed)
        return evaluate(encoder, self.dev.items, self.dev_segments, probes, self.vectors)

    @property
    def trees(self) -> str:
        """``gold`` or ``silver``."""
        return "silver" if "parser" in self.dev.source else "gold"

    def with_silver_trees(self, scheme: str) -> Experiment:
        """The same sentences with a parser's trees, in training and in scoring: what silver does to a result."""
        return replace(self, train=reparsed(self.train, scheme), dev=reparsed(self.dev, scheme))


# ---------------------------------------------------------------------------------------------------------- tables


def table3(scored: Evaluation) -> pd.DataFrame:
    """The paper's Table 3, a row a probe: ``probe, uas, uas_low, uas_high, uas_sd, uuas, uuas_low, uuas_high, n``.

    Means over seeds, their 95% intervals over sentences, and ``uas_sd``, the standard deviation over seeds; then the
    paper's number, ``paper_uas``, which is UUAS in the structural probe's row, as in the paper.
    """
    rows = []
    for name in filter(scored.found.__contains__, PAPER):
        row = {"probe": name, **_mean("uuas", *scored.uuas(name)), "n": len(scored.words), "paper_uas": PAPER[name]}
        if name in scored.right:
            row |= {**_mean("uas", *scored.uas(name)), "uas_sd": pd.Series(scored.right[name].mean(0)).std()}
        rows.append(row)
    columns = ["probe", "uas", "uas_low", "uas_high", "uas_sd", "uuas", "uuas_low", "uuas_high", "n", "paper_uas"]
    return pd.DataFrame(rows, columns=columns)


def _mean(column: str, values: np.ndarray, groups: np.ndarray) -> dict[str, object]:
    low, high = interval(resample_mean(values, groups))
    return {column: values.mean(), f"{column}_low": low, f"{column}_high": high}


def table3_columns(table: pd.DataFrame) -> dict[str, list[str]]:
    """:func:`table3` for reading."""
    rows = table.to_dict("records")

    def with_interval(row: Mapping[str, float], kind: str) -> str:
        if np.isnan(row[kind]):
            return "–"
        return f"{number(row[kind], 'share')} ({100 * row[kind + '_low']:.1f}–{100 * row[kind + '_high']:.1f})"

    return {
        "Probe": [row["probe"] for row in rows],
        "UAS, 95%": [with_interval(row, "uas") for row in rows],
        "Spread": ["–" if np.isnan(row["uas_sd"]) else f"{100 * row['uas_sd']:.1f} points" for row in rows],
        "UUAS, 95%": [with_interval(row, "uuas") for row in rows],
        "Paper": [f"{row['paper_uas']:.0%}{' (UUAS)' if np.isnan(row['uas']) else ''}" for row in rows],
    }


def structural_table(scored: Evaluation) -> pd.DataFrame:
    """UUAS of the structural probe on each layer's hidden states: ``layer, uuas, low, high``; layers from 1."""
    found = scored.found["structural probe"].mean(1)  # [edge, layer]
    low, high = interval(resample_mean(found, scored.edges))
    return pd.DataFrame({"layer": range(1, found.shape[1] + 1), "uuas": found.mean(0), "low": low, "high": high})


def gold_and_silver(experiment: Experiment, encoder: Encoder, table: pd.DataFrame, scheme: str) -> pd.DataFrame:
    """Two probes of :func:`table3` once more with a parser's trees: ``probe, uas, uuas, n`` and ``…_silver``.

    Where the trees are silver already, there is nothing to train again, and nothing is known of gold.
    """
    names = ["right-branching", "attention", "attention and words"]
    own = table.loc[table["probe"].isin(names), ["probe", "uas", "uuas", "n"]]
    if experiment.trees == "silver":
        silver, own = own, own.assign(uas=np.nan, uuas=np.nan, n=0)
    else:
        again = experiment.with_silver_trees(scheme).run(encoder, {name: KINDS[name] for name in names})
        silver = table3(again)[own.columns]
    return own.merge(silver, on="probe", suffixes=("", "_silver"))


def gold_and_silver_columns(table: pd.DataFrame) -> dict[str, list[str]]:
    """:func:`gold_and_silver` for reading."""
    columns = {"uas": "UAS, gold", "uas_silver": "UAS, silver", "uuas": "UUAS, gold", "uuas_silver": "UUAS, silver"}
    shown = {label: [number(value, "share") for value in table[name]] for name, label in columns.items()}
    return {"Probe": table["probe"].tolist()} | shown


def flatness(encoder: Encoder, segments: Sequence[Segment]) -> float:
    """Mean entropy of all heads' attention as a share of uniform attention's: 1 where every token gets the same."""
    shares = []
    for attention, batch in attend(encoder, segments, progress=None):
        entropy = -torch.xlogy(attention.float(), attention.float()).sum(-1).mean((0, 2))  # [batch, query]
        shares.append((entropy / batch.mask.sum(1, keepdim=True).log())[batch.mask])
    return float(torch.cat(shares).mean())


# --------------------------------------------------------------------------------------------------------- figures


def draw_probes(table: pd.DataFrame) -> Picture:
    """UAS of each probe in :func:`table3` beside the paper's."""
    shown = table.dropna(subset="uas").replace({"probe": {name: name.replace(", ", ",\n", 1) for name in RANDOM}})
    return figures.dots(
        shown,
        "probe",
        "uas",
        "uas_low",
        "uas_high",
        label="here",
        xlabel="UAS",
        others={"paper_uas": "paper"},
        name="probes",
        caption="How much of the tree each probe finds.",
        data=["probing/table3.csv"],
    )


def draw_structural(layers: pd.DataFrame, table: pd.DataFrame) -> Picture:
    """UUAS of the structural probe by layer (:func:`structural_table`), and what two others of Table 3 find."""
    uuas = table.set_index("probe")["uuas"]
    return figures.lines(
        layers,
        "layer",
        "uuas",
        low="low",
        high="high",
        xlabel="layer",
        ylabel="UUAS",
        top=1,
        levels={name: uuas[name] for name in ("right-branching", "attention and words")},
        name="structural",
        caption="UUAS of the structural probe on each layer's hidden states; the band is a 95% interval.",
        data=["probing/structural.csv", "probing/table3.csv"],
    )


# ------------------------------------------------------------------------------------------------ claims and words

#: Claim → the probe that is better, and the one it is held against.
CONTRASTS = {
    "attention-over-right": ("attention", "right-branching"),
    "attention-over-random": ("attention", RANDOM_KEPT),
    "words-help": ("attention and words", "attention"),
    "attention-over-distances": ("attention and words", "distances and words"),
    "near-structural": ("attention and words", "structural probe"),
}


def _claim(id: str, text: str, **options: Any) -> Claim:
    better, worse = (f"{PAPER[name]:.0%}" for name in CONTRASTS[id])
    paper = f"{better} UAS against {worse} UUAS" if id == "near-structural" else f"{better} against {worse}"
    return Claim(id, "5", text, paper, unit="points", evidence="fig-probes", **options)


CLAIMS = (
    _claim("attention-over-right", "Attention alone finds more of the tree than right-branching"),
    _claim("attention-over-random", "Trained attention alone finds more than random attention with word vectors"),
    _claim("words-help", "Word vectors help: attention and words beats attention alone"),
    _claim("attention-over-distances", "Attention and words beats distances and words"),
    _claim(
        "near-structural",
        "Attention holds about as much of the tree as the hidden states: no worse than 10 points below the structural "
        "probe (UUAS)",
        threshold=-0.1,
    ),
)


def quantities(scored: Evaluation, trees: str) -> pd.DataFrame:
    """What ``CLAIMS`` are about, ``quantity, value, low, high, n``: differences of two probes on the same words.

    They are of UAS, or of UUAS where one of the two knows no direction.
    """
    found = {}
    for claim, pair in CONTRASTS.items():
        if set(pair) <= set(scored.found):
            of = scored.uas if set(pair) <= set(scored.right) else scored.uuas
            (better, groups), (worse, _) = map(of, pair)
            found[claim] = ((better - worse).mean(), resample_mean(better - worse, groups))
    sentences, seeds = np.unique(scored.words).size, max(each.shape[1] for each in scored.found.values())
    return estimates(found, f"{len(scored.words):,} words of {sentences:,} sentences, {trees} trees, {seeds} seeds")


#: What the outcome of the claim on random attention means.
ORIGIN = {
    REPLICATES: "The attention maps, taken together, hold much of the tree, and a random model’s do not: so it is "
    "training that put it there.",
    DOES_NOT: "A random model’s attention maps serve a probe as well as the trained ones, so nothing here says that "
    "training put the tree there.",
    CANNOT_TELL: "Whether the trained attention maps hold more of the tree than a random model’s cannot be told from "
    "this data.",
    NOT_MEASURED: "Without the probe on random attention nothing says that training put the tree into the maps.",
}


def words(table: pd.DataFrame, verdicts: Verdicts, experiment: Experiment, flat: Mapping[str, float]) -> dict[str, str]:
    """What the chapter's prose says of :func:`table3`; ``flat`` is the :func:`flatness` of each model, by name."""
    gold = experiment.trees == "gold"
    uas = {row["probe"]: number(row["uas"], "share") for row in table.to_dict("records")}
    covered = experiment.vectors.coverage([sentence.words for sentence in experiment.dev])
    return {
        "claims": verdicts.summary(),
        "attention-words": uas["attention and words"],
        "attention-words-paper": f"{PAPER['attention and words']:.0%}",
        "distances": uas["distances and words"],
        "random": uas[RANDOM_KEPT],
        "random-paper": f"{PAPER[RANDOM_KEPT]:.0%}",
        "trees": "gold" if gold else "silver: made by a parser, checked by nobody",
        "vectors": experiment.vectors.name,
        "coverage": number(covered, "share"),
        "gold-or-silver": ""
        if gold
        else "This copy has no gold trees, so gold is not measured here; the profile gold does, on GUM.",
        "origin": ORIGIN[verdicts["attention-over-random"]],
        **{f"flat-{name}": number(value, "share") for name, value in flat.items()},
    }
