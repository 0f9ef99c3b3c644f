"""Probes over all heads (§5): the formulas as loops, and controls that can fail."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from bertlook import BertlookError, probing
from bertlook.attention import attend, batches, fit, to_words
from bertlook.corpora.treebank import treebank
from bertlook.probing import WordVectors

needs_gum = pytest.mark.skipif("BERTLOOK_DATA" not in os.environ, reason="BERTLOOK_DATA is not set: no GUM")


@pytest.fixture(scope="module")
def vectors():
    return probing.word_vectors()


@pytest.fixture(scope="module")
def trees(encoder):
    """Real sentences with silver trees, and their segments."""
    corpus, segments = fit(encoder, treebank("silver", "dev", limit=60))
    return corpus.items, segments


@pytest.fixture(scope="module")
def seen(encoder, trees, vectors):
    """One padded batch."""
    sentences, segments = trees
    batch = next(batches(encoder, segments[:6], 10_000))
    return probing.features(encoder, batch, sentences, vectors)


def test_features_are_the_word_level_maps(encoder, trees, seen):
    sentences, segments = trees
    for row, number in enumerate(seen.index):
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
            -1 if sentences[number].punct[i] else (h - 1 if h else seen.present.shape[1])
            for i, h in enumerate(sentences[number].heads)
        ]
        assert seen.heads[row, :n].tolist() == gold and (seen.heads[row, n:] == -1).all()


def test_attention_scores_are_the_formula(encoder, seen, vectors):
    probe = probing.AttentionProbe(encoder, vectors, seeds=2)
    torch.nn.init.normal_(probe.bias)
    probe.scale = torch.rand(len(probe.scale)) + 0.5
    scores = probe.scores(seen)
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
    probe = probing.AttentionWordsProbe(encoder, vectors, seeds=2)
    probe.pair.data *= 50
    probe.scale = torch.rand(len(probe.scale)) + 0.5
    scores = probe.scores(seen)
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
    probe = probing.DistanceWordsProbe(encoder, vectors, seeds=2)
    blind = replace(seen, queries=torch.zeros_like(seen.queries), keys=torch.zeros_like(seen.keys))
    assert torch.equal(probe.scores(seen), probe.scores(blind))
    s, b, i, j = 1, 2, 3, 1
    hidden = (
        seen.vectors[b, i] @ probe.dependent[s]
        + seen.vectors[b, j] @ probe.head[s]
        + probe.offset[s, probe.reach + j - i]
    )
    torch.testing.assert_close(probe.scores(seen)[s, b, i, j], hidden.relu() @ probe.out[s], atol=1e-5, rtol=1e-4)


def test_structural_distances_are_squared_lengths(encoder, seen, vectors):
    probe = probing.StructuralProbe(encoder, vectors, seeds=2, rank=8)
    probe.map.data *= 20
    for s, l, b, i, j in [(0, 0, 0, 1, 2), (1, 5, 3, 4, 0)]:
        gap = (seen.states[l, b, i] - seen.states[l, b, j]) @ probe.map[s, l]
        torch.testing.assert_close(probe.distances(seen)[s, l, b, i, j], gap.square().sum(), atol=1e-3, rtol=1e-3)


def test_probabilities_sum_to_one_over_other_words_and_the_root(encoder, seen, vectors):
    for kind in (probing.AttentionProbe, probing.AttentionWordsProbe, probing.DistanceWordsProbe):
        p = kind(encoder, vectors, seeds=2).log_probabilities(seen).exp()
        torch.testing.assert_close(p.sum(-1), torch.ones(p.shape[:-1]))
        size = p.shape[2]
        assert not p[..., :size].diagonal(0, -2, -1).any()
        assert not p[..., :size].masked_select(~seen.present[None, :, None]).any()


def test_more_seeds_do_not_change_the_first(encoder, trees, vectors):
    sentences, segments = trees
    one, two = (probing.AttentionWordsProbe(encoder, vectors, seeds) for seeds in (1, 2))
    for probe in (one, two):
        probing.train(encoder, sentences[:20], segments[:20], {"p": probe}, vectors, progress=None)
    torch.testing.assert_close(one.pair[0], two.pair[0], atol=1e-5, rtol=1e-3)
    assert not torch.allclose(two.pair[0], two.pair[1])


@given(st.integers(2, 20), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_tree_distances_are_shortest_paths(size, seed):
    chance = np.random.default_rng(seed)
    order = chance.permutation(size)
    heads = [0] * size
    for k in range(1, size):
        heads[order[k]] = int(order[chance.integers(k)]) + 1
    edges = np.zeros((size, size))
    for i, head in enumerate(heads):
        if head:
            edges[i, head - 1] = 1
    np.testing.assert_array_equal(probing.tree_distances(heads), shortest_path(edges, directed=False, unweighted=True))


@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_spanning_trees_are_the_best_of_all_trees(size, seed):
    """Against every tree (by Prüfer's sequences) on a few nodes."""
    from itertools import product

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
    sentences, segments = trees
    probes = {
        "attention": probing.AttentionProbe(encoder, vectors),
        "structural probe": probing.StructuralProbe(encoder, vectors),
    }
    scored = probing.evaluate(encoder, sentences, segments, probes, vectors, progress=None)
    expected = [own.heads[i] == i + 2 for own in sentences for i in range(len(own)) if not own.punct[i]]
    table = probing.table3(scored).set_index("probe")
    assert table.columns.tolist() == ["uas", "uas_sd", "uuas", "n", "paper_uas"]
    assert table.loc["right-branching", "uas"] == pytest.approx(np.mean(expected))
    assert (table["n"] == len(expected)).all()
    assert np.isnan(table.loc["structural probe", "uas"]) and 0 < table.loc["structural probe", "uuas"] < 1


def test_evaluation_is_the_argmax_word_by_word(encoder, trees, vectors):
    sentences, segments = trees
    probe = probing.AttentionProbe(encoder, vectors, seeds=1)
    scored = probing.evaluate(encoder, sentences[:8], segments[:8], {"attention": probe}, vectors, progress=None)
    right = {}
    for number, segment in enumerate(segments[:8]):
        seen = probing.features(encoder, next(batches(encoder, [segment])), [sentences[number]], vectors)
        with torch.no_grad():
            p = probe.log_probabilities(seen)[0, 0]
        own = sentences[number]
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

    def run(net, items, **kinds):
        probes = {name: kind(net, vectors) for name, kind in kinds.items()}
        probing.train(net, items, train_segments, probes, vectors, passes=3, progress=None)
        return probing.evaluate(net, dev.items, dev_segments, probes, vectors, progress=None).right

    attention = {"attention": probing.AttentionProbe, "words": probing.AttentionWordsProbe}
    return (
        run(encoder, train.items, **attention)
        | run(probing.randomised(encoder), train.items, random=probing.AttentionWordsProbe)
        | run(encoder, [shuffled(own) for own in train], shuffled=probing.AttentionProbe)
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


def test_random_weights_keep_the_embeddings_or_not(encoder):
    kept, all_random = probing.randomised(encoder), probing.randomised(encoder, keep_embeddings=False)
    name = "encoder.layer.0.attention.self.query.weight"
    for net, same in ((kept, True), (all_random, False)):
        assert torch.equal(net.model.get_input_embeddings().weight, encoder.model.get_input_embeddings().weight) == same
        assert not torch.allclose(net.model.state_dict()[name], encoder.model.state_dict()[name])
        assert net.tapped and not any(p.requires_grad for p in net.model.parameters())
    again = probing.randomised(encoder)
    assert torch.equal(kept.model.state_dict()[name], again.model.state_dict()[name])


def test_word_vectors_from_a_text_file(tmp_path):
    for header in ("", "2 3\n"):
        path = tmp_path / "glove.txt"
        path.write_text(header + "the 1 2 3\ndog 4 5 6\n", encoding="utf-8")
        found = probing.word_vectors(str(path))
        assert found.look_up([["The", "cat"], ["dog"]], 3).tolist() == [
            [[1, 2, 3], [0, 0, 0], [0, 0, 0]],
            [[4, 5, 6], [0, 0, 0], [0, 0, 0]],
        ]


@pytest.mark.parametrize("text", ["the 1 2 3\ndog 4 5\n", "the one two\n", ""])
def test_broken_word_vectors_are_an_error_of_one_line(tmp_path, text):
    path = tmp_path / "broken.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BertlookError, match=r"broken\.txt: not word vectors"):
        probing.word_vectors(str(path))
    with pytest.raises(BertlookError, match="no such file"):
        probing.word_vectors(str(tmp_path / "nowhere.txt"))


def test_packaged_vectors_are_words_not_noise(vectors):
    def near(a, b):
        x, y = (vectors.table[vectors.index[w]] for w in (a, b))
        return float(torch.cosine_similarity(x, y, 0))

    assert isinstance(vectors, WordVectors) and near("dog", "cat") > near("dog", "parliament") + 0.3
