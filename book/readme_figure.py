"""The README's figure, from a finished sample book: ``.venv/bin/python book/readme_figure.py``."""

from pathlib import Path

import matplotlib as mpl
import pandas as pd

from bertlook.claims import layer_means
from bertlook.figures import by_layer

ROOT = Path(__file__).parents[1]
heads = pd.read_csv(ROOT / "_build/sample/results/surface/heads.csv")
picture = by_layer(
    heads,
    {"cls": "to [CLS]", "sep": "to [SEP]"},
    paper=layer_means(),
    ylabel="mean attention",
    top=1,
    name="readme",
)
with mpl.rc_context({"svg.hashsalt": "readme"}):
    picture.figure.savefig(ROOT / "book/_static/readme.svg", facecolor="white", metadata={"Date": None})
