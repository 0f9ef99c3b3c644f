"""The paper's relations, seen in UD trees and in spaCy's: one small tree for each case, then all of GUM."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlook.corpora import schemes
from bertlook.corpora.treebank import treebank


def relations(text, view):
    """``word/TAG/head/relation …`` through a view, as ``relation(head, word)``."""
    words, tags, heads, labels = zip(*(cell.rsplit("/", 3) for cell in text.split()), strict=True)
    heads, labels = view(words, tags, [int(head) for head in heads], labels)
    names = ("ROOT", *words)
    return [f"{label}({names[head]}, {word})" for word, head, label in zip(words, heads, labels, strict=True)]


UD = {
    "a preposition becomes the head of its noun": (
        "She/PRP/2/nsubj sat/VBD/0/root in/IN/5/case the/DT/5/det house/NN/2/obl",
        "nsubj(sat, She) root(ROOT, sat) prep(sat, in) det(house, the) pobj(in, house)",
    ),
    "a preposition below a noun too": (
        "book/NN/0/root of/IN/3/case songs/NNS/1/nmod",
        "root(ROOT, book) prep(book, of) pobj(of, songs)",
    ),
    "the possessive 's stays below its noun": (
        "John/NNP/3/nmod:poss 's/POS/1/case dog/NN/0/root",
        "poss(dog, John) possessive(John, 's) root(ROOT, dog)",
    ),
    "the possessive 's is known without tags": (
        "John//3/nmod:poss ’s//1/case dog//0/root",
        "poss(dog, John) possessive(John, ’s) root(ROOT, dog)",
    ),
    "a possessive pronoun is poss": (
        "its/PRP$/2/nmod:poss dog/NN/0/root",
        "poss(dog, its) root(ROOT, dog)",
    ),
    "both kinds of case on one noun part ways": (
        "friend/NN/0/root of/IN/3/case John/NNP/1/nmod 's/POS/3/case",
        "root(ROOT, friend) prep(friend, of) pobj(of, John) possessive(John, 's)",
    ),
    "several prepositions form a chain": (
        "ran/VBD/0/root out/IN/5/case of/IN/5/case the/DT/5/det box/NN/1/obl",
        "root(ROOT, ran) prep(ran, out) prep(out, of) det(box, the) pobj(of, box)",
    ),
    "of a multi-word preposition the first word counts": (
        "stayed/VBD/0/root because/IN/4/case of/IN/2/fixed rain/NN/1/obl",
        "root(ROOT, stayed) prep(stayed, because) mwe(because, of) pobj(because, rain)",
    ),
    "coordinated prepositions stay together": (
        "walks/VBZ/0/root to/IN/5/case and/CC/4/cc from/IN/2/conj work/NN/1/obl",
        "root(ROOT, walks) prep(walks, to) cc(to, and) conj(to, from) pobj(to, work)",
    ),
    "coordinated prepositional phrases are joined at their prepositions": (
        "works/VBZ/0/root in/IN/3/case Rome/NNP/1/obl and/CC/6/cc near/IN/6/case Bonn/NNP/3/conj",
        "root(ROOT, works) prep(works, in) pobj(in, Rome) cc(in, and) conj(in, near) pobj(near, Bonn)",
    ),
    "coordinated nouns under one preposition stay nouns": (
        "works/VBZ/0/root in/IN/3/case Rome/NNP/1/obl and/CC/5/cc Bonn/NNP/3/conj",
        "root(ROOT, works) prep(works, in) pobj(in, Rome) cc(Rome, and) conj(Rome, Bonn)",
    ),
    "a pronoun can be pobj": (
        "came/VBD/0/root with/IN/3/case him/PRP/1/obl",
        "root(ROOT, came) prep(came, with) pobj(with, him)",
    ),
    "an adverb after a preposition is pcomp": (
        "until/IN/2/case recently/RB/3/obl slept/VBD/0/root",
        "prep(slept, until) pcomp(until, recently) root(ROOT, slept)",
    ),
    "a clause after a preposition is pcomp, without tags too": (
        "depends//0/root on//4/case who//4/nsubj comes//1/advcl",
        "root(ROOT, depends) prep(depends, on) nsubj(comes, who) pcomp(on, comes)",
    ),
    "by doing: the mark before a gerund is a preposition": (
        "won/VBD/0/root by/IN/3/mark cheating/VBG/1/advcl",
        "root(ROOT, won) prep(won, by) pcomp(by, cheating)",
    ),
    "after being chosen: the auxiliary tells the gerund": (
        "left/VBD/0/root after/IN/4/mark being/VBG/4/aux:pass chosen/VBN/1/advcl",
        "root(ROOT, left) prep(left, after) auxpass(chosen, being) pcomp(after, chosen)",
    ),
    "while doing: a subordinator stays mark": (
        "fell/VBD/0/root while/IN/3/mark running/VBG/1/advcl",
        "root(ROOT, fell) mark(running, while) advcl(fell, running)",
    ),
    "because he left: mark stays": (
        "cried/VBD/0/root because/IN/4/mark he/PRP/4/nsubj left/VBD/1/advcl",
        "root(ROOT, cried) mark(left, because) nsubj(left, he) advcl(cried, left)",
    ),
    "the infinitive's to is aux": (
        "want/VBP/0/root to/TO/3/mark go/VB/1/xcomp",
        "root(ROOT, want) aux(go, to) xcomp(want, go)",
    ),
    "what modifies the preposition goes with it": (
        "lives/VBZ/0/root right/RB/4/advmod near/IN/4/case Rome/NNP/1/obl",
        "root(ROOT, lives) advmod(near, right) prep(lives, near) pobj(near, Rome)",
    ),
    "a fragment has its preposition as root": (
        "In/IN/2/case Rome/NNP/0/root ././2/punct",
        "root(ROOT, In) pobj(In, Rome) punct(Rome, .)",
    ),
    "a postposition is turned around too": (
        "rain/NN/3/obl notwithstanding/IN/1/case played/VBD/0/root",
        "pobj(notwithstanding, rain) prep(played, notwithstanding) root(ROOT, played)",
    ),
    "a preposition before a number is quantmod": (
        "Over/IN/2/case 70,000/CD/3/nummod shirts/NNS/0/root",
        "quantmod(70,000, Over) num(shirts, 70,000) root(ROOT, shirts)",
    ),
    "a preposition stranded by a passive leaves its subject alone": (
        "it/PRP/3/nsubj:pass was/VBD/3/aux:pass thought/VBN/0/root of/IN/1/case",
        "nsubjpass(thought, it) auxpass(thought, was) root(ROOT, thought) prep(thought, of)",
    ),
    "a stranded preposition without a noun is prep": (
        "step/VB/0/root into/IN/1/obl",
        "root(ROOT, step) prep(step, into)",
    ),
    "case on case ends as a tree": (
        "up/IN/2/case from/IN/3/case under/NN/0/root",
        "dep(from, up) root(ROOT, from) pobj(from, under)",
    ),
    "the agent of a passive is a prepositional phrase": (
        "seen/VBN/0/root by/IN/3/case us/PRP/1/obl:agent",
        "root(ROOT, seen) prep(seen, by) pobj(by, us)",
    ),
    "a copula stays below an adjective": (
        "He/PRP/3/nsubj is/VBZ/3/cop ill/JJ/0/root",
        "nsubj(ill, He) cop(ill, is) root(ROOT, ill)",
    ),
    "a copula heads a prepositional predicate": (
        "He/PRP/6/nsubj is/VBZ/6/cop now/RB/6/advmod in/IN/6/case old/JJ/6/amod Rome/NNP/0/root ././6/punct",
        "nsubj(is, He) root(ROOT, is) advmod(is, now) prep(is, in) amod(Rome, old) pobj(in, Rome) punct(is, .)",
    ),
    "a clause beside a prepositional predicate joins the copula, a noun does not": (
        "He/PRP/4/nsubj is/VBZ/4/cop in/IN/4/case Rome/NNP/0/root or/CC/6/cc Bonn/NNP/4/conj and/CC/8/cc "
        "sleeps/VBZ/4/conj",
        "nsubj(is, He) root(ROOT, is) prep(is, in) pobj(in, Rome) cc(Rome, or) conj(Rome, Bonn) cc(is, and) "
        "conj(is, sleeps)",
    ),
    "a copula heads an adverb": (
        "He/PRP/3/nsubj is/VBZ/3/cop here/RB/0/root",
        "nsubj(is, He) root(ROOT, is) advmod(is, here)",
    ),
    "a copula heads a clause with its own subject": (
        "Truth/NN/5/nsubj:outer is/VBZ/5/cop that/IN/5/mark she/PRP/5/nsubj left/VBD/0/root",
        "nsubj(is, Truth) root(ROOT, is) mark(left, that) nsubj(left, she) ccomp(is, left)",
    ),
    "a copula heads an infinitive": (
        "Plan/NN/4/nsubj:outer is/VBZ/4/cop to/TO/4/mark leave/VB/0/root",
        "nsubj(is, Plan) root(ROOT, is) aux(leave, to) xcomp(is, leave)",
    ),
    "a name is headed by its last word": (
        "old/JJ/2/amod John/NNP/4/nsubj Smith/NNP/2/flat slept/VBD/0/root",
        "amod(Smith, old) nn(Smith, John) nsubj(slept, Smith) root(ROOT, slept)",
    ),
    "a number after a noun is not its head": (
        "Figure/NNP/0/root 2/CD/1/flat",
        "root(ROOT, Figure) num(Figure, 2)",
    ),
    "compounds, particles, numbers and determiners are renamed": (
        "All/PDT/5/det:predet the/DT/5/det two/CD/5/nummod rain/NN/5/compound coats/NNS/6/nsubj gave/VBD/0/root "
        "up/RP/6/compound:prt",
        "predet(coats, All) det(coats, the) num(coats, two) nn(coats, rain) nsubj(gave, coats) root(ROOT, gave) "
        "prt(gave, up)",
    ),
    "numbers of several words are number": (
        "three/CD/2/compound million/CD/3/nummod dogs/NNS/0/root",
        "number(million, three) num(dogs, million) root(ROOT, dogs)",
    ),
    "both objects keep their names": (
        "gave/VBD/0/root him/PRP/1/iobj bread/NN/1/obj",
        "root(ROOT, gave) iobj(gave, him) dobj(gave, bread)",
    ),
    "an indirect object alone is direct": (
        "told/VBD/0/root him/PRP/1/iobj",
        "root(ROOT, told) dobj(told, him)",
    ),
    "obl without a preposition is npadvmod": (
        "left/VBD/0/root last/JJ/3/amod week/NN/1/obl:unmarked",
        "root(ROOT, left) amod(week, last) npadvmod(left, week)",
    ),
    "UD's temporal nouns are tmod": (
        "left/VBD/0/root Monday/NNP/1/obl:tmod",
        "root(ROOT, left) tmod(left, Monday)",
    ),
    "a relative clause is rcmod": (
        "men/NNS/0/root who/WP/3/nsubj sing/VBP/1/acl:relcl",
        "root(ROOT, men) nsubj(sing, who) rcmod(men, sing)",
    ),
    "a participle below a noun is vmod": (
        "men/NNS/0/root singing/VBG/1/acl",
        "root(ROOT, men) vmod(men, singing)",
    ),
    "the fact that: ccomp": (
        "fact/NN/0/root that/IN/4/mark men/NNS/4/nsubj sing/VBP/1/acl",
        "root(ROOT, fact) mark(sing, that) nsubj(sing, men) ccomp(fact, sing)",
    ),
    "looks good: acomp": (
        "looks/VBZ/0/root good/JJ/1/xcomp",
        "root(ROOT, looks) acomp(looks, good)",
    ),
    "not is neg, about a number is quantmod": (
        "did/VBD/3/aux not/RB/3/advmod eat/VB/0/root about/RB/5/advmod 20/CD/6/nummod eggs/NNS/3/obj",
        "aux(eat, did) neg(eat, not) root(ROOT, eat) quantmod(20, about) num(eggs, 20) dobj(eat, eggs)",
    ),
    "the expletive it is a subject, there is not": (
        "it/PRP/2/expl rained/VBD/0/root there/EX/4/expl was/VBD/2/parataxis",
        "nsubj(rained, it) root(ROOT, rained) expl(was, there) parataxis(rained, was)",
    ),
    "a coordinator hangs on the first conjunct": (
        "cats/NNS/0/root dogs/NNS/1/conj and/CC/4/cc birds/NNS/1/conj",
        "root(ROOT, cats) conj(cats, dogs) cc(cats, and) conj(cats, birds)",
    ),
    "amod that is a name is nn": (
        "National/NNP/2/amod Library/NNP/0/root",
        "nn(Library, National) root(ROOT, Library)",
    ),
    "what the paper's scheme lacks is dep": (
        "John/NNP/2/vocative come/VB/0/root",
        "dep(come, John) root(ROOT, come)",
    ),
}

SPACY = {
    "prepositions are heads already": (
        "sat/VBD/0/ROOT in/IN/1/prep Rome/NNP/2/pobj",
        "root(ROOT, sat) prep(sat, in) pobj(in, Rome)",
    ),
    "labels are renamed": (
        "two/CD/3/nummod rain/NN/3/compound coats/NNS/6/nsubjpass that/WDT/5/nsubj leak/VBP/3/relcl seen/VBN/0/ROOT "
        "by/IN/6/agent John/NNP/10/poss 's/POS/8/case wife/NN/7/pobj",
        "num(coats, two) nn(coats, rain) nsubjpass(seen, coats) nsubj(leak, that) rcmod(coats, leak) root(ROOT, seen) "
        "prep(seen, by) poss(wife, John) possessive(John, 's) pobj(by, wife)",
    ),
    "the copula goes below its predicate": (
        "He/PRP/2/nsubj is/VBZ/0/ROOT a/DT/4/det doctor/NN/2/attr now/RB/2/advmod",
        "nsubj(doctor, He) cop(doctor, is) det(doctor, a) root(ROOT, doctor) advmod(doctor, now)",
    ),
    "an adjective after be too, but not after other verbs": (
        "He/PRP/2/nsubj is/VBZ/0/ROOT ill/JJ/2/acomp and/CC/2/cc looks/VBZ/2/conj bad/JJ/5/acomp",
        "nsubj(ill, He) cop(ill, is) root(ROOT, ill) cc(ill, and) conj(ill, looks) acomp(looks, bad)",
    ),
    "what there is is its subject": (
        "There/EX/2/expl is/VBZ/0/ROOT hope/NN/2/attr",
        "expl(is, There) root(ROOT, is) nsubj(is, hope)",
    ),
    "conjuncts and coordinators hang on the first": (
        "cats/NNS/0/ROOT dogs/NNS/1/conj and/CC/2/cc birds/NNS/2/conj",
        "root(ROOT, cats) conj(cats, dogs) cc(cats, and) conj(cats, birds)",
    ),
    "a dative is iobj, or prep on a preposition": (
        "gave/VBD/0/ROOT him/PRP/1/dative bread/NN/1/dobj to/IN/1/dative eat/VB/4/pcomp",
        "root(ROOT, gave) iobj(gave, him) dobj(gave, bread) prep(gave, to) pcomp(to, eat)",
    ),
    "the fact that: ccomp": (
        "fact/NN/0/ROOT that/IN/3/mark works/VBZ/1/acl proving/VBG/1/acl",
        "root(ROOT, fact) mark(works, that) ccomp(fact, works) vmod(fact, proving)",
    ),
}


@pytest.mark.parametrize(("given_tree", "expected"), UD.values(), ids=UD)
def test_the_papers_view_of_universal_dependencies(given_tree, expected):
    assert " ".join(relations(given_tree, schemes.from_ud)) == expected


@pytest.mark.parametrize(("given_tree", "expected"), SPACY.values(), ids=SPACY)
def test_the_papers_view_of_spacy(given_tree, expected):
    assert " ".join(relations(given_tree, schemes.from_spacy)) == expected


def is_tree(heads):
    """Every word reaches the root, in at most as many steps as there are words."""
    above = list(heads)
    for _ in range(len(heads).bit_length()):  # each pass doubles how far up a word looks
        above = [above[h - 1] if h else 0 for h in above]
    return not any(above) and heads.count(0) == 1


def test_the_check_for_trees_can_fail():
    assert is_tree((0, 1, 2)) and not is_tree((2, 1, 0)) and not is_tree((0, 0)) and not is_tree((2, 3, 1))


@pytest.fixture(scope="module")
def gum(open_data):
    return treebank("gum", scheme="raw"), treebank("gum")


def test_all_of_gum_stays_trees_over_the_same_words(gum):
    raw, paper = gum
    assert len(raw) == len(paper) == 13263
    for before, after in zip(raw, paper, strict=True):
        assert before.words == after.words
        assert is_tree(after.heads)


def test_all_of_gum_has_the_papers_labels_and_none_of_ud(gum):
    raw, paper = gum
    before = Counter(relation for sentence in raw for relation in sentence.relations)
    after = Counter(relation for sentence in paper for relation in sentence.relations)
    assert set(after) <= schemes.LABELS
    assert after["det"] == before["det"]
    assert after["poss"] == before["nmod:poss"]
    assert after["root"] == len(paper)
    possessives = sum(tag == "POS" for s in raw for tag, r in zip(s.tags, s.relations, strict=True) if r == "case")
    assert abs(after["possessive"] - possessives) <= 5


def test_in_all_of_gum_a_pobj_hangs_on_a_preposition(gum):
    for sentence in gum[1]:
        for head, relation in zip(sentence.heads, sentence.relations, strict=True):
            if relation == "pobj":
                assert head and sentence.relations[head - 1] in {"prep", "dep"} | schemes.CLAUSE_LEVEL


LABELS = sorted({cell.rsplit("/", 1)[1] for text, _ in [*UD.values(), *SPACY.values()] for cell in text.split()})
TAGS = ["", "IN", "TO", "POS", "NN", "NNP", "VBG", "VBZ", "RB", "CD", "JJ"]


@st.composite
def any_tree(draw):
    n = draw(st.integers(1, 12))
    order = draw(st.permutations(range(1, n + 1)))
    heads = {order[0]: 0} | {word: draw(st.sampled_from(order[:i])) for i, word in enumerate(order) if i}
    words = draw(st.lists(st.sampled_from(["to", "'s", "is", "in", "x", "not"]), min_size=n, max_size=n))
    tags = draw(st.lists(st.sampled_from(TAGS), min_size=n, max_size=n))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=n, max_size=n))
    return words, tags, [heads[i] for i in range(1, n + 1)], labels


@given(any_tree())
@settings(max_examples=1000, deadline=None)
def test_any_tree_with_any_labels_stays_a_tree(tree):
    for view in (schemes.from_ud, schemes.from_spacy):
        heads, labels = view(*tree)
        assert is_tree(heads)
        assert set(labels) <= schemes.LABELS
        assert [label == "root" for label in labels] == [head == 0 for head in heads]
