"""Antecedent selection without a model: the questions, and the paper's three baselines (§4.3).

A mention is *anaphoric* if an earlier mention of its entity is in the text. For each one, a system selects one head
word among those of the earlier mentions; it is right if that is the head word of a mention of the same entity:

* Earlier is what comes before in text order: by start, the longer mention first.
* Candidates are distinct words: mentions with one head word (``Anna`` in ``[[Anna] and Tom]``) are one
  candidate, right if one of them is. An earlier mention with the very head word of the mention in question is no
  candidate, since a word's attention to itself says nothing. A mention that loses all of its antecedents this
  way is not scored, but counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bertlook.corpora import read_text
from bertlook.corpora.coreference import KINDS, Document, Mention

BASELINES = ("nearest", "head match", "rule-based")


@dataclass(frozen=True)
class Question:
    """One anaphoric mention and what a system may answer; mentions by place in the document's, words by position."""

    mention: int
    word: int  # its head word
    candidates: list[int]  # the earlier mentions, without those that share its head word
    words: set[int]  # the head words of the candidates
    right: set[int]  # those of its antecedents

    @property
    def distance(self) -> int:
        """In words, from the mention's head word to the nearest head word of an antecedent."""
        return min(abs(self.word - word) for word in self.right)


def cut(document: Document, words: int) -> Document:
    """The document's first ``words`` words, and the mentions that end among them."""
    return replace(
        document,
        words=document.words[:words],
        tags=document.tags[:words],
        sentences=tuple(start for start in document.sentences if start < words),
        mentions=tuple(mention for mention in document.mentions if mention.end <= words),
        parses=document.parses[:words],
    )


def questions(document: Document) -> tuple[list[Question], Counter[str]]:
    """The anaphoric mentions of a document, and what was left out, by reason."""
    mentions = document.mentions
    result, left_out = [], Counter[str]()
    for i, mention in enumerate(mentions):
        candidates = [j for j in range(i) if mentions[j].head != mention.head]
        left_out["candidates with the mention's own head word"] += i - len(candidates)
        right = {mentions[j].head for j in candidates if mentions[j].entity == mention.entity}
        if right:
            words = {mentions[j].head for j in candidates}
            result.append(Question(i, mention.head, candidates, words, right))
        elif any(earlier.entity == mention.entity for earlier in mentions[:i]):
            left_out["anaphoric mentions whose antecedents share their head word"] += 1
    return result, +left_out


# --------------------------------------------------------------------------------------------------- the baselines

Sieve = Callable[[int, int], bool]


def sieves(document: Document) -> dict[str, list[Sieve]]:
    """What a mention has to have in common with its antecedent, for each of ``BASELINES``, the strictest first.

    ``nearest`` asks for nothing, ``head match`` for the same head word, case aside. ``rule-based`` follows Lee et
    al. (2011): the same string, the same head word, then agreement in number, gender, person and animacy.
    """
    strings = [document.text(m).casefold() for m in document.mentions]
    heads = [document.words[m.head].casefold() for m in document.mentions]
    known = features(document)
    same_head: list[Sieve] = [lambda a, b: heads[a] == heads[b]]
    rules: list[Sieve] = [lambda a, b: strings[a] == strings[b], *same_head, lambda a, b: known[a].agrees(known[b])]
    return dict(zip(BASELINES, ([], same_head, rules), strict=True))


def answer(question: Question, system: Sequence[Sieve]) -> int:
    """The nearest candidate that passes the first sieve which any candidate passes; without one, the nearest."""
    for passes in system:
        for i in reversed(question.candidates):
            if passes(i, question.mention):
                return i
    return question.candidates[-1]


def score_baselines(documents: Iterable[Document]) -> pd.DataFrame:
    """``document, mention`` (both from 0), ``kind, distance`` of all questions, and a column for each of ``BASELINES``.

    The latter say whether its answer is right; rows go by document and mention.
    """
    rows = []
    for number, document in enumerate(documents):
        systems = sieves(document).values()
        for question in questions(document)[0]:
            chosen = [document.mentions[answer(question, system)].head in question.right for system in systems]
            kind = document.mentions[question.mention].kind
            rows.append([number, question.mention, kind, question.distance, *chosen])
    return pd.DataFrame(rows, columns=["document", "mention", "kind", "distance", *BASELINES])


def corpus_table(documents: Sequence[Document]) -> pd.DataFrame:
    """What a corpus holds, by genre (the first part of a document's name): whole documents, nothing cut.

    ``genre, documents, words, entities, mentions, pronoun, proper, nominal``; the last three count mentions with an
    antecedent.
    """
    rows = []
    for document in documents:
        kinds = Counter(document.mentions[question.mention].kind for question in questions(document)[0])
        counts = {
            "genre": re.split(r"[-_]", document.name.removeprefix("GUM_"))[0],
            "documents": 1,
            "words": len(document.words),
            "entities": len({mention.entity for mention in document.mentions}),
            "mentions": len(document.mentions),
        }
        rows.append(counts | {kind: kinds[kind] for kind in KINDS})
    return pd.DataFrame(rows).groupby("genre", as_index=False).sum()


# ----------------------------------------------------------------------------------------------------- agreement


class Features(NamedTuple):
    """Number, gender, person and animacy of a mention; None where it is not known."""

    number: str | None = None
    gender: str | None = None
    person: str | None = None
    animate: str | None = None

    def agrees(self, other: Features) -> bool:
        """Whether no feature that is known of both differs."""
        return all(a is None or b is None or a == b for a, b in zip(self, other, strict=True))


def _by_word(groups: dict[str, list[str]]) -> dict[str, str]:
    return {word: key for key, words in groups.items() for word in words}


LISTS = json.loads(read_text(Path(__file__).with_name("agreement.json")))
PRONOUNS = {
    word: Features(*(None if value == "-" else value for value in values.split()))
    for word, values in _by_word(LISTS["pronouns"]).items()
}
NUMBER = _by_word(LISTS["number_of_determiners"])
NOUNS = _by_word(LISTS["gender_of_nouns"])
NAMES = NOUNS | _by_word(LISTS["gender_of_names"])
PERSONS, THINGS, GROUPS = (frozenset(LISTS[name]) for name in ("persons", "things", "groups"))
PERSON_SUFFIX = re.compile(r"\w{3,}(ist|ician|eer|woman|man)s?$|\w{3,}women$")


def features(document: Document) -> list[Features]:
    """What form alone tells of each mention: pronouns, determiners, titles, morphology, and lists of words.

    A name without a title or first name has the gender of the last name before it with the same head word.
    """
    result: list[Features] = []
    names: dict[str, Features] = {}
    words = [word.lower() for word in document.words]
    for mention in document.mentions:
        found = _features(words, document.tags, mention)
        if mention.kind == "proper":
            head = words[mention.head]
            if found.gender is None and found.number == "one" and head in names:
                found = found._replace(gender=names[head].gender, animate=names[head].animate)
            if found.gender is not None:
                span = range(mention.start, mention.end)
                names |= {words[i]: found for i in span if document.tags[i].startswith("NNP")}
        result.append(found)
    return result


def _features(words: Sequence[str], tags: Sequence[str], mention: Mention) -> Features:
    head = mention.head
    if mention.kind == "pronoun":
        return PRONOUNS.get(words[head], Features())
    if _conjoined(words, tags, mention):
        return Features("many", None, "3", None)
    number = NUMBER.get(words[mention.start], {"NN": "one", "NNP": "one", "NNS": "many"}.get(tags[head]))
    if mention.kind == "nominal":
        return Features(number, None, "3")._replace(**_noun(words[head], tags[head]))
    first, end = head, head + 1
    while first > mention.start and tags[first - 1].startswith("NNP"):
        first -= 1
    while end < mention.end and tags[end].startswith("NNP"):
        end += 1
    return Features(number, None, "3")._replace(**_name(words[first:end], words[mention.start] == "the"))


def _conjoined(words: Sequence[str], tags: Sequence[str], mention: Mention) -> bool:
    """Whether the mention joins nouns or pronouns by "and", before any verb, preposition or relative pronoun."""
    for i in range(mention.start + 1, mention.end):
        if words[i] == "and" and tags[i - 1].startswith(("N", "PRP")):
            return True
        if tags[i].startswith(("V", "IN", "TO", "W")):
            return False
    return False


def _noun(word: str, tag: str) -> dict[str, str | None]:
    """Gender and animacy of a common noun; a noun that no list has is a thing."""
    if word in NOUNS:
        return {"gender": NOUNS[word], "animate": "yes"}
    if word in PERSONS or PERSON_SUFFIX.match(word):
        return {"animate": "yes"}
    if word in GROUPS:
        return {"number": None}
    return {"gender": "n", "animate": "no"} if tag.startswith("NN") else {}


def _name(words: Sequence[str], definite: bool) -> dict[str, str | None]:
    """Gender and animacy of a name, from what it is a name of, its title, and its first name."""
    if words[0] in THINGS or words[-1] in THINGS:
        return {"gender": "n", "animate": "no"} if words[-1] not in GROUPS else {"number": None}
    for word in words:
        if word in NAMES:
            return {"gender": NAMES[word], "animate": "yes"}
    if any(word in PERSONS for word in words):
        return {"animate": "yes"}
    return {"gender": "n", "animate": "no"} if definite else {}
