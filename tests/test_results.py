import json
import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from bertlook import BertlookError, results
from bertlook.claims import (
    CANNOT_TELL,
    DOES_NOT,
    NOT_MEASURED,
    REPLICATES,
    Claim,
    claims,
    judge,
    layer_means,
    listed,
    number,
    published,
    same_depth,
)
from bertlook.corpora import Corpus
from bertlook.results import Results, Verdicts, claims_table, escaped, plain_columns, reading_table, two_lines

NAN = float("nan")
COLUMNS = ["quantity", "value", "low", "high", "n"]
CLAIM = Claim("c", "3.2", "a claim about {sink}", "0.6", threshold=0.5)


def measured(low, high, **more):
    return {"quantity": "c", "value": (low + high) / 2, "low": low, "high": high, "n": "9 segments"} | more


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
        (NAN, NAN, False, NOT_MEASURED),
        (0.51, NAN, False, NOT_MEASURED),
    ],
)
def test_the_verdict_is_where_the_interval_lies(low, high, below, verdict):
    claim = Claim("c", "3.2", "a claim", "0.6", "below" if below else "above", 0.5)
    assert claim.verdict(measured(low, high)) == verdict


@pytest.mark.parametrize(
    ("p", "verdict"),
    [
        (0.001, REPLICATES),
        (0.025, REPLICATES),
        (0.026, CANNOT_TELL),
        (0.49, CANNOT_TELL),
        (0.5, DOES_NOT),
        (NAN, NOT_MEASURED),
    ],
)
def test_a_claim_against_chance_is_judged_by_its_permutations_at_a_fixed_level(p, verdict):
    """Whatever the value is: no threshold could be set after seeing it."""
    claim = Claim("c", "6", "a claim", "seen", "more than chance", threshold=0.9)
    assert claim.verdict(measured(0.1, 0.2, p=p)) == verdict
    assert claim.verdict(measured(NAN, NAN, p=p)) == NOT_MEASURED
    assert "chance" in claim.rule_text() and "0.025" in claim.rule_text()


def test_a_claim_without_its_quantity_is_not_measured_here():
    verdicts = Verdicts(judge([CLAIM], pd.DataFrame(columns=COLUMNS), sink="[SEP]"))
    assert dict(verdicts) == {"c": NOT_MEASURED}
    shown = verdicts._repr_html_()
    assert "not measured here" in shown and "replicate" not in shown and " to –" not in shown
    assert verdicts.summary() == "0 of 1 replicate, and 1 could not be measured here"


def test_scorecard_claims_table_and_prose_read_the_same_claim(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "claims", lambda chapter: [CLAIM])
    output = Results("surface", {"results": str(tmp_path)})
    verdicts = output.claims(pd.DataFrame([measured(0.6, 0.7)]), sink="[SEP]")
    (row,) = pd.read_csv(tmp_path / "surface/claims.csv").to_dict("records")
    assert verdicts["c"] == row["verdict"] == REPLICATES
    assert row["claim"] == "a claim about [SEP]" and row["here"] == pytest.approx(0.65) and row["rule"] == "above 50.0%"
    assert "65.0%" in verdicts._repr_html_() and "Paper: 0.6" in verdicts._repr_html_()
    assert verdicts.summary() == "1 of 1 replicates"
    assert pd.read_csv(tmp_path / "surface/quantities.csv")["quantity"].tolist() == ["c"]


def test_the_scorecard_holds_all_chapters_claims_by_section(tmp_path, monkeypatch):
    for chapter, section in (("surface", "3.2"), ("clustering", "6"), ("positional", "3.1"), ("scorecard", "9")):
        claim = Claim(f"c-{chapter}", section, "a claim", "0.6", threshold=0.5, evidence="fig-x")
        monkeypatch.setattr(results, "claims", lambda chapter, claim=claim: [claim])
        found = pd.DataFrame(
            [measured(0.6, 0.7, quantity=claim.id)] if chapter != "clustering" else [],
            columns=["quantity", "value", "low", "high", "n"],
        )
        Results(chapter, {"results": str(tmp_path)}).claims(found)
    found = results.scorecard(str(tmp_path))
    assert found["section"].tolist() == ["3.1", "3.2", "6"]
    verdicts = Verdicts(found)
    assert verdicts["c-surface"] == REPLICATES and verdicts["c-clustering"] == NOT_MEASURED
    shown = verdicts._repr_html_()
    assert "<h3>Positional</h3>" in shown and "surface.html#fig-x" in shown and shown.count(NOT_MEASURED) == 1
    with pytest.raises(BertlookError, match="no chapter has left its claims there"):
        results.scorecard(str(tmp_path / "nothing"))


HOSTILE = (
    "<script>x</script> [a](b) {cite}`c` *d* _e_ $f$ www.x.org | # ~~g~~ <http://y> &lt; 1. h\nnew: ![i](j) \\ 38.2%"
)


def test_no_word_becomes_markup():
    """As the book reads Markdown, and more: nothing but a paragraph of text comes out."""
    text = escaped(HOSTILE)
    tokens = MarkdownIt("gfm-like").parse(f"In {text} it is.")
    kinds = {child.type for token in tokens for child in token.children or []} | {token.type for token in tokens}
    assert kinds == {"paragraph_open", "paragraph_close", "inline", "text"}
    (inline,) = (token for token in tokens if token.type == "inline")
    assert "".join(child.content for child in inline.children) == f"In {' '.join(HOSTILE.split())} it is."
    assert escaped("38.2% of 1,000; n") == "38.2% of 1,000; n"


def test_glued_words_lie_in_the_notebook(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(results, "display", lambda data, raw, metadata: seen.append((data, metadata)))
    Results("surface", {"results": str(tmp_path)}).glue({"sink": "[SEP]", "share": "38.2%"})
    ((data, metadata),) = seen
    assert metadata["bertlook"]["glue"] == {"sink": "[SEP]", "share": "38.2%"}
    assert data["text/plain"] == "sink: [SEP]\nshare: 38.2%"


def test_the_opening_says_what_is_read_and_what_is_left_out(tmp_path):
    encoder = SimpleNamespace(name="a_model", layers=2, heads=3)
    corpus = Corpus("my [text]", [1, 2], source={"articles": 1, "wordpieces": 1234, "sha256": "x"})
    corpus.left_out["lines in *bold*"] = 4
    said = Results("surface", {"results": str(tmp_path)}).opening(encoder, training_segments=corpus).data
    assert "**a\\_model**, with 2 layers of 3 heads, 6 in all" in said
    assert "2 training segments, 1 articles and 1,234 wordpieces; left out: 4 lines in \\*bold\\*." in said


def test_a_list_reads_as_a_list():
    assert [listed(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_every_claim_of_the_paper_is_whole():
    """Each has a rule, a unit that is known, and the paper's own number filled in from the one place it stands in."""
    found = [claim for chapter in CHAPTERS for claim in claims(chapter)]
    assert len({claim.id for claim in found}) == len(found) == 34
    for claim in found:
        assert claim.rule in {"above", "below", "more than chance"} and "{" not in claim.paper and claim.evidence
        assert claim.unit in {"share", "points", "nats", "ratio", "number"}
        claim.text.format(sink="[SEP]", cls="[CLS]")
    (half,) = (claim for claim in found if claim.id == "sink-half")
    middle = layer_means()["sep"][5:10]
    assert half.paper == f"{number(sum(middle) / 5, 'share')} to [SEP]" and half.threshold == 0.5
    (dobj,) = (claim for claim in found if claim.id == "head-dobj")
    (row,) = (row for row in published()["table1"] if row["relation"] == "dobj")
    assert dobj.paper == f"{row['accuracy']}% against {row['baseline']}%, head {row['head']}"


CHAPTERS = ("positional", "surface", "sinks", "syntax", "coreference", "probing", "clustering")


def test_layers_are_matched_by_relative_depth():
    assert (
        same_depth(12, 6, 10) == [5, 6, 7, 8, 9]
        and same_depth(6, 6, 10) == [2, 3, 4]
        and same_depth(24, 12, 12) == [22, 23]
    )


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
    hostile = Claim("c", "3.2", "<script>alert(1)</script>", "<b>")
    shown = claims_table(judge([hostile], pd.DataFrame([measured(1, 1, n="<i>")]))).data
    assert "<script>" not in shown and "&lt;script&gt;" in shown and "<b>" not in shown and "<i>" not in shown


def test_a_chapter_leaves_tables_claims_and_provenance(tmp_path, encoder, monkeypatch):
    monkeypatch.setattr(results, "claims", lambda chapter: [CLAIM])
    given = {"results": str(tmp_path), "seed": 0, "_hidden": 1, "In": [], "corpus": object(), "BLUE": "#00f"}
    output = Results("surface", given)
    output.table("heads", pd.DataFrame({"layer": [1], "cls": [1 / 3]}))
    output.claims(pd.DataFrame([measured(0.6, 0.7)]), sink="[SEP]")
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
        Results("surface", {"results": str(tmp_path / "file")})


def test_plain_columns_write_each_kind_of_number_as_people_read_it():
    table = pd.DataFrame({"layer": [2], "head": [11], "n": [1200], "accuracy": [0.5], "relations": ["dobj <b>"]})
    names = {"head": "Head", "n": "Words", "accuracy": "Right", "relations": "Relations"}
    columns = plain_columns(table, names)
    assert [columns[name] for name in ("Words", "Right", "Relations")] == [["1,200"], ["50.0%"], ["dobj <b>"]]
    shown = reading_table(columns, "heads").data
    assert "<td><a href='explorer.html#2-11'>2-11</a></td>" in shown and "dobj &lt;b&gt;" in shown
    assert plain_columns(table, {"accuracy": "Index"}, "number") == {"Index": ["0.5"]}


def test_a_cell_of_two_lines_is_escaped_once():
    assert two_lines("<i>", "a & b").data == "&lt;i&gt;<br><small>a &amp; b</small>"
    assert two_lines(two_lines("x", "y"), "z").data == "x<br><small>y</small><br><small>z</small>"


def test_numbers_in_a_table_are_written_as_people_write_them():
    shown = reading_table(
        {"head": ["1-2"], "n": [np.int64(12345)], "x": [np.float32(0.527)], "y": [float("nan")]}, "numbers"
    ).data
    assert "<td>1-2</td><td>12,345</td><td>0.527</td><td>–</td>" in shown
