import math

import numpy as np
import pandas as pd
import pytest
import torch

from bertlook.attention import measure
from bertlook.claims import claims, same_depth
from bertlook.encoder import CLS, SEP, TOKEN_CLASSES
from bertlook.statistics import bootstrap_weights, interval
from bertlook.surface import (
    ClassAttention,
    Entropy,
    Surface,
    entropy,
    heads_table,
    layers_table,
    quantities,
    same_sink,
    views,
    words,
)


@pytest.fixture(scope="module")
def measured(encoder, segments):
    surface = Surface(encoder)
    measure(encoder, segments, *surface.measures, budget=700, progress=None)
    return surface


@pytest.fixture(scope="module")
def plain(encoder, segments, maps):
    """The quantities of §3.2 and §3.3 as the loops that a reader of the paper would write."""
    shape = (encoder.layers, encoder.heads)
    sums = {name: np.zeros(shape) for name in (*TOKEN_CLASSES, "sep_to_sep", "other_to_sep", "entropy", "entropy_cls")}
    queries = dict.fromkeys(sums, 0)
    for segment, attention in zip(segments, maps, strict=True):
        attention = attention.double().numpy()
        kinds = [TOKEN_CLASSES[encoder.token_classes[i]] for i in segment.ids]
        for q in range(len(segment)):
            rows = attention[:, :, q]
            spread = np.zeros(shape)
            for k in range(len(segment)):
                sums[kinds[k]] += rows[:, :, k]
                if kinds[k] == "sep":
                    sums["sep_to_sep" if kinds[q] == "sep" else "other_to_sep"] += rows[:, :, k]
                p = rows[:, :, k]
                spread -= np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0)
            sums["entropy"] += spread
            for name in (*TOKEN_CLASSES, "entropy", "sep_to_sep" if kinds[q] == "sep" else "other_to_sep"):
                queries[name] += 1
            if kinds[q] == "cls":
                sums["entropy_cls"] += spread
                queries["entropy_cls"] += 1
    return {name: sums[name] / queries[name] for name in sums}


@pytest.mark.parametrize("name", [*TOKEN_CLASSES, "sep_to_sep", "other_to_sep", "entropy", "entropy_cls"])
def test_each_quantity_is_the_double_loop(measured, plain, name):
    np.testing.assert_allclose(measured.means()[name].numpy(), plain[name], atol=1e-5)


def test_the_order_and_size_of_batches_do_not_matter(encoder, segments, measured):
    other = Surface(encoder)
    measure(encoder, segments[::-1], *other.measures, budget=100, progress=None)
    for name, values in measured.means().items():
        torch.testing.assert_close(other.means()[name], values, atol=1e-6, rtol=0)


def test_classes_add_up_to_all_attention(measured):
    means = measured.means()
    total = sum(means[name] for name in TOKEN_CLASSES)
    torch.testing.assert_close(total, torch.ones_like(total), atol=1e-5, rtol=0)
    assert math.isclose(sum(measured.class_share().values()), 1)


def test_measures_of_two_halves_merge_to_the_whole(encoder, segments, measured):
    first, second = Surface(encoder), Surface(encoder)
    measure(encoder, segments[:5], *first.measures, progress=None)
    measure(encoder, segments[5:], *second.measures, progress=None)
    for mine, theirs in zip(first.measures, second.measures, strict=True):
        mine.merge_state(theirs)
    for name, values in measured.means().items():
        torch.testing.assert_close(first.means()[name], values, atol=1e-6, rtol=0)


def test_uniform_entropy_is_the_logarithm_of_the_length(measured, segments):
    every = sum(len(s) * math.log(len(s)) for s in segments) / sum(map(len, segments))
    start = sum(math.log(len(s)) for s in segments) / len(segments)
    assert measured.uniform_entropy() == pytest.approx((every, start), abs=1e-5)


def test_entropy_knows_its_extremes():
    rows = torch.tensor([[0.25] * 4, [1.0, 0, 0, 0], [0.0] * 4])
    torch.testing.assert_close(entropy(rows), torch.tensor([math.log(4), 0, 0]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("token_class", ["cls", "sep"])
def test_the_sink_is_found_where_it_was_put(encoder, segments, token_class):
    """A control that can fail: maps built so that one special token gets everything."""
    from bertlook.attention import batches

    surface = Surface(encoder)
    for batch in batches(encoder, segments):
        target = (batch.classes == {"cls": CLS, "sep": SEP}[token_class]).float()
        rows = target / target.sum(1, keepdim=True)
        attention = rows[None, :, None, None] * batch.mask[None, :, None, :, None]
        attention = attention.expand(encoder.layers, -1, encoder.heads, -1, -1)
        for each in surface.measures:
            each.update(attention, batch)
    assert surface.sink() == token_class
    assert surface.means()[token_class].min() == 1


def test_minilms_sink_is_its_start_token(measured):
    assert measured.sink() == "cls"


def test_the_interval_holds_the_mean_and_is_the_same_every_time(measured):
    low, high = interval(measured.resamples()["cls"].mean((-2, -1)))
    mean = float(measured.means()["cls"].mean())
    assert low < mean < high
    assert interval(measured.resamples()["cls"].mean((-2, -1))) == (low, high)


def test_a_bootstrap_sample_is_the_ratio_of_its_own_sums(measured):
    """A sample has its own share of each class of query, not that of the whole text."""
    used = measured.classes.count.flatten(1).sum(1) > 0
    weights = bootstrap_weights(int(used.sum()))
    total, count = measured.classes.total[used], measured.classes.count[used]
    for r in (0, 7, 999):
        mass = queries = 0.0
        for w, mine, theirs in zip(weights[r], total, count, strict=True):
            mass = mass + w * mine[:, :, :, CLS].sum(-1)
            queries += float(w * theirs.sum())
        torch.testing.assert_close(measured.resamples()["cls"][r], mass / queries, atol=1e-9, rtol=0)


def test_the_table_has_a_row_a_head_counted_from_one(measured, encoder):
    table = heads_table(measured)
    names = "layer head cls sep punct other sep_to_sep other_to_sep entropy entropy_cls cls_to_cls other_to_cls"
    assert list(table.columns) == names.split()  # the last two since MiniLM's sink is the start token
    assert table["layer"].tolist()[:: encoder.heads] == list(range(1, encoder.layers + 1))
    assert table["head"].tolist()[: encoder.heads] == list(range(1, encoder.heads + 1))
    np.testing.assert_allclose(table["cls"].to_numpy().reshape(encoder.layers, -1), measured.means()["cls"].numpy())


def test_memory_does_not_grow_with_the_text(encoder, segments):
    small, large = ClassAttention(2, 3), Entropy(2, 3)
    sizes = [sum(state.numel() for state in (m.total, m.count)) for m in (small, large)]
    measure(encoder, [], small, large, progress=None)
    assert [sum(state.numel() for state in (m.total, m.count)) for m in (small, large)] == sizes


def test_layer_means_lie_in_their_intervals(measured, encoder):
    table = layers_table(measured)
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    cls = table[table["quantity"] == "cls"].set_index("layer")["value"]
    assert cls.index.tolist() == list(range(1, encoder.layers + 1))
    np.testing.assert_allclose(cls, measured.means()["cls"].mean(1).numpy())


def test_the_claims_quantities_are_the_means_that_the_claims_name(measured, encoder):
    table = quantities(measured, "12 segments").set_index("quantity")
    heads = heads_table(measured).set_index("layer")

    def at(first, last):
        return [layer + 1 for layer in same_depth(encoder.layers, first, last)]

    def over(name, *layers):
        return heads.loc[list(layers), name].mean()

    share = measured.class_share()["cls"]
    expected = {
        "sink-half": over("cls", 3, 4, 5),
        "sink-share": over("cls", 3, 4, 5) / share,
        "early-cls": over("cls", *at(2, 4)) - over("cls", *at(9, 12)),
        "late-punct": over("punct", *at(11, 12)) - over("punct", 1, 2, 3, 4, 5),
        "sink-self": over("cls_to_cls", *at(5, 8)),
        "broad-early": over("entropy", 1) - over("entropy", 3, 4, 5),
        "broad-cls": over("entropy_cls", 6) - over("entropy_cls", 1, 2, 3, 4, 5),
    }
    assert list(table.index) == [claim.id for claim in claims("surface")] == list(expected)
    for name, value in expected.items():
        assert table.loc[name, "value"] == pytest.approx(value, abs=1e-9)
        assert table.loc[name, "low"] <= table.loc[name, "value"] <= table.loc[name, "high"]


def test_the_words_are_of_this_model(measured, encoder):
    said = words(measured, encoder)
    assert said["sink"] == said["cls"] == "[CLS]" and said["sep"] == "[SEP]"
    total = sum(float(said[f"to-{name}"].rstrip("%")) for name in ("cls", "sep", "punct", "other"))
    assert total == pytest.approx(100, abs=0.2)


def test_another_sink_than_berts_is_said_to_be_another():
    assert "agree" in same_sink("sep") and "agree" not in same_sink("cls") and "another token" in same_sink("cls")


def test_a_view_is_of_the_head_with_the_most():
    heads = pd.DataFrame({"layer": [1, 1, 2, 2], "head": [1, 2, 1, 2], "cls": [0.1, 0.2, 0.9, 0.3]})
    maps = torch.rand(2, 2, 3, 3)
    (view,) = views(heads, {"cls": "most to it"}, list("abc"), maps)
    assert view.title == "head 2-1, most to it"
    np.testing.assert_array_equal(view.weights, maps[1, 0].numpy())
