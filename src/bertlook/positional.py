"""Where heads look by relative position (§3.1)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from bertlook.attention import Batch
from bertlook.claims import listed, number, published
from bertlook.figures import WIDTH
from bertlook.results import Picture
from bertlook.statistics import GroupedMean, bootstrap_weights, estimates, interval

NAMES = {"previous": -1, "current": 0, "next": 1}


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
        total = torch.stack([attention.diagonal(offset, -2, -1).sum(-1) for offset in self.offsets])
        self.add(batch.documents, total.permute(2, 0, 1, 3), batch.mask.sum(1)[:, None, None, None])

    def at(self, offset: int) -> Tensor:
        """Mean attention to one offset, [layer, head]."""
        return self.compute()[self.offsets.index(offset)]

    def strongest(self, offset: int) -> tuple[float, np.ndarray]:
        """Attention to an offset of the head with the most of it, held out: its value and bootstrap samples.

        The head is chosen on one half of the groups of documents and scored on the other, and the other way round;
        the bootstrap keeps the choice. NaN where one group holds all of the text.
        """
        used = self.count.flatten() > 0
        total, count = self.total[used][:, self.offsets.index(offset)].flatten(1), self.count[used].flatten()
        half = torch.arange(len(count)) % 2 == 1
        if len(count) < 2:
            return float("nan"), np.array([np.nan])
        score = torch.empty_like(count)
        for side in (half, ~half):
            score[~side] = total[~side, (total[side].sum(0) / count[side].sum()).argmax()]
        weights = bootstrap_weights(len(count))
        return float(score.sum() / count.sum()), ((weights @ score) / (weights @ count)).numpy()


# --------------------------------------------------------------------------------------------------------- tables


def offsets_table(profile: PositionProfile) -> pd.DataFrame:
    """``layer, head, offset, attention``, layers and heads from 1."""
    means = profile.compute()
    index = pd.MultiIndex.from_product(
        [profile.offsets, *(range(1, n + 1) for n in means.shape[1:])], names=["offset", "layer", "head"]
    )
    table = pd.DataFrame({"attention": means.flatten().cpu().numpy()}, index=index).reset_index()
    return table.sort_values(["layer", "head", "offset"], ignore_index=True)[["layer", "head", "offset", "attention"]]


def heads_table(offsets: pd.DataFrame) -> pd.DataFrame:
    """``layer, head, previous, current, next``, one row a head."""
    near = offsets.pivot(index=["layer", "head"], columns="offset", values="attention")[list(NAMES.values())]
    return near.set_axis(list(NAMES), axis=1).reset_index()


def layers_table(profile: PositionProfile) -> pd.DataFrame:
    """``layer, quantity, low, high``: intervals of the means over a layer's heads."""
    samples = profile.resample().mean(-1)  # [resample, offset, layer]
    parts = []
    for name, offset in NAMES.items():
        low, high = interval(samples[:, profile.offsets.index(offset)])
        layers = np.arange(1, len(low) + 1)
        parts.append(pd.DataFrame({"layer": layers, "quantity": name, "low": low, "high": high}))
    return pd.concat(parts, ignore_index=True)


def strongest_curves(offsets: pd.DataFrame) -> pd.DataFrame:
    """``curve, offset, attention`` of the heads that look most at each neighbour, and of the mean of all heads."""
    heads = heads_table(offsets)
    parts = []
    for name in NAMES:
        best = heads.loc[heads[name].idxmax()].astype(int)
        of = offsets[(offsets["layer"] == best["layer"]) & (offsets["head"] == best["head"])]
        parts.append(of.assign(curve=f"{best['layer']}-{best['head']}, most to {name}"))
    mean = offsets.groupby("offset", as_index=False)["attention"].mean().assign(curve="mean of all heads")
    return pd.concat([*parts, mean], ignore_index=True)[["curve", "offset", "attention"]]


def draw_heads_by_offset(offsets: pd.DataFrame) -> Picture:
    """Every head as a row, ordered by the offset at which its profile peaks; offsets across, yellow is all."""
    grid = offsets.pivot(index=["layer", "head"], columns="offset", values="attention")
    flat, peak = grid.to_numpy(), grid.to_numpy().argmax(1)
    order = np.lexsort((-flat.max(1), peak))
    figure, ax = plt.subplots(figsize=(WIDTH, 0.085 * len(flat) + 1.4))
    image = ax.imshow(flat[order], aspect="auto", cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks(range(0, len(grid.columns), 2), [str(offset) for offset in grid.columns[::2]])
    ax.set(xlabel="offset (tokens)", ylabel="head", yticks=[])
    figure.colorbar(image, label="mean attention")
    counts = pd.Series(grid.columns[peak]).value_counts()
    said = listed([f"{n} at offset {offset}" for offset, n in counts.head(3).items()])
    return Picture(
        figure,
        f"Mean attention by offset of all {len(flat)} heads as a heat map. Most heads peak at few offsets: {said}.",
        name="heads-by-offset",
        caption="All heads by offset, ordered by the offset at which each peaks.",
        data=["positional/offsets.csv"],
    )


# ------------------------------------------------------------------------------------------------ claims and words

PAPER = published()["positional"]


def quantities(profile: PositionProfile, n: str) -> pd.DataFrame:
    """What the claims are about: ``quantity, value, low, high, n``; the strongest heads held out."""

    def of(means: Tensor) -> dict[str, Tensor]:  # [..., offset, layer, head]
        previous, current, following = (means[..., profile.offsets.index(o), :, :] for o in NAMES.values())
        near = previous + following
        layers = near.shape[-2]
        early, late = near[..., : layers // 2, :], near[..., (layers + 1) // 2 :, :]
        return {"current": (current - near).mean((-2, -1)), "early": early.mean((-2, -1)) - late.mean((-2, -1))}

    values, samples = of(profile.compute()), of(profile.resample())
    found = {name: profile.strongest(NAMES[name]) for name in ("previous", "next")}
    return estimates(found | {name: (value, samples[name]) for name, value in values.items()}, n)


def words(heads: pd.DataFrame) -> dict[str, str]:
    """What the chapter's prose says of :func:`heads_table`."""
    found = {"heads": str(len(heads))}
    for name in NAMES:
        found[f"count-{name}"] = str(int((heads[name] > 0.5).sum()))
        found[f"over-half-{name}"] = over_half(heads, name)
        found[f"mean-{name}"] = number(heads[name].mean(), "share")
    return found | {f"paper-{name}": str(PAPER[f"{name}_over_half"]["heads"]) for name in ("previous", "next")}


def over_half(heads: pd.DataFrame, name: str) -> str:
    """The heads with over half of their attention on a neighbour, the strongest first; else the nearest to it."""
    ranked = heads.sort_values(name, ascending=False)
    said = [f"{row['layer']:.0f}-{row['head']:.0f} ({number(row[name], 'share')})" for _, row in ranked.iterrows()]
    count = int((heads[name] > 0.5).sum())
    return listed(said[:count]) if count else f"none does; the nearest is {said[0]}"
