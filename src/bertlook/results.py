"""What a chapter leaves behind: tables, claims with their verdicts, words for its prose, and provenance."""

from __future__ import annotations

import html
import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from IPython.display import HTML, Markdown, display

from bertlook import BertlookError

if TYPE_CHECKING:
    from bertlook.corpora import Corpus
    from bertlook.encoder import Encoder

REPLICATES, DOES_NOT, CANNOT_TELL = "replicates", "does not replicate", "cannot be told"
NOT_MEASURED = "not measured here"
#: Verdict → its mark, and the style of its cell.
VERDICTS = {REPLICATES: ("✓", "yes"), DOES_NOT: ("✗", "no"), CANNOT_TELL: ("?", "open"), NOT_MEASURED: ("–", "none")}
#: One-sided level of a permutation test: what the upper end of a 95% interval leaves above it.
LEVEL = 0.025
PACKAGES = ("bertlook", "torch", "transformers", "torchmetrics", "numpy", "pandas", "scikit-learn", "gensim", "spacy")


# ------------------------------------------------------------------------------------------ the paper's own numbers


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


# --------------------------------------------------------------------------------------------------------- claims


@dataclass(frozen=True)
class Claim:
    """A claim of the paper as a statement about one number; it stands beside the measure that gives the number.

    Attributes
    ----------
    id : str
        Unique in the book, and the name of the quantity that it is about.
    section, text, paper : str
        The paper's section, the claim in words, and the paper's own number in words. ``{sink}`` and the like are
        filled in when the claim is judged.
    threshold : float
        The claim is that the value lies above this number.
    below : bool
        Below instead of above.
    chance : bool
        The claim is that the value is more than chance, as a permutation test says; ``threshold`` is not used.
    unit : str
        As in :func:`number`.
    evidence : str
        Anchor of the figure or table on the chapter's page.
    """

    id: str
    section: str
    text: str
    paper: str
    threshold: float = 0.0
    below: bool = False
    chance: bool = False
    unit: str = "share"
    evidence: str = ""

    @property
    def rule(self) -> str:
        if self.chance:
            return f"more than chance (p ≤ {LEVEL})"
        return f"{'below' if self.below else 'above'} {number(self.threshold, self.unit)}"

    def verdict(self, measured: Mapping[str, Any]) -> str:
        """By the rule of the method page, from ``value, low, high`` and, for chance, ``p``; NaN is not measured.

        The interval lies beyond the threshold, short of it, or on both sides; p is at most ``LEVEL``, at least one
        half (the value is no more than chance gives), or between.
        """
        p, value, low, high = (float(measured.get(name, float("nan"))) for name in ("p", "value", "low", "high"))
        if self.chance:
            if value != value or p != p:
                return NOT_MEASURED
            return REPLICATES if p <= LEVEL else DOES_NOT if p >= 0.5 else CANNOT_TELL
        if value != value or low != low or high != high:
            return NOT_MEASURED
        sign = -1 if self.below else 1
        low, high = sorted((sign * low, sign * high))
        if low > sign * self.threshold:
            return REPLICATES
        return DOES_NOT if high <= sign * self.threshold else CANNOT_TELL


class Verdicts(Mapping[str, str]):
    """Claims as judged: id → verdict, shown as a table. ``frame`` is what ``claims.csv`` holds."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._verdicts = dict(zip(frame["id"], frame["verdict"], strict=True))

    def __getitem__(self, claim: str) -> str:
        return self._verdicts[claim]

    def __iter__(self) -> Iterator[str]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def summary(self) -> str:
        """How many replicate, as a sentence part: ``"3 of 7 replicate"``."""
        verdicts = list(self.values())
        count, missing = verdicts.count(REPLICATES), verdicts.count(NOT_MEASURED)
        tail = f", and {missing} could not be measured here" if missing else ""
        return f"{count} of {len(self)} replicate{'s' if count == 1 else ''}{tail}"

    def _repr_html_(self) -> str:
        """A table a chapter, where the claims are of several, its evidence linked on that chapter's page."""
        if "chapter" not in self.frame:
            return claims_table(self.frame).data
        parts = self.frame.groupby("chapter", sort=False)
        tables = [
            f"<h3>{html.escape(name).capitalize()}</h3>{claims_table(part, f'{name}.html').data}"
            for name, part in parts
        ]
        return f"<div class='bertlook-scorecard'>{''.join(tables)}</div>"


def judge(claims: Sequence[Claim], quantities: pd.DataFrame, **names: str) -> Verdicts:
    """Hold claims against a table of ``quantity, value, low, high, n`` and, for chance, ``p``.

    A claim whose quantity is not in the table, or NaN, is not measured here. ``names`` are filled into the texts.
    """
    found = quantities.set_index("quantity").to_dict("index")
    rows = []
    for claim in claims:
        measured = found.get(claim.id, {})
        row = {"id": claim.id, "section": claim.section}
        row |= {"claim": claim.text.format(**names), "paper": claim.paper.format(**names)}
        row |= {"here": measured.get("value"), "ci_low": measured.get("low"), "ci_high": measured.get("high")}
        row |= {"n": measured.get("n", ""), "rule": claim.rule, "unit": claim.unit}
        rows.append(row | {"verdict": claim.verdict(measured), "evidence": claim.evidence})
    frame = pd.DataFrame(rows)
    return Verdicts(frame.astype({name: float for name in ("here", "ci_low", "ci_high")}))


# --------------------------------------------------------------------------------------------- for people to read


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


def escaped(text: str) -> str:
    """Text that Markdown shows as it stands, whatever it is: words of a corpus or vocabulary never become markup."""
    line = " ".join(str(text).split())
    return re.sub(r"(?![%,;()]|(?<=\d)\.\d)[!-/:-@\[-`{-~]", lambda found: f"&#{ord(found[0])};", line)


def claims_table(frame: pd.DataFrame, page: str = "") -> HTML:
    """Claims as a table for reading; every cell escaped. Evidence is linked on ``page``, this one if empty."""
    rows = []
    for claim in frame.fillna({"n": "", "evidence": ""}).to_dict("records"):
        mark, style = VERDICTS[claim["verdict"]]
        text = {name: html.escape(str(value)) for name, value in claim.items()}
        here = [number(claim[name], claim["unit"]) for name in ("here", "ci_low", "ci_high")]
        interval = (
            "" if claim["verdict"] == NOT_MEASURED else f"<br><small>{here[1]} to {here[2]}<br>{text['n']}</small>"
        )
        link = f" <a href='{html.escape(page)}#{text['evidence']}'>evidence</a>" if claim["evidence"] else ""
        rows.append(
            f"<tr id='claim-{text['id']}'><td>{text['claim']} (§{text['section']}){link}"
            f"<br><small>Paper: {text['paper']}</small></td><td><strong>{here[0]}</strong>{interval}</td>"
            f"<td class='bertlook-{style}'><span aria-hidden='true'>{mark}</span> {text['verdict']}"
            f"<br><small>if {text['rule']}</small></td></tr>"
        )
    return _table("bertlook-claims", ("Claim", "Here, 95% interval", "Verdict"), rows, "Claims")


def scorecard(folder: str) -> pd.DataFrame:
    """All chapters' claims in a results folder, by section of the paper: as in ``claims.csv``, and their ``chapter``.

    Raises
    ------
    BertlookError
        No chapter has left its claims there.
    """
    found = [file for file in sorted(Path(folder).glob("*/claims.csv")) if file.parent.name != "scorecard"]
    if not found:
        raise BertlookError(f"{folder}: no chapter has left its claims there. Run one, or set results to their folder.")
    tables = [pd.read_csv(file, dtype={"section": str}).assign(chapter=file.parent.name) for file in found]
    return pd.concat(tables).sort_values("section", kind="stable", ignore_index=True)


def reading_table(columns: Mapping[str, Sequence[object]], label: str) -> HTML:
    """Columns as a table for reading; every cell is escaped, but those that are ``HTML`` already."""
    cells = zip(*columns.values(), strict=True)
    rows = ["<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in cells]
    return _table("bertlook-table", tuple(columns), rows, label)


def _cell(value: object) -> str:
    return value.data if isinstance(value, HTML) else html.escape(str(value))


def _table(style: str, names: Sequence[str], rows: Sequence[str], label: str) -> HTML:
    head = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in names)
    return HTML(
        f"<div class='bertlook-scroll' tabindex='0' role='group' aria-label='{html.escape(label, quote=True)}'>"
        f"<table class='{style}'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def head_link(layer: int, head: int, page: str = "explorer.html") -> HTML:
    """``4-10``, linked to that head in the explorer; layers and heads from 1."""
    return HTML(f"<a href='{html.escape(page)}#{layer}-{head}'>{layer}-{head}</a>")


def plain_columns(table: pd.DataFrame, names: Mapping[str, str], unit: str = "share") -> dict[str, list[object]]:
    """Columns of a table for :func:`reading_table`, renamed: heads as links, floats in ``unit``, integers as counts."""
    columns: dict[str, list[object]] = {}
    for name, label in names.items():
        written = {"f": unit, "i": "count"}.get(table[name].dtype.kind)
        if name == "head":
            columns[label] = [head_link(*place) for place in zip(table["layer"], table["head"], strict=True)]
        else:
            columns[label] = [number(value, written) if written else value for value in table[name]]
    return columns


def two_lines(first: object, second: str) -> HTML:
    """A cell with a small second line; escaped, but what is ``HTML`` already."""
    return HTML(f"{_cell(first)}<br><small>{html.escape(second)}</small>")


# ----------------------------------------------------------------------------------------------- a chapter's output


class Results:
    """The results folder of one chapter, and what of it the page shows.

    Parameters
    ----------
    chapter : str
    variables : mapping
        The notebook's ``globals()`` once parameters and imports have run: its plain values are the parameters, for
        the provenance; ``results`` is the folder where the chapters' results lie.

    Raises
    ------
    BertlookError
        The folder cannot be written.
    """

    def __init__(self, chapter: str, variables: Mapping[str, Any]) -> None:
        plain = {k: v for k, v in variables.items() if isinstance(v, str | int | float | bool) and k.islower()}
        self.parameters = {name: value for name, value in plain.items() if not name.startswith("_")}
        self.chapter, self.folder = chapter, Path(self.parameters.pop("results")) / chapter
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BertlookError(
                f"{self.folder}: cannot be made ({error.strerror}). Set results to a folder."
            ) from error

    def opening(self, encoder: Encoder, **corpora: Corpus[Any]) -> Markdown:
        """What the chapter reads: model, data and what was left out; a corpus' keyword says what its items are."""
        parts = [
            f"The model is **{escaped(encoder.name)}**, with {encoder.layers} layers of {encoder.heads} heads, "
            f"{encoder.layers * encoder.heads} in all."
        ]
        for items, corpus in corpora.items():
            counts = {items.replace("_", " "): len(corpus)} | {
                name: corpus.source[name] for name in ("articles", "words", "wordpieces") if name in corpus.source
            }
            sizes = listed([f"{n:,} {name}" for name, n in counts.items()])
            left = escaped(corpus.left_out_text())
            parts.append(f"The data are **{escaped(corpus.name)}**: {sizes}; left out: {left}.")
        return Markdown(" ".join(parts))

    def table(self, name: str, frame: pd.DataFrame, index: bool = False) -> None:
        """Write ``name.csv``, six significant digits."""
        write(self.folder / f"{name}.csv", frame.to_csv(index=index, float_format="%.6g", lineterminator="\n"))

    def claims(self, claims: Sequence[Claim], quantities: pd.DataFrame, **names: str) -> Verdicts:
        """Judge the chapter's claims; writes ``quantities.csv`` and ``claims.csv``. See :func:`judge`."""
        verdicts = judge(claims, quantities, **names)
        self.table("quantities", quantities)
        self.table("claims", verdicts.frame)
        return verdicts

    def glue(self, words: Mapping[str, str]) -> None:
        """Words for the prose: ``{glue:text}`` with a name in a Markdown cell becomes that word, as it stands."""
        text = {name: str(value) for name, value in words.items()}
        data = {"text/plain": "\n".join(f"{name}: {value}" for name, value in text.items())}
        display(data, raw=True, metadata={"bertlook": {"glue": text}})

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
