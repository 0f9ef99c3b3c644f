"""The tap: one attention function, registered with transformers, through which attention is read and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

NAME = "bertlook"

#: What happens to one layer's scores on their way: (layer from 0, scores, value) → weights.
#: All are [batch, head, query, key], but value, which is [batch, head, key, dimension].
Tap = Callable[[int, Tensor, Tensor], Tensor]

_tap: Tap | None = None
_layer = 0


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """Plain softmax attention, which the tap may see and alter."""
    global _layer
    scores = (query * (scaling or query.shape[-1] ** -0.5)) @ key.transpose(2, 3)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1) if _tap is None else _tap(_layer, scores, value)
    _layer += 1
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def tapped(tap: Tap) -> Iterator[None]:
    """While open, every layer's attention weights are what ``tap`` makes of its scores.

    Open it once for each forward pass: layers are counted in the order in which they are computed.
    """
    global _tap, _layer
    before, _tap, _layer = _tap, tap, 0
    try:
        yield
    finally:
        _tap = before
