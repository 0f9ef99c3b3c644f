"""Every kind of figure on a small table: labels, units, words with the table's numbers, readable on a phone."""

import numpy as np
import pandas as pd
import pytest

from bertlook import figures
from looking import check

HEADS = pd.DataFrame(
    [(l, h, 0.1 * l + 0.01 * h, l * h / 4) for l in (1, 2, 3) for h in (1, 2)],
    columns=["layer", "head", "cls", "entropy"],
)
SHOWN = dict(name="some", caption="A <caption>.", data=["surface/heads.csv"])


def test_by_layer_names_each_layers_mean():
    paper = {"cls": np.linspace(0, 0.5, 12).tolist()}
    picture = figures.by_layer(HEADS, {"cls": "to [CLS]"}, paper=paper, ylabel="mean attention", top=1, **SHOWN)
    check(picture, "layer (paper’s 12 on the same relative depth)", "mean attention")
    assert "To [CLS]: 11.5%, 21.5%, 31.5%." in picture.alt and "layers 1 to 3" in picture.alt
    (ax,) = picture.figure.axes
    assert [line.get_label() for line in ax.lines] == ["to [CLS]", "to [CLS], paper"] and ax.get_ylim() == (0, 1)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "3"]
    np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 1], HEADS["cls"])


def test_by_layer_has_a_panel_a_quantity_with_unit_band_and_level():
    layers = HEADS.groupby("layer", as_index=False)["entropy"].mean().assign(quantity="entropy")
    layers = layers.assign(low=layers["entropy"] - 0.1, high=layers["entropy"] + 0.1)
    picture = figures.by_layer(
        HEADS,
        {"entropy": "all rows", "cls": "more"},
        layers=layers,
        levels={"entropy": (2.0, "uniform")},
        ylabel="entropy",
        unit="nats",
        **SHOWN,
    )
    check(picture, "layer", "entropy (nats)")
    assert "All rows: 0.38 nats, 0.75 nats, 1.12 nats." in picture.alt and len(picture.figure.axes) == 2
    labels = picture.figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["all rows", "uniform"]


@pytest.mark.parametrize("bars", [True, False])
def test_lines_are_one_a_value_with_their_interval(bars):
    table = pd.DataFrame(
        {"offset": [-1, 0, 1] * 2, "attention": [0.1, 0.5, 0.2, 0.3, 0.3, 0.3], "who": ["1-2"] * 3 + ["mean"] * 3}
    )
    table = table.assign(low=table["attention"] - 0.05, high=table["attention"] + 0.05)
    picture = figures.lines(
        table,
        "offset",
        "attention",
        by="who",
        low="low",
        high="high",
        bars=bars,
        xlabel="offset (tokens)",
        ylabel="mean attention",
        top=1,
        levels={"half": 0.5},
        **SHOWN,
    )
    check(picture, "offset (tokens)", "mean attention")
    assert "1-2: 10.0% at -1, 50.0% at 0, 20.0% at 1." in picture.alt and "Half: 50.0%." in picture.alt


def test_lines_over_names_keep_their_order_and_panels_their_titles():
    table = pd.DataFrame(
        {"distance": ["1–5", "over 5"] * 2, "nats": [0.25, 0.5, 0.75, 1.0], "panel": ["a", "a", "b", "b"]}
    )
    picture = figures.lines(
        table, "distance", "nats", panel="panel", xlabel="distance (words)", ylabel="divergence", unit="nats", **SHOWN
    )
    check(picture, "distance (words)", "divergence (nats)")
    assert [tick.get_text() for tick in picture.figure.axes[-1].get_xticklabels()] == ["1–5", "over 5"]
    assert [ax.get_title() for ax in picture.figure.axes] == ["a", "b"]
    assert "A: 0.25 nats at 1–5, 0.50 nats at over 5." in picture.alt


def test_long_lines_are_said_by_their_ends():
    table = pd.DataFrame({"x": range(30), "y": np.linspace(0.2, 0.8, 30)})
    picture = check(figures.lines(table, "x", "y", xlabel="x", ylabel="share", **SHOWN), "x", "share")
    assert "from 20.0% at 0, to 80.0% at 29" in picture.alt


def test_dots_say_value_interval_and_what_stands_beside():
    table = pd.DataFrame(
        {
            "relation": ["dobj", "det"],
            "value": [0.7, 0.9],
            "low": [0.6, 0.85],
            "high": [0.8, 0.95],
            "offset": [0.3, 0.5],
            "paper": [0.868, np.nan],
        }
    )
    picture = figures.dots(
        table,
        "relation",
        "value",
        "low",
        "high",
        label="best head",
        others={"offset": "best offset", "paper": "paper"},
        xlabel="share of words",
        **SHOWN,
    )
    check(picture, "share of words", "")
    assert "dobj: 70.0% (60.0% to 80.0%), best offset 30.0%, paper 86.8%." in picture.alt
    assert "det: 90.0% (85.0% to 95.0%), best offset 50.0%." in picture.alt
    (ax,) = picture.figure.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["dobj", "det"] and ax.get_yticks()[
        0
    ] > ax.get_yticks()[1]


def test_heat_maps_name_the_best_head_of_each_panel():
    table = pd.concat([HEADS.assign(relation="dobj"), HEADS.assign(relation="det", cls=HEADS["cls"][::-1].to_numpy())])
    picture = figures.heat_maps(table, "cls", "relation", label="accuracy", top=1, **SHOWN)
    check(picture, "head", None)
    assert (
        "Dobj: the highest is head 3-2 with 32.0%." in picture.alt
        and "Det: the highest is head 1-1 with 32.0%." in picture.alt
    )
    one = check(figures.heat_maps(HEADS, "entropy", label="change", unit="nats", **SHOWN), "head", None)
    assert "The highest is head 3-2 with 1.50 nats." in one.alt


def test_twelve_by_twelve_heads_fit_a_phone():
    table = pd.DataFrame(
        [(l, h, l / h) for l in range(1, 13) for h in range(1, 13)], columns=["layer", "head", "value"]
    )
    check(figures.heat_maps(table, "value", label="accuracy", **SHOWN), "head", None)
    check(figures.by_layer(table, {"value": "all"}, ylabel="mean", **SHOWN), "layer", "mean")


def test_counts_are_stacked_by_kind():
    table = pd.DataFrame({"section": ["§3", "§3", "§4"], "verdict": ["yes", "no", "yes"]})
    picture = figures.counts(
        table, "section", {"yes": figures.BLUE, "no": figures.ORANGE}, by="verdict", xlabel="claims", **SHOWN
    )
    check(picture, "claims", "")
    assert "§3: 1 yes and 1 no. §4: 1 yes." in picture.alt
    assert [tick.get_text() for tick in picture.figure.axes[0].get_yticklabels()] == ["§3", "§4"]


def test_head_views_mark_what_is_known():
    weights = np.array([[0.1, 0.8], [0.6, 0.01]])
    plain, marked = (
        figures.View("head 1-1", ["$a", "b"], weights),
        figures.View("dobj: head 1-2", ["a", "b"], weights, {(1, 0)}),
    )
    picture = figures.head_views([plain, marked], **SHOWN)
    check(picture)
    assert "Head 1-1: the strongest line goes from “$a” to “b” with 80.0%." in picture.alt
    assert "Dobj: head 1-2: marked pairs get 60.0%" in picture.alt
    assert [line.get_linestyle() for line in picture.figure.axes[1].lines] == ["-", "-", "--"]  # 0.01 is not drawn


def test_the_map_of_heads_counts_its_groups_and_tells_each_head():
    table = pd.DataFrame(
        {"layer": [1, 1, 2], "head": [1, 2, 1], "x": [0, 1, 2], "y": [0, 1, 0], "kind": ["broad", "next", "broad"]}
    )
    picture = figures.scatter_heads(table, "kind", title="by behaviour", tooltips=["<one>", "two", "three"], **SHOWN)
    check(picture)
    assert picture.alt == "Map of 3 heads, by behaviour: 2 broad and 1 next."
    page = picture._repr_html_()
    assert "<title>&lt;one&gt;</title>" in page and "explorer.html#2-1" in page
    by_layer = figures.scatter_heads(table, "layer", title="by layer", **SHOWN)
    assert [text.get_text() for text in by_layer.figure.axes[0].get_legend().texts] == ["layer 1", "layer 2"]
    assert by_layer.alt == "Map of 3 heads, by layer: 2 layer 1 and 1 layer 2."


def test_a_picture_is_escaped_follows_the_theme_and_links_its_data():
    hostile = figures.View("<script>", ['"><img src=x>'], np.array([[1.0]]))
    page = figures.head_views([hostile], **SHOWN)._repr_html_()
    assert "<script>" not in page and "<img" not in page and "A &lt;caption&gt;." in page
    assert "currentColor" in page and "#000000" not in page and 'href="../results/surface/heads.csv"' in page
    assert page == figures.head_views([hostile], **SHOWN)._repr_html_()  # the same every time
