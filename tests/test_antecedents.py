"""Antecedent selection: heads and baselines against expectations written by hand, and against plain loops."""

from __future__ import annotations

import pytest
import torch

from bertlook import BertlookError, coreference
from bertlook.agreement import Features, features
from bertlook.coreference import BASELINES, DIRECTIONS, AntecedentSelection, questions, score_baselines
from bertlook.corpora.coreference import documents, read_ontogum
from bertlook.corpora.mentions import KINDS, Document, Mention, kind


def written(text: str) -> Document:
    """A document from ``[entity word/TAG … *head/TAG …]``; the last star within counts, else the first word."""
    words: list[str] = []
    tags: list[str] = []
    open_: list[list] = []
    spans = []
    for piece in text.replace("[", " [").replace("]", " ]").split():
        if piece.startswith("["):
            open_.append([len(words), piece[1:], None])
        elif piece == "]":
            start, entity, head = open_.pop()
            spans.append((start, len(words), entity, start if head is None else head))
        else:
            if piece.startswith("*"):
                for mention in open_:
                    mention[2] = len(words)
            word, _, tag = piece.removeprefix("*").partition("/")
            words.append(word)
            tags.append(tag or "X")
    spans.sort(key=lambda s: (s[0], -s[1], s[2]))
    mentions = tuple(Mention(a, b, e, h, kind(words[a:b], tags[h])) for a, b, e, h in spans)
    return Document("toy", tuple(words), tuple(tags), (0,), mentions, "dependencies")


# Each document, then for each anaphoric mention: its text, the distance in words between its head word and the nearest
# true antecedent's, and whether the five are right: nearest, head match, rule-based; a head that attends most
# to near words (of two equally near ones the first), and one that attends most to the first words of the text.
BY_HAND = {
    "gender": (
        "[a Anna/NNP] met [t Tom/NNP] . [a She/PRP] smiled .",
        {"She": (4, "--x-x")},
    ),
    "one head word, two reports": (
        "[r the first *report/NN] and [s the second *report/NN] differ . [r The *report/NN] is short . [s It/PRP] "
        "is not .",
        {"The report": (8, "----x"), "It": (8, "-----")},
    ),
    "the same string": (
        "[x Rome/NNP] fell . [y Paris/NNP] grew . [x Rome/NNP] rose .",
        {"Rome": (6, "-xx-x")},
    ),
    "a possessor inside": (
        "[c [a Anna/NNP 's/POS] *car/NN] broke . [a She/PRP] sold [c it/PRP] .",
        {"She": (5, "xxx-x"), "it": (5, "--x--")},
    ),
    "conjunction and first conjunct share a head word": (
        "[b [a Anna/NNP] and/CC [m Maria/NNP]] left . [b They/PRP] ran . [a Anna/NNP] fell .",
        {"They": (5, "--x-x"), "Anna": (8, "-xx-x")},
    ),
    "its own head word is no candidate": (
        "[x the/DT [x *man/NN]] slept . [x He/PRP] woke .",
        {"He": (3, "xxxxx")},
    ),
    "first and second person": (
        '" [i I/PRP] saw [y you/PRP] , " said [i Tom/NNP] . " [i My/PRP$] eyes hurt . "',
        {"Tom": (6, "----x"), "My": (3, "xxxxx")},
    ),
    "a group is they": (
        "[t The/DT *team/NN] met [c the/DT *coach/NN] . [t They/PRP] liked [c her/PRP] .",
        {"They": (5, "--x-x"), "her": (4, "--x--")},
    ),
    "the pronoun first": (
        "When [a she/PRP] rose , [b Maria/NNP] sang . [a Anna/NNP] sat .",
        {"Anna": (6, "----x")},
    ),
    "a surname has the gender of the name before": (
        "[k Dr./NNP Farah/NNP *Iqbal/NNP] called [m Mr./NNP *Abad/NNP] . "
        "[k Iqbal/NNP] told [m him/PRP] that [k she/PRP] knew .",
        {"Iqbal": (5, "-xx-x"), "him": (4, "--x--"), "she": (4, "--x-x")},
    ),
    "the mention around it is a candidate": (
        "[s She/PRP] and [e [s her/PRP$] *engineer/NN] left .",
        {"her": (2, "----x")},
    ),
    "things and persons": (
        "[b The/DT *bridge/NN] hurt [g a/DT *girl/NN] and [m two/CD *men/NNS] . "
        "[b It/PRP] fell . [g She/PRP] and [m they/PRP] live .",
        {"It": (8, "--x-x"), "She": (8, "--x--"), "they": (7, "--x--")},
    ),
}
FIVE = (*BASELINES, "near", "first")


@pytest.fixture(params=BY_HAND)
def by_hand(request):
    text, expected = BY_HAND[request.param]
    return written(text), expected


def near_and_first(words: int) -> torch.Tensor:
    """Attention [1, 2, word, word]: more the nearer the key, and more the earlier the key."""
    place = torch.arange(words)
    near = 1 / (1 + (place[:, None] - place).abs())
    first = (1 / (1 + place)).expand(words, words)
    return torch.stack([near, first])[None]


def test_baselines_and_heads_do_what_was_worked_out_by_hand(by_hand):
    document, expected = by_hand
    table, correct, _ = score_baselines([document])
    metric = AntecedentSelection(1, 2)
    metric.update(near_and_first(len(document.words)), document, len(document.words), 0)
    assert metric.mentions().equals(table)
    right = torch.cat([correct, metric.outcomes()[:, 0, 0]], 1)
    got = {
        document.text(document.mentions[row.mention]): (row.distance, "".join("-x"[int(r)] for r in rights))
        for row, rights in zip(table.itertuples(), right, strict=True)
    }
    assert got == expected


def plain_candidates(document, i, kept):
    """Earlier mentions of mention ``i``, within the cut, with another head word."""
    mention = document.mentions[i]
    return [
        other
        for other in document.mentions[:i]
        if other.end <= kept and mention.end <= kept and other.head != mention.head
    ]


def plain_baseline(document, i, candidates, name):
    mention = document.mentions[i]
    known = dict(zip(document.mentions, features(document), strict=True))

    def head(m):
        return document.words[m.head].casefold()

    sieves = {
        "nearest": [],
        "head match": [lambda m: head(m) == head(mention)],
        "rule-based": [
            lambda m: document.text(m).casefold() == document.text(mention).casefold(),
            lambda m: head(m) == head(mention),
            lambda m: all(a == b or a is None or b is None for a, b in zip(known[m], known[mention], strict=True)),
        ],
    }
    for passes in [*sieves[name], lambda m: True]:
        for m in candidates[::-1]:
            if passes(m):
                return m
    raise AssertionError


def plain_outcomes(document, kept, attention):
    """A reader's loop: for each anaphoric mention, each baseline's and each head's rightness."""
    layers, heads = attention.shape[:2]
    baselines, outcomes = [], []
    for i, mention in enumerate(document.mentions):
        candidates = plain_candidates(document, i, kept)
        right = {m.head for m in candidates if m.entity == mention.entity}
        if not right:
            continue
        baselines.append([plain_baseline(document, i, candidates, name).head in right for name in BASELINES])
        words = sorted({m.head for m in candidates})
        rows = [[[False] * heads for _ in range(layers)] for _ in DIRECTIONS]
        for d in range(2):
            for l in range(layers):
                for h in range(heads):
                    a = attention[l, h]
                    best = max(words, key=lambda w: float(a[mention.head, w] if d == 0 else a[w, mention.head]))
                    rows[d][l][h] = best in right
        outcomes.append(rows)
    return torch.tensor(baselines).bool(), torch.tensor(outcomes).bool()


def assert_same_as_plain(documents, kept):
    torch.manual_seed(0)
    metric = AntecedentSelection(2, 3)
    baselines, outcomes = [], []
    for number, (document, words) in enumerate(zip(documents, kept, strict=True)):
        # few distinct values, so that there are ties
        attention = torch.randint(0, 40, (2, 3, words, words)) / 40
        plain = plain_outcomes(document, words, attention)
        baselines.append(plain[0].view(-1, len(BASELINES)))
        outcomes.append(plain[1].view(-1, 2, 2, 3))
        metric.update(attention, document, words, number)
    table, correct, _ = score_baselines(documents, kept)
    assert torch.equal(correct, torch.cat(baselines))
    assert torch.equal(metric.outcomes(), torch.cat(outcomes))
    assert metric.mentions().equals(table)
    return metric


def test_hand_written_documents_agree_with_plain_loops_at_any_cut():
    documents = [written(text) for text, _ in BY_HAND.values()]
    for drop in range(6):
        assert_same_as_plain(documents, [len(d.words) - drop for d in documents])


def test_50_ontogum_documents_agree_with_plain_loops(open_data):
    files = sorted(open_data.glob("gum/*/coref/ontogum/conllu/*.conllu"))[::4][:50]
    documents = read_ontogum(files, "OntoGUM").items
    metric = assert_same_as_plain(documents, [100] * 50)
    assert len(metric.mentions()) > 200
    assert set(metric.mentions()["kind"]) == set(KINDS)


def test_the_cut_and_shared_head_words_are_counted():
    asked, left_out = questions(written("[a Anna/NNP] ran . [a She/PRP] fell . [a Anna/NNP] rose ."), words_kept=6)
    assert [question.mention for question in asked] == [1]
    assert left_out == {"mentions beyond the cut": 1}
    _, left_out = questions(written(BY_HAND["its own head word is no candidate"][0]))
    assert left_out == {
        "candidates with the mention's own head word": 1,
        "anaphoric mentions whose antecedents share their head word": 1,
    }


def test_the_order_of_documents_and_merging_do_not_matter():
    documents = [written(text) for text, _ in BY_HAND.values()]
    maps = [torch.rand(2, 3, len(d.words), len(d.words)) for d in documents]
    whole, left, right = (AntecedentSelection(2, 3) for _ in range(3))
    for number, document in enumerate(documents):
        whole.update(maps[number], document, len(document.words), number)
    for number in reversed(range(len(documents))):
        part = left if number % 2 else right
        part.update(maps[number], documents[number], len(documents[number].words), number)
    left.merge_state(right)
    assert torch.equal(left.outcomes(), whole.outcomes())
    assert left.mentions().equals(whole.mentions())
    torch.testing.assert_close(whole.compute(), whole.outcomes().double().mean(0))


def test_the_table_has_each_head_by_kind():
    document = written(BY_HAND["a possessor inside"][0])
    metric = AntecedentSelection(1, 2)
    metric.update(near_and_first(len(document.words)), document, len(document.words), 0)
    table = metric.table()
    assert list(table.columns) == ["layer", "head", "direction", "mention_type", "n", "accuracy"]
    assert len(table) == 2 * 2 * 4
    first = table.query("head == 2 and direction == @DIRECTIONS[0]").set_index("mention_type")
    assert first.loc["pronoun", ["n", "accuracy"]].tolist() == [2, 0.5]
    assert first.loc["proper", "n"] == 0


def test_a_document_without_anaphoric_mentions_changes_nothing():
    document = written("[a Anna/NNP] met [b Bo/NNP] .")
    metric = AntecedentSelection(1, 2)
    metric.update(near_and_first(4), document, 4, 0)
    assert metric.outcomes().shape == (0, 2, 1, 2)
    assert len(metric.mentions()) == 0
    table, correct, _ = score_baselines([document])
    assert len(table) == len(correct) == 0


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        ("[x himself/PRP]", Features("one", "m", "3", "yes")),
        ("[x We/PRP]", Features("many", None, "1", "yes")),
        ("[x her/PRP$ *sister/NN]", Features("one", "f", "3", "yes")),
        ("[x these/DT *bridges/NNS]", Features("many", "n", "3", "no")),
        ("[x the/DT *council/NN]", Features(None, None, "3", None)),
        ("[x a/DT *cyclist/NN]", Features("one", None, "3", "yes")),
        ("[x Mr./NNP *Singh/NNP]", Features("one", "m", "3", "yes")),
        ("[x *Maria/NNP James/NNP]", Features("one", "f", "3", "yes")),
        ("[x Oslo/NNP *University/NNP]", Features("one", "n", "3", "no")),
        ("[x the/DT *Thames/NNP]", Features("one", "n", "3", "no")),
        ("[x *Singh/NNP]", Features("one", None, "3", None)),
        ("[x *Anna/NNP and/CC Tom/NNP]", Features("many", None, "3", None)),
    ],
)
def test_features_come_from_the_form(mention, expected):
    assert features(written(mention)) == [expected]


# ------------------------------------------------------------------------------------------- a corpus, cut and scored


def test_documents_are_cut_at_whole_words_that_fit(encoder):
    long = written(" . ".join(f"[a Unbelievably{k}/NNP] saw [b it/PRP]" for k in range(40)) + " .")
    short = written("[a Anna/NNP] ran . [a She/PRP] fell .")
    segments, kept, left_out = coreference.fit(encoder, [long, short], max_tokens=40)
    assert (
        len(segments[0]) <= 40
        and kept[1] == len(short.words)
        and left_out["words beyond the cut"] == len(long.words) - kept[0]
    )
    assert sorted(set(segments[0].words) - {-1}) == list(range(kept[0]))
    pieces = len(encoder.tokenizer(long.words[kept[0]], add_special_tokens=False)["input_ids"])
    assert len(segments[0]) + pieces > 40  # the next word would not have fitted


def test_a_contest_scores_all_systems_on_the_same_mentions(encoder):
    corpus = documents("sample").items[:24]
    segments, kept, _ = coreference.fit(encoder, corpus)
    heads = coreference.score_heads(encoder, corpus, segments, kept, progress=None)
    result = coreference.contest(heads, corpus, kept)
    table = result.table()
    assert table.columns.tolist() == ["system", "mention_type", "n", "accuracy", "ci_low", "ci_high", "paper_accuracy"]
    assert set(table.groupby("system")["n"].first()) == {len(result.mentions)}
    accuracy = table[table["mention_type"] == "all"].set_index("system")["accuracy"]
    layer, head = result.best
    every = heads.table().query("mention_type == 'all' and direction == 'mention→antecedent'")
    best = every.loc[every["accuracy"].idxmax()]
    assert (layer, head) == (best["layer"], best["head"]) and accuracy[coreference.SAME] == pytest.approx(
        best["accuracy"]
    )
    assert accuracy[coreference.HELD_OUT] <= accuracy[coreference.SAME]
    value, low, high, n = result.difference("rule-based", "nearest", "pronoun")
    some = (result.mentions["kind"] == "pronoun").to_numpy()
    assert n == some.sum() and low <= value <= high
    assert value == pytest.approx(result.right["rule-based"][some].mean() - result.right["nearest"][some].mean())
    assert result.difference("nearest", "nearest")[:3] == (0, 0, 0)


def test_one_head_beats_the_simple_baselines_on_ontogum(encoder, open_data):
    """The phenomenon, held out, and by a wide margin on pronouns."""
    corpus = documents("gum", "train").items
    segments, kept, _ = coreference.fit(encoder, corpus)
    result = coreference.contest(coreference.score_heads(encoder, corpus, segments, kept, progress=None), corpus, kept)
    for other in ("nearest", "head match"):
        _, low, _, _ = result.difference(coreference.HELD_OUT, other)
        assert low > 0
        _, low, _, _ = result.difference(coreference.HELD_OUT, other, "pronoun")
        assert low > 0.08


def test_nothing_to_score_is_an_error_of_one_line(encoder):
    lone = written("[a Anna/NNP] ran . [b Tom/NNP] fell .")
    segments, kept, _ = coreference.fit(encoder, [lone])
    with pytest.raises(BertlookError, match="no mention has an antecedent"):
        coreference.contest(coreference.score_heads(encoder, [lone], segments, kept, progress=None), [lone], kept)


def test_the_corpus_table_counts_by_genre():
    table = coreference.corpus_table(documents("sample").items)
    assert table["documents"].sum() >= 120
    assert {"news", "encyclopaedia", "instructions", "dialogue", "narrative"} <= set(table["genre"])
    assert (table[["pronoun", "proper", "nominal"]].sum() >= 300).all()
    assert table[["pronoun", "proper", "nominal"]].to_numpy().sum() >= 1200
