"""What a chapter leaves behind and shows: tables, pictures, verdicts, words for its prose, and provenance."""

from __future__ import annotations

import html
import io
import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML, Markdown, display
from matplotlib.figure import Figure

from bertlook import BertlookError
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, claims, judge, listed, number

if TYPE_CHECKING:
    from bertlook.corpora import Corpus
    from bertlook.encoder import Encoder

#: Verdict → its mark, and the style of its cell.
VERDICTS = {REPLICATES: ("✓", "yes"), DOES_NOT: ("✗", "no"), CANNOT_TELL: ("?", "open"), NOT_MEASURED: ("–", "none")}
PACKAGES = ("bertlook", "torch", "transformers", "torchmetrics", "numpy", "pandas", "scikit-learn", "gensim", "spacy")


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


def escaped(text: str) -> str:
    """Text that Markdown shows as it stands, whatever it is: words of a corpus or vocabulary never become markup.

    What can mean nothing stays as it is, so that ``1,000`` and ``38.2%`` read well in a notebook's source too.
    """
    return re.sub(r"(?!,|;|(?<=\d)%|(?<=\d)\.\d)[!-/:-@\[-`{-~]", r"\\\g<0>", " ".join(str(text).split()))


@dataclass
class Picture:
    """A figure with its words; in a notebook it shows itself as vector graphics that follow the page's theme.

    Attributes
    ----------
    figure : Figure
    alt : str
        What one sees, with numbers.
    name : str
        Becomes the anchor ``fig-name``.
    caption : str
        Plain text below the figure.
    data : sequence of str
        Result files it was drawn from, as ``"surface/heads.csv"``.
    tooltips : mapping of str to str
        ``gid`` of an artist → plain text shown when it is pointed at.
    """

    figure: Figure
    alt: str
    name: str
    caption: str = ""
    data: Sequence[str] = ()
    tooltips: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plt.close(self.figure)  # so that Jupyter does not show it twice

    def __repr__(self) -> str:
        return f"Figure {self.name}: {self.alt}"

    def _repr_html_(self) -> str:
        label = html.escape(self.alt, quote=True)
        size = f"max-width:{self.figure.get_figwidth() * 120:.0f}px"  # a quarter larger than printed
        svg = self._svg().replace("<svg", f'<svg role="img" aria-label="{label}" style="{size}"', 1)
        links = ", ".join(f'<a href="../results/{html.escape(file)}">{html.escape(file)}</a>' for file in self.data)
        below = html.escape(self.caption) + (f" <span class='bertlook-data'>Data: {links}.</span>" if links else "")
        return (
            f"<figure class='bertlook-figure' id='fig-{self.name}'>"
            f"<div class='bertlook-scroll' tabindex='0' role='group' aria-label='Figure'>{svg}</div>"
            f"<figcaption>{below}</figcaption></figure>"
        )

    def _svg(self) -> str:
        """The drawing: ink in the colour of the page's text, identifiers unique on the page, links in place."""
        buffer = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")

        def tag(match: re.Match[str]) -> str:
            """Within tags only: what stands between them is text that somebody wrote."""
            inside = re.sub(r"#000000\b", "currentColor", match[0])
            inside = inside.replace('<text style="', '<text style="fill: currentColor; ')
            inside = re.sub(r'\bid="', f'id="{self.name}-', inside)
            inside = re.sub(r'(url\(|href=")#', rf"\1#{self.name}-", inside)
            # Links are no stops for the tab key: there are hundreds.
            return re.sub(r'<a (xlink:href="[^"]*") target="_blank">', r'<a tabindex="-1" \1>', inside)

        svg = re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.S)
        svg = re.sub(r"(<style.*?</style>)|<[^>]*>", lambda m: m[0] if m[1] else tag(m), svg, flags=re.S)
        for gid, text in self.tooltips.items():
            opening = f'<g id="{self.name}-{gid}">'
            svg = svg.replace(opening, f"{opening}<title>{html.escape(text)}</title>", 1)
        return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"|height="[\d.]+pt" width="[\d.]+pt"', "", svg, count=1)


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
    """Columns as a table for reading, numbers as people write them; cells are escaped, but ``HTML`` is not."""
    cells = zip(*columns.values(), strict=True)
    rows = ["<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in cells]
    return _table("bertlook-table", tuple(columns), rows, label)


def _cell(value: object) -> str:
    if isinstance(value, HTML):
        return value.data
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{value:,}"
    return html.escape(number(float(value)) if isinstance(value, float | np.floating) else str(value))


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
        self.chapter, self.folder = chapter, Path(str(self.parameters.pop("results"))) / chapter
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

    def claims(self, quantities: pd.DataFrame, **names: str) -> Verdicts:
        """Judge the chapter's claims by its quantities; writes ``quantities.csv`` and ``claims.csv``."""
        verdicts = Verdicts(judge(claims(self.chapter), quantities, **names))
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
