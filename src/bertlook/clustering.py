"""How heads group by what they attend to (§6): divergences, their map in the plane, and tests of what the map shows."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import smacof
from sklearn.metrics import adjusted_rand_score
from torch import Tensor
from torchmetrics import Metric

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, measure
from bertlook.corpora import Corpus
from bertlook.encoder import Encoder
from bertlook.results import LEVEL, Claim, number
from bertlook.statistics import against_chance, bootstrap_weights, estimates

#: Attention weights are taken in blocks of so many, which for 144 heads fit into a processor's own cache.
BLOCK = 1024


@cache
def kernel() -> Callable[..., None] | None:
    """``mixtures.c`` for this very processor, in a tenth of a second; None where no compiler is at hand."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    # Not -ffast-math: a library linked with it switches subnormal numbers off for the whole process.
    options = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", "-o"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        as_file(files("bertlook").joinpath("mixtures.c")) as source,
    ):
        library = Path(folder, "mixtures.so")
        try:
            subprocess.run([*compiler, *options, library, source], check=True, capture_output=True)
            function = ctypes.CDLL(str(library)).mixtures
        except (OSError, subprocess.CalledProcessError):
            return None
    function.argtypes = [ctypes.c_void_p, *[ctypes.c_long] * 3, ctypes.c_void_p]
    function.restype = None
    return function


def mixture_entropies(weights: Tensor, compiled: bool = True) -> Tensor:
    """``−Σ m log m`` over the mixture ``m`` of every two heads' attention weights, in nats.

    ``weights`` [block, head, BLOCK], float32, contiguous: all weights of some queries, filled up with zeros. Returns
    [head, head], float64, the lower triangle; by the kernel where there is one, else plain torch, equal up to rounding.
    """
    blocks, heads, width = weights.shape
    total = weights.new_zeros((heads, heads), dtype=torch.float64)
    function = kernel() if compiled and weights.is_cpu else None
    if function is not None:
        function(weights.data_ptr(), blocks, heads, width, total.data_ptr())
        return total
    for i in range(heads):
        mixture = (weights[:, i, None] + weights[:, : i + 1]) / 2
        total[i, : i + 1] = -torch.linalg.vecdot(mixture, mixture.clamp_min(1e-30).log()).sum(0, dtype=torch.float64)
    return total


class HeadDivergence(Metric):
    """Jensen–Shannon divergence of all pairs of heads, summed over tokens, in nats (§6).

    ``Σ_tokens JS(α_i, α_j)`` with ``JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2``: one entropy a pair, those of
    the heads themselves shared. Heads are numbered layer by layer.

    States: ``entropies`` [head, head], float64, ``Σ_tokens H((α_i + α_j) / 2)`` in the lower triangle;
    ``tokens``, how many, padding left out. ``compute`` is symmetric, zero on the diagonal, at most ``ln 2`` a token.
    """

    full_state_update = False
    entropies: Tensor
    tokens: Tensor

    def __init__(self, layers: int, heads: int, compiled: bool = True) -> None:
        super().__init__()
        self.compiled = compiled
        shape = (layers * heads, layers * heads)
        self.add_state("entropies", torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("tokens", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key], zero in padded rows; one segment a thread."""

        def one(segment: int, length: int) -> Tensor:
            maps = attention[:, segment, :, :length, :length].flatten(2).float()
            if excess := -maps.shape[2] % BLOCK:
                maps = torch.nn.functional.pad(maps, (0, excess))
            blocks = maps.unflatten(2, (-1, BLOCK)).permute(2, 0, 1, 3).flatten(1, 2)
            return mixture_entropies(blocks.contiguous(), self.compiled)

        lengths = batch.mask.sum(1).tolist()
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for entropies in pool.map(one, range(len(lengths)), lengths):
                self.entropies += entropies.to(self.entropies.device)
        self.tokens += sum(lengths)

    def compute(self) -> Tensor:
        """[head, head], nats summed over tokens."""
        own = self.entropies.diagonal()
        mixed = self.entropies + self.entropies.T - torch.diag(own)
        return (mixed - (own[:, None] + own) / 2).clamp_min(0)


def in_groups(encoder: Encoder, corpus: Corpus[Segment], *others: Metric) -> np.ndarray:
    """Divergences in each of at most 16 groups of articles, [group, head, head]; ``others`` see the same attention."""
    groups, parts = min(16, corpus.source["articles"]), []
    for group in range(groups):
        divergence = HeadDivergence(encoder.layers, encoder.heads)
        own = [segment for segment in corpus if segment.document % groups == group]
        measure(encoder, own, divergence, *others, progress=None)
        parts.append(divergence.compute().cpu().numpy())
    return np.stack(parts)


def divergence_table(divergence: np.ndarray, layers: int) -> pd.DataFrame:
    """The square of divergences, rows and columns named ``layer-head`` from 1."""
    heads = len(divergence) // layers
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    return pd.DataFrame(divergence, index=pd.Index(names, name="head"), columns=names)


# ------------------------------------------------------------------------------------------ what heads do, and where


def earlier(results: str | Path, weights: str) -> pd.DataFrame:
    """What single heads are best at, by the chapters on syntax and coreference, if these read the same ``weights``.

    ``layer, head, name, accuracy, gain``: the relation, or ``coreference``; how often the head is right; the lower end
    of its gain over the best fixed offset, or the nearest mention, held out. Relations first, the greatest gain first.
    """
    columns = ["layer", "head", "name", "accuracy", "gain"]

    def read(chapter: str, *names: str) -> list[pd.DataFrame]:
        record, *tables = (Path(results, chapter, name) for name in ("provenance.json", *names))
        if not all(file.exists() for file in (record, *tables)):
            return []
        same = json.loads(record.read_text(encoding="utf-8"))["weights_sha256"] == weights
        return [pd.read_csv(file) for file in tables] if same else []

    found = []
    if tables := read("syntax", "table1.csv", "heldout.csv"):
        both = tables[0].merge(tables[1].drop(columns="n"), on="relation").query("relation != 'all'")
        both = both.sort_values("difference", ascending=False)
        found.append(both.rename(columns={"relation": "name", "difference_low": "gain"})[columns])
    if tables := read("coreference", "heads.csv", "claims.csv"):
        every = tables[0].query("mention_type == 'all' and direction == 'mention→antecedent'")
        gain = tables[1].set_index("id").loc["over-nearest", "ci_low"]
        found.append(every.loc[[every["accuracy"].idxmax()]].assign(name="coreference", gain=gain)[columns])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=columns)


def behaviours(
    means: pd.DataFrame, best: pd.DataFrame, *, gain: float, position: float, special: float, broad: float
) -> pd.DataFrame:
    """What each head does, by the paper's thresholds (§6, Figure 6).

    The first that applies: the names of what it is ``best`` at; ``previous``, ``current`` or ``next``; ``cls``,
    ``sep`` or ``punct``; ``broad``; else ``other``.

    Parameters
    ----------
    means : DataFrame
        ``layer, head``; mean attention to the tokens of the names above, as shares; mean ``entropy`` in nats.
    best : DataFrame
        As from :func:`earlier`.
    gain, position, special, broad : float
        Thresholds: of a linguistic head's gain, attention by position, attention to a class of token, entropy in
        nats. The paper's 3.8 nats are 78% of the entropy of uniform attention over 128 tokens; take that share of
        yours for other lengths.

    Returns
    -------
    DataFrame
        ``means`` with ``behaviour``; ``kind``, the same but ``linguistic`` for all such heads; ``best`` in words.
    """
    tests = dict.fromkeys(("previous", "current", "next"), position) | dict.fromkeys(("cls", "sep", "punct"), special)
    tests["entropy"] = broad
    if missing := [name for name in tests if name not in means]:
        raise BertlookError(f"behaviours: no {', '.join(missing)} among the heads' means. Give a column for each.")
    places = pd.MultiIndex.from_frame(means[["layer", "head"]])
    first = best.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])
    for layer, head in first.index.difference(places):
        size = "{} layers of {} heads".format(*means[["layer", "head"]].max())
        raise BertlookError(f"behaviours: head {layer}-{head}, but the model has {size}. Give what this model's do.")
    label = np.select([means[name] > least for name, least in tests.items()], [*list(tests)[:-1], "broad"], "other")
    jobs = best[best["gain"] > gain].groupby(["layer", "head"])["name"].agg(lambda names: ", ".join(names.unique()))
    own = jobs.reindex(places).to_numpy()
    text = [f"best at {row.name}, {number(row.accuracy, 'share')}" for row in first.itertuples()]
    return means.assign(
        behaviour=np.where(pd.notna(own), own, label),
        kind=np.where(pd.notna(own), "linguistic", label),
        best=pd.Series(text, first.index, dtype=object).reindex(places, fill_value="").to_numpy(),
    )


def embed(divergence: np.ndarray, layers: int, seed: int = 0, starts: int = 16) -> tuple[np.ndarray, list[float]]:
    """Metric multidimensional scaling to the plane (§6), the best of several seeded random starts.

    Returns
    -------
    points : array [head, 2]
        In the unit of the divergence; centred, the first axis is the one along which the heads differ most, and the
        first layer's mean lies left and below.
    stresses : list of float
        Of every start, best first: ``√(Σ (δ − d)² / Σ δ²)`` over pairs, δ the divergence and d the distance in the
        plane. 0 is a perfect map.
    """
    wanted = squareform(divergence, checks=False)
    scale = max(float(wanted.mean()), np.finfo(float).tiny)
    found = []
    for start in range(seed, seed + starts):
        points, _ = smacof(
            divergence / scale, n_init=1, max_iter=1000, eps=1e-7, random_state=start, normalized_stress=False
        )
        off = np.sqrt(np.square(wanted / scale - pdist(points)).sum() / max(np.square(wanted / scale).sum(), 1e-300))
        found.append((float(off), start, points * scale))
    found.sort(key=lambda one: one[:2])
    points = found[0][2] - found[0][2].mean(0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T
    points *= np.where(points[: len(points) // layers].mean(0) > 0, -1, 1)
    return points, [stress for stress, *_ in found]


def embedding_table(points: np.ndarray, heads: pd.DataFrame, cluster: np.ndarray) -> pd.DataFrame:
    """``layer, head, x, y, behaviour, cluster``, then the other columns of ``heads``, as from :func:`behaviours`."""
    columns = ["layer", "head", "x", "y", "behaviour", "cluster"]
    table = heads.assign(x=points[:, 0], y=points[:, 1], cluster=cluster)
    return table[[*columns, *table.columns.difference(columns, sort=False)]]


# ----------------------------------------------------------------------------------------------- groups, and chance


def clusters(divergence: np.ndarray, count: int) -> np.ndarray:
    """Ward's hierarchical clustering cut into ``count`` clusters: the number of each head's, from 1 by first head.

    Ward's method wants Euclidean distances; the root of a sum of Jensen–Shannon divergences is one.
    """
    tree = linkage(squareform(np.sqrt(divergence), checks=False), "ward")
    return pd.factorize(fcluster(tree, count, "maxclust"))[0] + 1


def agreement(divergence: np.ndarray, labels: Sequence[Any]) -> float:
    """Adjusted Rand index of a labelling of the heads and as many clusters: 1 is equality, 0 what chance gives.

    NaN where all heads have one label: then any clustering agrees with it.
    """
    count = len(set(labels))
    return float(adjusted_rand_score(list(labels), clusters(divergence, count))) if count > 1 else float("nan")


def chance_agreement(
    divergence: np.ndarray, labels: Sequence[Any], layers: int = 1, permutations: int = 1000, seed: int = 0
) -> np.ndarray:
    """:func:`agreement` when the labels are dealt out to the heads at random, [permutation].

    Labels stay within their layer if ``layers`` is the number of layers: what is then left comes from labels that are
    common in one layer and rare in another. With 1 they go anywhere.
    """
    names = np.asarray(pd.factorize(np.asarray(labels, dtype=object))[0]).reshape(layers, -1)
    count = len(np.unique(names))
    if count < 2:
        return np.full(permutations, np.nan)
    found, chance = clusters(divergence, count), np.random.default_rng(seed)
    dealt = (chance.permuted(names, axis=1).ravel() for _ in range(permutations))
    return np.array([adjusted_rand_score(one, found) for one in dealt])


def pairs(square: np.ndarray) -> np.ndarray:
    """The upper triangle, […, pair], of […, head, head]: every two heads once."""
    return square[..., *np.triu_indices(square.shape[-1], 1)]


def layer_gaps(layers: int, heads: int) -> np.ndarray:
    """How many layers every two heads are apart, [pair]; ``heads`` of all layers."""
    layer = np.repeat(np.arange(layers), heads // layers)
    return pairs(np.abs(layer[:, None] - layer))


def layers_table(divergence: np.ndarray, layers: int, tokens: int) -> pd.DataFrame:
    """``layer_distance, divergence, pairs``: nats a token, the mean over all pairs of heads so many layers apart."""
    gaps = layer_gaps(layers, len(divergence))
    total, count = np.bincount(gaps, pairs(divergence)), np.bincount(gaps)
    return pd.DataFrame({"layer_distance": range(layers), "divergence": total / count / tokens, "pairs": count})


def layer_structure(divergence: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Does divergence grow with the layers' distance? Two answers, […, 2], for ``divergence`` […, pair].

    The mean between layers as a multiple of that within; the correlation over pairs (Mantel's), 0 where all are equal.
    """
    ratio = divergence[..., gaps > 0].mean(-1) / divergence[..., gaps == 0].mean(-1)
    x, y = divergence - divergence.mean(-1, keepdims=True), gaps - gaps.mean()
    norm = np.sqrt(np.square(x).sum(-1) * (y @ y))
    return np.stack([ratio, x @ y / np.where(norm > 0, norm, 1)], -1)


def chance_structure(divergence: np.ndarray, layers: int, permutations: int = 2000, seed: int = 0) -> np.ndarray:
    """:func:`layer_structure` when the heads are dealt out to the layers at random, [permutation, 2]."""
    gaps, chance = layer_gaps(layers, len(divergence)), np.random.default_rng(seed)
    orders = (chance.permutation(len(divergence)) for _ in range(permutations))
    return np.stack([layer_structure(pairs(divergence[order][:, order]), gaps) for order in orders])


# ----------------------------------------------------------------------------------------------- claims, and words

CLAIMS = (
    Claim(
        "within-layers",
        "6",
        "Heads of one layer are closer to each other than heads of different layers (mean divergence between layers, "
        "as a multiple of that within)",
        paper="seen in Figure 6",
        chance=True,
        unit="ratio",
        evidence="fig-layers",
    ),
    Claim(
        "by-behaviour",
        "6",
        "Heads of like behaviour form clusters (adjusted Rand index of clusters and behaviours)",
        paper="seen in Figure 6",
        chance=True,
        unit="number",
        evidence="fig-by-behaviour",
    ),
)


def quantities(parts: np.ndarray, kinds: Sequence[str], layers: int, n: str, seed: int = 0) -> pd.DataFrame:
    """``quantity, value, low, high, n`` over groups of articles, and ``p, null_low, null_high, null_mean`` of chance.

    ``parts`` [group, head, head] as from :func:`in_groups`; ``kinds`` [head].
    """
    whole, weights = parts.sum(0), bootstrap_weights(len(parts)).numpy()
    gaps, layer = layer_gaps(layers, len(whole)), np.repeat(np.arange(layers), len(whole) // layers)
    columns = (layer_structure(pairs(whole), gaps), layer_structure(weights @ pairs(parts), gaps).T)
    dealt = chance_structure(whole, layers, seed=seed).T
    found = dict(zip(("within-layers", "layer-distance"), zip(*columns, dealt, strict=True), strict=True))
    resampled = np.tensordot(weights[:200], parts, 1)
    for name, labels, strata in (
        ("by-layer", layer, 1),
        ("by-behaviour", kinds, 1),
        ("by-behaviour-in-layers", kinds, layers),
    ):
        samples = np.array([agreement(one, labels) for one in resampled])
        found[name] = (agreement(whole, labels), samples, chance_agreement(whole, labels, strata, seed=seed))
    tests = pd.DataFrame([against_chance(value, draws) for value, _, draws in found.values()])
    return estimates({name: row[:2] for name, row in found.items()}, n).join(tests)
