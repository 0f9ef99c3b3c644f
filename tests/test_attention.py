import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlook import BertlookError
from bertlook.attention import Segment, attend, batches, pad, pair_segment, to_words, word_segment


@pytest.mark.parametrize("budget", [128, 700, 10_000])
def test_the_stream_gives_each_segment_its_own_attention(encoder, segments, maps, budget):
    """Tolerance 1e-5: another order of the same float32 sums."""
    seen = set()
    for attention, batch in attend(encoder, segments, budget, progress=None):
        for k, i in enumerate(batch.index):
            n = len(segments[i])
            torch.testing.assert_close(attention[:, k, :, :n, :n], maps[i], atol=1e-5, rtol=0)
            assert not attention[:, k, :, n:].any() and not attention[:, k, :, :, n:].any()
            seen.add(i)
    assert seen == set(range(len(segments)))


def test_rows_sum_to_one(encoder, segments):
    for attention, batch in attend(encoder, segments, progress=None):
        sums = attention.sum(-1)
        expected = batch.mask[None, :, None].expand_as(sums).float()
        torch.testing.assert_close(sums, expected, atol=1e-5, rtol=0)


def test_pairs_have_segment_ids_and_special_tokens_in_place(encoder):
    a, b = encoder.tokenizer.convert_tokens_to_ids([["old", "bridge"], ["it", "fell"]][0]), [2009, 3062]
    segment = pair_segment(encoder, a, b, document=3)
    expected = encoder.tokenizer("old bridge", "it fell")
    assert list(segment.ids) == expected["input_ids"]
    assert list(segment.types) == expected["token_type_ids"]
    assert segment.document == 3


def test_segment_ids_reach_the_model(encoder, segments):
    batch = next(batches(encoder, segments))
    types = batch.inputs(encoder)["token_type_ids"]
    for row, i in zip(types, batch.index, strict=True):
        first = segments[i].ids.index(encoder.tokenizer.sep_token_id)
        assert row[: first + 1].sum() == 0
        assert row[first + 1 : len(segments[i])].min() == 1


def test_words_are_numbered_through_their_pieces(encoder):
    segment = word_segment(encoder, ["unbelievably", "old", ",", "isn't"])
    tokens = encoder.tokenizer.convert_ids_to_tokens(list(segment.ids))
    assert tokens[0] == "[CLS]" and tokens[-1] == "[SEP]"
    assert segment.words[0] == segment.words[-1] == -1
    assert sorted(set(segment.words[1:-1])) == [0, 1, 2, 3]
    assert list(segment.words[1:-1]) == sorted(segment.words[1:-1])


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(60, 400))
@settings(max_examples=50, deadline=None)
def test_batches_hold_every_segment_once_and_keep_to_the_budget(encoder, lengths, budget):
    items = [Segment((1000 + n,) * n, (0,) * n) for n in lengths]
    seen = []
    for batch in batches(encoder, items, budget):
        assert batch.ids.numel() <= budget or len(batch.index) == 1
        assert batch.mask.sum(1).tolist() == [lengths[i] for i in batch.index]
        assert (batch.classes.eq(-1) == ~batch.mask).all()
        seen += batch.index
    assert sorted(seen) == list(range(len(items)))


def test_a_segment_over_the_models_limit_is_refused(encoder):
    with pytest.raises(BertlookError, match=r"513 wordpieces, but model 'minilm' takes 512"):
        next(batches(encoder, [Segment((1000,) * 513, (0,) * 513)]))


def test_to_words_is_the_sum_to_and_the_mean_from(encoder):
    """Against the definition, word by word, on real maps of sentences with split words."""
    sentences = [["Unbelievably", "flocculent", "clouds", "."], ["Yes", "."], ["The", "tokenisation", "of", "it"]]
    items = [word_segment(encoder, words) for words in sentences]
    for attention, batch in attend(encoder, items, progress=None):
        words = to_words(attention, batch.words)
        for k, i in enumerate(batch.index):
            pieces = [[t for t, w in enumerate(items[i].words) if w == word] for word in range(len(sentences[i]))]
            special = [t for t, w in enumerate(items[i].words) if w == -1]
            for q, from_ in enumerate(pieces):
                for j, to in enumerate([*pieces, special]):
                    column = j if j < len(pieces) else words.shape[-1] - 1
                    expected = attention[:, k][:, :, from_][..., to].sum(-1).mean(-1)
                    torch.testing.assert_close(words[:, k, :, q, column], expected, atol=1e-6, rtol=0)
            rows = words[:, k, :, : len(pieces)].sum(-1)
            torch.testing.assert_close(rows, torch.ones_like(rows), atol=1e-5, rtol=0)
            assert not words[:, k, :, len(pieces) :].any()


def test_the_stream_uses_the_same_memory_for_every_batch(encoder, segments):
    short = [s for s in segments if len(s) == max(map(len, segments))]
    places = {attention.data_ptr() for attention, _ in attend(encoder, short, budget=1, progress=None)}
    assert len(places) == 1


def test_padding_fills_with_the_tokenizers_token(encoder):
    batch = pad(encoder, [Segment((101, 102), (0, 0)), Segment((101, 2009, 102), (0, 0, 0))], [0, 1])
    assert batch.ids[0].tolist() == [101, 102, encoder.tokenizer.pad_token_id]
    assert batch.classes[0].tolist()[-1] == -1
