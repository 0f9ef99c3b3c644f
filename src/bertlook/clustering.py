"""How heads group by what they attend to (§6): divergences, their map in the plane, and tests of what the map shows."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.spatial.distance import pdist
from sklearn.manifold import smacof
from torch import Tensor
from torchmetrics import Metric

from bertlook import BertlookError, positional, surface
from bertlook.attention import Batch, Segment, measure
from bertlook.claims import LEVEL, NOT_MEASURED, REPLICATES, listed, number
from bertlook.corpora import Corpus
from bertlook.encoder import Encoder
from bertlook.results import Verdicts
from bertlook.statistics import against_chance, agreement, bootstrap_weights, chance_agreement, dealt_out, estimates

#: Attention weights are taken in blocks of so many, which for 144 heads fit into a processor's own cache.
BLOCK = 1024


@cache
def kernel() -> Callable[..., None] | None:
    """``mixtures.c`` for this very processor, in a tenth of a second; None where no compiler is at hand."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    # Not -ffast-math: a library linked with it switches subnormal numbers off for the whole process.
    options = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", "-o"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source, library = Path(__file__).with_name("mixtures.c"), Path(folder, "mixtures.so")
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


def measured(encoder: Encoder, corpus: Corpus[Segment]) -> tuple[np.ndarray, pd.DataFrame]:
    """What the chapter needs of the text, dealt into at most 16 groups of articles so that these can be resampled.

    Divergences in each group, [group, head, head]; and of the whole text ``layer, head`` and each head's mean attention
    ``previous, current, next, cls, sep, punct`` and mean ``entropy``.
    """
    classes, profile = surface.Surface(encoder), positional.PositionProfile(encoder.layers, encoder.heads, reach=1)
    groups, parts = min(16, corpus.source["articles"]), []
    for group in range(groups):
        divergence = HeadDivergence(encoder.layers, encoder.heads)
        own = [segment for segment in corpus if segment.document % groups == group]
        measure(encoder, own, divergence, *classes.measures, profile, progress=None)
        parts.append(divergence.compute().cpu().numpy())
    near = positional.heads_table(positional.offsets_table(profile))
    far = surface.heads_table(classes)[["layer", "head", "cls", "sep", "punct", "entropy"]]
    return np.stack(parts), near.merge(far, on=["layer", "head"])


def divergence_table(divergence: np.ndarray, layers: int) -> pd.DataFrame:
    """The square of divergences, rows and columns named ``layer-head`` from 1."""
    heads = len(divergence) // layers
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    return pd.DataFrame(divergence, index=pd.Index(names, name="head"), columns=names)


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
    """What each head does, by the paper's thresholds (§6, Figure 6): ``means`` with three columns more.

    ``behaviour`` is the first that applies: the names of what it is ``best`` at, as from :func:`earlier`, by more than
    ``gain``; ``previous``, ``current`` or ``next`` with more attention than ``position``; ``cls``, ``sep`` or ``punct``
    with more than ``special``; ``broad`` with more entropy, in nats (the paper's 3.8 are 78% of that of even attention
    over 128 tokens; take that share of yours for other lengths); else ``other``. ``kind`` is the same, but
    ``linguistic`` for all of the first; ``best`` says it in words.
    """
    tests = dict.fromkeys(("previous", "current", "next"), position) | dict.fromkeys(("cls", "sep", "punct"), special)
    if missing := [name for name in (*tests, "entropy") if name not in means]:
        raise BertlookError(f"behaviours: no {', '.join(missing)} among the heads' means. Give a column for each.")
    places = pd.MultiIndex.from_frame(means[["layer", "head"]])
    first = best.drop_duplicates(["layer", "head"]).set_index(["layer", "head"])
    for layer, head in first.index.difference(places):
        size = "{} layers of {} heads".format(*means[["layer", "head"]].max())
        raise BertlookError(f"behaviours: head {layer}-{head}, but the model has {size}. Give what this model's do.")
    reached = [*(means[name] > least for name, least in tests.items()), means["entropy"] > broad]
    label = np.select(reached, [*tests, "broad"], "other")
    jobs = best[best["gain"] > gain].groupby(["layer", "head"])["name"].agg(lambda found: ", ".join(found.unique()))
    own = jobs.reindex(places).to_numpy()
    text = [f"best at {row.name}, {number(row.accuracy, 'share')}" for row in first.itertuples()]
    return means.assign(
        behaviour=np.where(pd.notna(own), own, label),
        kind=np.where(pd.notna(own), "linguistic", label),
        best=pd.Series(text, first.index, dtype=object).reindex(places, fill_value="").to_numpy(),
    )


def embed(divergence: np.ndarray, layers: int, seed: int = 0, starts: int = 16) -> tuple[np.ndarray, list[float]]:
    """Metric multidimensional scaling to the plane (§6), the best of several seeded random starts.

    Points [head, 2] in the unit of the divergence; centred, the first axis is the one along which heads differ most,
    the first layer's mean lies left and below. And the stress of every start, best first: ``√(Σ (δ − d)² / Σ δ²)`` over
    pairs, δ the divergence and d the distance in the plane; 0 is a perfect map.
    """
    scale = max(float(pairs(divergence).mean()), np.finfo(float).tiny)
    unit, found = divergence / scale, []
    wanted = pairs(unit)
    for start in range(seed, seed + starts):
        points, _ = smacof(unit, n_init=1, max_iter=1000, eps=1e-7, random_state=start, normalized_stress=False)
        off = np.sqrt(np.square(wanted - pdist(points)).sum() / max(np.square(wanted).sum(), 1e-300))
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


def layer_structure(divergence: np.ndarray, layers: int) -> np.ndarray:
    """Does divergence […, head, head] grow with the layers' distance? Two answers, […, 2].

    The mean between layers as a multiple of that within; the correlation over pairs (Mantel's), 0 where all are equal.
    """
    values, gaps = pairs(divergence), layer_gaps(layers, divergence.shape[-1])
    ratio = values[..., gaps > 0].mean(-1) / values[..., gaps == 0].mean(-1)
    x, y = values - values.mean(-1, keepdims=True), gaps - gaps.mean()
    norm = np.sqrt(np.square(x).sum(-1) * (y @ y))
    return np.stack([ratio, x @ y / np.where(norm > 0, norm, 1)], -1)


# ------------------------------------------------------------------------------------------------ claims and words


def quantities(parts: np.ndarray, kinds: Sequence[str], layers: int, n: str, seed: int = 0) -> pd.DataFrame:
    """``quantity, value, low, high, n`` over groups of articles, and ``p, null_low, null_high, null_mean`` of chance.

    ``parts`` [group, head, head] as from :func:`measured`; ``kinds`` [head]. Beside the claims' quantities: correlation
    of divergence and layers' distance, the clusters' agreement with layers, and with kinds dealt out within layers.
    """
    whole, resampled = parts.sum(0), np.tensordot(bootstrap_weights(len(parts)).numpy(), parts, 1)
    answers = layer_structure(whole, layers), layer_structure(resampled, layers).T
    dealt = dealt_out(whole, lambda one: layer_structure(one, layers), seed=seed).T
    found = dict(zip(("within-layers", "by-distance"), zip(*answers, dealt, strict=True), strict=True))
    layer = np.repeat(np.arange(layers), len(whole) // layers).tolist()
    labels: dict[str, tuple[Sequence[object], int]] = {
        "by-layer": (layer, 1),
        "by-behaviour": (kinds, 1),
        "behaviour-in-layers": (kinds, layers),
    }
    for name, (own, strata) in labels.items():
        samples = np.array([agreement(one, own) for one in resampled[:200]])
        found[name] = (agreement(whole, own), samples, chance_agreement(whole, own, strata, seed=seed))
    tests = pd.DataFrame([against_chance(value, draws) for value, _, draws in found.values()])
    return estimates({name: row[:2] for name, row in found.items()}, n).join(tests)


def tooltips(heads: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """What is known of each head of :func:`behaviours`; ``names`` of the columns to tell."""
    said = []
    for row in heads.to_dict("records"):
        means = listed([f"{number(row[column], 'share')} to {name}" for column, name in names.items()])
        end = f"entropy {number(row['entropy'], 'nats')}. {row['best']}".strip()
        said.append(f"Head {row['layer']}-{row['head']}: {row['behaviour']}. Attention: {means}; {end}")
    return said


def words(heads: pd.DataFrame, layers: pd.DataFrame, numbers: pd.DataFrame, verdicts: Verdicts) -> dict[str, str]:
    """What the chapter's prose says of its tables."""
    found = numbers.set_index("quantity")
    return {
        "ratio": f"{found['value']['within-layers']:.2f}",
        "within": f"{layers['divergence'][0]:.3f}",
        "between": f"{np.average(layers['divergence'][1:], weights=layers['pairs'][1:]):.3f}",
        "within-p": f"{found['p']['within-layers']:.4f}",
        "correlation": f"{found['value']['by-distance']:.2f}",
        "correlation-p": f"{found['p']['by-distance']:.4f}",
        "kinds": listed([f"{n} {kind}" for kind, n in heads["kind"].value_counts().items()]),
        "linguistic": linguistic(heads),
        "grouping": grouping(verdicts["by-behaviour"], *found["value"][["by-behaviour", "by-layer"]]),
        "beyond-layers": beyond_layers(found.loc["behaviour-in-layers"]),
    }


def linguistic(heads: pd.DataFrame) -> str:
    """The linguistic heads of :func:`behaviours`, or why there is none."""
    own = heads[heads["kind"] == "linguistic"]
    if said := listed([f"{row.layer}-{row.head} ({row.behaviour})" for row in own.itertuples()]):
        return f"The linguistic ones are {said}"
    why = "no head is good enough" if heads["best"].any() else "syntax and coreference have not been run"
    return f"None is linguistic: {why}"


def grouping(verdict: str, agreed: float, layers: float) -> str:
    """What the verdict on groups by behaviour comes to, beside the agreement with layers."""
    if verdict == NOT_MEASURED:
        return "All heads have one label by what they do, so no groups by behaviour can be sought"
    more = "more than" if verdict == REPLICATES else "not surely more than"
    return (
        f"Groups of heads made from distances alone agree with what heads do {more} chance would have it (adjusted "
        f"Rand index {agreed:.2f}, where 1 is full agreement and 0 chance; with their layers {layers:.2f})"
    )


def beyond_layers(test: pd.Series) -> str:
    """How much of the agreement with behaviours comes from the layers, by labels dealt out within these."""
    if np.isnan(test["value"]):
        return "All heads have one label here, so there is nothing that clusters could agree with"
    more = "is more than chance" if test["p"] <= LEVEL else "cannot be told from chance"
    return (
        f"Behaviours dealt out within their layers still agree by {test['null_mean']:.2f} on average, of the "
        f"{test['value']:.2f} found: that part comes from the layers. Beyond them, it {more} (p = {test['p']:.3f})"
    )
