"""The paper's own numbers. They live here and nowhere else; everything else in the book is computed."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def reference() -> dict[str, Any]:
    """All published values of Clark et al. (2019), as ``published.json`` holds them; layers and heads from 1."""
    return json.loads(files("bertlook").joinpath("published.json").read_text(encoding="utf-8"))


def layer_means() -> dict[str, list[float]]:
    """Means a layer, read off Figures 2 and 4: ``cls, sep, punct, other_to_sep, sep_to_sep, entropy, entropy_cls``."""
    means = {name: values for name, values in reference()["digitised_layer_means"].items() if name != "note"}
    means["entropy_cls"] = means.pop("entropy_from_cls")
    return means


def same_depth(layers: int, first: int, last: int) -> list[int]:
    """Layers, from 0, whose relative depth lies within the paper's layers ``first`` to ``last`` of 12, from 1."""
    of = reference()["setup"]["layers"]
    return [k for k in range(layers) if (first - 1) / of <= (k + 0.5) / layers + 1e-9 <= last / of + 2e-9]
