"""What evaluating all heads as parsers costs beyond the forward pass, and how fast the probes train.

Heads: the bare forward pass and the measure take turns over the same batches, in one process. Probes: all probes and
seeds in shared passes of mini-batches, against the plain way: one probe, one seed and one sentence at a time, an update
after each sentence, the frozen model run again each time.

    python benchmarks/syntax.py                  # heads: MiniLM and BERT-base's size; probes: MiniLM
    python benchmarks/syntax.py --memory         # peak memory of training on all of GUM's train part
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from functools import partial

import torch
from stream import bert_base, seconds
from transformers import AutoModel

from bertlook import probes as kinds
from bertlook import syntax
from bertlook.attention import attend, batches, fit
from bertlook.corpora.treebank import treebank
from bertlook.corpora.vectors import word_vectors
from bertlook.encoder import Encoder, load
from bertlook.probing import Experiment

KINDS = {name: kinds.KINDS[name] for name in ("attention", "attention and words", "distances and words")}


def heads(name: str, encoder: Encoder, count: int, rounds: int) -> None:
    """Print what the measure costs, as a share of the bare forward pass of the same batches."""
    corpus, segments = fit(encoder, treebank("silver", "dev", limit=count))
    bare = AutoModel.from_pretrained(encoder.model.config.name_or_path, attn_implementation="sdpa").eval()
    shares = []
    for turn in range(rounds + 1):
        parser = syntax.HeadParser(encoder.layers, encoder.heads, corpus.items)
        forward = update = 0.0
        for attention, batch in attend(encoder, segments, progress=None):
            forward += seconds(lambda batch=batch: bare(**batch.inputs(encoder)))
            update += seconds(partial(parser.update, attention, batch))
        if turn:  # the first warms up
            shares.append(update / forward)
    print(
        f"{name}: {len(segments):,} sentences, {encoder.layers * encoder.heads} heads, both directions; measuring "
        f"costs {statistics.median(shares):.1%} of the forward pass ({min(shares):.1%} to {max(shares):.1%})",
        flush=True,
    )


def probes(encoder: Encoder, source: str, count: int, plain_count: int) -> None:
    """Print time per sentence and UAS of both ways."""
    vectors = word_vectors()
    train, train_segments = fit(encoder, treebank(source, "train", limit=count))
    dev = fit(encoder, treebank(source, "dev", limit=300))
    experiment = Experiment((train, train_segments), dev, vectors)

    def score(trained: dict[str, kinds.Probe]) -> dict[str, float]:
        found = experiment.evaluate(encoder, trained)
        return {name: float(found.right[name].mean()) for name in trained}

    together = {name: kind(encoder, vectors) for name, kind in KINDS.items()}
    start = time.perf_counter()
    experiment.train(encoder, together)
    fast = (time.perf_counter() - start) / (experiment.passes * len(train) * len(KINDS) * experiment.seeds)

    alone = {}
    start = time.perf_counter()
    for name, kind in KINDS.items():
        alone[name] = probe = kind(encoder, vectors, seeds=1)
        optimiser = torch.optim.Adam(probe.parameters(), lr=1e-3)
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0)).tolist()[:plain_count]
        for step, number in enumerate(order):
            batch = next(batches(encoder, [train_segments[number]]))
            seen = kinds.features(encoder, batch, [train.items[number]], vectors)
            if not step:
                probe.prepare(seen)
            loss = probe.loss(seen).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    slow = (time.perf_counter() - start) / (plain_count * len(KINDS))

    print(
        f"probes: {1000 * fast:.2f} ms a sentence for each seed of each probe, {1000 * slow:.2f} ms one at a time: "
        f"{slow / fast:.1f} times faster"
    )
    ours, plain = score(together), score(alone)
    for name in KINDS:
        print(f"  {name}: UAS {ours[name]:.1%} together, {plain[name]:.1%} one at a time ({plain_count:,} updates)")


def memory() -> None:
    """Train on all of GUM's train part once, and print the peak memory of the process."""
    encoder, vectors = load(), word_vectors()
    train = fit(encoder, treebank("gum", "train"))
    trained = {name: kind(encoder, vectors) for name, kind in kinds.KINDS.items()}
    Experiment(train, train, vectors, passes=1).train(encoder, trained)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"training on {len(train[0]):,} sentences of GUM: peak memory {peak:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--treebank", default="silver", help="for the probes: silver, gum, or a folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=600)
    arguments = parser.parse_args()
    if arguments.memory:
        memory()
        return
    with torch.inference_mode():
        heads("minilm", load(), arguments.sentences, arguments.rounds)
        with tempfile.TemporaryDirectory() as folder:
            heads("bert-base size", bert_base(folder), arguments.sentences // 4, arguments.rounds)
    probes(load(), arguments.treebank, 2 * arguments.sentences, 2 * arguments.sentences)


if __name__ == "__main__":
    main()
