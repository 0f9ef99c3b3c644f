import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from bertlook import BertlookError, clustering
from bertlook.attention import Segment, attend, measure, pad
from bertlook.clustering import (
    HeadDivergence,
    agreement,
    behaviours,
    clusters,
    divergence_table,
    embed,
    embedding_table,
    kernel,
    layer_structure,
)


@pytest.fixture(scope="module")
def measured(encoder, segments):
    divergence = HeadDivergence(encoder.layers, encoder.heads)
    measure(encoder, segments, divergence, progress=None)
    return divergence


@pytest.fixture(scope="module", params=[True, False], ids=["compiled", "plain"])
def on_short_segments(request, encoder, segments):
    """Divergences of three padded segments, by the kernel and by plain torch."""
    if request.param and kernel() is None:
        pytest.skip("no C compiler here")
    divergence = HeadDivergence(encoder.layers, encoder.heads, compiled=request.param)
    measure(encoder, segments[:3], divergence, progress=None)
    return divergence


def islands(layers, heads):
    """Divergences of a model whose layers lie at 0, 1, 2, … on a line, its heads close together."""
    place = np.repeat(np.arange(layers), heads) + 0.01 * np.tile(np.arange(heads), layers)
    return np.square(place[:, None] - place)


def random_maps(layers, heads, lengths, seed, sharpness=3.0):
    generator = torch.Generator().manual_seed(seed)
    length = max(lengths)
    mask = torch.arange(length) < torch.tensor(lengths)[:, None]
    scores = sharpness * torch.randn(layers, len(lengths), heads, length, length, generator=generator)
    rows = scores.masked_fill(~mask[None, :, None, None], -math.inf).softmax(-1)
    return rows * mask[None, :, None, :, None]


def test_divergence_is_scipys_squared_distance_summed_over_tokens(on_short_segments, maps):
    """Each head with every fifth; scipy in float64 on the maps of transformers' own attention."""
    heads = [head for head in range(72) if head % 5 == 0]
    found = on_short_segments.compute()
    for i in heads:
        for j in heads:
            rows = [
                jensenshannon(a.flatten(0, 1)[i].double(), a.flatten(0, 1)[j].double(), axis=1) ** 2 for a in maps[:3]
            ]
            expected = sum(np.nan_to_num(row).sum() for row in rows)
            if i == j:
                assert found[i, j] == 0
            else:
                assert float(found[i, j]) == pytest.approx(expected, rel=1e-4)


def test_divergence_is_symmetric_and_zero_on_the_diagonal(measured, segments):
    found = measured.compute()
    assert torch.equal(found, found.T) and not found.diagonal().any()
    assert measured.tokens == sum(map(len, segments))


def test_kernel_and_plain_path_are_equal(encoder, segments):
    if kernel() is None:
        pytest.skip("no C compiler here")
    paths = [HeadDivergence(encoder.layers, encoder.heads, compiled=c) for c in (True, False)]
    measure(encoder, segments[:2], *paths, progress=None)
    torch.testing.assert_close(paths[0].compute(), paths[1].compute(), rtol=1e-5, atol=1e-4)


def test_without_a_compiler_the_plain_path_is_taken(monkeypatch, encoder, segments):
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(clustering, "kernel", kernel.__wrapped__)
    assert clustering.kernel() is None
    divergence = HeadDivergence(encoder.layers, encoder.heads)
    measure(encoder, segments[:1], divergence, progress=None)
    assert divergence.compute().max() > 0


def test_measures_of_two_halves_merge_into_the_whole(encoder, segments, measured):
    halves = [HeadDivergence(encoder.layers, encoder.heads) for _ in range(2)]
    for half, part in zip(halves, (segments[:5], segments[5:]), strict=True):
        measure(encoder, part, half, progress=None)
    halves[0].merge_state(halves[1])
    torch.testing.assert_close(halves[0].compute(), measured.compute(), rtol=1e-5, atol=1e-4)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    seed=st.integers(0, 2**31),
    sharpness=st.sampled_from([0.0, 1.0, 10.0, 100.0]),
    compiled=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_divergence_of_any_maps_is_a_symmetric_number_of_at_most_ln_2_a_token(
    encoder, lengths, seed, sharpness, compiled
):
    attention = random_maps(2, 3, lengths, seed, sharpness)
    items = [Segment((1000,) * n, (0,) * n) for n in lengths]
    found = []
    for order in (list(range(len(items))), list(range(len(items)))[::-1]):
        divergence = HeadDivergence(2, 3, compiled)
        divergence.update(attention[:, order], pad(encoder, [items[i] for i in order], order))
        found.append(divergence.compute())
    assert torch.equal(found[0], found[0].T) and not found[0].diagonal().any()
    assert found[0].min() >= 0 and found[0].max() <= (math.log(2) + 1e-5) * sum(lengths)
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)


def test_heads_that_share_no_token_are_ln_2_apart(encoder):
    attention = torch.zeros(1, 1, 2, 4, 4)
    attention[0, 0, 0, :, 0] = attention[0, 0, 1, :, 1] = 1
    divergence = HeadDivergence(1, 2)
    divergence.update(attention, pad(encoder, [Segment((1000,) * 4, (0,) * 4)], [0]))
    assert float(divergence.compute()[0, 1]) == pytest.approx(4 * math.log(2), abs=1e-5)


def test_an_embedding_of_points_in_the_plane_gives_their_distances_back():
    chance = np.random.default_rng(0)
    points = chance.normal(size=(24, 2)) * [5, 1]
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    found = embed(distances, layers=4, starts=4)
    assert found.stress < 1e-2 and found.stresses == sorted(found.stresses)
    np.testing.assert_allclose(
        np.linalg.norm(found.points[:, None] - found.points, axis=-1), distances, atol=0.02 * distances.max()
    )


def test_two_builds_of_the_embedding_agree_and_lie_the_same_way_round(measured, encoder):
    matrix = measured.compute()
    first, second = (embed(matrix, encoder.layers, seed=3, starts=2) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_allclose(first.points.mean(0), 0, atol=1e-6 * np.abs(first.points).max())
    assert (first.points[: encoder.heads].mean(0) <= 0).all()
    assert first.points[:, 0].std() > first.points[:, 1].std()
    assert abs(np.corrcoef(first.points.T)[0, 1]) < 1e-6


def test_layer_structure_is_the_mean_over_the_pairs(measured, encoder):
    matrix = measured.compute().numpy()
    found = layer_structure(matrix, encoder.layers, permutations=50)
    layer = [i // encoder.heads for i in range(len(matrix))]
    pairs = [(i, j) for i in range(len(matrix)) for j in range(i)]
    for gap, row in found.by_distance.set_index("layer_distance").iterrows():
        values = [matrix[i, j] for i, j in pairs if abs(layer[i] - layer[j]) == gap]
        assert (row["divergence"], row["pairs"]) == (pytest.approx(np.mean(values)), len(values))
    assert found.within == pytest.approx(found.by_distance["divergence"][0])
    assert found.between == pytest.approx(np.mean([matrix[i, j] for i, j in pairs if layer[i] != layer[j]]))


def test_layers_are_found_where_they_are_and_not_where_heads_are_shuffled():
    """The control can fail: the same divergences, heads dealt out to the layers by chance."""
    matrix = islands(5, 6)
    found = layer_structure(matrix, 5, permutations=200)
    assert found.p_within < 0.01 and found.within < found.between
    assert found.p_correlation < 0.01 and found.correlation > 0.9
    chance = np.random.default_rng(1)
    orders = [chance.permutation(len(matrix)) for _ in range(40)]
    by_chance = [layer_structure(matrix[order][:, order], 5, permutations=100) for order in orders]
    for p_values in ([one.p_within for one in by_chance], [one.p_correlation for one in by_chance]):
        assert np.mean(np.array(p_values) < 0.05) < 0.2 and 0.3 < np.mean(p_values) < 0.7
    assert layer_structure(np.ones((30, 30)), 5, permutations=20).p_within == 1


def test_clusters_are_the_layers_where_layers_are_islands():
    matrix = islands(4, 5)
    layers = np.repeat(np.arange(1, 5), 5)
    assert clusters(matrix, 4).tolist() == layers.tolist()
    assert agreement(matrix, layers) == 1
    shuffled = np.random.default_rng(0).permutation(layers)
    assert abs(agreement(matrix, shuffled)) < 0.3


def means(**values):
    names = ("previous", "current", "next", "cls", "sep", "punct", "entropy")
    return {name: np.array([values.get(name, [0.0] * 4)]).reshape(2, 2) for name in names}


def test_behaviours_follow_the_papers_thresholds_in_order():
    found = behaviours(means(previous=[0.51, 0.5, 0, 0], sep=[0.9, 0.61, 0.6, 0], entropy=[4, 4, 3.81, 3.8]))
    assert found == ["previous", "sep", "broad", "other"]
    assert behaviours(means(entropy=[3.7] * 4), broad=3.6) == ["broad"] * 4


def test_linguistic_heads_come_first():
    table = pd.DataFrame({"layer": [1, 1, 2], "head": [1, 1, 2], "name": ["dobj", "det", "coreference"]})
    found = behaviours(means(next=[0.9] * 4), table)
    assert found == ["dobj, det", "next", "next", "coreference"]
    with pytest.raises(BertlookError, match=r"head 3-1, but the model has 2 layers of 2 heads"):
        behaviours(means(), pd.DataFrame({"layer": [3], "head": [1], "name": ["det"]}))
    with pytest.raises(BertlookError, match="no next, entropy among"):
        behaviours({name: values for name, values in means().items() if name not in {"next", "entropy"}})


def test_tables_name_heads_from_one(measured, encoder):
    matrix = measured.compute()
    table = divergence_table(matrix, encoder.layers)
    assert list(table.columns) == list(table.index) and table.columns[12] == "2-1" and table.columns[-1] == "6-12"
    assert table.loc["2-1", "6-12"] == float(matrix[12, 71])
    rows = embedding_table(embed(matrix, 6, starts=1), 6, ["other"] * 72, clusters(matrix, 5))
    assert list(rows.columns) == ["layer", "head", "x", "y", "behaviour", "cluster"]
    assert (rows["layer"].tolist()[::12], rows["head"].tolist()[:12]) == ([*range(1, 7)], [*range(1, 13)])
    assert rows["cluster"].nunique() == 5 and rows["cluster"][0] == 1


def test_memory_does_not_grow_with_the_text(encoder, segments):
    divergence = HeadDivergence(encoder.layers, encoder.heads)
    for attention, batch in attend(encoder, segments[:2], progress=None):
        divergence.update(attention, batch)
        assert divergence.entropies.shape == (72, 72)


def test_loading_the_kernel_leaves_the_processes_arithmetic_as_it_was():
    """In a process of its own: a library linked with fast maths would flush subnormal numbers to zero everywhere."""
    code = "from bertlook.clustering import kernel; kernel(); print(float('2.3e-308') / 4 > 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_one_label_for_all_heads_agrees_with_nothing():
    far = np.ones((12, 12)) - np.eye(12)
    assert np.isnan(clustering.agreement(far, ["broad"] * 12))
    assert np.isnan(clustering.chance_agreement(far, ["broad"] * 12, permutations=3)).all()


def test_agreement_that_comes_from_the_layers_is_also_there_by_chance_within_them():
    layer = np.repeat(np.arange(4), 6)
    islands = np.where(layer[:, None] == layer, 0.1, 1.0) * (1 - np.eye(24))
    labels = np.where(layer < 2, "broad", "other")  # a behaviour that says no more than the layer
    found = clustering.agreement(islands, layer)
    anywhere = clustering.chance_agreement(islands, layer, permutations=200)
    assert found == 1 and abs(anywhere.mean()) < 0.1 and anywhere.max() < found
    within = clustering.chance_agreement(islands, labels, layers=4, permutations=50)
    assert np.allclose(within, clustering.agreement(islands, labels))
