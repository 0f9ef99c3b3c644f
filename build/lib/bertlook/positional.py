"""Where heads look by relative position (§3.1)."""

from __future__ import annotations

import pandas as pd
from torch import Tensor, stack

from bertlook.attention import Batch
from bertlook.statistics import GroupedMean


class PositionProfile(GroupedMean):
    """Mean attention to the token a fixed offset away (§3.1).

    ``total`` [group, offset, layer, head] is attention summed over the queries; ``count`` [group, 1, 1, 1] how
    many there are. ``compute`` returns their ratio; an offset that leaves the segment counts as no attention.
    """

    def __init__(self, layers: int, heads: int, reach: int = 10, groups: int = 64) -> None:
        self.offsets = range(-reach, reach + 1)
        super().__init__((len(self.offsets), layers, heads), (1, 1, 1), groups)

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key], zero in padded rows."""
        total = stack([attention.diagonal(offset, -2, -1).sum(-1) for offset in self.offsets])
        self.add(batch.documents, total.permute(2, 0, 1, 3), batch.mask.sum(1)[:, None, None, None])

    def at(self, offset: int) -> Tensor:
        """Mean attention to one offset, [layer, head]."""
        return self.compute()[self.offsets.index(offset)]

    def table(self) -> pd.DataFrame:
        """``layer, head, offset, attention``, layers and heads from 1."""
        means = self.compute()
        index = pd.MultiIndex.from_product(
            [self.offsets, *(range(1, n + 1) for n in means.shape[1:])], names=["offset", "layer", "head"]
        )
        table = pd.DataFrame({"attention": means.flatten().cpu().numpy()}, index=index).reset_index()
        return table.sort_values(["layer", "head", "offset"])[["layer", "head", "offset", "attention"]]
