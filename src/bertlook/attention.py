"""One stream of attention: segments → batches → frozen model → maps → measures."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torchmetrics import Metric
from tqdm.auto import tqdm

from bertlook import BertlookError
from bertlook.corpora import Corpus
from bertlook.encoder import Encoder, tapped

if TYPE_CHECKING:
    from bertlook.corpora.treebank import Sentence

TOKEN_BUDGET = 2048


@dataclass(frozen=True)
class Segment:
    """One input of the model.

    Attributes
    ----------
    ids, types : tuple of int
        Wordpieces with the special tokens in place, and their segment ids (0 for A, 1 for B).
    document : int
        Number of the document it comes from; the bootstrap resamples documents.
    words : tuple of int
        Number of the word each wordpiece belongs to, −1 for special tokens; empty where words do not matter.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...]
    document: int = 0
    words: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Batch:
    """Segments side by side, padded to the longest.

    Attributes
    ----------
    index : list of int
        Where the segments stood in the list given to :func:`batches`.
    ids, types : Tensor [batch, token]
    mask : Tensor [batch, token], bool
        True where there is a token.
    classes : Tensor [batch, token]
        Index into ``TOKEN_CLASSES``, −1 in the padding.
    words : Tensor [batch, token]
        Number of the word, −1 for special tokens and padding.
    documents : Tensor [batch]
    """

    index: list[int]
    ids: Tensor
    types: Tensor
    mask: Tensor
    classes: Tensor
    words: Tensor
    documents: Tensor

    def inputs(self, encoder: Encoder) -> dict[str, Tensor]:
        """Keyword arguments for the model; segment ids only where it knows them."""
        inputs = {"input_ids": self.ids, "attention_mask": self.mask.long()}
        if getattr(encoder.model.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = self.types
        return inputs


def pair_segment(encoder: Encoder, a: Sequence[int], b: Sequence[int], document: int = 0) -> Segment:
    """``[CLS] a [SEP] b [SEP]`` with segment ids 0 for ``a`` and its special tokens, 1 for ``b``."""
    start, between, end, _ = encoder.template
    first = [*start, *a, *between]
    second = [*b, *end]
    return Segment((*first, *second), (0,) * len(first) + (1,) * len(second), document)


def word_segment(encoder: Encoder, words: Sequence[str], document: int = 0) -> Segment:
    """``[CLS] words [SEP]``, each wordpiece with the number of its word."""
    start, _, _, end = encoder.template
    coded = encoder.tokenizer(list(words), is_split_into_words=True, add_special_tokens=False)
    ids = (*start, *coded["input_ids"], *end)
    numbers = (-1,) * len(start) + tuple(coded.word_ids()) + (-1,) * len(end)
    return Segment(ids, (0,) * len(ids), document, numbers)


def batches(
    encoder: Encoder, segments: Sequence[Segment], budget: int = TOKEN_BUDGET, shuffle: int | None = None
) -> Iterator[Batch]:
    """Batches of segments of like length, each of at most ``budget`` wordpieces with padding.

    The longest come first; with a seed as ``shuffle`` the batches come in random order, as training needs them.

    Raises
    ------
    BertlookError
        A segment is longer than the model has positions for.
    """
    order = sorted(range(len(segments)), key=lambda i: (-len(segments[i]), i))
    if order and len(segments[order[0]]) > encoder.max_tokens:
        raise BertlookError(
            f"a segment has {len(segments[order[0]])} wordpieces, but model {encoder.name!r} takes "
            f"{encoder.max_tokens}. Set max_tokens={encoder.max_tokens} or less."
        )
    cuts, start = [], 0
    while start < len(order):
        length = len(segments[order[start]])
        cuts.append(order[start : start + max(1, budget // length)])
        start += len(cuts[-1])
    if shuffle is not None:
        random.Random(shuffle).shuffle(cuts)
    for index in cuts:
        yield pad(encoder, [segments[i] for i in index], index)


def pad(encoder: Encoder, segments: Sequence[Segment], index: Sequence[int]) -> Batch:
    """One batch of these segments."""
    length = max(map(len, segments))
    filler = encoder.tokenizer.pad_token_id or 0

    def table(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
        return torch.tensor([[*row, *[fill] * (length - len(row))] for row in rows], device=encoder.device)

    ids = table([s.ids for s in segments], filler)
    mask = table([[1] * len(s) for s in segments], 0).bool()
    return Batch(
        index=list(index),
        ids=ids,
        types=table([s.types for s in segments], 0),
        mask=mask,
        classes=encoder.token_classes.to(ids.device)[ids].masked_fill(~mask, -1),
        words=table([s.words or [-1] * len(s) for s in segments], -1),
        documents=torch.tensor([s.document for s in segments], device=encoder.device),
    )


def attend(
    encoder: Encoder,
    segments: Sequence[Segment],
    budget: int = TOKEN_BUDGET,
    progress: str | None = "attention",
) -> Iterator[tuple[Tensor, Batch]]:
    """Run the frozen model over segments and yield its attention, batch by batch.

    Parameters
    ----------
    encoder : Encoder
    segments : sequence of Segment
    budget : int
        At most so many wordpieces a batch, padding included.
    progress : str or None
        Label of the progress bar; no bar if None.

    Yields
    ------
    attention : Tensor [layer, batch, head, query, key]
        Rows sum to 1 over the keys; rows and columns of padding are 0. The memory is used again for the
        next batch: keep a copy if you must keep it.
    batch : Batch
    """
    store = torch.empty(0, device=encoder.device, dtype=next(encoder.model.parameters()).dtype)
    bar = tqdm(total=len(segments), desc=progress, unit="segment", disable=progress is None, smoothing=0.1)
    with bar, torch.inference_mode():
        for batch in batches(encoder, segments, budget):
            size, length = batch.ids.shape
            shape = (encoder.layers, size, encoder.heads, length, length)
            if store.numel() < (need := torch.Size(shape).numel()):
                store = store.new_empty(need)
            attention = store[:need].view(shape)
            record(encoder, batch, attention)
            yield attention, batch
            bar.update(size)


def record(encoder: Encoder, batch: Batch, attention: Tensor, **options: Any) -> Any:
    """One forward pass; its attention weights are written to ``attention`` [layer, batch, head, query, key].

    Rows of padding are 0. Returns the model's output; ``options`` go to the model, for example
    ``output_hidden_states=True``.
    """

    def keep(layer: int, scores: Tensor, value: Tensor) -> Tensor:
        return torch.softmax(scores, -1, out=attention[layer])

    if encoder.tapped:
        with tapped(keep):
            output = encoder.model(**batch.inputs(encoder), **options)
    else:
        output = encoder.model(**batch.inputs(encoder), output_attentions=True, **options)
        torch.stack(output.attentions, out=attention)
    for i, n in enumerate(batch.mask.sum(1).tolist()):
        attention[:, i, :, n:] = 0
    return output


def measure(
    encoder: Encoder,
    segments: Sequence[Segment],
    *measures: Metric,
    budget: int = TOKEN_BUDGET,
    progress: str | None = "attention",
) -> None:
    """Feed all of the segments' attention to each measure, in one pass."""
    for attention, batch in attend(encoder, segments, budget, progress):
        for each in measures:
            each.update(attention, batch)


def fit(encoder: Encoder, corpus: Corpus[Sentence], max_tokens: int = 128) -> tuple[Corpus[Sentence], list[Segment]]:
    """The sentences that fit the model, one segment each, ``[CLS] sentence [SEP]``.

    Sentences of one word (nothing to choose from), those of more than ``max_tokens`` wordpieces and words that
    yield no wordpiece are left out, and counted.
    """
    limit = min(max_tokens, encoder.max_tokens)
    kept, segments, left_out = [], [], Counter(corpus.left_out)
    documents: dict[str, int] = {}
    for sentence in corpus:
        segment = word_segment(encoder, sentence.words, documents.setdefault(sentence.document, len(documents)))
        present = len(set(segment.words) - {-1})
        if len(segment) > limit:
            left_out[f"sentences over {limit} wordpieces"] += 1
        elif present < 2:
            left_out["sentences of one word"] += 1
        else:
            if present < len(sentence):
                left_out["words without a wordpiece"] += len(sentence) - present
            kept.append(sentence)
            segments.append(segment)
    return Corpus(corpus.name, kept, +left_out, corpus.source), segments


def read_text(encoder: Encoder, text: str) -> tuple[list[str], Tensor]:
    """Attention on one text: its tokens as the tokenizer spells them, and a map [layer, head, query, key]."""
    segment = word_segment(encoder, text.split())
    (attention, _), *_ = attend(encoder, [segment], progress=None)
    return encoder.tokenizer.convert_ids_to_tokens(list(segment.ids)), attention[:, 0].clone()


def to_words(attention: Tensor, words: Tensor) -> Tensor:
    """Attention between words from attention between wordpieces (§4.1).

    Attention to a split word is the sum over its pieces, attention from it the mean, so that rows still
    sum to 1 together with what goes to the special tokens, which are kept.

    Parameters
    ----------
    attention : Tensor [layer, batch, head, query, key]
        Between wordpieces.
    words : Tensor [batch, token]
        Number of the word from 0, −1 for special tokens and padding.

    Returns
    -------
    Tensor [layer, batch, head, word, word + 1]
        The last key is all special tokens together. Rows of absent words are 0.
    """
    count = int(words.max()) + 1
    slots = torch.where(words < 0, count, words)
    member = torch.nn.functional.one_hot(slots, count + 1).to(attention.dtype)  # [batch, token, word + 1]
    means = word_means(words).to(attention.dtype)
    layers, batch, heads, tokens, _ = attention.shape
    result = attention.new_empty(layers, batch, heads, count, count + 1)
    # Plain products layer by layer: broadcasting over layers and heads would copy both factors each time.
    means = means[:, None].expand(-1, heads, -1, -1).reshape(batch * heads, count, tokens)
    for layer, out in zip(attention, result, strict=True):
        keys = torch.bmm(layer.reshape(batch, heads * tokens, tokens), member)
        torch.bmm(means, keys.view(batch * heads, tokens, count + 1), out=out.view(batch * heads, count, count + 1))
    return result


def word_means(words: Tensor) -> Tensor:
    """The matrix [batch, word, token] that takes the mean over each word's pieces; ``words`` [batch, token]."""
    count = int(words.max()) + 1
    member = torch.nn.functional.one_hot(torch.where(words < 0, count, words), count + 1)[..., :count].float()
    return (member / member.sum(1, keepdim=True).clamp_min(1)).transpose(1, 2)
