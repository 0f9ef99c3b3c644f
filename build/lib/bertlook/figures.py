"""One style for all figures, and the few kinds of figure that several chapters draw."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Collection, Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart with any colour vision, and by lightness in print.
BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#808080"
COLOURS = (BLUE, ORANGE, GREEN, PINK)
MARKERS = ("o", "^", "s", "D")

sns.set_theme(
    context="notebook",
    style="ticks",
    rc={
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.labelsize": 11,
        "xtick.labelsize": 10,
        "ytick.labelsize": 10,
        "legend.fontsize": 10,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "black",
        "text.color": "black",
        "axes.labelcolor": "black",
        "xtick.color": "black",
        "ytick.color": "black",
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "axes.prop_cycle": plt.cycler(color=COLOURS),
        "figure.constrained_layout.use": True,
    },
)


def show(
    figure: Figure,
    name: str,
    alt: str,
    caption: str = "",
    data: Sequence[str] = (),
    tooltips: Mapping[str, str] | None = None,
) -> HTML:
    """Embed a figure as vector graphics that follow the page's theme, with its alternative text and its data.

    Parameters
    ----------
    figure : Figure
        It is closed, so that Jupyter does not show it twice.
    name : str
        Becomes the anchor ``fig-name``.
    alt : str
        What one sees, with numbers.
    caption : str
        Plain text below the figure.
    data : sequence of str
        Result files it was drawn from, as ``"surface/heads.csv"``.
    tooltips : mapping of str to str, optional
        ``gid`` of an artist → plain text shown when it is pointed at.
    """
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    svg = buffer.getvalue()
    svg = re.sub(r"^.*?(?=<svg)", "", svg, flags=re.S)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    # Ink takes the colour of the page's text; identifiers are made unique on the page.

    def tag(match: re.Match[str]) -> str:
        """Within tags only: what stands between them is text that somebody wrote."""
        inside = re.sub(r"#000000\b", "currentColor", match[0])
        inside = inside.replace('<text style="', '<text style="fill: currentColor; ')
        inside = re.sub(r'\bid="', f'id="{name}-', inside)
        return re.sub(r'(url\(|href=")#', rf"\1#{name}-", inside)

    svg = re.sub(r"(<style.*?</style>)|<[^>]*>", lambda m: m[0] if m[1] else tag(m), svg, flags=re.S)
    # Links open in place, and are no stops for the tab key: there are hundreds.
    svg = re.sub(r'<a (xlink:href="[^"]*") target="_blank">', r'<a tabindex="-1" \1>', svg)
    for gid, text in (tooltips or {}).items():
        opening = f'<g id="{name}-{gid}">'
        svg = svg.replace(opening, f"{opening}<title>{html.escape(text)}</title>", 1)
    width = re.search(r'width="([\d.]+)pt"', svg)
    size = f"max-width:{float(width[1]) * 5 / 3:.0f}px" if width else ""  # a quarter larger than printed
    svg = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"|height="[\d.]+pt" width="[\d.]+pt"', "", svg, count=1)
    label = html.escape(alt, quote=True)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{label}" style="{size}"', 1)
    links = ", ".join(f'<a href="../results/{html.escape(file)}">{html.escape(file)}</a>' for file in data)
    below = html.escape(caption) + (f" <span class='bertlook-data'>Data: {links}.</span>" if links else "")
    return HTML(
        f"<figure class='bertlook-figure' id='fig-{name}'>"
        f"<div class='bertlook-scroll' tabindex='0' role='group' aria-label='Figure'>{svg}</div>"
        f"<figcaption>{below}</figcaption></figure>"
    )


def depth(layers: int) -> np.ndarray:
    """Relative depth of each layer's middle, from 0 (input) to 1 (output): layer 1 of 6 lies where 1 and 2 of 12 do."""
    return (np.arange(layers) + 0.5) / layers


def by_layer(
    axes: Axes,
    heads: np.ndarray,
    label: str,
    series: int = 0,
    paper: Sequence[float] | None = None,
    band: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """Dots for heads, linked to the explorer, a line for the layer mean, the paper's dashed, over relative depth.

    Parameters
    ----------
    heads : array [layer, head]
    series : int
        Which colour, marker and dash the series has.
    paper : sequence [paper's layer]
    band : two arrays [layer]
        Interval of the layer means.
    """
    layers, count = heads.shape
    x = depth(layers)
    colour, marker = COLOURS[series % 4], MARKERS[series % 4]
    spread = np.linspace(-0.25, 0.25, count)[None] / layers
    places = [f"explorer.html#{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, count + 1)]
    axes.scatter(
        (x[:, None] + spread).ravel(),
        heads.ravel(),
        s=12,
        color=colour,
        marker=marker,
        alpha=0.55,
        linewidths=0,
        urls=places,
    )
    axes.plot(x, heads.mean(1), "-", color=colour, lw=2, marker=marker, ms=6, label=label)
    if band is not None:
        axes.fill_between(x, *band, color=colour, alpha=0.2, lw=0)
    if paper is not None:
        axes.plot(
            depth(len(paper)), paper, "--", color=GREY, lw=1.5, marker=marker, ms=4, mfc="none", label=f"{label}, paper"
        )
    axes.set_xlim(0, 1)
    axes.set_xticks(x, [str(layer) for layer in range(1, layers + 1)])
    axes.set_xlabel(
        "layer" if paper is None or len(paper) == layers else "layer (paper's 12 on the same relative depth)"
    )


def heat_map(axes: Axes, values: np.ndarray, title: str, vmax: float | None = None, label: str = "") -> None:
    """Layers down, heads across, both from 1; dark is much. ``values`` [layer, head]."""
    layers, heads = values.shape
    sns.heatmap(
        values,
        ax=axes,
        cmap="cividis",
        vmin=0,
        vmax=vmax,
        xticklabels=list(range(1, heads + 1)),
        yticklabels=list(range(1, layers + 1)),
        cbar_kws={"label": label},
        linewidths=0.5,
        linecolor=GREY,
    )
    axes.set(xlabel="head", ylabel="layer", title=title)
    axes.tick_params(length=0)


def head_view(
    axes: Axes, tokens: Sequence[str], weights: np.ndarray, title: str, marks: Collection[tuple[int, int]] = ()
) -> None:
    """One head on one text: queries left, keys right, a line's darkness the attention. ``weights`` [query, key].

    The lines of ``marks``, pairs of query and key from 0, are orange and dashed.
    """
    n = len(tokens)
    for i in range(n):
        for j in range(n):
            if weights[i, j] > 0.02:
                colour, dash = (ORANGE, "--") if (i, j) in marks else (BLUE, "-")
                alpha = float(weights[i, j]) ** 0.8
                axes.plot([0, 1], [-i, -j], dash, color=colour, alpha=alpha, lw=1.5, solid_capstyle="round")
    for i, token in enumerate(tokens):
        text = token.replace("$", r"\$")
        axes.text(-0.04, -i, text, ha="right", va="center", fontsize=9)
        axes.text(1.04, -i, text, ha="left", va="center", fontsize=9)
    axes.set(xlim=(-0.9, 1.9), ylim=(-n + 0.4, 0.6), title=title)
    axes.axis("off")


def scatter_heads(
    axes: Axes,
    heads: pd.DataFrame,
    groups: Sequence[str],
    label: str = "",
    prefix: str = "dot",
    page: str = "explorer.html",
) -> None:
    """Heads as dots at ``x, y``, each group with a colour and a marker, each dot linked to the explorer.

    Parameters
    ----------
    heads : DataFrame
        ``layer, head, x, y``; a dot's ``gid`` is ``prefix-layer-head``.
    groups : sequence of str [head]
        What each head belongs to; groups in the order of their first head.
    """
    order = list(dict.fromkeys(groups))
    palette = sns.color_palette("viridis", len(order)) if len(order) > 6 else (*COLOURS, "#E69F00", GREY)
    markers = "o^sDvP*X<>pdh8"
    for row, group in zip(heads.itertuples(), groups, strict=True):
        k = order.index(group)
        gid, url = f"{prefix}-{row.layer}-{row.head}", f"{page}#{row.layer}-{row.head}"
        first = group not in axes.get_legend_handles_labels()[1]
        axes.scatter(
            [row.x], [row.y], color=[palette[k]], marker=markers[k % len(markers)], s=34, alpha=0.9, lw=0.4,
            edgecolor="black", gid=gid, urls=[url], label=group if first else None,
        )  # fmt: skip
    axes.set_aspect("equal", "datalim")
    axes.set(xticks=[], yticks=[], title=label)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, fontsize=9, handletextpad=0.2)
