"""How the tests look at a figure: labels, words, and whether it can be read on a phone; and at claims."""

import re
from itertools import pairwise

import pandas as pd

from bertlook.claims import claims, judge
from bertlook.results import Picture, Verdicts

PHONE = 350  # pixels of a figure on a screen 390 pixels wide


def check(picture: Picture, xlabel: str | None = None, ylabel: str | None = None) -> Picture:
    """Axes named as they should be, numbers in the alternative text, no overlap and no letter too small on a phone."""
    assert re.search(r"\d", picture.alt) and "nan" not in picture.alt and picture.alt.endswith(".")
    assert 'aria-label="' in picture._repr_html_() and f"id='fig-{picture.name}'" in picture._repr_html_()
    figure = picture.figure
    figure.canvas.draw()
    axes = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    if xlabel is not None:
        assert axes[-1].get_xlabel() == xlabel
    if ylabel is not None:
        assert all(ax.get_ylabel() == ylabel for ax in axes)
    scale = min(1.0, PHONE / (figure.get_figwidth() * 72))  # from points to pixels of the phone
    for ax in figure.axes:
        for side, ticks in (("x", ax.get_xticklabels()), ("y", ax.get_yticklabels())):
            shown = [tick for tick in ticks if tick.get_text() and tick.get_visible()]
            boxes = sorted((tick.get_window_extent() for tick in shown), key=lambda box: (box.x0, box.y0)[side == "y"])
            for one, other in pairwise(boxes):
                assert not one.overlaps(other), f"labels of the {side} axis overlap in {picture.name}"
            assert all(tick.get_fontsize() * scale >= 7.5 for tick in shown)
    return picture


def judged(chapter: str, quantities: pd.DataFrame, **names: str) -> Verdicts:
    """A chapter's claims held against its quantities."""
    return Verdicts(judge(claims(chapter), quantities, **names))
