"""The attention explorer: all heads of a model on a few sentences, in one page that asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from bertlook import BertlookError
from bertlook.attention import Segment, attend, word_segment
from bertlook.encoder import Encoder

#: What a reader is told of how :func:`quantise` rounds.
ROUNDING = (
    "Each weight w is kept in one byte, as its square root, so it may be off by √w/255: "
    "by at most 0.004, and by 0.0004 where w is 0.01."
)

#: A word that is expected to look at another, both counted from 0, and why: ``(4, 2, "nsubj")``.
Mark = tuple[int, int, str]


@dataclass(frozen=True)
class Example:
    """One sentence with the attention of all heads on it.

    Attributes
    ----------
    title, note : str
        Its name in the list of sentences, and what to look for in it.
    model : str
    tokens, labels : tuple of str
        Its wordpieces, and its words.
    words, parts : tuple of int
        Each wordpiece's word (an index into ``labels``, −1 for special tokens) and text (0 or, in a pair, 1).
    codes : Tensor [layer, head, query, key], uint8
        Weights as :func:`quantise` rounds them.
    start : (int, int)
        Layer and head to open first, from 1.
    marks : tuple of Mark
        What is known about it, such as its dependencies: drawn dashed over the attention.
    """

    title: str
    note: str
    model: str
    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    words: tuple[int, ...]
    parts: tuple[int, ...]
    codes: Tensor
    start: tuple[int, int]
    marks: tuple[Mark, ...] = ()


def quantise(weights: Tensor) -> Tensor:
    """One byte a weight: its square root in 255 steps, so that small weights survive."""
    return (weights.float().clamp(0, 1).sqrt() * 255).round().to(torch.uint8)


def example(
    encoder: Encoder,
    text: str | Sequence[str],
    pair: str | None = None,
    *,
    marks: Sequence[Mark] = (),
    title: str = "",
    note: str = "",
    start: tuple[int, int] | None = None,
) -> Example:
    """A text, a pair of texts, or a sentence given as words, with the attention of all heads on it.

    Parameters
    ----------
    encoder : Encoder
    text : str or sequence of str
        As typed: its words are those of the tokenizer, and a special token that is spelled out, such as ``[MASK]``,
        becomes one. Or words, as a treebank has them.
    pair : str, optional
        The second of two texts as typed.
    marks : sequence of Mark
        ``(dependent, head word, relation)``, or what :func:`chain` makes of mentions.
    title, note : str
        The text itself is the title unless said.
    start : (int, int), optional
        Layer and head to open first, from 1; unless said, the head that looks at words most decidedly.

    Raises
    ------
    BertlookError
        The text is empty or longer than the model can take, or the head does not exist.
    """
    given = [text if isinstance(text, str) else " ".join(text), *([] if pair is None else [pair])]
    if not all(map(str.strip, given)):
        raise BertlookError("the text to show is empty. Give a sentence, such as: bertlook show 'The dog barked.'")
    if isinstance(text, str):
        segment, labels, parts = _typed(encoder, given)
    else:
        segment, labels = word_segment(encoder, text), list(text)
        parts = [0] * len(segment)
    if len(segment) > encoder.max_tokens:
        raise BertlookError(
            f"the text has {len(segment)} wordpieces with the special ones, but model {encoder.name!r} takes "
            f"{encoder.max_tokens}. Shorten it."
        )
    if start and not (1 <= start[0] <= encoder.layers and 1 <= start[1] <= encoder.heads):
        raise BertlookError(
            f"head {start[0]}-{start[1]} does not exist: model {encoder.name!r} has {encoder.layers} layers of "
            f"{encoder.heads} heads, counted from 1."
        )
    (attention, _), *_ = attend(encoder, [segment], progress=None)
    weights = attention[:, 0].float().cpu()
    return Example(
        title=title or " ".join(" / ".join(given).split()),
        note=note,
        model=encoder.name,
        tokens=tuple(spelled(encoder.tokenizer, segment)),
        labels=tuple(labels),
        words=segment.words,
        parts=tuple(parts),
        codes=quantise(weights),
        start=start or telling_head(weights, torch.tensor(segment.words)),
        marks=tuple(marks),
    )


def _typed(encoder: Encoder, given: Sequence[str]) -> tuple[Segment, list[str], list[int]]:
    """One or two texts as the tokenizer reads them: the segment, its words, and each wordpiece's text."""
    coded = encoder.tokenizer(*given, return_offsets_mapping=True, return_token_type_ids=True, verbose=False)
    of_text = coded.sequence_ids()
    for number, each in enumerate(given):
        if number not in of_text:
            raise BertlookError(f"the tokenizer of model {encoder.name!r} finds no word in {each[:40]!a}. Give words.")
    labels: list[str] = []
    of_word: list[int] = []
    last, first = None, 0
    for number, word, (begin, end) in zip(of_text, coded.word_ids(), coded["offset_mapping"], strict=True):
        if number is None or word is None:
            of_word.append(-1)
            continue
        if (number, word) != last:
            last, first = (number, word), begin
            labels.append("")
        labels[-1] = given[number][first:end].strip()
        of_word.append(len(labels) - 1)
    ids = tuple(coded["input_ids"])
    between = of_text.index(1) if len(given) == 2 else len(ids)  # the special tokens before it end the first text
    segment = Segment(ids, tuple(coded["token_type_ids"]), words=tuple(of_word))
    return segment, labels, [int(i >= between) for i in range(len(ids))]


def chain(mentions: Sequence[int], label: str = "coreference") -> list[Mark]:
    """Marks from each mention's head word to that of the mention before it."""
    ordered = sorted(mentions)
    return [(later, earlier, label) for earlier, later in pairwise(ordered)]


def examples_of(encoder: Encoder, results: str | Path, longest: int = 50) -> list[Example]:
    """What the chapters on syntax and coreference chose to show, each opened at the head that they found best.

    Parameters
    ----------
    encoder : Encoder
    results : path
        Folder of the chapters' results; where neither has run, a sentence of our own is shown.
    longest : int
        Documents are shown up to so many words.
    """
    examples = []
    for row in _rows(Path(results) / "syntax" / "examples.csv"):
        pairs = [[int(place) - 1 for place in pair.split(">")] for pair in row["pairs"].split()]
        sentence = example(
            encoder,
            row["words"].split(" "),
            marks=[(dependent, head_word, row["relation"]) for dependent, head_word in pairs],
            title=f"{row['relation']}: {row['words']}",
            note=f"Head {row['layer']}-{row['head']} is the best at {row['relation']}, {row['direction']}.",
            start=(int(row["layer"]), int(row["head"])),
        )
        examples.append(sentence)
    for row in _rows(Path(results) / "coreference" / "examples.csv")[:2]:
        shown = row["words"].split(" ")[:longest]
        chains = [[int(place) - 1 for place in one.split(",")] for one in row["chains"].split()]
        best = f"Head {row['layer']}-{row['head']} is the best at finding antecedents."
        document = example(
            encoder,
            shown,
            marks=[mark for one in chains for mark in chain([place for place in one if place < len(shown)])],
            title=f"coreference: {' '.join(shown[:12])} …",
            note=f"{best} The document is {row['document']}.",
            start=(int(row["layer"]), int(row["head"])),
        )
        examples.append(document)
    return examples or [example(encoder, "The old bridge, which the council closed in May, was never repaired.")]


def _rows(file: Path) -> list[dict[str, str]]:
    """A table of another chapter, its cells as text; none if that chapter has not run."""
    if not file.exists():
        return []
    return pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")


def table(examples: Sequence[Example]) -> pd.DataFrame:
    """What an explorer shows: ``title``, and ``layer`` and ``head`` to open first."""
    return pd.DataFrame([(each.title, *each.start) for each in examples], columns=["title", "layer", "head"])


def words(encoder: Encoder, examples: Sequence[Example]) -> dict[str, str]:
    """For the chapter's prose: ``model``, how many ``heads`` it has, and on how many ``texts`` they are shown."""
    texts = f"{len(examples)} text{'' if len(examples) == 1 else 's'}"
    return {"model": encoder.name, "heads": str(encoder.layers * encoder.heads), "texts": texts}


def spelled(tokenizer: Any, segment: Segment) -> list[str]:
    """Wordpieces as one can read them, whatever the tokenizer; one that continues a word starts with ``##``."""
    pieces = []
    for i, (token, word) in enumerate(zip(segment.ids, segment.words, strict=True)):
        name = tokenizer.convert_ids_to_tokens(token)
        text = name if word < 0 else tokenizer.decode([token]).strip()
        if not text or "\ufffd" in text:
            text = name  # part of a letter, in a vocabulary of bytes
        continues = i > 0 and word >= 0 and segment.words[i - 1] == word
        pieces.append(f"##{text}" if continues and not text.startswith("##") else text)
    return pieces


def telling_head(weights: Tensor, words: Tensor) -> tuple[int, int]:
    """The head whose words each look most decidedly at one other word; layer and head from 1."""
    apart = (words[:, None] != words[None]) & (words[:, None] >= 0) & (words[None] >= 0)
    score = (weights * apart).amax(-1).mean(-1)  # [layer, head]
    best = int(score.argmax())
    return best // weights.shape[1] + 1, best % weights.shape[1] + 1


def _as_json(value: Any) -> str:
    """JSON in which nothing can end a script or begin markup, whatever a token looks like."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _packed(codes: Tensor) -> str:
    return base64.b64encode(zlib.compress(codes.contiguous().numpy().tobytes(), 9)).decode()


def _source(name: str) -> str:
    return (files("bertlook") / name).read_text(encoding="utf-8")


def widget(examples: Sequence[Example], heading: int = 3, anchors: bool = True) -> str:
    """An HTML fragment with the explorer, for a notebook or a page of the book.

    Parameters
    ----------
    examples : sequence of Example
        At least one, all of the same model.
    heading : int
        Level of its headings: one more than that of the heading above it.
    anchors : bool
        Whether ``#4-10`` is an anchor of the page for every head, so that links to it resolve without scripts;
        for one explorer a page.
    """
    layers, heads = examples[0].codes.shape[:2]
    if any(each.codes.shape[:2] != (layers, heads) or each.model != examples[0].model for each in examples):
        raise ValueError("an explorer shows one model")
    data = {
        "model": examples[0].model,
        "layers": layers,
        "heads": heads,
        "heading": heading,
        "rounding": ROUNDING,
        "examples": [
            {name: value for name, value in vars(each).items() if name not in ("model", "codes")}
            | {"weights": _packed(each.codes)}
            for each in examples
        ],
    }
    names = [f"{layer}-{head}" for layer in range(1, layers + 1) for head in range(1, heads + 1)]
    targets = "".join(f'<span id="{name}"></span>' for name in names) if anchors else ""
    return (
        f"<style>{_source('explorer.css')}</style>"
        f'<div class="bertlook-explorer"><div class="bertlook-anchors">{targets}</div>'
        f'<script type="application/json">{_as_json(data)}</script>'
        "<noscript><p>The attention explorer draws with JavaScript, which is switched off.</p></noscript></div>"
        f"<script>{_source('explorer.js')}</script>"
    )


def page(examples: Sequence[Example], title: str = "Attention explorer") -> str:
    """A whole HTML page with the explorer, to be opened from anywhere, a disk included.

    Its security policy forbids all requests and every script but the explorer's own.
    """

    def digest(name: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(_source(name).encode()).digest()).decode()}'"

    policy = (
        f"default-src 'none'; script-src {digest('explorer.js')}; style-src {digest('explorer.css')}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    heading = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{heading}</title>\n</head>\n'
        f'<body class="bertlook-page">\n<main>\n<h1>{heading}</h1>\n{widget(examples, heading=2)}\n</main>\n'
        "</body>\n</html>\n"
    )
