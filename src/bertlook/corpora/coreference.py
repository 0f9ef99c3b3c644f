"""Documents with coreferent mentions (§4.3): CoNLL-2012, OntoGUM and the project's own sample."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from bertlook import BertlookError
from bertlook.corpora import Corpus, checksum, read_text, silver

SAMPLE = Path(__file__).parent / "sample"
KINDS = ("pronoun", "proper", "nominal")
PRONOUN_TAGS = {"PRP", "PRP$", "WP", "WP$", "WDT"}
PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves themself this that these those who whom whose "
    "which".split()
)
PTB_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}

Span = tuple[int, int, str]


@dataclass(frozen=True)
class Mention:
    """One mention of an entity.

    Attributes
    ----------
    start, end : int
        Positions of its first word and of the word after its last, counted through the document.
    entity : str
        Which entity it mentions; means something within the document only.
    head : int
        Position of its syntactic head word.
    kind : str
        ``"pronoun"`` (one word, by its tag or a closed list), ``"proper"`` (the head word is tagged as a
        name) or ``"nominal"`` (all else).
    """

    start: int
    end: int
    entity: str
    head: int
    kind: str


@dataclass(frozen=True)
class Document:
    """Words and the mentions among them.

    Attributes
    ----------
    name : str
    words, tags : tuple of str
        Words, and their Penn Treebank parts of speech.
    sentences : tuple of int
        Position at which each sentence starts.
    mentions : tuple of Mention
        In text order: by start, the longer first.
    heads_from : str
        Where the head words come from: ``"dependencies"``, ``"constituency"`` or ``"silver parse"``.
    parses : tuple of str
        The constituency column of CoNLL-2012, a bit a word; empty where there is none.
    part : int
        Number of the part, where the file divides a document into parts.
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
        return sentence_spans(self.sentences, len(self.words))


def documents(source: str | Path, split: str = "all") -> Corpus[Document]:
    """Read a coreference corpus.

    Parameters
    ----------
    source : str or Path
        ``"sample"``, the documents written for this project; ``"gum"``, OntoGUM; or a file or folder:
        CoNLL-2012 (names that end in ``_conll`` or ``.conll``; in a folder with ``gold_conll`` files only
        those) or OntoGUM (``.conllu``).
    split : str
        Of ``"gum"``: ``"train"``, ``"dev"``, ``"test"`` or ``"all"``.

    Returns
    -------
    Corpus of Document
        Documents without words, or with fewer than two mentions, are left out.

    Raises
    ------
    BertlookError
        There is nothing to read, or a file is malformed; says file and line.
    """
    if source == "sample":
        corpus = read_conll(sorted(SAMPLE.glob("*_conll")), "the project's own documents")
        corpus.source["licence"] = "CC0 1.0"
        return corpus
    if source == "gum":
        from bertlook.corpora import gum

        corpus = read_ontogum(gum.paths(split).values(), f"OntoGUM (gold), {split}")
        corpus.source |= {key: value for key, value in gum.source(split).items() if key in {"from", "licence"}}
        return corpus
    path = Path(source).expanduser()
    if not path.exists():
        raise BertlookError(
            f"coreference {str(source)!r}: no such file or folder. Give CoNLL-2012 (*_conll) or OntoGUM (.conllu) "
            "files, or one of the names sample and gum."
        )
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    conll = [file for file in files if file.name.endswith(("_conll", ".conll"))]
    if conll:
        return read_conll([file for file in conll if file.name.endswith("gold_conll")] or conll, path.name)
    if conllu := [file for file in files if file.suffix == ".conllu"]:
        return read_ontogum(conllu, path.name)
    raise BertlookError(f"{path}: no *_conll and no .conllu files here. Give CoNLL-2012 or OntoGUM files.")


def second_reading() -> str:
    """How the sample's links were checked, in words with its numbers, as the record beside the documents has them."""
    record = SAMPLE / "second-reading.tsv"
    if not record.exists():
        return "Each link was annotated once; a second reading is still to be done."
    counts = {name: int(n) for name, n in re.findall(r"^# (\w+): (\d+)$", read_text(record), re.MULTILINE)}
    same = 100 * counts["same"] / counts["mentions"]
    where = "Every link" if counts["documents"] == counts["of"] else f"In {counts['documents']} of them every link"
    return (
        f"{where} was annotated a second time, from the text and the bare mentions, by a reader that had not seen the "
        f"first annotation: of {counts['mentions']:,} mentions {same:.1f}% got the same chain both times. "
        f"Each of the {counts['disputed']:,} mentions whose chain or bracket was in dispute was looked at once "
        f"more, and {counts['corrected'] or 'none'} had to be corrected."
    )


# ---------------------------------------------------------------------------------------------- the two formats


@dataclass
class _Draft:
    """A document as it is being read."""

    file: Path
    line: int
    name: str
    part: int = 0
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    sentences: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # of each sentence's first word
    heads: list[int] = field(default_factory=list)
    parses: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    open: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    between: bool = True  # no word of the current sentence read yet

    def add(self, word: str, tag: str, line: int) -> None:
        if self.between:
            self.sentences.append(len(self.words))
            self.lines.append(line)
            self.between = False
        self.words.append(word)
        self.tags.append(tag)

    def brackets(self, cell: str, line: int, group: int | None = None) -> None:
        """Open and close mentions at the last word; an id closes the mention of that id opened last.

        ``group`` is the place of the entity's id where what is opened has several fields, joined by hyphens.
        """
        word, rest = len(self.words) - 1, cell
        while match := re.match(r"\|?(?:\(([^][(){}|]+)(\))?|([^][(){}|]+)\))", rest):
            opened, single, closed = match.groups()
            rest = rest[match.end() :]
            if opened is None:
                if not self.open[closed]:
                    raise BertlookError(
                        f"{self.file}:{line}: entity {closed} is closed but was not opened in this part. "
                        f"Add ({closed} where the mention starts, or take {closed}) away."
                    )
                self.spans.append((self.open[closed].pop()[0], word + 1, closed))
                continue
            entity = opened if group is None else "".join(opened.split("-")[group : group + 1])
            if not entity:
                raise BertlookError(f"{self.file}:{line}: mention ({opened} names no entity. Write (1 … 1) or (1).")
            if single:
                self.spans.append((word, word + 1, entity))
            else:
                self.open[entity].append((word, line))
        if rest:
            raise BertlookError(
                f"{self.file}:{line}: cannot read {rest!r} of the mentions {cell!r}. Write (1 … 1) around a mention "
                "of entity 1 and (1) on a mention of one word."
            )

    def done(self) -> None:
        """Refuse mentions that are still open."""
        for entity, places in self.open.items():
            if places:
                raise BertlookError(
                    f"{self.file}:{places[0][1]}: entity {entity} is opened but not closed by the end of the part. "
                    f"Add {entity}) where the mention ends; a mention cannot go on in another part."
                )


def read_conll(files: Iterable[Path], name: str) -> Corpus[Document]:
    """CoNLL-2012 files: each part a document.

    Head words come from the constituency column by head rules, or from a silver parse where that column is
    empty. Words, parts of speech, that column and the last one are read; comments and the rest are passed over.
    """
    drafts = [draft for file in files for draft in _conll_drafts(file)]
    return _corpus(name, drafts)


def _conll_drafts(file: Path) -> list[_Draft]:
    drafts: list[_Draft] = []
    draft = None
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.startswith("#begin document"):
            if draft:
                raise BertlookError(
                    f"{file}:{number}: a document begins before the last one, begun in line {draft.line}, has "
                    "ended. Add #end document."
                )
            match = re.fullmatch(r"#begin document \((\S+)\);? *(?:part (\d{1,9}))? *", line)
            if not match:
                raise BertlookError(f"{file}:{number}: unknown header. Write #begin document (name); part 000.")
            draft = _Draft(file, number, match[1], int(match[2] or 0))
        elif line.startswith("#end document"):
            if not draft:
                raise BertlookError(f"{file}:{number}: a document ends that has not begun. Add #begin document.")
            draft.done()
            drafts.append(draft)
            draft = None
        elif line.startswith("#"):
            continue
        elif not line.strip():
            if draft:
                draft.between = True
        elif not draft:
            raise BertlookError(f"{file}:{number}: a word outside a document. Add #begin document (name); part 000.")
        else:
            cells = line.split()
            if len(cells) < 12:
                raise BertlookError(
                    f"{file}:{number}: {len(cells)} columns, but CoNLL-2012 has 12 or more. Complete the line."
                )
            draft.add(PTB_BRACKETS.get(cells[3], cells[3]), cells[4], number)
            draft.parses.append(cells[5])
            if cells[-1] not in {"-", "_", "*"}:
                draft.brackets(cells[-1], number)
    if draft:
        raise BertlookError(f"{file}:{draft.line}: the document has no end. Add #end document.")
    return drafts


def read_ontogum(files: Iterable[Path], name: str) -> Corpus[Document]:
    """OntoGUM: CoNLL-U with mentions in the ``Entity`` field of MISC; head words come from the dependencies.

    Tokens are the syntactic words; multiword tokens and empty nodes are passed over.
    """
    return _corpus(name, [draft for file in files for draft in _ontogum_drafts(file)])


def _ontogum_drafts(file: Path) -> list[_Draft]:
    drafts: list[_Draft] = []
    draft: _Draft | None = None
    sentence: list[tuple[int, str]] = []  # line and HEAD of each word
    group = None

    def end_sentence() -> None:
        if not draft:
            return
        start = len(draft.words) - len(sentence)
        for number, head in sentence:
            if not re.fullmatch(r"\d{1,9}", head) or int(head) > len(sentence):
                raise BertlookError(
                    f"{file}:{number}: head {head}, but the sentence has {len(sentence)} words. Correct column HEAD."
                )
            draft.heads.append(start + int(head) - 1 if int(head) else -1)
        sentence.clear()
        draft.between = True

    for number, line in enumerate([*read_text(file).split("\n"), "", "# newdoc"], 1):
        if line.startswith("#"):
            if re.match(r"# newdoc\b", line):
                end_sentence()
                if draft:
                    draft.done()
                    drafts.append(draft)
                draft = _Draft(file, number, line.partition("=")[2].strip() or file.stem)
            elif match := re.match(r"# global\.Entity *= *(.*)", line):
                layout = match[1].split("-")
                if "GRP" not in layout:
                    raise BertlookError(
                        f"{file}:{number}: the Entity fields have no GRP. Use files of the GUM project."
                    )
                group = layout.index("GRP") if len(layout) > 1 else None
            continue
        if not line.strip():
            end_sentence()
            continue
        cells = line.split("\t")
        if len(cells) != 10:
            raise BertlookError(f"{file}:{number}: {len(cells)} columns, but CoNLL-U has 10. Separate them by tabs.")
        if re.fullmatch(r"\d+[-.]\d+", cells[0]):
            continue
        if cells[0] != str(len(sentence) + 1):
            raise BertlookError(
                f"{file}:{number}: word {cells[0]} where {len(sentence) + 1} is due. Correct column ID."
            )
        if not cells[1].strip() or not cells[4].strip():
            raise BertlookError(f"{file}:{number}: an empty cell. Fill the columns FORM and XPOS.")
        draft = draft or _Draft(file, number, file.stem)
        draft.add(cells[1], cells[4], number)
        sentence.append((number, cells[6]))
        if match := re.search(r"(?:^|\|)Entity=([^|]*)", cells[9]):
            draft.brackets(match[1], number, group)
    return drafts


def to_conll(documents: Iterable[Document], header: Sequence[str] = ()) -> str:
    """Documents as a CoNLL-2012 file, which :func:`read_conll` reads back.

    What the format has and a :class:`Document` has not stays empty; dependencies are lost, for the format has no
    place for them; a space in a name or word becomes an underline. ``header`` are lines for a comment at the top.
    """
    lines = [f"# {line}" for line in header]
    for document in documents:
        cells: list[list[str]] = [[] for _ in document.words]
        for m in reversed(document.mentions):  # of those that end together the innermost closes first
            if m.end - m.start > 1:
                cells[m.end - 1].append(f"{m.entity})")
        for m in document.mentions:
            cells[m.start].append(f"({m.entity})" if m.end - m.start == 1 else f"({m.entity}")
        name = "_".join(document.name.split())
        lines.append(f"#begin document ({name}); part {document.part:03d}")
        for start, end in document.spans():
            for i in range(start, end):
                parse = document.parses[i] if document.parses else "-"
                word = "_".join(document.words[i].split())
                columns = [name, document.part, i - start, word, document.tags[i], parse]
                lines.append("\t".join([*map(str, columns), "-", "-", "-", "-", "*", "|".join(cells[i]) or "-"]))
            lines.append("")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------- heads, kinds, documents


def _corpus(name: str, drafts: Sequence[_Draft]) -> Corpus[Document]:
    seen: dict[tuple[str, int], _Draft] = {}
    left_out: Counter[str] = Counter()
    items = []
    for draft in drafts:
        first = seen.setdefault((draft.name, draft.part), draft)
        if first is not draft:
            raise BertlookError(
                f"{draft.file}:{draft.line}: document {draft.name} part {draft.part} was already read from "
                f"{first.file}:{first.line}. Give it another name, or leave one of them out."
            )
        if not draft.words:
            left_out["documents without words"] += 1
        elif len(set(draft.spans)) < 2:
            left_out["documents with fewer than two mentions"] += 1
        else:
            items.append(_finish(draft, left_out))
    if not items:
        left = Corpus(name, items, left_out).left_out_text()
        raise BertlookError(f"{name}: no document with two mentions (left out: {left}). Give files that hold some.")
    files = sorted({draft.file for draft in drafts})
    heads = Counter(document.heads_from for document in items)
    source: dict[str, Any] = {"corpus": name, "files": len(files), "sha256": checksum(files), "heads": dict(heads)}
    if "silver parse" in heads:
        source["parser"] = silver.parser_version()
    return Corpus(name, items, left_out, source)


def _finish(draft: _Draft, left_out: Counter[str]) -> Document:
    words, tags, sentences = tuple(draft.words), tuple(draft.tags), tuple(draft.sentences)
    parses = tuple(draft.parses) if any("(" in bit for bit in draft.parses) else ()
    if draft.heads:
        heads, heads_from = draft.heads, "dependencies"
    elif parses:
        heads, heads_from = _constituency_heads(draft), "constituency"
    else:
        heads, heads_from = silver_parse(words, sentences)[0], "silver parse"
    spans = set(draft.spans)
    if repeated := len(draft.spans) - len(spans):
        left_out["mentions marked twice"] += repeated
    mentions = make_mentions(spans, words, tags, heads)
    return Document(draft.name, words, tags, sentences, mentions, heads_from, parses, draft.part)


def make_mentions(
    spans: Iterable[Span], words: Sequence[str], tags: Sequence[str], heads: Sequence[int]
) -> tuple[Mention, ...]:
    """Mentions in text order (by start, the longer first, then by entity), with head word and kind."""
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


def _constituency_heads(draft: _Draft) -> list[int]:
    """Position of each word's head, −1 for roots, from the constituency column."""
    from nltk.tree import Tree

    heads = [-1] * len(draft.words)

    def descend(node: Tree) -> int:
        if node.label() == "X":
            return int(node[0])
        words = [descend(child) for child in node]
        labels = [
            draft.tags[w] if child.label() == "X" else child.label() for w, child in zip(words, node, strict=True)
        ]
        head = words[head_child(node.label(), labels)]
        for word in words:
            if word != head:
                heads[word] = head
        return head

    for (start, end), line in zip(sentence_spans(draft.sentences, len(draft.words)), draft.lines, strict=True):
        bits = (draft.parses[i].replace("*", f"(X {i})") for i in range(start, end))
        try:
            tree = Tree.fromstring(" ".join(bits))
            if tree.leaves() != [str(i) for i in range(start, end)] or any(len(t) == 0 for t in tree.subtrees()):
                raise ValueError
            descend(tree)
        except (ValueError, AttributeError, RecursionError) as error:
            raise BertlookError(
                f"{draft.file}:{line}: the constituency column of this sentence does not form a tree. Correct it, or "
                "write - in the whole column for a silver parse."
            ) from error
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


def silver_parse(words: Sequence[str], sentences: Sequence[int]) -> tuple[list[int], list[str]]:
    """Position of each word's head (−1 for roots) and its part of speech, by spaCy, sentence by sentence."""
    spans = sentence_spans(sentences, len(words))
    docs = [silver.spacy_sentence(words[start:end]) for start, end in spans]
    heads, tags = [], []
    for (start, _), doc in zip(spans, silver.parser().pipe(docs), strict=True):
        heads += [-1 if token.head.i == token.i else start + token.head.i for token in doc]
        tags += [token.tag_ for token in doc]
    return heads, tags


def sentence_spans(starts: Sequence[int], words: int) -> list[tuple[int, int]]:
    """Start and end of each sentence."""
    return list(pairwise([*starts, words]))
