"""All heads together as a parser: probes trained on frozen attention (§5), and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from tqdm.auto import tqdm

from bertlook.attention import Segment, attend, batches
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, number, published
from bertlook.corpora import Corpus
from bertlook.corpora.treebank import Sentence, reparsed
from bertlook.corpora.vectors import WordVectors
from bertlook.encoder import Encoder
from bertlook.probes import KINDS, SEEDS, Probe, features
from bertlook.results import Verdicts
from bertlook.statistics import estimates, halves, held_out, interval, resample_mean

RANDOM_KEPT = "random attention, embeddings kept, and words"
RANDOM_ALL = "random attention, all random, and words"
_TABLE3 = published()["table3"]
#: Rows of Table 3 in their order, and what the paper reports for each, in per cent; the last is not UAS but UUAS.
PAPER = {
    "right-branching": _TABLE3["right_branching"],
    "distances and words": _TABLE3["distances_glove"],
    RANDOM_KEPT: _TABLE3["random_init_attention_glove"],
    RANDOM_ALL: _TABLE3["random_init_attention_glove"],
    "attention": _TABLE3["attention"],
    "attention and words": _TABLE3["attention_glove"],
    "structural probe": _TABLE3["structural_probe_uuas"],
}
TRAIN_BUDGET = 512
Data = tuple[Corpus[Sentence], list[Segment]]


# ------------------------------------------------------------------------------------------------- train, evaluate


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
        best = found[:, 0] if found.shape[1] == 1 else held_out(found, halves(self.edges))[0]
        return best, self.edges

    def __or__(self, other: Evaluation) -> Evaluation:
        """Both evaluations' probes; they have to be of the same sentences."""
        if not (np.array_equal(self.words, other.words) and np.array_equal(self.edges, other.edges)):
            raise ValueError("these probes were scored on different words")
        return replace(self, right=self.right | other.right, found=self.found | other.found)


@dataclass(frozen=True)
class Experiment:
    """Sentences to train on and to score on, both as from :func:`bertlook.attention.fit`, and how probes are trained.

    ``passes`` is how often each sentence is seen, ``seeds`` how many copies of each probe there are.
    """

    training: Data
    dev: Data
    vectors: WordVectors
    passes: int = 3
    seeds: int = SEEDS
    seed: int = 0

    @property
    def trees(self) -> str:
        """``gold``, or ``silver`` where a parser made them."""
        return "silver" if "parser" in self.dev[0].source else "gold"

    def with_silver_trees(self, scheme: str) -> Experiment:
        """The same sentences with a parser's trees, in training and in scoring."""
        training, dev = ((reparsed(corpus, scheme), segments) for corpus, segments in (self.training, self.dev))
        return replace(self, training=training, dev=dev)

    def run(self, encoder: Encoder, kinds: Mapping[str, type[Probe]]) -> Evaluation:
        """Train these probes and score them."""
        probes = {name: kind(encoder, self.vectors, self.seeds) for name, kind in kinds.items()}
        self.train(encoder, probes)
        return self.evaluate(encoder, probes)

    def train(self, encoder: Encoder, probes: Mapping[str, Probe]) -> None:
        """Train the probes in place, in mini-batches, all in the same passes; the model stays frozen.

        Each seed of a probe has its own bootstrap sample of the sentences: a sentence counts as often as a Poisson
        variable of mean 1 says. Adam; the rate falls linearly to 0.
        """
        corpus, segments = self.training
        copies = [np.random.default_rng((self.seed, copy)).poisson(1, len(corpus)) for copy in range(self.seeds)]
        counts = torch.from_numpy(np.stack(copies)).float()
        turns = [batches(encoder, segments, TRAIN_BUDGET, self.seed + turn) for turn in range(self.passes)]
        steps = self.passes * sum(1 for _ in batches(encoder, segments, TRAIN_BUDGET))
        groups = [{"params": list(probe.parameters()), "lr": probe.rate} for probe in probes.values()]
        optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, max(steps, 2) - 1)
        for step, batch in enumerate(tqdm(chain(*turns), "training", steps, unit="batch")):
            seen = features(encoder, batch, corpus.items, self.vectors)
            weights = counts[:, batch.index].to(encoder.device)
            losses = []
            for probe in probes.values():
                if not step:
                    probe.prepare(seen)
                losses.append((weights[: probe.seeds] * probe.loss(seen)).sum())
            optimiser.zero_grad()
            # Neither probes nor seeds share weights, so the sum trains each by itself.
            (torch.stack(losses).sum() / len(batch.index)).backward()
            optimiser.step()
            schedule.step()

    def evaluate(self, encoder: Encoder, probes: Mapping[str, Probe]) -> Evaluation:
        """Score the probes on sentences they were not trained on.

        UAS: share of the words, punctuation left out, whose best head word (or root) is the gold one. UUAS: share of
        the gold edges between words that are no punctuation found by the spanning tree with the best sum of scores,
        of each two words the better direction's.
        """
        corpus, segments = self.dev
        words: list[int] = []
        edges: list[int] = []
        right: dict[str, list[np.ndarray]] = {name: [] for name, probe in probes.items() if probe.directed}
        found: dict[str, list[np.ndarray]] = {name: [] for name in probes}
        for batch in tqdm(list(batches(encoder, segments)), "evaluating", unit="batch"):
            seen = features(encoder, batch, corpus.items, self.vectors)
            with torch.no_grad():
                scores = {name: probe.scores(seen).cpu().numpy() for name, probe in probes.items()}
            for row, (place, own) in enumerate(zip(batch.index, seen.sentences, strict=True)):
                heads, present = seen.heads[row].cpu().numpy(), seen.present[row, : len(own)].cpu().numpy()
                scored, nodes = np.flatnonzero(heads >= 0), np.flatnonzero(present & ~np.array(own.punct))
                ends = [(int(i), int(heads[i])) for i in scored[np.isin(heads[scored], nodes)]]
                pairs = sorted((min(pair), max(pair)) for pair in ends)
                words += [place] * len(scored)
                edges += [place] * len(pairs)
                for name, each in scores.items():
                    maps = each[:, :, row]  # [seed, layer, word, word + 1]
                    if name in right:
                        right[name].append((maps[:, 0, scored].argmax(-1) == heads[scored]).T)
                    trees = [[spanning_tree(one, nodes) for one in layers] for layers in maps]
                    hits = [[[pair in tree for tree in layers] for layers in trees] for pair in pairs]
                    found[name].append(np.array(hits, dtype=bool).reshape(len(pairs), *maps.shape[:2]))
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


# ---------------------------------------------------------------------------------------------------------- tables


def table3(scored: Evaluation) -> pd.DataFrame:
    """The paper's Table 3, a row a probe: ``probe, uas, uas_low, uas_high, uas_sd, uuas, uuas_low, uuas_high, n``.

    Means over seeds, their 95% intervals over sentences, and ``uas_sd``, the standard deviation over seeds; then the
    paper's number, ``paper_uas``, which is UUAS in the structural probe's row, as in the paper.
    """
    rows = []
    for name in filter(scored.found.__contains__, PAPER):
        row = {"probe": name, "n": len(scored.words), "paper_uas": PAPER[name] / 100}
        row |= _mean("uuas", *scored.uuas(name))
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

    def with_interval(kind: str) -> list[str]:
        rows = table[[kind, f"{kind}_low", f"{kind}_high"]].to_numpy()
        return ["–" if np.isnan(x) else f"{100 * x:.1f}% ({100 * low:.1f}–{100 * high:.1f})" for x, low, high in rows]

    return {
        "Probe": table["probe"].tolist(),
        "UAS, 95%": with_interval("uas"),
        "Spread": ["–" if np.isnan(sd) else f"{100 * sd:.1f} points" for sd in table["uas_sd"]],
        "UUAS, 95%": with_interval("uuas"),
        "Paper": [f"{x:.0%}{' (UUAS)' if np.isnan(uas) else ''}" for x, uas in table[["paper_uas", "uas"]].to_numpy()],
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


# ------------------------------------------------------------------------------------------------ claims and words

#: Claim → the probe that is better, and the one it is held against.
CONTRASTS = {
    "attention-over-right": ("attention", "right-branching"),
    "attention-over-random": ("attention", RANDOM_KEPT),
    "words-help": ("attention and words", "attention"),
    "attention-over-distances": ("attention and words", "distances and words"),
    "near-structural": ("attention and words", "structural probe"),
}


def quantities(scored: Evaluation, trees: str) -> pd.DataFrame:
    """What the claims are about, ``quantity, value, low, high, n``: differences of two probes on the same words.

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
    DOES_NOT: "A random model’s attention maps serve a probe as well, so nothing says that training put it there.",
    CANNOT_TELL: "Whether training put the tree into the attention maps cannot be told from this data.",
    NOT_MEASURED: "Without the probe on random attention nothing says that training put the tree into the maps.",
}


def words(
    table: pd.DataFrame, verdicts: Verdicts, experiment: Experiment, encoder: Encoder, flat: Mapping[str, float]
) -> dict[str, str]:
    """What the chapter's prose says of :func:`table3`; ``flat`` is the :func:`flatness` of models, by name."""
    uas = table.set_index("probe")["uas"]
    gold, setup = experiment.trees == "gold", published()["setup"]
    missing = "This copy has no gold trees, so gold is not measured here; the profile “gold” does it, on GUM."
    return {
        "model": encoder.name,
        "summary": verdicts.summary(),
        "origin": ORIGIN[verdicts["attention-over-random"]],
        "best": number(uas["attention and words"], "share"),
        "best-paper": f"{PAPER['attention and words']}%",
        "random": number(uas[RANDOM_KEPT], "share"),
        "random-paper": f"{PAPER[RANDOM_KEPT]}%",
        "blind": number(uas["distances and words"], "share"),
        "heads": str(encoder.layers * encoder.heads),
        "heads-paper": str(setup["layers"] * setup["heads"]),
        "sentences": f"{len(experiment.training[0]):,}",
        "trees": "gold" if gold else "silver: made by a parser, checked by nobody",
        "no-gold": "" if gold else missing,
        "vectors": experiment.vectors.name,
        "coverage": number(experiment.vectors.coverage([own.words for own in experiment.dev[0]]), "share"),
        **{f"flat-{name}": number(value, "share") for name, value in flat.items()},
    }
