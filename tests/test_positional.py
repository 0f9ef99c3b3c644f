import numpy as np
import pandas as pd
import pytest
import torch

from bertlook.attention import measure
from bertlook.claims import claims
from bertlook.positional import (
    NAMES,
    PositionProfile,
    draw_heads_by_offset,
    heads_table,
    layers_table,
    offsets_table,
    over_half,
    quantities,
    strongest_curves,
    words,
)
from looking import check


@pytest.fixture(scope="module")
def profile(encoder, segments):
    profile = PositionProfile(encoder.layers, encoder.heads)
    measure(encoder, segments, profile, budget=700, progress=None)
    return profile


def test_the_profile_is_the_double_loop(profile, segments, maps):
    queries = sum(map(len, segments))
    for i, offset in enumerate(profile.offsets):
        total = 0.0
        for segment, attention in zip(segments, maps, strict=True):
            for q in range(len(segment)):
                if 0 <= q + offset < len(segment):
                    total = total + attention[:, :, q, q + offset].double()
        torch.testing.assert_close(profile.compute()[i], total / queries, atol=1e-5, rtol=0)


def test_the_order_of_batches_does_not_matter(profile, encoder, segments):
    other = PositionProfile(encoder.layers, encoder.heads)
    measure(encoder, segments[::-1], other, budget=100, progress=None)
    torch.testing.assert_close(other.compute(), profile.compute(), atol=1e-6, rtol=0)


def test_offsets_beyond_every_segment_get_nothing(encoder):
    from bertlook.attention import word_segment

    profile = PositionProfile(encoder.layers, encoder.heads, reach=10)
    measure(encoder, [word_segment(encoder, ["Yes", "."])], profile, progress=None)
    assert not profile.at(4).any() and not profile.at(-10).any()
    torch.testing.assert_close(profile.compute().sum(0), torch.ones(6, 12).double(), atol=1e-5, rtol=0)


def test_the_table_names_each_head_and_offset(profile, encoder):
    table = offsets_table(profile)
    assert list(table.columns) == ["layer", "head", "offset", "attention"]
    assert len(table) == 21 * encoder.layers * encoder.heads
    row = table[(table["layer"] == 1) & (table["head"] == 3) & (table["offset"] == -1)]
    np.testing.assert_allclose(row["attention"], profile.at(-1)[0, 2])


def test_minilms_head_1_3_looks_at_the_previous_token(profile):
    assert profile.at(-1)[0, 2] > 0.9 > profile.at(1)[0, 2]


def test_one_row_a_head_holds_its_neighbours(profile, encoder):
    table = heads_table(offsets_table(profile))
    assert list(table.columns) == ["layer", "head", *NAMES] and len(table) == encoder.layers * encoder.heads
    for name, offset in NAMES.items():
        np.testing.assert_allclose(table[name], profile.at(offset).flatten())
    layers = layers_table(profile).set_index(["quantity", "layer"])
    for name in NAMES:
        means = table.groupby("layer")[name].mean()
        assert ((layers.loc[name, "low"] <= means) & (means <= layers.loc[name, "high"])).all()


def test_the_strongest_head_is_chosen_on_one_half_and_scored_on_the_other():
    """A head that is the strongest by luck in one half of the documents is not credited with it."""
    profile = PositionProfile(1, 3, reach=1, groups=4)
    attention = [[0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [0.9, 0.1, 0.5], [0.1, 0.9, 0.5]]  # [group, head]
    profile.total[:, 0, 0] = 10 * torch.tensor(attention, dtype=torch.float64)
    profile.count[:] = 10
    assert float(profile.at(-1).max()) == pytest.approx(0.5)
    value, samples = profile.strongest(-1)
    # Even groups choose head 1, which has 0.1 in the odd ones, and these choose head 2.
    assert value == pytest.approx(0.1) and np.allclose(samples, 0.1)


def test_held_out_is_the_plain_loop(profile):
    value, samples = profile.strongest(-1)
    used = [g for g in range(profile.groups) if profile.count[g].sum() > 0]
    total = count = 0.0
    for side in (0, 1):
        seen = [g for k, g in enumerate(used) if k % 2 == side]
        score = sum(profile.total[g, profile.offsets.index(-1)] for g in seen) / sum(
            float(profile.count[g]) for g in seen
        )
        layer, head = divmod(int(score.argmax()), score.shape[1])
        for g in set(used) - set(seen):
            total += float(profile.total[g, profile.offsets.index(-1), layer, head])
            count += float(profile.count[g])
    assert value == pytest.approx(total / count, abs=1e-12)
    assert samples.min() <= value <= samples.max() and len(samples) == 1000


def test_text_of_one_group_has_no_other_half(encoder):
    profile = PositionProfile(2, 3)
    profile.count[0] = 5
    value, samples = profile.strongest(-1)
    assert np.isnan(value) and np.isnan(samples).all()


def test_each_claim_has_its_quantity(profile):
    table = quantities(profile, "12 segments").set_index("quantity")
    assert set(table.index) == {claim.id for claim in claims("positional")}
    near = profile.at(-1) + profile.at(1)
    assert table.loc["current", "value"] == pytest.approx(float((profile.at(0) - near).mean()))
    assert table.loc["early", "value"] == pytest.approx(float(near[:3].mean() - near[3:].mean()))


HEADS = pd.DataFrame(
    {"layer": [1, 1, 2], "head": [1, 2, 1], "previous": [0.6, 0.1, 0.8], "current": [0.2, 0.3, 0.1], "next": [0.1] * 3}
)


def test_heads_over_half_are_listed_the_strongest_first_or_the_nearest_to_it():
    assert over_half(HEADS, "previous") == "2-1 (80.0%) and 1-1 (60.0%)"
    assert over_half(HEADS, "current") == "none does; the nearest is 1-2 (30.0%)"
    said = words(HEADS)
    assert (said["count-previous"], said["count-next"], said["heads"]) == ("2", "0", "3")
    assert said["mean-current"] == "20.0%" and said["paper-previous"] == "4"


def test_the_curves_are_the_three_most_positional_heads_and_the_mean(profile):
    table = offsets_table(profile)
    curves = strongest_curves(table)
    assert curves["curve"].nunique() == 4 and curves["curve"].iloc[0].startswith("1-3, most to previous")
    mean = curves[curves["curve"] == "mean of all heads"].set_index("offset")["attention"]
    np.testing.assert_allclose(mean, profile.compute().mean((1, 2)))


def test_the_figure_of_all_heads_says_where_most_peak(profile):
    picture = check(draw_heads_by_offset(offsets_table(profile)), xlabel="offset (tokens)", ylabel="head")
    assert "at offset" in picture.alt and "72 heads" in picture.alt
