"""What probes see of a sentence, and the probes of Table 3 (§5): small models trained on a frozen one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from bertlook.attention import Batch, record, to_words, word_means
from bertlook.corpora.treebank import Sentence
from bertlook.corpora.vectors import WordVectors
from bertlook.encoder import Encoder

SEEDS = 3


@dataclass(frozen=True)
class Features:
    """What the probes see of a batch of sentences, words padded to the longest.

    Attributes
    ----------
    queries : Tensor [batch, word, head, word]
        Attention from each word (second axis) to each word (last), heads of all layers in a row.
    keys : Tensor [batch, word, head, word]
        The same turned around: attention to each word (second axis) from each word (last).
    ends : Tensor [batch, word, head, 2]
        Attention from each word to the start token, and to the end token.
    vectors : Tensor [batch, word, dimension]
        Fixed word vectors.
    states : Tensor [layer, batch, word, width]
        Hidden states after each layer, mean over a word's pieces.
    present : Tensor [batch, word], bool
    heads : Tensor [batch, word]
        The gold head word from 0, ``word`` for the root; −1 for punctuation, padding and what has no wordpiece.
    sentences : list of Sentence
    """

    queries: Tensor
    keys: Tensor
    ends: Tensor
    vectors: Tensor
    states: Tensor
    present: Tensor
    heads: Tensor
    sentences: list[Sentence]


def features(encoder: Encoder, batch: Batch, sentences: Sequence[Sentence], vectors: WordVectors) -> Features:
    """One forward pass of the frozen model, brought to words; the batch's index counts ``sentences``."""
    size, length = batch.ids.shape
    shape = (encoder.layers, size, encoder.heads, length, length)
    attention = torch.empty(shape, device=encoder.device, dtype=next(encoder.model.parameters()).dtype)
    with torch.no_grad():
        output = record(encoder, batch, attention, output_hidden_states=True)
        count = int(batch.words.max()) + 1
        # The start token as one more word, so that it is kept apart from the end.
        numbered = batch.words.clone()
        numbered[:, 0] = count
        words = to_words(attention.float(), numbered)[..., :count, :]  # [layer, batch, head, word, word + 2]
        flat = words.permute(1, 3, 0, 2, 4).flatten(2, 3)  # [batch, word, head, word + 2]
        queries = flat[..., :count].contiguous()
        states = word_means(batch.words) @ torch.stack(output.hidden_states[1:]).float()
    present = torch.zeros(size, count + 1, dtype=torch.bool, device=batch.words.device)
    present = present.scatter(1, torch.where(batch.words < 0, count, batch.words), True)[:, :count]
    heads = torch.full((size, count), -1)
    here = present.cpu()
    chosen = [sentences[number] for number in batch.index]
    for row, own in enumerate(chosen):
        for i, head in enumerate(own.heads):
            if not own.punct[i] and here[row, i] and (not head or here[row, head - 1]):
                heads[row, i] = head - 1 if head else count
    return Features(
        queries=queries,
        keys=queries.transpose(1, 3).contiguous(),
        ends=flat[..., count:].contiguous(),
        vectors=vectors.look_up([own.words for own in chosen], count).to(encoder.device),
        states=states,
        present=present,
        heads=heads.to(encoder.device),
        sentences=chosen,
    )


class Probe(nn.Module):
    """A scorer of head words, several copies side by side: one for each seed, trained in one go.

    The copies differ in their initial weights and in their bootstrap sample of sentences. A probe without weights
    has nothing to learn, and one copy says all.
    """

    #: The learning rate.
    rate = 0.0
    #: Whether it says which of two words is the head; if not, UUAS is all that can be asked of it.
    directed = True

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__()
        self.seeds = seeds
        self.heads, self.dimension = encoder.layers * encoder.heads, vectors.table.shape[1]

    def weights(self, *shape: int, scale: float = 0.0) -> nn.Parameter:
        """Initial weights ``[seed, *shape]``, of each seed by itself, so that more seeds do not change the first."""
        drawn = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in range(self.seeds)]
        return nn.Parameter(scale * torch.stack(drawn))

    def prepare(self, seen: Features) -> None:
        """Look at the first batch before training starts."""

    def scores(self, seen: Features) -> Tensor:
        """[seed, layer, batch, word, word + 1]: how well each word, and last the root, suits each as its head word.

        A probe that reads all layers at once has one layer.
        """
        raise NotImplementedError

    def loss(self, seen: Features) -> Tensor:
        """What training brings down, [seed, batch]."""
        return seen.vectors.new_zeros(1, 1)


class RightBranching(Probe):
    """No model at all: the head word is the next word, and the nearer a word to that place, the better it suits."""

    def scores(self, seen: Features) -> Tensor:
        place = torch.arange(seen.present.shape[1], device=seen.present.device)
        words = -(place - place[:, None] - 1).abs().float()
        scores = nn.functional.pad(words, (0, 1), value=-torch.inf)
        return scores.expand(1, 1, len(seen.present), -1, -1)


class HeadWordProbe(Probe):
    """A probe of ``p(head of i = j) ∝ exp(s[i, j])`` over the other words and the root; its scores are ``log p``."""

    def logits(self, seen: Features) -> Tensor:
        """``s`` [seed, batch, word, word + 1]."""
        raise NotImplementedError

    def scores(self, seen: Features) -> Tensor:
        size = seen.present.shape[1]
        allowed = seen.present[:, None] & ~torch.eye(size, dtype=torch.bool, device=seen.present.device)
        allowed = nn.functional.pad(allowed, (0, 1), value=True)
        return self.logits(seen).masked_fill(~allowed, -torch.inf).log_softmax(-1)[:, None]

    def loss(self, seen: Features) -> Tensor:
        """Negative log-likelihood of each sentence's head words, as a share of the mean sentence."""
        scored = seen.heads >= 0
        gold = seen.heads.clamp_min(0).expand(self.seeds, -1, -1)[..., None]
        found = self.scores(seen)[:, 0].gather(-1, gold)[..., 0]
        return -found.masked_fill(~scored, 0).sum(-1) / scored.sum(1).float().mean()


class ScaledProbe(HeadWordProbe):
    """A probe of attention, scaled head by head to a spread of 1: one rate then suits sharp heads and flat ones."""

    scale: Tensor

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, vectors, seeds)
        self.register_buffer("scale", torch.ones(self.heads))

    def prepare(self, seen: Features) -> None:
        both = (seen.present[:, None] & seen.present[:, :, None]).float()
        moments = (seen.queries, seen.queries.square())
        mean, square = (torch.einsum("bikj,bij->k", x, both) / both.sum() for x in moments)
        self.scale = (square - mean.square()).clamp_min(1e-12).rsqrt()


class AttentionProbe(ScaledProbe):
    """Attention only: ``s[i, j] = Σ_k w_k α_k[i, j] + u_k α_k[j, i]`` (§5); the root from start and end token."""

    rate = 0.01

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, vectors, seeds)
        self.pair = self.weights(2, self.heads, scale=0.01)
        self.root = self.weights(self.heads, 2, scale=0.01)
        self.bias = self.weights(1)

    def logits(self, seen: Features) -> Tensor:
        pair, root_weights = self.pair * self.scale, self.root * self.scale[:, None]
        words = pair[:, 0] @ seen.queries + pair[:, 1] @ seen.keys  # [batch, word, seed, word]
        root = torch.einsum("bwke,ske->bws", seen.ends, root_weights) + self.bias[:, 0]
        return torch.cat([words, root[..., None]], -1).movedim(2, 0)


class AttentionWordsProbe(ScaledProbe):
    """Attention and words: the weights are linear functions of both words' vectors, ``W_k (v_i ⊕ v_j)`` (§5)."""

    rate = 0.003

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, vectors, seeds)
        dimension = self.dimension + 1
        # [role, head, dimension]: w from the dependent, u from the head word (both read at the query), then w from
        # the head word, u from the dependent (both read at the key).
        self.pair = self.weights(4, self.heads, dimension, scale=0.002)
        self.root = self.weights(2 * self.heads, dimension, scale=0.002)
        self.bias = self.weights(dimension)

    def logits(self, seen: Features) -> Tensor:
        vectors = nn.functional.pad(seen.vectors, (0, 1), value=1.0)  # the last is the constant part
        batch, size, _ = vectors.shape
        pair = self.pair * self.scale[:, None]
        weights = vectors @ pair.flatten(0, 2).T  # [batch, word, seed · role · head]
        weights = weights.view(batch, size, self.seeds, 4, -1)
        at_query = weights[..., :2, :].flatten(2, 3) @ seen.queries  # [batch, query, seed · 2, key]
        at_key = weights[..., 2:, :].flatten(2, 3) @ seen.keys  # [batch, key, seed · 2, query]
        at_query, at_key = (x.view(batch, size, self.seeds, 2, size) for x in (at_query, at_key))
        words = at_query[:, :, :, 0] + at_key[:, :, :, 1] + (at_query[:, :, :, 1] + at_key[:, :, :, 0]).transpose(1, 3)
        ends = seen.ends.flatten(2)  # [batch, word, head · 2]
        root_weights = self.root * self.scale.repeat_interleave(2)[:, None]
        root = torch.einsum("bwk,skd,bwd->bws", ends, root_weights, vectors) + vectors @ self.bias.T
        return torch.cat([words, root[..., None]], -1).movedim(2, 0)


class DistanceWordsProbe(HeadWordProbe):
    """No attention: the distance and both words' vectors through one hidden layer (§5's baseline)."""

    rate = 0.02
    hidden = 64
    #: The distance in words beyond which all are alike.
    reach = 20

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, vectors, seeds)
        shape, scale = (self.dimension, self.hidden), self.dimension**-0.5
        self.dependent, self.head = self.weights(*shape, scale=scale), self.weights(*shape, scale=scale)
        self.offset = self.weights(2 * self.reach + 2, self.hidden, scale=1.0)  # the last is the root
        self.out = self.weights(self.hidden, scale=self.hidden**-0.5)

    def logits(self, seen: Features) -> Tensor:
        place = torch.arange(seen.vectors.shape[1], device=seen.vectors.device)
        offsets = (place - place[:, None]).clamp(-self.reach, self.reach) + self.reach
        result = []
        for dependent, head, offset, out in zip(self.dependent, self.head, self.offset, self.out, strict=True):
            own = seen.vectors @ dependent  # [batch, word, hidden]
            pairs = own[:, :, None] + (seen.vectors @ head)[:, None] + offset[offsets]
            root = (own + offset[-1]).relu() @ out
            result.append(torch.cat([pairs.relu() @ out, root[..., None]], -1))
        return torch.stack(result)


class StructuralProbe(Probe):
    """A linear map under which squared distances are distances in the tree (Hewitt and Manning 2019).

    One for each layer's hidden states; the nearer, the better the score.
    """

    rate = 0.01
    directed = False
    rank = 64

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, vectors, seeds)
        width = encoder.model.config.hidden_size
        self.map = self.weights(encoder.layers, width, self.rank, scale=0.05 * width**-0.5)

    def distances(self, seen: Features) -> Tensor:
        """Squared distances [seed, layer, batch, word, word]."""
        layers, batch, size, width = seen.states.shape
        maps = self.map.permute(1, 2, 0, 3).flatten(2)  # [layer, width, seed · rank]: one product for all seeds
        mapped = torch.bmm(seen.states.reshape(layers, batch * size, width), maps)
        mapped = mapped.view(layers, batch, size, self.seeds, -1).movedim(3, 0)  # [seed, layer, batch, word, rank]
        square = mapped.square().sum(-1)
        return square[..., None] + square[..., None, :] - 2 * mapped @ mapped.transpose(-1, -2)

    def scores(self, seen: Features) -> Tensor:
        return nn.functional.pad(-self.distances(seen), (0, 1), value=-torch.inf)

    def loss(self, seen: Features) -> Tensor:
        """Mean absolute difference from the distances in each sentence's tree, summed over layers."""
        both = seen.present[:, None] & seen.present[:, :, None]
        wanted = torch.zeros(both.shape)
        for row, own in zip(wanted, seen.sentences, strict=True):
            row[: len(own), : len(own)] = torch.from_numpy(tree_distances(own.heads))
        gap = (self.distances(seen) - wanted.to(both.device)).abs().masked_fill(~both, 0)
        return (gap.sum((-1, -2)) / both.sum((-1, -2))).sum(1)


def tree_distances(heads: Sequence[int]) -> np.ndarray:
    """Number of edges between each two words of a tree given by head words (from 1; 0 is the root), [word, word]."""
    dependents = np.flatnonzero(heads)
    edges = np.zeros((len(heads), len(heads)), dtype=np.float32)
    edges[dependents, np.asarray(heads)[dependents] - 1] = 1
    return shortest_path(edges, directed=False, unweighted=True)


#: The probes by their names in Table 3; on a model with random weights the fourth is trained again.
KINDS: dict[str, type[Probe]] = {
    "right-branching": RightBranching,
    "distances and words": DistanceWordsProbe,
    "attention": AttentionProbe,
    "attention and words": AttentionWordsProbe,
    "structural probe": StructuralProbe,
}
