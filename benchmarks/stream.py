"""What measuring costs beyond the forward pass, and what memory it takes.

Both chapters' measures over real segments in one pass, against the bare forward pass of the same batches: the same
weights, PyTorch's own fused attention (SDPA), no attention output. The two take turns in one process, so that a machine
that slows down slows down both.

    python benchmarks/stream.py                  # MiniLM, and random weights of BERT-base's size
    python benchmarks/stream.py --memory         # peak memory at 1,000 and at 5,000 segments, each in its own process
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from transformers import AutoModel, BertConfig, BertModel

from bertlook.attention import attend, batches, measure
from bertlook.corpora.text import segments as read_segments
from bertlook.encoder import Encoder, load
from bertlook.positional import PositionProfile
from bertlook.surface import Surface


def bert_base(folder: str) -> Encoder:
    """Random weights of BERT-base's size, saved and loaded as any model is."""
    torch.manual_seed(0)
    BertModel(BertConfig()).save_pretrained(folder)
    load().tokenizer.save_pretrained(folder)
    return load(folder)


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(name: str, encoder: Encoder, count: int, rounds: int) -> None:
    """Print the ratio of measuring to the bare forward pass: median over rounds that take turns."""
    segments = read_segments(encoder, count=count, progress=False).items
    bare = AutoModel.from_pretrained(encoder.model.config.name_or_path, attn_implementation="sdpa").eval()

    def forward() -> None:
        with torch.inference_mode():
            for batch in batches(encoder, segments):
                bare(**batch.inputs(encoder))

    def both_chapters() -> None:
        surface = Surface(encoder)
        measure(encoder, segments, *surface.measures, PositionProfile(encoder.layers, encoder.heads), progress=None)

    def stream_only() -> None:
        for _ in attend(encoder, segments, progress=None):
            pass

    for warm in (forward, both_chapters):
        warm()
    times = [(seconds(forward), seconds(stream_only), seconds(both_chapters)) for _ in range(rounds)]
    base, stream, full = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = [f / b for b, _, f in times]
    print(
        f"{name}: {count:,} segments, {sum(map(len, segments)):,} wordpieces; forward {base:.1f} s, "
        f"stream {stream / base:.2f}×, measured {full / base:.2f}× "
        f"(pair by pair {min(ratios):.2f} to {statistics.median(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )


def peak(count: int) -> None:
    """Measure so many segments (pairs drawn again and again where the text has fewer) and print the peak memory."""
    encoder = load()
    segments = read_segments(encoder, count=min(count, 4000), progress=False).items
    segments = (segments * (count // len(segments) + 1))[:count]
    surface = Surface(encoder)
    measure(encoder, segments, *surface.measures, PositionProfile(encoder.layers, encoder.heads), progress=None)
    print(f"minilm: {count:,} segments, peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--segments", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.peak:
        peak(arguments.peak)
    elif arguments.memory:
        for count in (1000, 5000):
            subprocess.run([sys.executable, __file__, "--peak", str(count)], check=True)
    else:
        compare("minilm", load(), arguments.segments, arguments.rounds)
        with tempfile.TemporaryDirectory() as folder:
            compare("bert-base size", bert_base(folder), max(arguments.segments // 8, 1), arguments.rounds)


if __name__ == "__main__":
    main()
