"""Probes over all heads (§5): the formulas as loops, and controls that can fail."""

import os
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlook import figures, probes, probing
from bertlook.attention import attend, batches, fit, to_words
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, claims
from bertlook.corpora.treebank import treebank
from bertlook.corpora.vectors import word_vectors
from bertlook.encoder import randomised
from bertlook.probing import Evaluation, Experiment
from bertlook.statistics import interval, resample_mean
from looking import check, judged

needs_gum = pytest.mark.skipif("BERTLOOK_DATA" not in os.environ, reason="BERTLOOK_DATA is not set: no GUM")


@pytest.fixture(scope="module")
def vectors():
    return word_vectors()


@pytest.fixture(scope="module")
def trees(encoder):
    """Real sentences with silver trees, and their segments."""
    return fit(encoder, treebank("silver", "dev", limit=60))


def first(trees, count):
    """The first few of sentences and segments."""
    corpus, segments = trees
    return replace(corpus, items=corpus.items[:count]), segments[:count]


@pytest.fixture(scope="module")
def seen(encoder, trees, vectors):
    """One padded batch."""
    sentences, segments = trees
    batch = next(batches(encoder, segments[:6], 10_000))
    return probes.features(encoder, batch, sentences.items, vectors)


def test_features_are_the_word_level_maps(encoder, trees, seen):
    sentences, segments = trees
    for row, sentence in enumerate(seen.sentences):
        number = sentences.items.index(sentence)
        ((attention, batch),) = attend(encoder, [segments[number]], progress=None)
        words = to_words(attention, batch.words)[:, 0]  # [layer, head, word, word + 1]
        n = words.shape[-2]
        expected = words[..., :n].permute(2, 0, 1, 3).flatten(1, 2)
        torch.testing.assert_close(seen.queries[row, :n, :, :n], expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(seen.keys[row, :n, :, :n], expected.transpose(0, 2), atol=1e-5, rtol=0)
        torch.testing.assert_close(
            seen.ends[row, :n].sum(-1), words[..., n].permute(2, 0, 1).flatten(1), atol=1e-5, rtol=0
        )
        first = [segments[number].words.index(i) for i in range(n)]
        single = [i for i in range(n) if segments[number].words.count(i) == 1]
        start = attention[:, 0, :, :, 0].permute(2, 0, 1).flatten(1)
        torch.testing.assert_close(seen.ends[row, single, :, 0], start[[first[i] for i in single]], atol=1e-5, rtol=0)
        gold = [
            -1 if sentence.punct[i] else (h - 1 if h else seen.present.shape[1]) for i, h in enumerate(sentence.heads)
        ]
        assert seen.heads[row, :n].tolist() == gold and (seen.heads[row, n:] == -1).all()


def test_attention_scores_are_the_formula(encoder, seen, vectors):
    probe = probes.AttentionProbe(encoder, vectors, seeds=2)
    torch.nn.init.normal_(probe.bias)
    probe.scale = torch.rand(len(probe.scale)) + 0.5
    scores = probe.logits(seen)
    w, root = probe.pair * probe.scale, probe.root * probe.scale[:, None]
    for s, b, i, j in [(0, 0, 1, 2), (1, 3, 4, 0), (1, 0, 2, 2)]:
        pair = sum(
            w[s, 0, k] * seen.queries[b, i, k, j] + w[s, 1, k] * seen.queries[b, j, k, i] for k in range(w.shape[-1])
        )
        torch.testing.assert_close(scores[s, b, i, j], pair, atol=1e-4, rtol=1e-4)
        end = sum(root[s, k, e] * seen.ends[b, i, k, e] for k in range(w.shape[-1]) for e in (0, 1)) + probe.bias[s, 0]
        torch.testing.assert_close(scores[s, b, i, -1], end, atol=1e-4, rtol=1e-4)


def test_attention_and_words_scores_are_the_formula(encoder, seen, vectors):
    """s[i, j] = Σ_k (W_k (v_i ⊕ v_j ⊕ 1)) α_k[i, j] + (U_k (v_i ⊕ v_j ⊕ 1)) α_k[j, i]."""
    probe = probes.AttentionWordsProbe(encoder, vectors, seeds=2)
    probe.pair.data *= 50
    probe.scale = torch.rand(len(probe.scale)) + 0.5
    scores = probe.logits(seen)
    pair = probe.pair * probe.scale[:, None]
    known = torch.nn.functional.pad(seen.vectors, (0, 1), value=1.0)
    for s, b, i, j in [(0, 0, 1, 2), (1, 3, 4, 0)]:
        total = 0
        for k in range(pair.shape[2]):
            weight = pair[s, 0, k] @ known[b, i] + pair[s, 2, k] @ known[b, j]
            back = pair[s, 3, k] @ known[b, i] + pair[s, 1, k] @ known[b, j]
            total += weight * seen.queries[b, i, k, j] + back * seen.queries[b, j, k, i]
        torch.testing.assert_close(scores[s, b, i, j], total, atol=1e-3, rtol=1e-3)


def test_distance_scores_know_no_attention(encoder, seen, vectors):
    probe = probes.DistanceWordsProbe(encoder, vectors, seeds=2)
    blind = replace(seen, queries=torch.zeros_like(seen.queries), keys=torch.zeros_like(seen.keys))
    assert torch.equal(probe.logits(seen), probe.logits(blind))
    s, b, i, j = 1, 2, 3, 1
    hidden = (
        seen.vectors[b, i] @ probe.dependent[s]
        + seen.vectors[b, j] @ probe.head[s]
        + probe.offset[s, probe.reach + j - i]
    )
    torch.testing.assert_close(probe.logits(seen)[s, b, i, j], hidden.relu() @ probe.out[s], atol=1e-5, rtol=1e-4)


def test_structural_distances_are_squared_lengths(encoder, seen, vectors):
    probe = probes.StructuralProbe(encoder, vectors, seeds=2)
    probe.map.data *= 20
    for s, l, b, i, j in [(0, 0, 0, 1, 2), (1, 5, 3, 4, 0)]:
        gap = (seen.states[l, b, i] - seen.states[l, b, j]) @ probe.map[s, l]
        torch.testing.assert_close(probe.distances(seen)[s, l, b, i, j], gap.square().sum(), atol=1e-3, rtol=1e-3)


def test_probabilities_sum_to_one_over_other_words_and_the_root(encoder, seen, vectors):
    for kind in (probes.AttentionProbe, probes.AttentionWordsProbe, probes.DistanceWordsProbe):
        p = kind(encoder, vectors, seeds=2).scores(seen)[:, 0].exp()
        torch.testing.assert_close(p.sum(-1), torch.ones(p.shape[:-1]))
        size = p.shape[2]
        assert not p[..., :size].diagonal(0, -2, -1).any()
        assert not p[..., :size].masked_select(~seen.present[None, :, None]).any()


def test_more_seeds_do_not_change_the_first(encoder, trees, vectors):
    one, two = (probes.AttentionWordsProbe(encoder, vectors, seeds) for seeds in (1, 2))
    for probe in (one, two):
        few = first(trees, 20)
        Experiment(few, few, vectors, passes=1, seeds=probe.seeds).train(encoder, {"p": probe})
    torch.testing.assert_close(one.pair[0], two.pair[0], atol=1e-5, rtol=1e-3)
    assert not torch.allclose(two.pair[0], two.pair[1])


@given(st.integers(2, 20), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_tree_distances_are_the_way_up_and_down(size, seed):
    chance = np.random.default_rng(seed)
    order = chance.permutation(size)
    heads = [0] * size
    for k in range(1, size):
        heads[order[k]] = int(order[chance.integers(k)]) + 1
    above = []  # each word and the words above it, up to the root
    for i in range(size):
        above.append([i])
        while heads[above[i][-1]]:
            above[i].append(heads[above[i][-1]] - 1)
    found = probes.tree_distances(heads)
    for i, j in product(range(size), repeat=2):
        meet = next(k for k in above[i] if k in above[j])
        assert found[i, j] == above[i].index(meet) + above[j].index(meet)


@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_spanning_trees_are_the_best_of_all_trees(size, seed):
    """Against every tree (by Prüfer's sequences) on a few nodes."""
    scores = np.random.default_rng(seed).normal(size=(size + 1, size + 1))
    nodes = np.arange(1, size + 1)
    both = np.maximum(scores, scores.T)
    best = -np.inf
    for sequence in product(range(size), repeat=max(size - 2, 0)):
        degree = [1 + sequence.count(k) for k in range(size)]
        total, left = 0.0, list(sequence)
        for k in left:
            leaf = degree.index(1)
            total += both[nodes[leaf], nodes[k]]
            degree[leaf] -= 1
            degree[k] -= 1
        a, b = (k for k in range(size) if degree[k] == 1)
        best = max(best, total + both[nodes[a], nodes[b]])
    found = probing.spanning_tree(scores, nodes)
    assert len(found) == size - 1
    assert sum(both[i, j] for i, j in found) == pytest.approx(best)


def test_right_branching_and_table(encoder, trees, vectors):
    names = ("right-branching", "attention", "structural probe")
    untrained = {name: probes.KINDS[name](encoder, vectors) for name in names}
    scored = Experiment(trees, trees, vectors).evaluate(encoder, untrained)
    expected = [own.heads[i] == i + 2 for own in trees[0] for i in range(len(own)) if not own.punct[i]]
    table = probing.table3(scored).set_index("probe")
    assert {"uas", "uas_sd", "uuas", "n", "paper_uas"} < set(table) and table.index.tolist() == list(names)
    assert table.loc["right-branching", "uas"] == pytest.approx(np.mean(expected))
    assert (table["n"] == len(expected)).all()
    assert np.isnan(table.loc["structural probe", "uas"]) and 0 < table.loc["structural probe", "uuas"] < 1


def test_evaluation_is_the_argmax_word_by_word(encoder, trees, vectors):
    probe = probes.AttentionProbe(encoder, vectors, seeds=1)
    few = first(trees, 8)
    scored = Experiment(few, few, vectors).evaluate(encoder, {"attention": probe})
    right = {}
    for number, (own, segment) in enumerate(zip(*few, strict=True)):
        seen = probes.features(encoder, next(batches(encoder, [segment])), [own], vectors)
        with torch.no_grad():
            p = probe.scores(seen)[0, 0, 0]
        choice = [int(row.argmax()) for row in p]
        right[number] = [choice[i] == (h - 1 if h else len(own)) for i, h in enumerate(own.heads) if not own.punct[i]]
    for number, expected in right.items():
        assert scored.right["attention"][scored.words == number, 0].tolist() == expected


@pytest.fixture(scope="module")
def trained(encoder, vectors):
    """Probes on gold trees, on the attention of random weights, and on shuffled heads."""
    train, train_segments = fit(encoder, treebank("gum", "train", limit=500))
    dev, dev_segments = fit(encoder, treebank("gum", "dev", limit=200))
    chance = np.random.default_rng(0)

    def shuffled(own):
        heads = [
            int(chance.choice([j for j in range(1, len(own) + 1) if j - 1 != i])) if h else 0
            for i, h in enumerate(own.heads)
        ]
        return replace(own, heads=tuple(heads))

    mixed = replace(train, items=[shuffled(own) for own in train])

    def run(net, corpus, **kinds):
        return Experiment((corpus, train_segments), (dev, dev_segments), vectors).run(net, kinds).right

    kinds = {"right-branching": probes.RightBranching, "attention": probes.AttentionProbe}
    return (
        run(encoder, train, words=probes.AttentionWordsProbe, **kinds)
        | run(randomised(encoder), train, random=probes.AttentionWordsProbe)
        | run(encoder, mixed, shuffled=probes.AttentionProbe)
    )


@needs_gum
def test_trained_attention_beats_the_baselines_with_every_seed(trained):
    uas = {name: right.mean(0) for name, right in trained.items()}
    assert uas["words"].min() > uas["attention"].max()
    assert uas["attention"].min() > uas["random"].max()
    assert uas["attention"].min() > uas["right-branching"].max()


@needs_gum
def test_a_probe_trained_on_shuffled_heads_falls_to_the_baseline(trained):
    assert trained["shuffled"].mean(0).max() < trained["right-branching"].mean()


def test_right_branching_is_the_chain_of_words_and_never_the_root(encoder, trees, vectors):
    scored = Experiment(trees, trees, vectors).evaluate(
        encoder, {"right-branching": probes.RightBranching(encoder, vectors)}
    )
    chained = []
    for own in trees[0]:
        kept = [i for i in range(len(own)) if not own.punct[i]]
        chain = set(pairwise(kept))
        edges = [sorted((i, own.heads[i] - 1)) for i in kept if own.heads[i] and own.heads[i] - 1 in kept]
        chained += [tuple(edge) in chain for edge in sorted(edges)]
    order = np.argsort(scored.edges, kind="stable")
    assert scored.found["right-branching"][order, 0, 0].tolist() == chained
    last = np.flatnonzero(np.diff(scored.words, append=-1))  # the last scored word of each sentence
    ends = {n for n, own in enumerate(trees[0]) if not own.punct[-1]}
    assert not scored.right["right-branching"][last][np.isin(scored.words[last], list(ends))].any()


def test_a_layered_probe_is_read_at_the_layer_that_was_best_on_the_other_half():
    edges = np.array([0, 0, 1, 1])
    found = np.array([[[1, 0]], [[1, 0]], [[1, 1]], [[0, 1]]], dtype=bool)  # [edge, seed, layer]
    scored = Evaluation(edges, edges, {}, {"structural probe": found})
    # On sentence 0 the first layer is best, on sentence 1 the second.
    assert scored.uuas("structural probe")[0].tolist() == [0, 0, 1, 0]
    layers = probing.structural_table(scored)
    assert layers["layer"].tolist() == [1, 2] and layers["uuas"].tolist() == [0.75, 0.5]
    assert (layers["low"] <= layers["uuas"]).all() and (layers["uuas"] <= layers["high"]).all()


@pytest.fixture(scope="module")
def made():
    """An evaluation made up so that every mean is known: 40 words and edges of 20 sentences, two seeds."""
    number = np.repeat(np.arange(20), 2)
    share = {"right-branching": 1, "distances and words": 2, "attention": 2, "attention and words": 4}
    share |= {probing.RANDOM_KEPT: 0, probing.RANDOM_ALL: 0}
    right = {name: np.tile([[k >= n + 1] * 2 for n in range(4)], (10, 1)) for name, k in share.items()}
    right["attention"][:2, 1] = True  # one seed finds one word more
    found = {name: each[..., None] for name, each in right.items()}
    found["structural probe"] = np.ones((40, 2, 3), dtype=bool)
    return Evaluation(number, number, right, found)


def test_table3_has_means_intervals_and_the_spread_over_seeds(made):
    table = probing.table3(made)
    assert table["probe"].tolist() == list(probing.PAPER)
    rows = table.set_index("probe")
    assert rows.loc["right-branching", ["uas", "uas_low", "uas_high", "uas_sd"]].tolist()[0] == 0.25
    assert rows.loc["attention", "uas_sd"] == pytest.approx(made.right["attention"].mean(0).std(ddof=1))
    low, high = interval(resample_mean(made.right["attention"].mean(1), made.words))
    assert rows.loc["attention", ["uas_low", "uas_high"]].tolist() == [low, high]
    assert np.isnan(rows.loc["structural probe", "uas_low"]) and rows.loc["structural probe", "uuas"] == 1
    assert rows.loc["attention and words", "paper_uas"] == 0.77


def test_table3_reads_with_intervals_and_says_which_number_of_the_paper_is_uuas(made):
    columns = probing.table3_columns(probing.table3(made))
    last = {name: values[-1] for name, values in columns.items()}
    assert last == {
        "Probe": "structural probe",
        "UAS, 95%": "–",
        "Spread": "–",
        "UUAS, 95%": "100.0% (100.0–100.0)",
        "Paper": "80% (UUAS)",
    }
    assert columns["UAS, 95%"][0].startswith("25.0% (") and columns["Paper"][0] == "26%"


def test_the_figure_of_table3_can_be_read_on_a_phone(made):
    table = probing.table3(made).dropna(subset="uas")
    shown = dict(label="here", xlabel="UAS", others={"paper_uas": "paper"}, name="probes")
    picture = check(figures.dots(table, "probe", "uas", "uas_low", "uas_high", **shown), "UAS", "")
    assert f"{probing.RANDOM_KEPT}: 0.0% (0.0% to 0.0%), paper 30.0%" in picture.alt
    labels = [tick.get_text() for tick in picture.figure.axes[0].get_yticklabels()]
    assert max(len(line) for label in labels for line in label.splitlines()) <= 26


def test_claims_are_paired_differences_on_the_same_words(made):
    quantities = probing.quantities(made, "gold").set_index("quantity")
    assert set(quantities.index) == {claim.id for claim in claims("probing")} == set(probing.CONTRASTS)
    gap = (made.right["attention"].mean(1) - made.right["right-branching"].mean(1)).mean()
    assert quantities.loc["attention-over-right", "value"] == pytest.approx(gap)
    assert quantities.loc["near-structural", "value"] == 0  # UUAS, for the structural probe has no UAS
    assert (quantities["n"] == "40 words of 20 sentences, gold trees, 2 seeds").all()
    few = replace(made, right={"attention": made.right["attention"]}, found={"attention": made.found["attention"]})
    verdicts = judged("probing", probing.quantities(few, "gold"))
    assert set(verdicts.values()) == {NOT_MEASURED}


def test_the_papers_numbers_stand_in_the_claims():
    said = {claim.id: claim.paper for claim in claims("probing")}
    assert said["attention-over-random"] == "61% against 30%"
    assert said["near-structural"] == "77% UAS against 80% UUAS"


@pytest.mark.parametrize(
    "verdict, part",
    [
        (REPLICATES, "it is training"),
        (DOES_NOT, "as well, so nothing"),
        (CANNOT_TELL, "cannot be told"),
        (NOT_MEASURED, "Without the probe on random attention"),
    ],
)
def test_the_words_follow_the_verdict(encoder, made, trees, vectors, verdict, part):
    verdicts = judged("probing", probing.quantities(made, "silver"))
    verdicts._verdicts["attention-over-random"] = verdict
    experiment = Experiment(trees, trees, vectors)
    words = probing.words(probing.table3(made), verdicts, experiment, encoder, {"random": 0.98})
    assert part in words["origin"]
    assert (words["best"], words["best-paper"], words["flat-random"]) == ("100.0%", "77%", "98.0%")
    assert (words["heads"], words["heads-paper"], words["sentences"]) == ("72", "144", str(len(trees[0])))
    assert words["trees"].startswith("silver") and "no gold trees" in words["no-gold"]


def test_gold_beside_silver_and_silver_alone(encoder, trees, vectors):
    corpus, segments = first(trees, 6)
    kinds = {name: probes.KINDS[name] for name in ("right-branching", "attention", "attention and words")}
    for gold in (False, True):
        source = {name: value for name, value in corpus.source.items() if name != "parser" or not gold}
        few = (replace(corpus, source=source), segments)
        experiment = Experiment(few, few, vectors, passes=1, seeds=1)
        assert experiment.trees == ("gold" if gold else "silver")
        own = probing.table3(experiment.run(encoder, kinds))
        both = probing.gold_and_silver(experiment, encoder, own, "paper")
        assert both["probe"].tolist() == list(kinds)
        known, other = ("uas", "uas_silver") if gold else ("uas_silver", "uas")
        assert both[known].tolist() == own["uas"].tolist()
        assert both[other].notna().all() == gold
        shown = probing.gold_and_silver_columns(both)
        assert (shown["UAS, gold"] == ["–"] * 3) != gold and shown["UAS, silver"][0].endswith("%")


def test_flatness_is_the_entropy_beside_that_of_uniform_attention(encoder, trees):
    segments = trees[1][:3]
    shares = []
    for segment in segments:
        ((attention, _),) = attend(encoder, [segment], progress=None)
        for row in attention[:, 0].flatten(0, 1).transpose(0, 1):  # [head, key] of each query
            shares.append(float(-(row * row.log()).sum(-1).mean() / np.log(len(segment))))
    assert probing.flatness(encoder, segments) == pytest.approx(np.mean(shares), abs=1e-5)
    assert probing.flatness(encoder, segments) < probing.flatness(randomised(encoder), segments) < 1
