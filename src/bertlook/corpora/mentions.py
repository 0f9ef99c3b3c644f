"""Documents and their mentions; a mention's head word, by dependencies or constituents, and the kind that follows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import accumulate, pairwise

from nltk.tree import Tree

KINDS = ("pronoun", "proper", "nominal")
PRONOUN_TAGS = {"PRP", "PRP$", "WP", "WP$", "WDT"}
PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves themself this that these those who whom whose "
    "which".split()
)

Span = tuple[int, int, str]


@dataclass(frozen=True)
class Mention:
    """A mention of an entity: the words from position ``start`` up to ``end``, counted through the document.

    ``entity`` means something within the document only; ``head`` is the position of the syntactic head word. ``kind``
    is ``"pronoun"`` (one word, by its tag or a closed list), ``"proper"`` (the head word is tagged as a name) or
    ``"nominal"`` (all else).
    """

    start: int
    end: int
    entity: str
    head: int
    kind: str


@dataclass(frozen=True)
class Document:
    """Words, their Penn Treebank parts of speech, and the mentions among them, by start, the longer first.

    ``sentences`` has the position at which each sentence starts; ``heads_from`` tells where the head words come from:
    ``"dependencies"``, ``"constituency"`` or ``"silver parse"``. ``parses`` is the constituency column of CoNLL-2012,
    a bit a word, empty where there is none; ``part`` numbers the parts of a document, where a file has several.
    """

    name: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    sentences: tuple[int, ...]
    mentions: tuple[Mention, ...]
    heads_from: str
    parses: tuple[str, ...] = ()
    part: int = 0

    def text(self, mention: Mention) -> str:
        """The mention's words, joined by spaces."""
        return " ".join(self.words[mention.start : mention.end])

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of each sentence."""
        return list(pairwise([*self.sentences, len(self.words)]))


def starts(sentences: Iterable[Sized]) -> tuple[int, ...]:
    """Position in the document at which each sentence starts."""
    return tuple(accumulate(map(len, sentences), initial=0))[:-1]


def make_mentions(
    spans: Iterable[Span], words: Sequence[str], tags: Sequence[str], trees: Sequence[Sequence[int]]
) -> tuple[Mention, ...]:
    """Mentions in text order (by start, the longer first, then by entity), with head word and kind.

    ``trees`` are the sentences' heads, numbered from 1 in the sentence, 0 for the root.
    """
    heads = [
        start + head - 1 if head else -1 for start, tree in zip(starts(trees), trees, strict=True) for head in tree
    ]
    mentions = []
    for start, end, entity in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        head = head_word(start, end, tags, heads)
        mentions.append(Mention(start, end, entity, head, kind(words[start:end], tags[head])))
    return tuple(mentions)


def head_word(start: int, end: int, tags: Sequence[str], heads: Sequence[int]) -> int:
    """The word of the span whose head lies outside the span.

    Punctuation does not count. If several words remain, for the span is no constituent, it is the leftmost
    noun, name or pronoun among them, else the leftmost.
    """
    outside = [i for i in range(start, end) if not start <= heads[i] < end]
    words = [i for i in outside if tags[i][:1].isalpha()] or outside or [start]
    return next((i for i in words if tags[i].startswith(("N", "PRP"))), words[0])


def kind(words: Sequence[str], head_tag: str) -> str:
    """Pronoun, proper or nominal, from the mention's words and the part of speech of its head word."""
    if len(words) == 1 and (head_tag in PRONOUN_TAGS or (words[0].lower() in PRONOUNS and head_tag[:2] != "NN")):
        return "pronoun"
    return "proper" if head_tag in {"NNP", "NNPS"} else "nominal"


def constituency_heads(column: Sequence[str], tags: Sequence[str]) -> list[int]:
    """Each word's head, from 1, 0 for the root, by the constituency column of a sentence in CoNLL-2012.

    A column that does not form a tree over the words is a ValueError.
    """
    heads = [0] * len(tags)

    def descend(node: Tree) -> int:
        if node.label() == "X":
            return int(node[0])
        words = [descend(child) for child in node]
        labels = [tags[w] if child.label() == "X" else child.label() for w, child in zip(words, node, strict=True)]
        head = words[head_child(node.label(), labels)]
        for word in words:
            if word != head:
                heads[word] = head + 1
        return head

    try:
        tree = Tree.fromstring(" ".join(bit.replace("*", f"(X {i})") for i, bit in enumerate(column)))
        if tree.leaves() != [str(i) for i in range(len(tags))] or not all(map(len, tree.subtrees())):
            raise ValueError("other leaves than the words, or a constituent without any")
        descend(tree)
    except (AttributeError, RecursionError) as error:  # a label without brackets; too deep
        raise ValueError(str(error)) from error
    return heads


def head_child(label: str, children: Sequence[str]) -> int:
    """Which child carries the head: a small version of Collins' (1999) rules, fit for noun phrases.

    In a noun phrase the rightmost noun, name or pronoun; else the leftmost noun phrase (the first conjunct, what
    an apposition or a relative clause is about); else the rightmost number or adjective. In a clause the
    leftmost verb or verb phrase, in a prepositional phrase the preposition; else the last child that is no
    punctuation.
    """
    plain = [re.split(r"[-=]", child)[0] or child for child in children]
    label = re.split(r"[-=]", label)[0]

    def first(pattern: str, order: Iterable[int]) -> int | None:
        return next((i for i in order if re.fullmatch(pattern, plain[i])), None)

    forward, backward = range(len(plain)), range(len(plain) - 1, -1, -1)
    if label in {"NP", "NX", "NML", "NAC", "WHNP"}:
        tries = [
            (r"NNP?S?|NX|NML|NAC|PRP|WP", backward),
            (r"NP|WHNP", forward),
            (r"CD|QP|JJ[RS]?|ADJP|DT|EX", backward),
        ]
    elif label in {"PP", "WHPP"}:
        tries = [(r"IN|TO|PP", forward)]
    else:
        tries = [(r"VB.?|MD|VP|S|SINV|SQ", forward)]
    for pattern, order in [*tries, (r"\w.*", backward)]:
        if (found := first(pattern, order)) is not None:
            return found
    return len(plain) - 1
