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

from bertlook import BertlookError, clustering, statistics
from bertlook.attention import Segment, attend, measure, pad
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, claims
from bertlook.clustering import HeadDivergence, behaviours, divergence_table, embed, embedding_table, kernel
from bertlook.statistics import against_chance, agreement, clusters
from looking import judged


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
    found, stresses = embed(distances, layers=4, starts=4)
    assert stresses[0] < 1e-2 and stresses == sorted(stresses)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=-1), distances, atol=0.02 * distances.max())


def test_two_builds_of_the_embedding_agree_and_lie_the_same_way_round(measured, encoder):
    matrix = measured.compute().numpy()
    first, second = (embed(matrix, encoder.layers, seed=3, starts=2)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first.mean(0), 0, atol=1e-6 * np.abs(first).max())
    assert (first[: encoder.heads].mean(0) <= 0).all()
    assert first[:, 0].std() > first[:, 1].std()
    assert abs(np.corrcoef(first.T)[0, 1]) < 1e-6


def structure(matrix, layers, permutations):
    """Value and test of the layers' ratio and of the correlation with their distance."""
    here = clustering.layer_structure(matrix, layers)
    dealt = statistics.dealt_out(matrix, lambda one: clustering.layer_structure(one, layers), permutations)
    return [(value, against_chance(value, draws)["p"]) for value, draws in zip(here, dealt.T, strict=True)]


def test_layer_structure_is_the_mean_over_the_pairs(measured, encoder):
    matrix = measured.compute().numpy()
    table = clustering.layers_table(matrix, encoder.layers, tokens=measured.tokens.item())
    layer = [i // encoder.heads for i in range(len(matrix))]
    pairs = [(i, j) for i in range(len(matrix)) for j in range(i)]
    for gap, row in table.set_index("layer_distance").iterrows():
        values = [matrix[i, j] for i, j in pairs if abs(layer[i] - layer[j]) == gap]
        assert row["pairs"] == len(values)
        assert row["divergence"] * measured.tokens == pytest.approx(np.mean(values))
    (ratio, _), (correlation, _) = structure(matrix, encoder.layers, permutations=50)
    within = np.mean([matrix[i, j] for i, j in pairs if layer[i] == layer[j]])
    between = np.mean([matrix[i, j] for i, j in pairs if layer[i] != layer[j]])
    assert ratio == pytest.approx(between / within)
    gaps = [abs(layer[i] - layer[j]) for i, j in pairs]
    assert correlation == pytest.approx(np.corrcoef([matrix[i, j] for i, j in pairs], gaps)[0, 1])


def test_layers_are_found_where_they_are_and_not_where_heads_are_shuffled():
    """The control can fail: the same divergences, heads dealt out to the layers by chance."""
    matrix = islands(5, 6)
    (ratio, p_within), (correlation, p_correlation) = structure(matrix, 5, permutations=200)
    assert p_within < 0.01 and ratio > 1
    assert p_correlation < 0.01 and correlation > 0.9
    chance = np.random.default_rng(1)
    orders = [chance.permutation(len(matrix)) for _ in range(40)]
    by_chance = [structure(matrix[order][:, order], 5, permutations=100) for order in orders]
    for p_values in np.array(by_chance)[..., 1].T:
        assert np.mean(p_values < 0.05) < 0.2 and 0.3 < np.mean(p_values) < 0.7
    assert structure(np.ones((30, 30)), 5, permutations=20)[0][1] == 1


def test_clusters_are_the_layers_where_layers_are_islands():
    matrix = islands(4, 5)
    layers = np.repeat(np.arange(1, 5), 5)
    assert clusters(matrix, 4).tolist() == layers.tolist()
    assert agreement(matrix, layers) == 1
    shuffled = np.random.default_rng(0).permutation(layers)
    assert abs(agreement(matrix, shuffled)) < 0.3


PAPERS = {"gain": 0.1, "position": 0.5, "special": 0.6, "broad": 3.8}
NOTHING = pd.DataFrame(columns=["layer", "head", "name", "accuracy", "gain"])


def means(**values):
    names = ("previous", "current", "next", "cls", "sep", "punct", "entropy")
    places = {"layer": [1, 1, 2, 2], "head": [1, 2, 1, 2]}
    return pd.DataFrame(places | {name: values.get(name, [0.0] * 4) for name in names})


def best_at(*rows):
    return pd.DataFrame(rows, columns=NOTHING.columns)


def test_behaviours_follow_the_papers_thresholds_in_order():
    found = means(previous=[0.51, 0.5, 0, 0], sep=[0.9, 0.61, 0.6, 0], entropy=[4, 4, 3.81, 3.8])
    assert behaviours(found, NOTHING, **PAPERS)["behaviour"].tolist() == ["previous", "sep", "broad", "other"]
    found = behaviours(means(entropy=[3.7] * 4), NOTHING, **PAPERS | {"broad": 3.6})
    assert found["behaviour"].tolist() == found["kind"].tolist() == ["broad"] * 4


def test_linguistic_heads_come_first():
    best = best_at(
        (1, 1, "dobj", 0.8, 0.3), (1, 1, "det", 0.7, 0.2), (1, 2, "prep", 0.6, 0.1), (2, 2, "coreference", 0.5, 0.2)
    )
    found = behaviours(means(next=[0.9] * 4), best, **PAPERS)
    assert found["behaviour"].tolist() == ["dobj, det", "next", "next", "coreference"]
    assert found["kind"].tolist() == ["linguistic", "next", "next", "linguistic"]
    assert found["best"].tolist() == ["best at dobj, 80.0%", "best at prep, 60.0%", "", "best at coreference, 50.0%"]
    with pytest.raises(BertlookError, match=r"head 3-1, but the model has 2 layers of 2 heads"):
        behaviours(means(), best_at((3, 1, "det", 0.9, 0.5)), **PAPERS)
    with pytest.raises(BertlookError, match="no next, entropy among"):
        behaviours(means().drop(columns=["next", "entropy"]), NOTHING, **PAPERS)


def test_what_heads_are_best_at_comes_from_chapters_of_the_same_weights(tmp_path):
    """Two relations and coreference; the greatest gain first; nothing of other weights, nor of a chapter not run."""
    assert clustering.earlier(tmp_path, "abc").empty
    for chapter in ("syntax", "coreference"):
        (tmp_path / chapter).mkdir()
        (tmp_path / chapter / "provenance.json").write_text('{"weights_sha256": "abc"}')
    tables = {
        "syntax/table1": "relation,n,layer,head,accuracy\nall,9,1,1,.4\ndet,5,2,2,.9\ndobj,4,2,3,.8",
        "syntax/heldout": "relation,n,difference,difference_low\nall,9,.1,.1\ndet,5,.2,.15\ndobj,4,.4,.3",
        "coreference/heads": "layer,head,direction,mention_type,accuracy\n1,1,mention→antecedent,all,.5\n"
        "1,2,mention→antecedent,all,.6\n1,3,antecedent→mention,all,.7\n1,4,mention→antecedent,pronoun,.9",
        "coreference/claims": "id,ci_low\nover-nearest,.25",
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    assert clustering.earlier(tmp_path, "abc").values.tolist() == [
        [2, 3, "dobj", 0.8, 0.3],
        [2, 2, "det", 0.9, 0.15],
        [1, 2, "coreference", 0.6, 0.25],
    ]
    assert clustering.earlier(tmp_path, "other").empty
    (tmp_path / "syntax" / "heldout.csv").unlink()
    assert clustering.earlier(tmp_path, "abc")["name"].tolist() == ["coreference"]


def test_tables_name_heads_from_one(measured, encoder):
    matrix = measured.compute().numpy()
    table = divergence_table(matrix, encoder.layers)
    assert list(table.columns) == list(table.index) and table.columns[12] == "2-1" and table.columns[-1] == "6-12"
    assert table.loc["2-1", "6-12"] == float(matrix[12, 71])
    places = [(layer, head, "other") for layer in range(1, 7) for head in range(1, 13)]
    heads = pd.DataFrame(places, columns=["layer", "head", "behaviour"]).assign(kind="other")
    rows = embedding_table(embed(matrix, 6, starts=1)[0], heads, clusters(matrix, 5))
    assert list(rows.columns) == ["layer", "head", "x", "y", "behaviour", "cluster", "kind"]
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
    assert np.isnan(agreement(far, ["broad"] * 12))
    assert np.isnan(statistics.chance_agreement(far, ["broad"] * 12, permutations=3)).all()


def test_agreement_that_comes_from_the_layers_is_also_there_by_chance_within_them():
    layer = np.repeat(np.arange(4), 6)
    islands = np.where(layer[:, None] == layer, 0.1, 1.0) * (1 - np.eye(24))
    labels = np.where(layer < 2, "broad", "other")  # a behaviour that says no more than the layer
    found = agreement(islands, layer)
    anywhere = statistics.chance_agreement(islands, layer, permutations=200)
    assert found == 1 and abs(anywhere.mean()) < 0.1 and anywhere.max() < found
    within = statistics.chance_agreement(islands, labels, strata=4, permutations=50)
    assert np.allclose(within, agreement(islands, labels))


def test_against_chance_counts_the_value_among_the_draws():
    found = against_chance(2.0, np.array([0.0, 1.0, 2.0, 3.0]))
    assert found["p"] == 3 / 5 and found["null_mean"] == 1.5 and found["null_low"] < found["null_high"]
    assert against_chance(4.0, np.arange(4.0))["p"] == 1 / 5
    assert all(np.isnan(value) for value in against_chance(float("nan"), np.full(3, np.nan)).values())


@pytest.mark.parametrize(
    ("p", "verdict"),
    [(0.02, REPLICATES), (0.025, REPLICATES), (0.03, CANNOT_TELL), (0.5, DOES_NOT), (float("nan"), NOT_MEASURED)],
)
def test_claims_on_groups_are_judged_by_chance_alone(p, verdict):
    """Whatever the value and its interval: both claims of the chapter follow the one rule."""
    rows = [(claim.id, 1.0, 0.9, 1.1, "60 segments", p) for claim in claims("clustering")]
    found = judged("clustering", pd.DataFrame(rows, columns=["quantity", "value", "low", "high", "n", "p"]))
    assert set(found.values()) == {verdict}


def test_quantities_of_islands_and_of_shuffled_heads():
    """Three groups of articles, noise apart alike: layers are found; behaviours that follow them say no more."""
    chance = np.random.default_rng(0)
    noise = np.abs(chance.normal(size=(3, 24, 24))) * 0.01
    parts = islands(4, 6) + (noise + noise.transpose(0, 2, 1)) * (1 - np.eye(24))
    kinds = np.where(np.arange(24) < 12, "broad", "other")
    found = clustering.quantities(parts, kinds, 4, "12 segments").set_index("quantity")
    assert (found["low"] <= found["value"]).all() and (found["value"] <= found["high"]).all()
    assert found.loc["within-layers", "p"] < 0.01 and found.loc["within-layers", "null_high"] < 2
    assert found.loc["by-layer", "value"] == 1 and found.loc["by-behaviour", "p"] < 0.01
    assert found.loc["behaviour-in-layers", "p"] == 1
    order = chance.permutation(24)
    shuffled = clustering.quantities(parts[:, order][:, :, order], kinds, 4, "").set_index("quantity")
    assert (shuffled["p"] > 0.025).all()
    assert found["n"].eq("12 segments").all()


def test_one_behaviour_for_all_heads_is_not_measured():
    parts = np.stack([islands(4, 6)] * 2)
    found = clustering.quantities(parts, ["broad"] * 24, 4, "")
    verdicts = judged("clustering", found)
    assert verdicts["by-behaviour"] == NOT_MEASURED and verdicts["within-layers"] == REPLICATES


def test_words_follow_the_verdicts_and_the_tables():
    best = best_at((1, 1, "dobj", 0.8, 0.3))
    heads = behaviours(means(next=[0.9] * 4), best, **PAPERS)
    assert clustering.linguistic(heads) == "The linguistic ones are 1-1 (dobj)"
    assert "no head is good enough" in clustering.linguistic(behaviours(means(), best, **PAPERS | {"gain": 0.5}))
    assert "have not been run" in clustering.linguistic(behaviours(means(), NOTHING, **PAPERS))
    assert "do more than chance" in clustering.grouping(REPLICATES, 0.24, 0.3)
    for verdict in (DOES_NOT, CANNOT_TELL):
        assert "do not surely more than chance" in clustering.grouping(verdict, 0.01, 0.3)
    assert "All heads have one label" in clustering.grouping(NOT_MEASURED, float("nan"), 0.3)
    row = pd.Series({"value": 0.21, "p": 0.022, "null_mean": 0.16})
    assert "by 0.16 on average, of the 0.21" in clustering.beyond_layers(row)
    assert "is more than chance (p = 0.022)" in clustering.beyond_layers(row)
    assert "cannot be told from chance (p = 0.030)" in clustering.beyond_layers(pd.Series({**row, "p": 0.03}))
    assert "nothing that clusters could agree with" in clustering.beyond_layers(row * np.nan)


def test_tooltips_tell_what_is_known_of_a_head():
    heads = behaviours(means(sep=[0.7, 0, 0, 0], entropy=[1.5] * 4), best_at((1, 1, "det", 0.75, 0.0)), **PAPERS)
    told = clustering.tooltips(heads, {"next": "the next", "sep": "[SEP]"})
    assert told[0] == (
        "Head 1-1: sep. Attention: 0.0% to the next and 70.0% to [SEP]; entropy 1.50 nats. best at det, 75.0%"
    )
    assert told[3].endswith("entropy 1.50 nats.")
