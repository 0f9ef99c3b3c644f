import numpy as np
import pytest
import torch

from bertlook.attention import measure
from bertlook.positional import PositionProfile


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
    table = profile.table()
    assert list(table.columns) == ["layer", "head", "offset", "attention"]
    assert len(table) == 21 * encoder.layers * encoder.heads
    row = table[(table["layer"] == 1) & (table["head"] == 3) & (table["offset"] == -1)]
    np.testing.assert_allclose(row["attention"], profile.at(-1)[0, 2])


def test_minilms_head_1_3_looks_at_the_previous_token(profile):
    assert profile.at(-1)[0, 2] > 0.9 > profile.at(1)[0, 2]
