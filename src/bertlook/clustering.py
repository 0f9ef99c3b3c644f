"""How heads group by what they attend to (§6): divergences, their map in the plane, and tests of what the map shows."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
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
from bertlook.attention import Batch

#: Attention weights are taken in blocks of so many, which for 144 heads fit into a processor's own cache.
BLOCK = 1024
#: Entropies of all mixtures, in plain C with vectors of 16 numbers. The logarithm is read off the bits of a number:
#: exponent + mantissa as they stand, and a minimax polynomial for what is missing, off by 1.3e-6 at most.
SOURCE = """
typedef float lanes __attribute__((vector_size(64), aligned(4)));
typedef int bits __attribute__((vector_size(64), aligned(4)));

static inline lanes log2_of_half(lanes x) {
    bits b = (bits)x - 0x3f800000;
    lanes m = (lanes)((b & 0x7fffff) | 0x3f800000);
    lanes p = -0.0256910888f * m + 0.275148772f;
    p = p * m - 1.26691827f;
    p = p * m + 3.28652881f;
    p = p * m - 5.34198926f;
    p = p * m + 5.11296317f;
    p = p * m - 3.04004029f;
    return __builtin_convertvector(b, lanes) * 0x1p-23f + p;
}

void mixtures(const float *block, long blocks, long heads, long width, double *total) {
    for (; blocks--; block += heads * width)
        for (long i = 0; i < heads; i++)
            for (long j = 0; j <= i; j++) {
                const lanes *p = (const lanes *)(block + i * width), *q = (const lanes *)(block + j * width);
                lanes sums = {0};
                for (long k = 0; k < width / 16; k++) {
                    lanes both = p[k] + q[k];
                    sums += both * log2_of_half(both);
                }
                float sum = 0;
                for (int k = 0; k < 16; k++) sum += sums[k];
                total[i * heads + j] -= 0.34657359f * sum;
            }
}
"""


@cache
def kernel() -> Callable[..., None] | None:
    """``mixtures`` of ``SOURCE`` for this very processor, in a tenth of a second; None where no compiler is at hand."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, library = Path(folder, "mixtures.c"), Path(folder, "mixtures.so")
        source.write_text(SOURCE, encoding="ascii")
        # Not -ffast-math: a library linked with it switches subnormal numbers off for the whole process.
        options = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", "-o"]
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

    Parameters
    ----------
    weights : Tensor [block, head, BLOCK], float32, contiguous
        All attention weights of some queries, dealt out to blocks, filled up with zeros.
    compiled : bool
        Use the compiled kernel where there is one; else plain torch, equal up to rounding.

    Returns
    -------
    Tensor [head, head], float64
        Lower triangle, the rest 0; the diagonal holds the heads' own entropies.
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

    Parameters
    ----------
    layers, heads : int
    compiled : bool
        Use the compiled kernel where a C compiler is at hand.
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


@dataclass(frozen=True)
class Embedding:
    """Heads in the plane.

    Attributes
    ----------
    points : array [head, 2]
        In the unit of the divergence; centred, the first axis is the one along which the heads differ most, and the
        first layer's mean lies left and below.
    stress : float
        ``√(Σ (δ − d)² / Σ δ²)`` over pairs, δ the divergence and d the distance in the plane: 0 is a perfect map.
    stresses : list of float
        That of every start, best first; ``stress`` is the first.
    """

    points: np.ndarray
    stress: float
    stresses: list[float]


def embed(divergence: Tensor | np.ndarray, layers: int, seed: int = 0, starts: int = 16) -> Embedding:
    """Metric multidimensional scaling to the plane (§6), the best of several seeded random starts.

    Parameters
    ----------
    divergence : [head, head]
        Heads numbered layer by layer.
    layers : int
        How many there are: the first one fixes the orientation.
    """
    matrix = square(divergence)
    wanted = squareform(matrix, checks=False)
    scale = max(float(wanted.mean()), np.finfo(float).tiny)
    found = []
    for start in range(starts):
        points, _ = smacof(
            matrix / scale, n_init=1, max_iter=1000, eps=1e-7, random_state=seed + start, normalized_stress=False
        )
        off = np.sqrt(np.square(wanted / scale - pdist(points)).sum() / max(np.square(wanted / scale).sum(), 1e-300))
        found.append((float(off), start, points * scale))
    found.sort(key=lambda one: one[:2])
    stress, _, points = found[0]
    points = points - points.mean(0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T
    points *= np.where(points[: len(points) // layers].mean(0) > 0, -1, 1)
    return Embedding(points, stress, [one[0] for one in found])


@dataclass(frozen=True)
class LayerStructure:
    """How the divergence of two heads depends on their layers.

    Attributes
    ----------
    within, between : float
        Mean divergence of two heads of one layer, and of two layers.
    p_within : float
        Share of the permutations of heads over layers in which ``within`` is as small as observed, the observed
        order counted among them.
    correlation, p_correlation : float
        Of divergence and the layers' distance, over pairs (Mantel), and the share of permutations that reach it.
    by_distance : DataFrame
        ``layer_distance, divergence, pairs``: the mean at each difference of layers, 0 within a layer.
    """

    within: float
    between: float
    p_within: float
    correlation: float
    p_correlation: float
    by_distance: pd.DataFrame


def layer_structure(
    divergence: Tensor | np.ndarray, layers: int, permutations: int = 2000, seed: int = 0
) -> LayerStructure:
    """Are heads of one layer closer than heads of different ones? Means, and tests by permuting the heads."""
    matrix = square(divergence)
    layer = np.repeat(np.arange(layers), len(matrix) // layers)
    distance = np.abs(layer[:, None] - layer)
    upper = np.triu_indices(len(matrix), 1)
    values, gaps = matrix[upper], distance[upper]
    same = gaps == 0
    total, pairs = (np.bincount(gaps, weights, layers) for weights in (values, None))

    chance = np.random.default_rng(seed)
    means, correlations = [values[same].mean()], [correlation(values, gaps)]
    for _ in range(permutations):
        order = chance.permutation(len(matrix))
        shuffled = matrix[order][:, order][upper]
        means.append(shuffled[same].mean())
        correlations.append(correlation(shuffled, gaps))
    slack = 1e-9 * values.mean()  # equal up to rounding counts as equal
    return LayerStructure(
        within=float(means[0]),
        between=float(values[~same].mean()),
        p_within=float(np.mean(np.array(means) <= means[0] + slack)),
        correlation=float(correlations[0]),
        p_correlation=float(np.mean(np.array(correlations) >= correlations[0] - 1e-9)),
        by_distance=pd.DataFrame({"layer_distance": range(layers), "divergence": total / pairs, "pairs": pairs}),
    )


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's; 0 where one of the two is constant."""
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / norm) if norm > 0 else 0.0


def clusters(divergence: Tensor | np.ndarray, count: int) -> np.ndarray:
    """Ward's hierarchical clustering cut into ``count`` clusters: the number of each head's, from 1 by first head.

    Ward's method wants Euclidean distances; the root of a sum of Jensen–Shannon divergences is one.
    """
    tree = linkage(squareform(np.sqrt(square(divergence)), checks=False), "ward")
    labels = fcluster(tree, count, "maxclust")
    return pd.factorize(labels)[0] + 1


def agreement(divergence: Tensor | np.ndarray, labels: Sequence[Any] | np.ndarray) -> float:
    """Adjusted Rand index of a labelling of the heads and as many clusters: 1 is equality, 0 what chance gives.

    NaN where all heads have one label: then any clustering agrees with it.
    """
    count = len(set(labels))
    return float(adjusted_rand_score(list(labels), clusters(divergence, count))) if count > 1 else float("nan")


def chance_agreement(
    divergence: Tensor | np.ndarray,
    labels: Sequence[Any] | np.ndarray,
    layers: int = 1,
    permutations: int = 1000,
    seed: int = 0,
) -> np.ndarray:
    """:func:`agreement` when the labels are dealt out to the heads at random, [permutation].

    Parameters
    ----------
    layers : int
        Labels stay within their layer if this is the number of layers: what is then left comes from labels that
        are common in one layer and rare in another. With 1 they go anywhere.
    """
    names = np.asarray(pd.factorize(np.asarray(labels, dtype=object))[0]).reshape(layers, -1)
    count = len(np.unique(names))
    if count < 2:
        return np.full(permutations, np.nan)
    found, chance = clusters(divergence, count), np.random.default_rng(seed)
    dealt = (chance.permuted(names, axis=1).ravel() for _ in range(permutations))
    return np.array([adjusted_rand_score(one, found) for one in dealt])


#: Token classes that can make a head's behaviour, each when it gets more than the threshold for special tokens.
SPECIAL = ("cls", "sep", "punct")


def behaviours(
    means: Mapping[str, Tensor | np.ndarray],
    linguistic: pd.DataFrame | None = None,
    *,
    position: float = 0.5,
    special: float = 0.6,
    broad: float = 3.8,
) -> list[str]:
    """What each head does, by the paper's thresholds (§6, Figure 6).

    The first that applies: its names in ``linguistic``; ``previous``, ``current`` or ``next``; ``cls``, ``sep`` or
    ``punct``; ``broad``; else ``other``.

    Parameters
    ----------
    means : mapping of arrays [layer, head]
        Mean attention under the names above, as shares, and mean ``entropy`` in nats; as
        :meth:`bertlook.surface.Surface.means` and :meth:`bertlook.positional.PositionProfile.at` give them.
    linguistic : DataFrame, optional
        ``layer, head, name``, from 1: heads found by the syntax and coreference chapters.
    position, special, broad : float
        Thresholds: attention by position, attention to a class of token, entropy in nats. The paper's 3.8 nats are
        78% of the entropy of uniform attention over 128 tokens; take that share of yours for other lengths.
    """
    tests = {name: position for name in ("previous", "current", "next")}
    tests |= {name: special for name in SPECIAL}
    missing = [name for name in (*tests, "entropy") if name not in means]
    if missing:
        raise BertlookError(f"behaviours: no {', '.join(missing)} among the heads' means. Give an array for each.")
    shape = np.shape(means["entropy"])
    labels = np.full(shape, "other", dtype=object)
    for name, threshold in [("broad", broad), *reversed(tests.items())]:
        labels[np.asarray(means["entropy" if name == "broad" else name]) > threshold] = name
    if linguistic is not None:
        for (layer, head), names in linguistic.groupby(["layer", "head"])["name"]:
            if not (1 <= layer <= shape[0] and 1 <= head <= shape[1]):
                raise BertlookError(
                    f"behaviours: head {layer}-{head}, but the model has {shape[0]} layers of {shape[1]} heads. "
                    "Give the linguistic heads of this model."
                )
            labels[layer - 1, head - 1] = ", ".join(dict.fromkeys(names))
    return labels.flatten().tolist()


def divergence_table(divergence: Tensor | np.ndarray, layers: int) -> pd.DataFrame:
    """The square of divergences, rows and columns named ``layer-head`` from 1."""
    matrix = square(divergence)
    heads = len(matrix) // layers
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    return pd.DataFrame(matrix, index=pd.Index(names, name="head"), columns=names)


def embedding_table(
    embedding: Embedding, layers: int, behaviour: Sequence[str], cluster: Sequence[int] | np.ndarray
) -> pd.DataFrame:
    """``layer, head, x, y, behaviour, cluster``, layers and heads from 1."""
    heads = len(embedding.points) // layers
    return pd.DataFrame(
        {
            "layer": np.repeat(np.arange(1, layers + 1), heads),
            "head": np.tile(np.arange(1, heads + 1), layers),
            "x": embedding.points[:, 0],
            "y": embedding.points[:, 1],
            "behaviour": list(behaviour),
            "cluster": np.asarray(cluster),
        }
    )


def square(divergence: Tensor | np.ndarray) -> np.ndarray:
    """As an array of float64."""
    return np.asarray(divergence.cpu() if isinstance(divergence, Tensor) else divergence, dtype=float)
