"""The paper's relations (§4.2: Stanford Dependencies, basic) seen in trees of other schemes.

Each function takes a tree as four sequences, one entry a word (words, Penn Treebank tags or ``""``, heads from 1 with 0
for the root, relations), and returns heads and relations. It makes only two moves: a dependent takes the place of its
head, or is lifted to an ancestor. So what was a tree stays a tree, over the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

Tree = tuple[tuple[int, ...], tuple[str, ...]]
View = Callable[[Sequence[str], Sequence[str], Sequence[int], Sequence[str]], Tree]

POSSESSIVES = {"'s", "’s", "'", "’"}
NEGATIONS = {"not", "n't", "n’t", "never"}
BE = set("be is are was were been being am 's ’s 're ’re 'm ’m ai".split())
#: Subordinators that stay ``mark`` even before a gerund; others, as in *by doing*, are prepositions.
SUBORDINATORS = set("that if whether because although though while whilst unless once when whereas so lest".split())
#: A preposition takes over these relations from its object; in all others it is ``prep``.
CLAUSE_LEVEL = set(
    "root conj parataxis ccomp csubj appos dep list reparandum orphan dislocated discourse vocative".split()
)
#: What stays with a noun when its copula becomes the head of the clause.
NOMINAL = set("det amod nummod nmod compound flat fixed goeswith acl appos case".split())

#: The relations of Stanford Dependencies, basic.
LABELS = frozenset(
    "root acomp advcl advmod amod appos aux auxpass cc ccomp conj cop csubj csubjpass dep det discourse dobj expl "
    "goeswith iobj mark mwe neg nn npadvmod nsubj nsubjpass num number parataxis pcomp pobj poss possessive preconj "
    "predet prep prt punct quantmod rcmod tmod vmod xcomp".split()
)


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(">") for pair in text.split())


UD_LABELS = _pairs(
    "obj>dobj nmod:poss>poss aux:pass>auxpass nsubj:pass>nsubjpass csubj:pass>csubjpass compound>nn compound:prt>prt "
    "nummod>num fixed>mwe det:predet>predet cc:preconj>preconj acl>vmod acl:relcl>rcmod nmod:desc>nn nmod:tmod>tmod "
    "obl:tmod>tmod nmod:npmod>npadvmod nmod:unmarked>npadvmod obl>npadvmod case>possessive"
)
SPACY_LABELS = _pairs(
    "ROOT>root compound>nn nmod>nn relcl>rcmod acl>vmod case>possessive nummod>num intj>discourse dative>iobj "
    "agent>prep attr>xcomp oprd>xcomp"
)


class _Editor:
    """A tree under change; words are numbered from 1, and 0 stands above the root."""

    def __init__(self, words: Sequence[str], tags: Sequence[str], heads: Sequence[int], relations: Sequence[str]):
        self.words = ("", *(word.lower() for word in words))
        self.tags = ("", *tags)
        self.heads = [0, *heads]
        self.relations = ["", *relations]
        self.children: list[list[int]] = [[] for _ in self.words]
        for i, head in enumerate(heads, 1):
            self.children[head].append(i)

    def base(self, i: int) -> str:
        """The relation without its subtype."""
        return self.relations[i].partition(":")[0]

    def below(self, i: int, *bases: str) -> list[int]:
        return [j for j in self.children[i] if self.base(j) in bases]

    def lift(self, i: int, ancestor: int) -> None:
        """Hang a word on one of its ancestors."""
        self.children[self.heads[i]].remove(i)
        self.children[ancestor].append(i)
        self.heads[i] = ancestor

    def swap(self, i: int, relation: str) -> None:
        """Let a word take the place and relation of its head, which becomes its dependent, by ``relation``."""
        head = self.heads[i]
        self.lift(i, self.heads[head])
        self.children[self.heads[head]].remove(head)
        self.children[i].append(head)
        self.heads[head] = i
        self.relations[i], self.relations[head] = self.relations[head], relation

    def edited(self, steps: Sequence[Callable[[_Editor, int], None]], label: Callable[[_Editor, int], str]) -> Tree:
        """The tree after each step was taken at each word, with what ``label`` then calls relations below the root."""
        numbers = range(1, len(self.words))
        for step in steps:
            for i in numbers:
                step(self, i)
        names = {i: label(self, i) for i in numbers if self.heads[i]}
        known = {i: name if name in LABELS - {"root"} else "dep" for i, name in names.items()}
        return tuple(self.heads[1:]), tuple(known.get(i, "root") for i in numbers)


def from_ud(words: Sequence[str], tags: Sequence[str], heads: Sequence[int], relations: Sequence[str]) -> Tree:
    """The paper's view of a Universal Dependencies tree.

    - **Prepositions** (``case``) become heads: ``prep`` where their noun was, the noun their ``pobj`` (an adverb or
      verb: ``pcomp``), with what stands left of them. Several form a chain (*out* → *of* → *box*); of multi-word ones
      the first word counts, the others are its ``mwe``. A preposition takes over the noun's relation where that is
      one between clauses or phrases (root, ``conj``, …); coordinated phrases are joined at their prepositions. One
      left behind by a passive (*it was thought of*) is ``prep`` of the verb; one before a number is ``quantmod``.
    - ``mark`` before a **gerund** (*by doing*) likewise: ``prep`` and ``pcomp``, where tags tell a gerund (``VBG``).
      The infinitive's *to* is ``aux``, other ``mark`` stays.
    - The possessive *'s* stays below its noun: ``possessive``.
    - **Copulas** stay as they are, ``cop`` below the predicate, for Stanford Dependencies do so too; but the copula is
      the head before a prepositional phrase (*is in Paris*, ``prep``), an adverb (*is here*, ``advmod``) and a clause
      with a subject of its own (*is that he left*, ``ccomp``, ``xcomp``).
    - **Names** (``flat``) have their last word as head, the others its ``nn``; after a number (*Figure 2*) they do not.
    - ``cc`` hangs on the first conjunct.
    - ``obl`` and ``nmod:unmarked`` without a preposition are ``npadvmod`` (``tmod`` where UD says so); a stranded
      preposition is ``prep``. ``acl`` is ``rcmod`` (relative clauses), ``ccomp`` (with a subordinator: *the fact that*)
      or ``vmod``; an adjective as ``xcomp`` is ``acomp``; ``advmod`` is ``neg`` (*not, never*) or ``quantmod`` (of a
      number); the expletive *it* is ``nsubj``; ``iobj`` without an object beside it is ``dobj``; ``amod`` that is a
      name by its tag is ``nn``.
    - *want him to go* stays as UD has it, ``dobj`` and ``xcomp``.
    - Other relations are renamed; those without a counterpart (``vocative``, ``list``, ``orphan``, …) are ``dep``.
    """
    return _Editor(words, tags, heads, relations).edited((_name, _copula, _preposition, _coordinator), _ud_label)


def from_spacy(words: Sequence[str], tags: Sequence[str], heads: Sequence[int], relations: Sequence[str]) -> Tree:
    """The paper's view of a tree by spaCy's English pipelines (ClearNLP labels).

    Prepositions are heads there already. The predicate after *be* (``attr``, ``acomp``) becomes the head, the copula
    its ``cop``; after *there is* it is ``nsubj``. All conjuncts and ``cc`` hang on the first conjunct. ``acl`` with
    a subordinator is ``ccomp``; ``dative`` is ``iobj``, or ``prep`` on a preposition; others are renamed.
    """
    return _Editor(words, tags, heads, relations).edited((_first_conjunct, _predicate), _spacy_label)


def is_ud(relations: Collection[str]) -> bool:
    """Whether the relations of a treebank are UD's rather than those of Stanford Dependencies."""
    bases = {relation.partition(":")[0] for relation in relations}
    return not bases & {"dobj", "pobj"} and bool(bases & {"case", "obj", "obl", "nmod", "nummod", "fixed", "flat"})


# -------------------------------------------------------------------------------------------------- UD, step by step


def _name(tree: _Editor, i: int) -> None:
    parts = tree.below(i, "flat")
    last = parts[-1] if parts else i
    if last == i or (tree.tags[last] and not tree.tags[last].startswith(("N", "PROPN", "FW", "X"))):
        return
    tree.swap(last, "compound")
    for j in tree.children[i].copy():
        tree.lift(j, last)
        if j in parts:
            tree.relations[j] = "compound"


def _copula(tree: _Editor, i: int) -> None:
    copulas, prepositions = tree.below(i, "cop"), _prepositions(tree, i)
    if not copulas:
        return
    be = copulas[0]
    subjects = tree.below(i, "nsubj", "csubj", "expl")
    outer = [j for j in subjects if tree.relations[j].endswith(":outer")]
    if outer:
        tree.swap(be, "ccomp" if len(subjects) > len(outer) else "xcomp")
        moved = [j for j in tree.children[i] if j < be or j in outer]
    elif prepositions or tree.tags[i].startswith(("RB", "WRB", "ADV")):
        tree.swap(be, "obl" if prepositions else "advmod")
        moved = [j for j in tree.children[i] if not _stays(tree, j, i, (prepositions or [be])[0])]
    else:
        return
    for j in moved:
        tree.lift(j, be)


def _stays(tree: _Editor, j: int, i: int, start: int) -> bool:
    """Whether a dependent of ``i`` belongs to the phrase from ``start`` to ``i`` rather than to its clause."""
    if tree.base(j) == "conj":
        verbal = tree.tags[j].startswith("V") and not _prepositions(tree, j)
        return not verbal and not tree.below(j, "nsubj", "cop", "aux")
    return tree.base(j) in NOMINAL or start <= j < i


def _preposition(tree: _Editor, i: int) -> None:
    prepositions = _prepositions(tree, i)
    relation = tree.base(i)
    if not prepositions:
        return
    if relation in {"nummod", "case"}:
        for p in prepositions:
            tree.relations[p] = "quantmod" if relation == "nummod" else "dep"
        return
    if relation == "nsubj" and tree.heads[i] and prepositions[0] > i:
        for p in prepositions:
            tree.lift(p, tree.heads[i])
            tree.relations[p] = "prep"
        return
    top = prepositions[0]
    for p in prepositions:
        tree.swap(p, "pcomp" if _is_clausal(tree, i) else "pobj")
        if p != top or relation not in CLAUSE_LEVEL:
            tree.relations[p] = "prep"
    for j in tree.children[i].copy():
        if j < top < i or (tree.base(j) == "conj" and _prepositions(tree, j)):
            tree.lift(j, top)


def _prepositions(tree: _Editor, i: int) -> list[int]:
    """Case markers of a noun, prepositions before a gerund; not the possessive 's."""
    cases = [j for j in tree.below(i, "case") if tree.tags[j] != "POS" and tree.words[j] not in POSSESSIVES]
    marks = [j for j in tree.below(i, "mark") if not _is_to(tree, j) and tree.words[j] not in SUBORDINATORS]
    if marks and "VBG" in {tree.tags[j] for j in [i, *tree.below(i, "aux", "cop")]}:
        cases += marks
    return sorted(cases)


def _is_to(tree: _Editor, i: int) -> bool:
    return tree.tags[i] == "TO" or tree.words[i] == "to"


def _is_clausal(tree: _Editor, i: int) -> bool:
    if tree.tags[i]:
        return tree.tags[i].startswith(("V", "RB", "WRB", "ADV"))
    return tree.base(i) in {"advcl", "acl", "advmod"}


def _coordinator(tree: _Editor, i: int) -> None:
    head = tree.heads[i]
    if tree.relations[i] == "cc" and tree.base(head) == "conj" and tree.heads[head]:
        tree.lift(i, tree.heads[head])


def _ud_label(tree: _Editor, i: int) -> str:
    relation, base, word, tag, head = tree.relations[i], tree.base(i), tree.words[i], tree.tags[i], tree.heads[i]
    marks = [j for j in tree.below(i, "mark") if not _is_to(tree, j)]
    match base:
        case "mark" if _is_to(tree, i):
            return "aux"
        case "advmod" if word in NEGATIONS:
            return "neg"
        case "advmod" if tree.tags[head] == "CD":
            return "quantmod"
        case "compound" if tag == tree.tags[head] == "CD":
            return "number"
        case "amod" if tag in {"NNP", "NNPS"}:
            return "nn"
        case "nmod" if relation == "nmod:unmarked" and tag == "CD":
            return "num"
        case "iobj" if not tree.below(head, "obj", "ccomp"):
            return "dobj"
        case "flat":
            return "num" if tag == "CD" else "dep"
        case "expl" if word == "it":
            return "nsubj"
        case "obl" | "nmod" if tag in {"IN", "TO"}:
            return "prep"
        case "acl" if relation == "acl" and marks:
            return "ccomp"
        case "xcomp" if tag.startswith(("JJ", "ADJ")) and not tree.below(i, "mark", "cop", "aux"):
            return "acomp"
    return UD_LABELS.get(relation) or UD_LABELS.get(base, base)


# ----------------------------------------------------------------------------------------------- spaCy, step by step


def _first_conjunct(tree: _Editor, i: int) -> None:
    while tree.relations[i] in {"conj", "cc"} and tree.relations[head := tree.heads[i]] == "conj" and tree.heads[head]:
        tree.lift(i, tree.heads[head])


def _predicate(tree: _Editor, i: int) -> None:
    if tree.relations[i] not in {"attr", "acomp"}:
        return
    be = tree.heads[i]
    if tree.words[be] not in BE or "cop" in map(tree.base, tree.children[i]):
        return
    if tree.below(be, "expl"):
        tree.relations[i] = "nsubj"
        return
    tree.swap(i, "cop")
    for j in tree.children[be].copy():
        tree.lift(j, i)


def _spacy_label(tree: _Editor, i: int) -> str:
    relation = tree.relations[i]
    if relation == "dative" and tree.tags[i] in {"IN", "TO"}:
        return "prep"
    if relation == "acl" and tree.below(i, "mark"):
        return "ccomp"
    return SPACY_LABELS.get(relation, relation)
