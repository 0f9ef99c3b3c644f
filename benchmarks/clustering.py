"""What the divergences of all pairs of heads cost, beside the forward pass and beside the plain loop over pairs.

Random weights of BERT-base's size (144 heads) over real segments. The forward pass is the bare one, PyTorch's own fused
attention (SDPA), no attention output. The plain loop is the definition in float32, one pair of heads after the other;
it is timed on a few segments and on every 16th head, and counted up to all pairs. All three take turns in one process.

    python benchmarks/clustering.py
"""

from __future__ import annotations

import argparse
import statistics
import tempfile

import torch
from stream import bert_base, seconds
from torch import Tensor
from transformers import AutoModel

from bertlook.attention import Batch, attend
from bertlook.clustering import HeadDivergence, kernel
from bertlook.corpora.text import segments as read_segments


def pair_loop(attention: Tensor, batch: Batch, heads: range) -> int:
    """The definition for each of ``heads`` with all before it, on one batch; returns how many pairs that were."""
    pairs = 0
    for segment, length in enumerate(batch.mask.sum(1).tolist()):
        maps = attention[:, segment, :, :length, :length].flatten(0, 1)
        for i in heads:
            for p, q in ((maps[i], maps[j]) for j in range(i)):
                mixture = (p + q) / 2
                ((p * (p / mixture).log()).sum() + (q * (q / mixture).log()).sum()) / 2
                pairs += 1
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--segments", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        encoder = bert_base(folder)
        bare = AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
        segments = read_segments(encoder, count=arguments.segments, progress=False).items
        heads = encoder.layers * encoder.heads
        pairs = heads * (heads - 1) // 2
        times: dict[str, list[float]] = {"forward": [], "kernel": [], "plain": [], "loop": []}
        for attention, batch in attend(encoder, segments, progress=None):
            fast, plain = (HeadDivergence(encoder.layers, encoder.heads, compiled=c) for c in (True, False))
            few = slice(0, 2)
            part = Batch(batch.index[few], *(getattr(batch, name)[few] for name in list(Batch.__annotations__)[1:]))
            for _ in range(arguments.rounds):
                size = len(batch.index)
                times["forward"].append(seconds(lambda b=batch: bare(**b.inputs(encoder))) / size)
                times["kernel"].append(seconds(lambda m=fast, a=attention, b=batch: m.update(a, b)) / size)
                times["plain"].append(seconds(lambda m=plain, a=attention, b=part: m.update(a, b)) / 2)
                counted: list[int] = []
                loop = seconds(lambda a=attention, b=part, c=counted: c.append(pair_loop(a, b, range(15, heads, 16))))
                times["loop"].append(loop / counted[0] * pairs)
    forward, fast_time, plain_time, loop_time = (1e3 * statistics.median(times[name]) for name in times)
    print(
        f"{heads} heads, {len(segments)} segments of {sum(map(len, segments)) / len(segments):.0f} wordpieces, "
        f"{torch.get_num_threads()} threads, {'a' if kernel() else 'NO'} compiled kernel; medians, ms a segment:\n"
        f"forward {forward:.1f}, divergences {fast_time:.1f} (plain path {plain_time:.1f}), pair loop {loop_time:.0f}\n"
        f"divergences / forward: {fast_time / forward:.2f} (goal: at most 0.5)\n"
        f"pair loop / divergences: {loop_time / fast_time:.0f} (goal: at least 30)",
        flush=True,
    )


if __name__ == "__main__":
    main()
