"""Word vectors: packaged, or a text file."""

import pytest
import torch

from bertlook import BertlookError
from bertlook.corpora.vectors import WordVectors, word_vectors


def test_word_vectors_from_a_text_file(tmp_path):
    for header in ("", "2 3\n"):
        path = tmp_path / "glove.txt"
        path.write_text(header + "the 1 2 3\ndog 4 5 6\n", encoding="utf-8")
        found = word_vectors(str(path))
        assert found.look_up([["The", "cat"], ["dog"]], 3).tolist() == [
            [[1, 2, 3], [0, 0, 0], [0, 0, 0]],
            [[4, 5, 6], [0, 0, 0], [0, 0, 0]],
        ]


@pytest.mark.parametrize("text", ["the 1 2 3\ndog 4 5\n", "the one two\n", ""])
def test_broken_word_vectors_are_an_error_of_one_line(tmp_path, text):
    path = tmp_path / "broken.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BertlookError, match=r"broken\.txt: not word vectors"):
        word_vectors(str(path))
    with pytest.raises(BertlookError, match="no such file"):
        word_vectors(str(tmp_path / "nowhere.txt"))


def test_packaged_vectors_are_words_not_noise():
    vectors = word_vectors()

    def near(a, b):
        x, y = (vectors.table[vectors.index[w]] for w in (a, b))
        return float(torch.cosine_similarity(x, y, 0))

    assert isinstance(vectors, WordVectors) and near("dog", "cat") > near("dog", "parliament") + 0.3


def test_coverage_is_the_share_of_words_with_a_vector():
    vectors = WordVectors("two words", {"the": 0, "Dog": 1}, torch.eye(2))
    assert vectors.coverage([["The", "dog"], ["the", "Dog"]]) == 0.75
