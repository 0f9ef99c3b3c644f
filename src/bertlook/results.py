"""What a chapter leaves behind: tables, claims and provenance, whole or not at all."""

from __future__ import annotations

import html
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML

from bertlook import BertlookError
from bertlook.corpora import Corpus
from bertlook.encoder import Encoder

REPLICATES, DOES_NOT, CANNOT_TELL = "replicates", "does not replicate", "cannot be told"
PACKAGES = ("bertlook", "torch", "transformers", "torchmetrics", "numpy", "pandas", "scikit-learn", "gensim", "spacy")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper as a statement about one number, and what this run says of it.

    Attributes
    ----------
    id, section, claim, paper : str
        A short name, the paper's section, the claim in words, and the paper's own number in words.
    here, low, high : float
        This run's value and its 95% interval.
    n : str
        What it was computed from, for example ``"1,000 segments of 90 articles"``.
    threshold : float
        The claim is that the value lies beyond this number.
    below : bool
        Beyond means below instead of above.
    unit : str
        How the value is written: ``"share"``, ``"nats"``, ``"count"``, ``"points"``, ``"ratio"`` or ``"number"``.
    evidence : str
        Anchor of the figure or table on the chapter's page.
    """

    id: str
    section: str
    claim: str
    paper: str
    here: float
    low: float
    high: float
    n: str
    threshold: float
    below: bool = False
    unit: str = "share"
    evidence: str = ""

    @property
    def verdict(self) -> str:
        """By the rule of the method page: the interval lies beyond the threshold, short of it, or on both sides."""
        sign = -1 if self.below else 1
        low, high = sorted((sign * self.low, sign * self.high))
        if low > sign * self.threshold:
            return REPLICATES
        return DOES_NOT if high <= sign * self.threshold else CANNOT_TELL

    @property
    def rule(self) -> str:
        return f"{'below' if self.below else 'above'} {number(self.threshold, self.unit)}"

    def row(self) -> dict[str, Any]:
        """As ``claims.csv`` holds it."""
        return {
            "id": self.id,
            "section": self.section,
            "claim": self.claim,
            "paper": self.paper,
            "here": self.here,
            "ci_low": self.low,
            "ci_high": self.high,
            "n": self.n,
            "rule": self.rule,
            "unit": self.unit,
            "verdict": self.verdict,
            "evidence": self.evidence,
        }


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
            return f"{value:.0f}"
        case "ratio":
            return f"{value:.2f}×"
        case _:
            return f"{value:.3g}"


class Results:
    """The results folder of one chapter.

    Parameters
    ----------
    chapter : str
    folder : str
        Where the chapters' results lie; this one's go to ``folder/chapter``.
    parameters : dict
        As the notebook got them, for the provenance.

    Raises
    ------
    BertlookError
        The folder cannot be written.
    """

    def __init__(self, chapter: str, folder: str, parameters: dict[str, Any]) -> None:
        self.chapter, self.parameters = chapter, parameters
        self.folder = Path(folder) / chapter
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BertlookError(
                f"{self.folder}: cannot be made ({error.strerror}). Set results to a folder."
            ) from error

    def table(self, name: str, frame: pd.DataFrame, index: bool = False) -> None:
        """Write ``name.csv``, six significant digits."""
        write(self.folder / f"{name}.csv", frame.to_csv(index=index, float_format="%.6g", lineterminator="\n"))

    def claims(self, claims: Sequence[Claim]) -> HTML:
        """Write ``claims.csv`` and show it: claim, paper, here, verdict."""
        frame = pd.DataFrame([claim.row() for claim in claims])
        self.table("claims", frame)
        return claims_table(frame)

    def provenance(self, encoder: Encoder, *corpora: Corpus[Any]) -> HTML:
        """Write ``provenance.json`` and show it: model, data, what was left out, parameters, versions, date."""
        record = {
            "chapter": self.chapter,
            **encoder.provenance(),
            "data": [corpus.source | {"left_out": dict(sorted(corpus.left_out.items()))} for corpus in corpora],
            "parameters": self.parameters,
            "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        text = json.dumps(record, indent=1, ensure_ascii=False, default=str)
        write(self.folder / "provenance.json", text + "\n")
        shown = f"<pre class='bertlook-provenance' tabindex='0'>{html.escape(text)}</pre>"
        return HTML(f"<details class='bertlook-details'><summary>Provenance</summary>{shown}</details>")


def claims_table(frame: pd.DataFrame, page: str = "") -> HTML:
    """Claims as a table for reading; every cell escaped. Evidence is linked on ``page``, this one if empty."""
    marks = {REPLICATES: ("✓", "yes"), DOES_NOT: ("✗", "no"), CANNOT_TELL: ("?", "open")}
    rows = []
    for claim in frame.to_dict("records"):
        mark, css = marks[claim["verdict"]]
        here = number(claim["here"], claim["unit"])
        ends = f"{number(claim['ci_low'], claim['unit'])} to {number(claim['ci_high'], claim['unit'])}"
        cells = [html.escape(str(claim[key])) for key in ("section", "claim", "paper")]
        anchor = str(claim["evidence"])
        link = f" <a href='{html.escape(page)}#{html.escape(anchor)}'>evidence</a>" if anchor not in {"", "nan"} else ""
        rows.append(
            f"<tr id='claim-{html.escape(claim['id'])}'><td>{cells[0]}</td><td>{cells[1]}{link}</td><td>{cells[2]}</td>"
            f"<td><strong>{here}</strong><br><small>{ends}<br>{html.escape(claim['n'])}</small></td>"
            f"<td class='bertlook-{css}'><span aria-hidden='true'>{mark}</span> {claim['verdict']}"
            f"<br><small>if {html.escape(claim['rule'])}</small></td></tr>"
        )
    head = "".join(f"<th scope='col'>{name}</th>" for name in ("§", "Claim", "Paper", "Here, 95% interval", "Verdict"))
    return HTML(
        "<div class='bertlook-scroll' tabindex='0' role='group' aria-label='Claims'>"
        f"<table class='bertlook-claims'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def reading_table(columns: Mapping[str, Sequence[object]], label: str) -> HTML:
    """Columns as a table for reading; every cell is escaped, but those that are ``HTML`` already."""

    def cell(value: object) -> str:
        return value.data if isinstance(value, HTML) else html.escape(str(value))

    head = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in columns)
    rows = [
        "<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>"
        for row in zip(*columns.values(), strict=True)
    ]
    return HTML(
        f"<div class='bertlook-scroll' tabindex='0' role='group' aria-label='{html.escape(label, quote=True)}'>"
        f"<table class='bertlook-table'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def head_link(layer: int, head: int, page: str = "explorer.html") -> HTML:
    """``4-10``, linked to that head in the explorer; layers and heads from 1."""
    return HTML(f"<a href='{html.escape(page)}#{layer}-{head}'>{layer}-{head}</a>")


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all: aside first, then renamed.

    Raises
    ------
    BertlookError
        The disk is full or the folder cannot be written; the old file is left as it was.
    """
    aside = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as stream:
            aside = stream.name
            stream.write(text)
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except OSError as error:
        if aside:
            Path(aside).unlink(missing_ok=True)
        raise BertlookError(
            f"{path}: cannot be written ({error.strerror}). Make room or choose another folder."
        ) from error
