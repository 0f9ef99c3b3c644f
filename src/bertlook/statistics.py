"""Uncertainty: sums kept apart by document, resampled; every chapter's intervals come from here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

RESAMPLES = 1000
LEVEL = 0.95


class GroupedMean(Metric):
    """A ratio of sums, kept apart by groups of documents so that its uncertainty can be computed.

    Documents are dealt out to a fixed number of groups, so memory does not grow with the corpus, and the
    order of batches does not matter. Subclasses call :meth:`add` in ``update``.

    States: ``total`` [group, *shape], ``count`` [group, *count_shape], both float64; ``count_shape`` has
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
        """Add one row a segment: ``documents`` [batch], ``total`` [batch, *shape], ``count`` [batch, *count_shape]."""
        group = documents.to(self.total.device) % self.groups
        for state, rows in ((self.total, total), (self.count, count)):
            state.index_add_(0, group, rows.to(state.device).to(state.dtype))

    def compute(self) -> Tensor:
        """The mean, [*shape]."""
        return self.total.sum(0) / self.count.sum(0)

    def resample(self, resamples: int = RESAMPLES, seed: int = 0) -> Tensor:
        """The mean in bootstrap samples of the groups that hold data, [resample, *shape]."""
        total, count = self.resample_sums(resamples, seed)
        return total / count

    def resample_sums(self, resamples: int = RESAMPLES, seed: int = 0) -> tuple[Tensor, Tensor]:
        """What :meth:`resample` divides: ``total`` [resample, *shape] and ``count`` [resample, *count_shape]."""
        used = self.count.flatten(1).sum(1) > 0
        weights = bootstrap_weights(int(used.sum()), resamples, seed)
        total, count = (torch.tensordot(weights, state[used].cpu(), 1) for state in (self.total, self.count))
        return total, count


def bootstrap_weights(groups: int, resamples: int = RESAMPLES, seed: int = 0) -> Tensor:
    """How often each group occurs in each bootstrap sample, [resample, group]; rows sum to ``groups``."""
    drawn = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=resamples)
    return torch.from_numpy(drawn).double()


def interval(resampled: Tensor | np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Percentile interval over the first axis, NaN samples (nothing drawn) left out: lower and upper end."""
    values = np.asarray(resampled)
    low, high = np.nanpercentile(values, [50 * (1 - level), 50 * (1 + level)], axis=0)
    return low, high
