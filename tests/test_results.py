import json
import os

import pandas as pd
import pytest

from bertlook import BertlookError, results
from bertlook.corpora import Corpus
from bertlook.results import CANNOT_TELL, DOES_NOT, REPLICATES, Claim, Results, claims_table, number


def claim(low, high, threshold=0.5, below=False, **more):
    return Claim("c", "3.2", "a claim", "0.6", (low + high) / 2, low, high, "9 segments", threshold, below, **more)


@pytest.mark.parametrize(
    ("low", "high", "below", "verdict"),
    [
        (0.51, 0.7, False, REPLICATES),
        (0.3, 0.49, False, DOES_NOT),
        (0.3, 0.5, False, DOES_NOT),
        (0.4, 0.6, False, CANNOT_TELL),
        (0.5, 0.6, False, CANNOT_TELL),
        (0.3, 0.49, True, REPLICATES),
        (0.51, 0.7, True, DOES_NOT),
        (0.4, 0.6, True, CANNOT_TELL),
        (float("nan"), float("nan"), False, CANNOT_TELL),
    ],
)
def test_the_verdict_is_where_the_interval_lies(low, high, below, verdict):
    assert claim(low, high, below=below).verdict == verdict


def test_numbers_read_as_people_write_them():
    values = [
        (0.3817, "share"),
        (2.104, "nats"),
        (-0.061, "points"),
        (12, "count"),
        (44.7, "ratio"),
        (float("nan"), "share"),
    ]
    assert [number(*v) for v in values] == ["38.2%", "2.10 nats", "-6.1 points", "12", "44.70×", "–"]


def test_claims_are_escaped(tmp_path):
    hostile = Claim("c", "3.2", "<script>alert(1)</script>", "<b>", 1, 1, 1, "<i>", 0)
    shown = claims_table(pd.DataFrame([hostile.row()])).data
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "<b>" not in shown and "<i>" not in shown


def test_a_chapter_leaves_tables_claims_and_provenance(tmp_path, encoder):
    output = Results("surface", str(tmp_path), {"seed": 0})
    output.table("heads", pd.DataFrame({"layer": [1], "cls": [1 / 3]}))
    output.claims([claim(0.6, 0.7)])
    output.provenance(encoder, Corpus("text", [], source={"text": "wikipedia"}))
    assert (tmp_path / "surface/heads.csv").read_text() == "layer,cls\n1,0.333333\n"
    assert "replicates" in (tmp_path / "surface/claims.csv").read_text()
    record = json.loads((tmp_path / "surface/provenance.json").read_text())
    assert record["weights_sha256"] == encoder.checksum and record["parameters"] == {"seed": 0}
    assert record["data"][0]["text"] == "wikipedia" and record["versions"]["torch"] and record["date"]


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "heads.csv"
    results.write(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BertlookError, match=r"heads\.csv: cannot be written \(No space left on device\)\. Make room"):
        results.write(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BertlookError, match="cannot be made"):
        Results("surface", str(tmp_path / "file"), {})
