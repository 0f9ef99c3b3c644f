"""One head as a parser (§4.2): the plain loop a reader of the paper would write, and what must hold of any data."""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlook import BertlookError, statistics, syntax
from bertlook.attention import attend, fit, measure, to_words
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES
from bertlook.corpora import Corpus
from bertlook.corpora.treebank import Sentence, treebank
from bertlook.syntax import HeadParser
from looking import judged

needs_gum = pytest.mark.skipif("BERTLOOK_DATA" not in os.environ, reason="BERTLOOK_DATA is not set: no GUM")


def sentence(words, heads, relations, document="d", punct=None):
    words = tuple(words.split())
    return Sentence(
        words, tuple(heads), tuple(relations.split()), document, ("",) * len(words), punct or (False,) * len(words)
    )


PLAN = sentence("She read the company 's plan", [2, 0, 6, 6, 4, 2], "nsubj root det poss possessive dobj")
ENDS = sentence("Whose ? The neighbour 's", [0, 1, 4, 1, 4], "root punct det dep possessive")
BROKEN = sentence("This plan is the company", [2, 5, 5, 5, 0], "det nsubj cop det poss")  # poss is the last word


def corpus(*sentences):
    return Corpus("by hand", list(sentences))


def scored(encoder, sentences):
    kept, segments = fit(encoder, sentences)
    parser = HeadParser(encoder.layers, encoder.heads, kept.items)
    measure(encoder, segments, parser, progress=None)
    return parser, kept, segments


def plain(words, own):
    """Of each scored word in one map [word, word]: word, relation, offset, right forward, right back."""
    n = len(own.words)
    for i in range(n):
        if own.heads[i] == 0 or own.punct[i]:
            continue
        place = i
        if own.relations[i] == "poss" and i + 1 < n and own.words[i + 1] in ("'s", "’s", "'", "’"):
            place = i + 1
        gold = own.heads[i] - 1
        others = [j for j in range(n) if j != place]
        forward = max(others, key=lambda j: (float(words[place, j]), -j))
        back = max(others, key=lambda j: (float(words[j, place]), -j))
        yield i, own.relations[i], gold - place, forward == gold, back == gold


def plain_words(attention, numbers):
    """Between words from between wordpieces [query, key]: sum over a word's pieces as keys, mean as queries."""
    n = max(numbers) + 1
    pieces = [[t for t, w in enumerate(numbers) if w == k] for k in range(n)]
    result = torch.zeros(n, n, dtype=attention.dtype)
    for i in range(n):
        for j in range(n):
            result[i, j] = sum(sum(attention[q, k] for k in pieces[j]) for q in pieces[i]) / len(pieces[i])
    return result


@needs_gum
def test_every_head_is_the_plain_loop_on_real_sentences(encoder):
    """300 sentences of GUM, all heads, both directions, exactly; possessives among them."""
    parser, kept, segments = scored(encoder, treebank("gum", "dev", limit=310))
    assert len(kept) >= 300
    expected, about = [], []
    for number, (own, segment) in enumerate(zip(kept, segments, strict=True)):
        ((attention, batch),) = attend(encoder, [segment], progress=None)
        words = to_words(attention, batch.words)[:, 0].numpy()
        found = [[list(plain(words[l, h], own)) for h in range(encoder.heads)] for l in range(encoder.layers)]
        for k, (i, relation, offset, *_) in enumerate(found[0][0]):
            about.append((number, i, relation, offset))
            expected.append(
                [[[found[l][h][k][d] for h in range(encoder.heads)] for l in range(encoder.layers)] for d in (3, 4)]
            )
    words = parser.words()
    assert list(words[["sentence", "word", "relation", "offset"]].itertuples(index=False, name=None)) == about
    assert (words["relation"] == "poss").sum() > 20
    # Padding changes the order of float32 sums, so two words that a head likes equally may change places.
    differ = (parser.outcomes() != torch.tensor(expected)).double().mean()
    assert differ < 1e-5

    table = syntax.heads_table(parser)
    expected = np.array(expected)
    for relation in ("all", "dobj", "poss", "det"):
        chosen = np.array([relation in ("all", row[2]) for row in about])
        rows = table[table["relation"] == relation]
        assert (rows["n"] == chosen.sum()).all()
        np.testing.assert_allclose(rows["accuracy"], expected[chosen].mean(0).ravel(), atol=2 / chosen.sum())


@needs_gum
def test_rows_between_words_sum_to_one_and_are_the_plain_sums(encoder):
    _, segments = fit(encoder, treebank("gum", "dev", limit=40))
    for attention, batch in attend(encoder, segments, progress=None):
        words = to_words(attention, batch.words)
        sums = words.sum(-1)
        for row, number in enumerate(batch.index):
            n = max(segments[number].words) + 1
            assert (sums[:, row, :, :n] - 1).abs().max() < 1e-5
            assert not sums[:, row, :, n:].any()
        expected = plain_words(attention[2, 0, 3], segments[batch.index[0]].words)
        n = len(expected)
        torch.testing.assert_close(words[2, 0, 3, :n, :n], expected, atol=1e-6, rtol=0)


def test_the_possessive_s_chooses_for_its_noun(encoder):
    assert syntax.stand_ins(PLAN) == [0, 1, 2, 4, 4, 5]
    assert syntax.stand_ins(BROKEN) == [0, 1, 2, 3, 4]
    assert syntax.stand_ins(ENDS) == [0, 1, 2, 3, 4]
    parser, _, segments = scored(encoder, corpus(PLAN, ENDS, BROKEN))
    words = parser.words()
    assert words.loc[words["relation"] == "poss", "offset"].tolist() == [1]  # from 's, not from company
    ((attention, batch),) = attend(encoder, [segments[0]], progress=None)
    maps = to_words(attention, batch.words)[:, 0, :, 4, :6].clone()
    maps[..., 4] = -1
    row = words.index[words["relation"] == "poss"][0]
    assert torch.equal(parser.outcomes()[row, 0], maps.argmax(-1) == 5)


def test_what_cannot_be_scored_is_counted(encoder):
    long = sentence(" ".join(["bridge"] * 200), [0] + [1] * 199, " ".join(["root"] + ["dep"] * 199))
    one = sentence("Yes", [0], "root")
    empty = sentence("He \u00ad left", [3, 3, 0], "nsubj dep root")  # a soft hyphen yields no wordpiece
    kept, segments = fit(encoder, corpus(long, one, empty, PLAN))
    assert kept.left_out == {
        "sentences over 128 wordpieces": 1,
        "sentences of one word": 1,
        "words without a wordpiece": 1,
    }
    assert kept.items == [empty, PLAN]
    parser = HeadParser(encoder.layers, encoder.heads, kept.items)
    measure(encoder, segments, parser, progress=None)
    words = parser.words()
    assert words.loc[words["sentence"] == 0, "word"].tolist() == [0]
    assert parser.outcomes()[0].all()  # only one other word to choose


def test_roots_and_punctuation_are_not_scored(encoder):
    own = sentence("Stop , thief !", [0, 1, 1, 1], "root punct dep punct", punct=(False, True, False, True))
    parser, _, _ = scored(encoder, corpus(own))
    assert parser.words()["word"].tolist() == [2]


def test_measures_merge(encoder):
    """The sum over processes: concatenated states give the same table."""
    kept, segments = fit(encoder, corpus(PLAN, ENDS, BROKEN))
    whole = HeadParser(encoder.layers, encoder.heads, kept.items)
    measure(encoder, segments, whole, progress=None, budget=1)
    first, second = (HeadParser(encoder.layers, encoder.heads, kept.items) for _ in range(2))
    for k, (attention, batch) in enumerate(attend(encoder, segments, 1, progress=None)):
        (first if k else second).update(attention, batch)
    first.correct, first.about = first.correct + second.correct, first.about + second.about
    assert torch.equal(first.outcomes(), whole.outcomes())
    pd.testing.assert_frame_equal(first.words(), whole.words())


@needs_gum
def test_the_phenomenon_is_there_on_gold_and_vanishes_with_shuffled_heads(encoder):
    gold = treebank("gum", "dev", limit=500)
    chance = np.random.default_rng(0)

    def shuffled(own):
        roots = [i for i, head in enumerate(own.heads) if head == 0]
        heads = [
            int(chance.choice([j for j in range(1, len(own) + 1) if j - 1 != i])) if i not in roots else 0
            for i in range(len(own))
        ]
        return replace(own, heads=tuple(heads))

    kept, segments = fit(encoder, gold)
    parsers = [HeadParser(encoder.layers, encoder.heads, items) for items in (kept.items, [shuffled(s) for s in kept])]
    measure(encoder, segments, *parsers, progress=None)
    table, control = (syntax.relations_table(parser).set_index("relation") for parser in parsers)
    for relation in ("dobj", "pobj"):
        assert table.loc[relation, "ci_low"] > table.loc[relation, "offset_high"]
        assert table.loc[relation, "difference_low"] > 0.2
        assert control.loc[relation, "heldout_accuracy"] < 0.25


def test_table_one_holds_each_relation_once_with_sane_numbers(encoder):
    treebank_ = treebank("silver", "dev", limit=60)
    parser, _, _ = scored(encoder, treebank_)
    table = syntax.relations_table(parser, minimum=20)
    assert table.columns[: len(syntax.TABLE1)].tolist() == syntax.TABLE1
    assert table["relation"].is_unique and table["relation"][0] == "all"
    assert table["n"][0] == len(parser.words())
    assert (table["ci_low"] <= table["heldout_accuracy"]).all() and (
        table["heldout_accuracy"] <= table["ci_high"]
    ).all()
    assert (table["heldout_accuracy"] <= table["accuracy"] + 1e-9).all()
    heads = syntax.heads_table(parser)
    best = heads.groupby("relation")["accuracy"].max()
    np.testing.assert_allclose(table["accuracy"], best[table["relation"]], atol=1e-12)
    with pytest.raises(BertlookError, match="lower minimum"):
        syntax.relations_table(parser, minimum=10**6)


def test_heads_that_serve_several_relations():
    heads = pd.DataFrame(
        [
            ("dobj", "a", 1, 1, 9, 0.9),
            ("pobj", "a", 1, 1, 9, 0.7),
            ("dobj", "a", 1, 2, 9, 0.8),
            ("all", "a", 1, 2, 9, 0.9),
        ],
        columns=["relation", "direction", "layer", "head", "n", "accuracy"],
    )
    table = pd.DataFrame({"relation": ["all", "dobj", "pobj"], "offset_accuracy": [0.1, 0.4, 0.65]})
    assert len(syntax.several_relations(heads, table)) == 0  # pobj is not beaten by 0.1
    found = syntax.several_relations(heads, table, margin=0.04)
    assert found[["layer", "head", "count", "relations"]].values.tolist() == [[1, 1, 2, "dobj, pobj"]]


def test_the_example_is_chosen_by_the_rule():
    near = sentence(
        "He ate the old bread with us today", [2, 0, 5, 5, 2, 2, 6, 2], "nsubj root det amod dobj prep pobj tmod"
    )
    far = sentence(
        "He ate the very old stale bread with us",
        [2, 0, 7, 5, 7, 7, 2, 2, 8],
        "nsubj root det advmod amod amod dobj prep pobj",
    )
    assert syntax.example([PLAN, near, far], "dobj") == 2
    assert syntax.example([PLAN, near, far], "poss") == 0
    with pytest.raises(BertlookError, match="no sentence has the relation 'csubj'"):
        syntax.example([PLAN], "csubj")


def test_examples_are_the_best_heads_own_maps(encoder):
    kept, segments = fit(encoder, corpus(PLAN, ENDS))
    relations = pd.DataFrame(
        [("dobj", 2, 3, syntax.DIRECTIONS[0]), ("poss", 1, 4, syntax.DIRECTIONS[1])],
        columns=["relation", "layer", "head", "direction"],
    )
    table, views = syntax.examples(encoder, kept.items, segments, relations)
    assert table["pairs"].tolist() == ["6>2", "4>6"]  # word and head word, whatever the direction
    assert [view.marks for view in views] == [[(5, 1)], [(5, 3)]]  # query and key
    ((attention, batch),) = attend(encoder, [segments[0]], progress=None)
    maps = to_words(attention, batch.words)
    np.testing.assert_allclose(views[1].weights, maps[0, 0, 3, :, :-1].numpy(), atol=1e-6)
    assert views[0].title == "dobj: head 2-3, dependent→head" and views[0].tokens == PLAN.words


def relations(**changes):
    """Three rows of the relations table: all, one relation of the paper's and one that it does not print."""
    rows = {
        "relation": ["all", "dobj", "parataxis"],
        "n": [1200, 300, 50],
        "layer": [3, 2, 1],
        "head": [2, 5, 1],
        "direction": [syntax.DIRECTIONS[0], syntax.DIRECTIONS[1], syntax.DIRECTIONS[0]],
        "accuracy": [0.37, 0.8, 0.5],
        "heldout_accuracy": [0.36, 0.79, 0.4],
        "ci_low": [0.35, 0.7, 0.3],
        "ci_high": [0.38, 0.85, 0.5],
        "offset": [1, -2, 3],
        "offset_accuracy": [0.28, 0.4, 0.6],
        "paper_accuracy": [0.345, 0.868, np.nan],
        "offset_heldout": [0.27, 0.39, 0.6],
        "difference": [0.09, 0.4, -0.2],
        "difference_low": [0.08, 0.3, -0.3],
        "difference_high": [0.1, 0.5, -0.1],
    }
    return pd.DataFrame(rows | changes)


def test_table_one_has_the_papers_numbers_in_small_beside_ours():
    columns = {name: [cell.data for cell in cells] for name, cells in syntax.table1_columns(relations()).items()}
    assert [columns[name][1] for name in columns] == [
        "dobj<br><small>300 words</small>",
        "<a href='explorer.html#2-5'>2-5</a><br><small>h→d</small>",
        "80.0%<br><small>paper 86.8%</small>",
        "79.0%<br><small>70–85</small>",
        "39.0% at\u00a0-2<br><small>paper 40.0% at\u00a0-2</small>",
        "+40.0<br><small>+30.0 to +50.0</small>",
    ]
    assert columns["Same words"][2] == "50.0%<br><small></small>"


def test_the_rows_worth_printing_and_the_gains_in_order():
    many = pd.DataFrame(
        {"relation": ["all", *"abcdefghijkl", "dobj"], "difference_low": [0.9, *np.linspace(0, 0.5, 12), 0.3]}
    )
    assert syntax.shown(many)["relation"].tolist() == ["all", *"abcdefghij", "dobj"]
    assert syntax.gains(many)["relation"].head(3).tolist() == ["l", "k", "j"]


def test_a_claim_whose_relation_is_missing_is_not_measured_here():
    numbers = syntax.quantities(relations(), "60 sentences")
    assert numbers.set_index("quantity").loc["head-dobj", ["value", "low", "high", "n"]].tolist() == [
        0.4, 0.3, 0.5, "300 words of 60 sentences",
    ]  # fmt: skip
    verdicts = judged("syntax", numbers)
    assert verdicts["no-parser"] == verdicts["head-dobj"] == REPLICATES
    others = [verdict for claim, verdict in verdicts.items() if claim not in {"no-parser", "head-dobj"}]
    assert set(others) == {NOT_MEASURED} and len(others) == 5


def test_the_answer_follows_the_verdicts():
    assert syntax.answer({"no-parser": REPLICATES, "a": REPLICATES, "b": NOT_MEASURED}) == (
        "Yes, for single relations: 1 of the 1 measured here has a head that beats every fixed offset"
    )
    two = syntax.answer({"no-parser": DOES_NOT, "a": REPLICATES, "b": REPLICATES, "c": CANNOT_TELL})
    assert two.endswith("2 of the 3 measured here have a head that beats every fixed offset")
    assert syntax.answer({"no-parser": REPLICATES, "a": DOES_NOT}).startswith("Not for the relations that the paper")
    assert syntax.whole_tree(REPLICATES, 0.369) == "No head knows the whole tree: the best gets 36.9%"
    for verdict in (DOES_NOT, CANNOT_TELL):
        assert syntax.whole_tree(verdict, 0.6) == "Of the whole tree the best head gets 60.0%"
    said = syntax.words(relations(), judged("syntax", syntax.quantities(relations(), "")), None)
    assert said["beaten"] == said["below"] == "1" and said["most"] == "dobj (+40 points) and parataxis (-20 points)"
    assert "not measured here" in said["silver"]


def test_gold_beside_silver_is_the_same_heads_on_other_trees(encoder):
    """The parser errs in one of two objects: one of ten words has another head word, and counts differ."""
    wrong = replace(PLAN, heads=(2, 0, 6, 6, 4, 5), relations=("nsubj", "root", "det", "poss", "possessive", "dep"))
    kept, segments = fit(encoder, corpus(PLAN, PLAN))
    gold, silver = (HeadParser(encoder.layers, encoder.heads, items) for items in (kept.items, [PLAN, wrong]))
    measure(encoder, segments, gold, silver, progress=None)
    table = syntax.relations_table(gold, minimum=1)
    side = syntax.beside_silver(table, gold, silver, minimum=1).set_index("relation")
    assert side.loc["all", "same_head"] == 0.9 and side.loc["dobj", "same_head"] == 0.5
    assert side.loc["dobj", ["n", "n_silver"]].tolist() == [2, 1] and side.loc["det", "same_head"] == 1
    other = syntax.relations_table(silver, minimum=1).set_index("relation")
    assert side.loc["all", "heldout_accuracy_silver"] == other.loc["all", "heldout_accuracy"]
    assert side.loc["all", "heldout_accuracy"] == table["heldout_accuracy"][0]
    said = syntax.silver_shift(side.reset_index())
    assert said.startswith("The parser finds the gold head word of 90.0% of the words.")


# --------------------------------------------------------------------------------------------------- statistics


@given(st.lists(st.integers(0, 12), min_size=1, max_size=80))
@settings(deadline=None)
def test_halves_keep_groups_together_and_are_even(groups):
    half = statistics.halves(groups)
    sizes = {g: groups.count(g) for g in groups}
    for g in sizes:
        assert len({bool(half[i]) for i, other in enumerate(groups) if other == g}) == 1
    assert abs(int(half.sum()) * 2 - len(groups)) <= max(sizes.values())


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_held_out_scores_are_blind_to_their_own_half(seed):
    chance = np.random.default_rng(seed)
    outcomes, half = chance.random((40, 6)) < 0.5, chance.random(40) < 0.5
    if half.all() or not half.any():
        return
    score, chosen = statistics.held_out(outcomes, half)
    for side in (False, True):
        best = max(range(6), key=lambda k: (outcomes[half == side, k].sum(), -k))
        assert chosen[int(side)] == best
        assert (score[half != side] == outcomes[half != side, best]).all()
    # With chance outcomes the best looks good on its own half only.
    own = outcomes.mean(0).max()
    assert np.nanmean(score) <= own + 1e-12


def test_held_out_has_no_answer_without_another_half():
    score, chosen = statistics.held_out(np.ones((3, 2), bool), np.zeros(3, bool))
    assert np.isnan(score).all() and chosen == (0, -1)


def test_resampled_means_are_the_plain_loop():
    chance = np.random.default_rng(3)
    values, groups = chance.random((50, 2)), chance.integers(0, 9, 50)
    got = statistics.resample_mean(values, groups, resamples=20, seed=5)
    names = np.unique(groups)
    weights = statistics.bootstrap_weights(len(names), 20, 5).numpy()
    for k in range(20):
        rows = [
            i for w, g in zip(weights[k], names, strict=True) for i in np.flatnonzero(groups == g).tolist() * int(w)
        ]
        np.testing.assert_allclose(got[k], values[rows].mean(0), atol=1e-12)
    low, high = statistics.interval(statistics.resample_mean(values[:, 0] - values[:, 0], groups))
    assert low == high == 0
