"""Uncertainty and chance: sums kept apart by document, resampled; groups held against labels dealt out at random."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score
from torch import Tensor
from torchmetrics import Metric

RESAMPLES = 1000
LEVEL = 0.95


class GroupedMean(Metric):
    """A ratio of sums, kept apart by groups of documents so that its uncertainty can be computed.

    Documents are dealt out to a fixed number of groups, so memory does not grow with the corpus, and the
    order of batches does not matter. Subclasses call :meth:`add` in ``update``.

    States: ``total`` ``[group, *shape]``, ``count`` ``[group, *count_shape]``, both float64; ``count_shape`` has
    to broadcast against ``shape``. They stay where the measure is, on the CPU unless it was moved, wherever the
    attention is.

    Parameters
    ----------
    shape, count_shape : tuple of int
    groups : int
        How many groups of documents; the bootstrap resamples these.
    """

    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self, shape: Sequence[int], count_shape: Sequence[int], groups: int = 64) -> None:
        super().__init__()
        self.groups = groups
        self.add_state("total", torch.zeros(groups, *shape, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros(groups, *count_shape, dtype=torch.float64), dist_reduce_fx="sum")

    def add(self, documents: Tensor, total: Tensor, count: Tensor) -> None:
        """Add a row a segment: ``documents`` [batch], ``total`` ``[batch, *shape]``, ``count`` in the same way."""
        group = documents.to(self.total.device) % self.groups
        for state, rows in ((self.total, total), (self.count, count)):
            state.index_add_(0, group, rows.to(state.device).to(state.dtype))

    def compute(self) -> Tensor:
        """The mean, ``[*shape]``."""
        return self.total.sum(0) / self.count.sum(0)

    def resample(self, resamples: int = RESAMPLES, seed: int = 0) -> Tensor:
        """The mean in bootstrap samples of the groups that hold data, ``[resample, *shape]``."""
        total, count = self.resample_sums(resamples, seed)
        return total / count

    def resample_sums(self, resamples: int = RESAMPLES, seed: int = 0) -> tuple[Tensor, Tensor]:
        """What :meth:`resample` divides: ``total`` ``[resample, *shape]``, ``count`` ``[resample, *count_shape]``."""
        used = self.count.flatten(1).sum(1) > 0
        weights = bootstrap_weights(int(used.sum()), resamples, seed)
        total, count = (torch.tensordot(weights, state[used].cpu(), 1) for state in (self.total, self.count))
        return total, count


class HeadOutcomes(Metric):
    """Right or wrong of every head on every item, kept whole: to resample items, and to compare systems on the same.

    States: ``correct`` [item, direction, layer, head], bool; ``about`` [item, column], integers that say which item
    it is. Whatever the order of the updates, items come by their first two columns.

    Parameters
    ----------
    directions : sequence of str
        The ways in which a head can be read.
    layers, heads : int
    columns : int
        How many integers describe an item, two at least.
    """

    full_state_update = False
    correct: list[Tensor]
    about: list[Tensor]

    def __init__(self, directions: Sequence[str], layers: int, heads: int, columns: int) -> None:
        super().__init__()
        self.directions, self.shape, self.columns = directions, (len(directions), layers, heads), columns
        self.add_state("correct", [], dist_reduce_fx="cat")
        self.add_state("about", [], dist_reduce_fx="cat")

    def outcomes(self) -> Tensor:
        """Whether right, [item, direction, layer, head], bool; in the order of :meth:`items`."""
        return _joined(self.correct, self.shape, torch.bool)[self._order()]

    def items(self) -> Tensor:
        """What is known of each item, [item, column]."""
        return _joined(self.about, (self.columns,), torch.long)[self._order()]

    def compute(self) -> Tensor:
        """Accuracy over all items, [direction, layer, head]."""
        return self.outcomes().double().mean(0)

    def accuracies(self, column: str, groups: Iterable[tuple[str, np.ndarray]]) -> pd.DataFrame:
        """``column, direction, layer, head, n, accuracy`` of every head for each group of items; heads from 1.

        ``groups`` are names and the items that belong to each, as numbers or as a mask.
        """
        outcomes = self.outcomes().cpu()
        _, layers, heads = self.shape
        index = pd.MultiIndex.from_product(
            [self.directions, range(1, layers + 1), range(1, heads + 1)], names=["direction", "layer", "head"]
        )
        parts = []
        for name, chosen in groups:
            some = outcomes[torch.from_numpy(chosen)]
            accuracy = some.double().mean(0).flatten().numpy()
            part = pd.DataFrame({"n": len(some), "accuracy": accuracy}, index=index).reset_index()
            part.insert(0, column, name)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def _order(self) -> Tensor:
        about = _joined(self.about, (self.columns,), torch.long)
        return torch.argsort(about[:, 0] * (int(about[:, 1].max()) + 1 if len(about) else 1) + about[:, 1])


def _joined(state: list[Tensor] | Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A list state as one tensor; after a sum over processes it is one already."""
    if isinstance(state, Tensor):
        return state
    return torch.cat(state) if state else torch.empty(0, *shape, dtype=dtype)


def bootstrap_weights(groups: int, resamples: int = RESAMPLES, seed: int = 0) -> Tensor:
    """How often each group occurs in each bootstrap sample, [resample, group]; rows sum to ``groups``."""
    drawn = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=resamples)
    return torch.from_numpy(drawn).double()


def interval(resampled: Tensor | np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Percentile interval over the first axis, NaN samples (nothing drawn) left out: lower and upper end."""
    values = np.asarray(resampled)
    if np.isnan(values).all():
        return np.full(values.shape[1:], np.nan), np.full(values.shape[1:], np.nan)
    low, high = np.nanpercentile(values, [50 * (1 - level), 50 * (1 + level)], axis=0)
    return low, high


def estimates(found: Mapping[str, tuple[Any, Tensor | np.ndarray]], n: str) -> pd.DataFrame:
    """``quantity, value, low, high, n`` from each quantity's value and its bootstrap samples [resample]: 95% intervals.

    ``n`` says what the values were computed from, for example ``"1,000 segments, 90 articles"``.
    """
    rows = [(name, float(value), *map(float, interval(samples)), n) for name, (value, samples) in found.items()]
    return pd.DataFrame(rows, columns=["quantity", "value", "low", "high", "n"])


def halves(groups: Sequence[Hashable] | np.ndarray) -> np.ndarray:
    """Which half each item belongs to, [item] bool; items of one group stay together, the halves are even.

    The largest group goes first, each to the half that has less; groups of one size by first appearance.
    """
    _, first, number, size = np.unique(np.asarray(groups), return_index=True, return_inverse=True, return_counts=True)
    side, filled = np.zeros(len(size), dtype=bool), [0, 0]
    for group in np.lexsort((first, -size)):
        side[group] = filled[1] < filled[0]
        filled[int(side[group])] += size[group]
    return side[number]


def held_out(outcomes: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    """Score each item by the option that was the best on the other half of the items.

    Parameters
    ----------
    outcomes : array [item, option]
        Right or wrong, or any score.
    half : array [item], bool
        As from :func:`halves`.

    Returns
    -------
    score : array [item]
        NaN where the other half is empty, so that nothing could be chosen.
    chosen : (int, int)
        The option chosen on the first half and that on the second, −1 where a half is empty.
    """
    score, chosen = np.full(len(outcomes), np.nan), [-1, -1]
    for side in (False, True):
        seen = outcomes[half == side]
        if len(seen):
            chosen[int(side)] = best = int(seen.sum(0, dtype=np.float64).argmax())
            score[half != side] = outcomes[half != side, best]
    return score, (chosen[0], chosen[1])


def resample_mean(
    values: np.ndarray, groups: Sequence[Hashable] | np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """The mean over items in bootstrap samples of their groups.

    Give paired differences as ``values`` to compare two systems on the same items.

    Parameters
    ----------
    values : array [item, …]
    groups : sequence [item]
        Sentence or document of each item; these are drawn, with all of their items.

    Returns
    -------
    array [resample, …]
    """
    values = np.asarray(values, dtype=np.float64)
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    count = np.bincount(number).astype(np.float64)
    sums = np.zeros((len(count), *values.shape[1:]))
    np.add.at(sums, number, values)
    weights = bootstrap_weights(len(count), resamples, seed).numpy()
    total = np.tensordot(weights, sums, 1)
    return total / (weights @ count).reshape(-1, *[1] * (values.ndim - 1))


# ----------------------------------------------------------------------------------------------- groups, and chance


def clusters(divergence: np.ndarray, count: int) -> np.ndarray:
    """Ward's hierarchical clustering cut into ``count`` clusters: the number of each item's, from 1 by first item.

    Ward's method wants Euclidean distances; the root of a sum of Jensen–Shannon divergences is one.
    """
    tree = linkage(squareform(np.sqrt(divergence), checks=False), "ward")
    return pd.factorize(fcluster(tree, count, "maxclust"))[0] + 1


def agreement(divergence: np.ndarray, labels: Iterable[Any]) -> float:
    """Adjusted Rand index of a labelling of the items and as many clusters: 1 is equality, 0 what chance gives.

    NaN where all items have one label: then any clustering agrees with it.
    """
    names = list(labels)
    count = len(set(names))
    return float(adjusted_rand_score(names, clusters(divergence, count))) if count > 1 else float("nan")


def chance_agreement(
    divergence: np.ndarray, labels: Iterable[Any], strata: int = 1, permutations: int = 1000, seed: int = 0
) -> np.ndarray:
    """:func:`agreement` when the labels are dealt out to the items at random, [permutation].

    Labels stay within their stratum if ``strata`` is the number of strata of equal size, in order: what is then left
    comes from labels that are common in one and rare in another. With 1 they go anywhere.
    """
    names = np.asarray(pd.factorize(np.asarray(list(labels), dtype=object))[0]).reshape(strata, -1)
    count = len(np.unique(names))
    if count < 2:
        return np.full(permutations, np.nan)
    found, chance = clusters(divergence, count), np.random.default_rng(seed)
    dealt = (chance.permuted(names, axis=1).ravel() for _ in range(permutations))
    return np.array([adjusted_rand_score(one, found) for one in dealt])


def dealt_out(
    square: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], permutations: int = 2000, seed: int = 0
) -> np.ndarray:
    """A statistic of relations between items, [item, item], when these change places at random, [permutation, …]."""
    chance = np.random.default_rng(seed)
    orders = (chance.permutation(len(square)) for _ in range(permutations))
    return np.stack([statistic(square[order][:, order]) for order in orders])


def against_chance(value: float, draws: np.ndarray) -> dict[str, float]:
    """A one-sided permutation test: ``p``, and of the draws ``null_low, null_high`` (95% of them) and ``null_mean``.

    ``p`` is the share of draws at least as great as the value, itself counted among them. NaN without a value.
    """
    if not np.isfinite(value):
        return dict.fromkeys(("p", "null_low", "null_high", "null_mean"), np.nan)
    reached = draws >= value - 1e-9 * abs(value)  # equal up to rounding counts as equal
    low, high = interval(draws)
    p = (1 + reached.sum()) / (1 + len(draws))
    return {"p": float(p), "null_low": float(low), "null_high": float(high), "null_mean": float(draws.mean())}
