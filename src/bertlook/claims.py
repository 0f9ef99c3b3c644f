"""The paper: its numbers, its claims, and the rule by which a claim is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd
import yaml

REPLICATES, DOES_NOT, CANNOT_TELL = "replicates", "does not replicate", "cannot be told"
NOT_MEASURED = "not measured here"
#: One-sided level of a permutation test: what the upper end of a 95% interval leaves above it.
LEVEL = 0.025


@cache
def published() -> dict[str, Any]:
    """All published values of Clark et al. (2019), as ``published.json`` holds them; layers and heads from 1.

    They live there and nowhere else; every other number of the book is computed.
    """
    return json.loads(files("bertlook").joinpath("published.json").read_text(encoding="utf-8"))


def layer_means() -> dict[str, list[float]]:
    """Means a layer, read off Figures 2 and 4: ``cls, sep, punct, other_to_sep, sep_to_sep, entropy, entropy_cls``."""
    means = {name: values for name, values in published()["digitised_layer_means"].items() if name != "note"}
    means["entropy_cls"] = means.pop("entropy_from_cls")
    return means


def same_depth(layers: int, first: int, last: int) -> list[int]:
    """Layers, from 0, whose relative depth lies within the paper's layers ``first`` to ``last`` of 12, from 1."""
    of = published()["setup"]["layers"]
    return [k for k in range(layers) if (first - 1) / of <= (k + 0.5) / layers + 1e-9 <= last / of + 2e-9]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper as a statement about one number, as ``claims.yaml`` has it.

    Attributes
    ----------
    id : str
        Unique in the book, and the name of the quantity that it is about.
    section, text, paper : str
        The paper's section, the claim in words, and the paper's own number in words. ``{sink}`` and the like in the
        text are filled in when the claim is judged.
    rule : str
        The claim is that the value lies ``"above"`` or ``"below"`` the threshold, or is ``"more than chance"``.
    threshold : float
    unit : str
        As in :func:`number`.
    evidence : str
        Anchor of the figure or table on the chapter's page.
    """

    id: str
    section: str
    text: str
    paper: str
    rule: str = "above"
    threshold: float = 0.0
    unit: str = "share"
    evidence: str = ""

    def rule_text(self) -> str:
        """The rule as the reader is told it."""
        if self.rule == "more than chance":
            return f"more than chance (p ≤ {LEVEL})"
        return f"{self.rule} {number(self.threshold, self.unit)}"

    def verdict(self, measured: Mapping[str, Any]) -> str:
        """By the rule of the method page, from ``value, low, high`` and, for chance, ``p``; NaN is not measured.

        The interval lies beyond the threshold, short of it, or on both sides; p is at most ``LEVEL``, at least one
        half (the value is no more than chance gives), or between.
        """
        value, low, high, p = (float(measured.get(name, float("nan"))) for name in ("value", "low", "high", "p"))
        if self.rule == "more than chance":
            if value != value or p != p:
                return NOT_MEASURED
            return REPLICATES if p <= LEVEL else DOES_NOT if p >= 0.5 else CANNOT_TELL
        if value != value or low != low or high != high:
            return NOT_MEASURED
        sign = -1 if self.rule == "below" else 1
        low, high = sorted((sign * low, sign * high))
        if low > sign * self.threshold:
            return REPLICATES
        return DOES_NOT if high <= sign * self.threshold else CANNOT_TELL


@cache
def claims(chapter: str) -> tuple[Claim, ...]:
    """The claims that a chapter tests."""
    return read_claims(files("bertlook").joinpath("claims.yaml").read_text(encoding="utf-8"), chapter)


def read_claims(page: str, chapter: str) -> tuple[Claim, ...]:
    """A chapter's claims on a page of YAML; the head of ``claims.yaml`` says how it is written."""
    theirs = published() | {
        "layers": {name: _Layers(values) for name, values in layer_means().items()},
        "table1": {row["relation"]: row for row in published()["table1"]},
        "table2": {
            name: dict(zip(published()["table2"]["columns"], values, strict=True))
            for name, values in published()["table2"].items()
        },
    }
    found = []
    for id, entry in yaml.safe_load(page)[chapter].items():
        (rule,) = {"above", "below", "more than chance"} & set(entry)
        common = {name: entry[name] for name in ("section", "text", "unit", "evidence") if name in entry}
        paper = entry["paper"].format(**theirs)
        found.append(Claim(id, paper=paper, rule=rule, threshold=float(entry[rule]), **common))
    return tuple(found)


class _Layers(list[float]):
    """The paper's layer means in a format string: ``{layers[sep][6-10]:share}`` is the mean over layers 6 to 10."""

    def __getitem__(self, layers: Any) -> Any:
        first, last = map(int, layers.split("-"))
        return _Mean(sum(list(self)[first - 1 : last]) / (last - first + 1))


class _Mean(float):
    def __format__(self, unit: str) -> str:
        return number(float(self), unit)


def judge(claims: Sequence[Claim], quantities: pd.DataFrame, **names: str) -> pd.DataFrame:
    """Hold claims against a table of ``quantity, value, low, high, n`` and, for chance, ``p``.

    A claim whose quantity is not in the table, or NaN, is not measured here. ``names`` are filled into the texts.

    Returns
    -------
    DataFrame
        ``id, section, claim, paper, here, ci_low, ci_high, n, rule, unit, verdict, evidence``, a row a claim.
    """
    found = quantities.set_index("quantity").to_dict("index")
    rows = []
    for claim in claims:
        measured = found.get(claim.id, {})
        row = {"id": claim.id, "section": claim.section, "claim": claim.text.format(**names), "paper": claim.paper}
        row |= {"here": measured.get("value"), "ci_low": measured.get("low"), "ci_high": measured.get("high")}
        row |= {"n": measured.get("n", ""), "rule": claim.rule_text(), "unit": claim.unit}
        rows.append(row | {"verdict": claim.verdict(measured), "evidence": claim.evidence})
    return pd.DataFrame(rows).astype({name: float for name in ("here", "ci_low", "ci_high")})


def number(value: float, unit: str = "number") -> str:
    """A value as people read it: ``0.382, "share"`` → ``"38.2%"``."""
    if value != value:
        return "–"
    match unit:
        case "share":
            return f"{100 * value:.1f}%"
        case "points":
            return f"{100 * value:+.1f} points" if value else "0 points"
        case "nats":
            return f"{value:.2f} nats"
        case "count":
            return f"{value:,.0f}"
        case "ratio":
            return f"{value:.2f}×"
        case _:
            return f"{value:.3g}"


def listed(items: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
