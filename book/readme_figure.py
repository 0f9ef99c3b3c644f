"""The README's figure, from a finished sample book: ``.venv/bin/python book/readme_figure.py``."""

from pathlib import Path

import matplotlib as mpl
import pandas as pd

from bertlook import published
from bertlook.figures import by_layer, plt

ROOT = Path(__file__).parents[1]
heads = pd.read_csv(ROOT / "_build/sample/results/surface/heads.csv")
maps = {name: heads.pivot(index="layer", columns="head", values=name).to_numpy() for name in ("cls", "sep")}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
for series, (ax, name) in enumerate(zip(axes, maps, strict=True)):
    by_layer(ax, maps[name], f"to [{name.upper()}]", series, published.layer_means()[name])
    ax.set(ylim=(0, 1), ylabel="mean attention" if name == "cls" else "")
    ax.legend(loc="upper right")
with mpl.rc_context({"svg.hashsalt": "readme"}):
    figure.savefig(ROOT / "book/_static/readme.svg", facecolor="white", metadata={"Date": None})
