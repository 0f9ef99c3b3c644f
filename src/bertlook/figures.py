"""The book's kinds of figure: each draws a tidy table and says in words, with its numbers, what one sees.

All take what a :class:`Picture` is to be shown with as well: ``name``, ``caption`` and ``data``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bertlook.claims import listed, number
from bertlook.results import Picture

# As in book.mplstyle.
BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#808080"
COLOURS = (BLUE, ORANGE, GREEN, PINK)
MARKERS = ("o", "^", "s", "D")
#: Inches: the width of a figure, readable on a phone and no wider than a column of the book.
WIDTH = 5.2

sns.set_theme(context="notebook", style="ticks")
plt.style.use(str(files("bertlook") / "book.mplstyle"))


def depth(layers: int) -> np.ndarray:
    """Relative depth of each layer's middle, from 0 (input) to 1 (output): layer 1 of 6 lies where 1 and 2 of 12 do."""
    return (np.arange(layers) + 0.5) / layers


def panels(count: int, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """So many panels, one below the other, each ``height`` inches high."""
    figure, axes = plt.subplots(count, 1, figsize=(WIDTH, height * count + 0.3), squeeze=False, **options)
    return figure, list(axes[:, 0])


def by_layer(
    heads: pd.DataFrame,
    quantities: Mapping[str, str],
    *,
    ylabel: str,
    unit: str = "share",
    layers: pd.DataFrame | None = None,
    paper: Mapping[str, Sequence[float]] | None = None,
    levels: Mapping[str, tuple[float, str]] | None = None,
    together: bool = False,
    top: float | None = None,
    **shown: Any,
) -> Picture:
    """Dots for heads, linked to the explorer, lines for the layer means, the paper's dashed, over relative depth.

    Parameters
    ----------
    heads : DataFrame
        ``layer, head`` from 1 and a column for each quantity.
    quantities : mapping
        Column → what to call it. A panel each, or one panel if they are drawn ``together``.
    layers : DataFrame, optional
        ``layer, quantity, low, high``: bands around the layer means.
    paper : mapping of str to sequence, optional
        Column → the paper's layer means.
    levels : mapping, optional
        Column → a dotted level (chance, or a bound) and what to call it.
    """
    figure, axes = panels(1 if together else len(quantities), 3.3, sharey=True)
    count = heads["layer"].max()
    places = [f"explorer.html#{row.layer}-{row.head}" for row in heads.itertuples()]
    spread = (heads["head"] - heads["head"].mean()) / heads["head"].max() / 2
    said = []
    for k, (column, label) in enumerate(quantities.items()):
        ax, colour, marker = axes[0 if together else k], COLOURS[k % 4], MARKERS[k % 4]
        x, means = depth(count), heads.groupby("layer")[column].mean()
        dots = (heads["layer"] - 0.5 + spread) / count
        ax.scatter(dots, heads[column], s=12, color=colour, marker=marker, alpha=0.55, linewidths=0, urls=places)
        ax.plot(x, means, "-", color=colour, lw=2, marker=marker, ms=6, label=label)
        if layers is not None:
            band = layers[layers["quantity"] == column].sort_values("layer")
            ax.fill_between(x[band["layer"] - 1], band["low"], band["high"], color=colour, alpha=0.2, lw=0)
        if paper is not None and column in paper:
            style: dict[str, Any] = dict(color=GREY, lw=1.5, marker=marker, ms=4, mfc="none", label=f"{label}, paper")
            ax.plot(depth(len(paper[column])), paper[column], "--", **style)
        if levels is not None and column in levels:
            ax.axhline(levels[column][0], color="black", lw=0.8, ls=":", label=levels[column][1])
        said.append(f"{label}: {', '.join(number(value, unit) for value in means)}.")
    of = max((len(values) for values in (paper or {}).values()), default=count)
    for ax in axes:
        ax.set(xlim=(0, 1), ylim=(0, top), ylabel=_with_unit(ylabel, unit))
        ax.set_xticks(depth(count), [str(layer) for layer in range(1, count + 1)])
        ax.set_xlabel("layer" if of == count else f"layer (paper’s {of} on the same relative depth)")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    alt = f"{_capital(ylabel)} by layer, means over the heads of layers 1 to {count}. {' '.join(map(_capital, said))}"
    return Picture(figure, alt, **shown)


def lines(
    table: pd.DataFrame,
    x: str,
    y: str,
    by: str | None = None,
    *,
    xlabel: str,
    ylabel: str,
    unit: str = "share",
    low: str | None = None,
    high: str | None = None,
    bars: bool = False,
    panel: str | None = None,
    levels: Mapping[str, float] | None = None,
    log: bool = False,
    top: float | None = None,
    **shown: Any,
) -> Picture:
    """Curves of ``y`` over ``x``, one for each value of ``by``, a panel for each value of ``panel``.

    Parameters
    ----------
    table : DataFrame
        One row a point; ``x`` holds numbers, or names in the order in which they are to stand.
    low, high : str, optional
        Columns of an interval, drawn as a band, or as ``bars``.
    levels : mapping, optional
        Names and heights of horizontal lines.
    """
    groups = [("", table)] if panel is None else list(table.groupby(panel, sort=False))
    figure, axes = panels(len(groups), 3.4, sharex=True)
    names = None if pd.api.types.is_numeric_dtype(table[x]) else list(dict.fromkeys(table[x]))
    series = [""] if by is None else list(dict.fromkeys(table[by]))
    said = []
    for ax, (title, group) in zip(axes, groups, strict=True):
        for k, label in enumerate(series):
            part = group if by is None else group[group[by] == label]
            at = part[x] if names is None else part[x].map(names.index) + (k - (len(series) - 1) / 2) * 0.1
            style: dict[str, Any] = dict(color=COLOURS[k % 4], marker=MARKERS[k % 4], ls=("-", "--")[k // 4 % 2])
            if bars:
                ends = np.abs([part[y] - part[low], part[high] - part[y]])
                ax.errorbar(at, part[y], ends, capsize=2, label=label, **style)
            else:
                ax.plot(at, part[y], ms=5, label=label, **style)
            if low and high and not bars:
                ax.fill_between(at, part[low], part[high], color=style["color"], alpha=0.2, lw=0)
            points = [f"{number(value, unit)} at {place}" for place, value in zip(part[x], part[y], strict=True)]
            if len(points) > 12:
                points = [f"from {points[part[y].argmin()]}", f"to {points[part[y].argmax()]}"]
            said.append(f"{': '.join(filter(None, (_capital(title), label)))}: {', '.join(points)}.".removeprefix(": "))
        for k, (label, height) in enumerate((levels or {}).items()):
            ax.axhline(height, color=GREY, ls=(":", "--")[k % 2], label=label)
        ax.set(ylabel=_with_unit(ylabel, unit), title=title, yscale="log" if log else "linear")
        if not log:
            ax.set_ylim(0 if table[low or y].min() >= 0 else None, top)
    if by is not None or levels:
        axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.1 if panel else 1.0), ncols=2)
    if names is not None:
        axes[-1].set_xticks(range(len(names)), names)
    elif table[x].nunique() <= 12:
        axes[-1].set_xticks(sorted(table[x].unique()))
    else:
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].set_xlabel(xlabel)
    levels_said = [f"{_capital(label)}: {number(height, unit)}." for label, height in (levels or {}).items()]
    return Picture(figure, f"{_capital(ylabel)} by {xlabel}. {' '.join([*said, *levels_said])}", **shown)


def dots(
    table: pd.DataFrame,
    row: str,
    value: str,
    low: str,
    high: str,
    *,
    label: str,
    xlabel: str,
    unit: str = "share",
    others: Mapping[str, str] | None = None,
    panel: str | None = None,
    **shown: Any,
) -> Picture:
    """A row for each ``row`` of the table, from the top: a dot with its interval, other columns beside it.

    Parameters
    ----------
    label : str
        What the dots are.
    others : mapping, optional
        Columns → what to call them: baselines as filled triangles, the last one, the paper, as open squares in grey.
    """
    groups = [("", table)] if panel is None else list(table.groupby(panel, sort=False))
    figure, axes = panels(len(groups), 0.4 * table[row].nunique() + 0.9, sharex=True)
    others = dict(others or {})
    styles: list[dict[str, Any]] = [dict(marker="^", color=ORANGE)] * (len(others) - 1) + [
        dict(marker="s", color=GREY, mfc="none")
    ]
    said = []
    for ax, (title, group) in zip(axes, groups, strict=True):
        y = np.arange(len(group))[::-1]
        ax.hlines(y, group[low], group[high], color=BLUE, lw=4, alpha=0.4)
        ax.plot(group[value], y, "o", color=BLUE, ls="", label=f"{label} (bar: 95%)")
        for (column, what), style in zip(others.items(), styles, strict=True):
            ax.plot(group[column], y, ls="", label=what, **style)
        ax.set_yticks(y, [fill(str(name), 26) for name in group[row]])
        ax.set(title=title, xlim=(0, 1.02) if unit == "share" else None)
        for each in group.to_dict("records"):
            numbers = {name: number(each[name], unit) for name in (value, low, high, *others)}
            beside = [f"{what} {numbers[column]}" for column, what in others.items() if numbers[column] != "–"]
            words = ", ".join([f"{numbers[value]} ({numbers[low]} to {numbers[high]})", *beside])
            said.append(f"{_capital(title)} {each[row]}: {words}.".strip())
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.4, 1.1 if panel else 1.0), ncols=1)
    axes[-1].set_xlabel(_with_unit(xlabel, unit))
    return Picture(figure, f"{_capital(xlabel)}: {label}, with 95% intervals. {' '.join(said)}", **shown)


def heat_maps(
    table: pd.DataFrame,
    value: str,
    panel: str | None = None,
    *,
    label: str,
    unit: str = "share",
    top: float | None = None,
    **shown: Any,
) -> Picture:
    """Layers down, heads across, both from 1; yellow is much; a map for each value of ``panel``.

    Parameters
    ----------
    table : DataFrame
        ``layer, head`` and the column ``value``.
    label : str
        What the colours show; the brightest one ``top``, the greatest value unless said.
    """
    groups = [("", table)] if panel is None else list(table.groupby(panel, sort=False))
    figure, axes = panels(len(groups), 0.27 * table["layer"].max() + 1.1)
    said = []
    for ax, (title, group) in zip(axes, groups, strict=True):
        grid = group.pivot(index="layer", columns="head", values=value)
        bar = {"label": _with_unit(label, unit)}
        sns.heatmap(grid, ax=ax, cmap="cividis", vmin=0, vmax=top, cbar_kws=bar, linewidths=0.5, linecolor=GREY)
        ax.set(xlabel="head", ylabel="layer", title=title)
        ax.tick_params(length=0, labelrotation=0)
        best = group.loc[group[value].idxmax()]
        place = f"head {best['layer']:.0f}-{best['head']:.0f} with {number(best[value], unit)}"
        said.append(f"{_capital(title)}: the highest is {place}.".removeprefix(": ").replace("the", "The", not title))
    return Picture(figure, f"{_capital(label)} by layer and head. {' '.join(said)}", **shown)


def counts(table: pd.DataFrame, row: str, kinds: Mapping[str, str], *, by: str, xlabel: str, **shown: Any) -> Picture:
    """How many rows of the table have each value of ``by``: a stacked bar for each ``row``, ``kinds`` with colours."""
    grid = pd.crosstab(table[row], table[by]).reindex(columns=list(kinds), fill_value=0)
    figure, (ax,) = panels(1, 0.45 * len(grid) + 0.9)
    grid.plot.barh(stacked=True, ax=ax, color=list(kinds.values()), edgecolor="white", width=0.7)
    for bars, hatch in zip(ax.containers, ("", "//", "..", "xx"), strict=False):
        for bar in bars:
            bar.set_hatch(hatch)
    ax.invert_yaxis()
    ax.set(xlabel=xlabel, ylabel="")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2)
    said = [f"{name}: {listed([f'{n} {kind}' for kind, n in line.items() if n])}." for name, line in grid.iterrows()]
    return Picture(figure, f"{_capital(xlabel)} by {row}. {' '.join(said)}", **shown)


@dataclass(frozen=True)
class View:
    """One head on one text: ``weights`` [query, key] between ``tokens``, and pairs of query and key to mark, from 0."""

    title: str
    tokens: Sequence[str]
    weights: np.ndarray
    marks: Collection[tuple[int, int]] = ()


def head_views(views: Sequence[View], **shown: Any) -> Picture:
    """Heads on texts: queries left, keys right, a line's darkness the attention; marked lines orange and dashed."""
    heights = [len(view.tokens) + 2 for view in views]
    figure, axes = plt.subplots(
        len(views), 1, figsize=(WIDTH, 0.24 * sum(heights)), height_ratios=heights, squeeze=False
    )
    said = []
    for ax, view in zip(axes[:, 0], views, strict=True):
        n = len(view.tokens)
        for i, j in zip(*np.nonzero(view.weights > 0.02), strict=True):
            colour, dash = (ORANGE, "--") if (i, j) in view.marks else (BLUE, "-")
            alpha = float(view.weights[i, j]) ** 0.8
            ax.plot([0, 1], [-i, -j], dash, color=colour, alpha=alpha, lw=1.5, solid_capstyle="round")
        for i, token in enumerate(view.tokens):
            for x, side in ((-0.04, "right"), (1.04, "left")):
                ax.text(x, -i, token.replace("$", r"\$"), ha=side, va="center", fontsize=9)
        ax.set(xlim=(-0.9, 1.9), ylim=(-n + 0.4, 0.6), title=view.title)
        ax.axis("off")
        if view.marks:
            mean = np.mean([view.weights[pair] for pair in view.marks])
            said.append(
                f"{_capital(view.title)}: marked pairs get {number(mean, 'share')} of the attention on average."
            )
        else:
            i, j = divmod(int(view.weights.argmax()), view.weights.shape[1])
            most = f"“{view.tokens[i]}” to “{view.tokens[j]}” with {number(view.weights[i, j], 'share')}"
            said.append(f"{_capital(view.title)}: the strongest line goes from {most}.")
    alt = f"Attention of single heads, {len(views)} in all. {' '.join(said)}"
    return Picture(figure, alt, **shown)


def scatter_heads(
    heads: pd.DataFrame,
    group: str,
    *,
    title: str = "",
    tooltips: Sequence[str] = (),
    **shown: Any,
) -> Picture:
    """Heads as dots at ``x, y``, each value of ``group`` with a colour and a marker, each dot linked to the explorer.

    Parameters
    ----------
    heads : DataFrame
        ``layer, head, x, y`` and the column ``group``; groups in the order of their first head, numbers called by the
        column's name.
    tooltips : sequence of str [head], optional
        Plain text shown when a dot is pointed at.
    """
    numbered = pd.api.types.is_numeric_dtype(heads[group])
    groups = heads[group].map((group + " {}" if numbered else "{}").format)
    order = list(dict.fromkeys(groups))
    palette = sns.color_palette("viridis", len(order)) if len(order) > 6 else (*COLOURS, "#E69F00", GREY)
    figure, ax = plt.subplots(figsize=(WIDTH, 5.6))
    gids = [f"dot-{row.layer}-{row.head}" for row in heads.itertuples()]
    for row, own, gid in zip(heads.to_dict("records"), groups, gids, strict=True):
        k = order.index(own)
        first = own not in ax.get_legend_handles_labels()[1]
        style: dict[str, Any] = dict(
            color=[palette[k]], marker="o^sDvP*X<>pdh8"[k % 14], s=34, alpha=0.9, lw=0.4, edgecolor="black"
        )
        url = f"explorer.html#{gid.removeprefix('dot-')}"
        ax.scatter([row["x"]], [row["y"]], gid=gid, urls=[url], label=own if first else None, **style)
    ax.set_aspect("equal", "datalim")
    ax.set(xticks=[], yticks=[], title=title)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, fontsize=9, handletextpad=0.2)
    counts = groups.value_counts()
    alt = f"Map of {len(heads)} heads, {title}: {listed([f'{n} {label}' for label, n in counts.items()])}."
    return Picture(figure, alt, tooltips=dict(zip(gids, tooltips, strict=False)), **shown)


def _with_unit(label: str, unit: str) -> str:
    """An axis' label with its unit, where the unit is one."""
    return f"{label} ({unit})" if unit in {"nats"} else label


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
