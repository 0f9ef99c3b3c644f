"""What heads look at on the surface: token classes (§3.2) and focus (§3.3)."""

from __future__ import annotations

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from bertlook.attention import Batch
from bertlook.encoder import CLS, SEP, TOKEN_CLASSES, Encoder
from bertlook.statistics import GroupedMean

N = len(TOKEN_CLASSES)


class ClassAttention(GroupedMean):
    """Mean attention from each class of query to each class of key (§3.2).

    ``total`` [group, layer, head, query class, key class] is attention summed over the queries;
    ``count`` [group, 1, 1, query class, 1] is how many there were. ``compute`` returns their ratio.
    """

    def __init__(self, layers: int, heads: int, groups: int = 64) -> None:
        super().__init__((layers, heads, N, N), (1, 1, N, 1), groups)

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key], zero in padded rows."""
        member = one_hot(batch.classes.clamp_min(0), N).to(attention.dtype) * batch.mask[..., None]
        keys = attention @ member[:, None]  # [layer, batch, head, query, key class]
        total = member.transpose(1, 2)[:, None] @ keys  # [layer, batch, head, query class, key class]
        self.add(batch.documents, total.transpose(0, 1), member.sum(1)[:, None, None, :, None])


class Entropy(GroupedMean):
    """Mean entropy of each head's rows in nats, of all rows and of the ``[CLS]`` row (§3.3).

    ``total`` [group, layer + 1, head, 2]: the last axis is all rows, ``[CLS]`` rows; the last layer is no
    layer but the entropy of uniform attention over the same rows, the ceiling.
    """

    def __init__(self, layers: int, heads: int, groups: int = 64) -> None:
        super().__init__((layers + 1, heads, 2), (1, 1, 2), groups)

    def update(self, attention: Tensor, batch: Batch) -> None:
        """``attention`` [layer, batch, head, query, key], zero in padded rows."""
        rows = torch.stack([entropy(layer) for layer in attention])  # [layer, batch, head, query]
        lengths = batch.mask.sum(1)
        uniform = (lengths.log()[:, None] * batch.mask)[None, :, None].expand(1, *rows.shape[1:])
        rows = torch.cat([rows, uniform.to(rows.dtype)])
        start = (batch.classes == CLS).to(rows.dtype)
        total = torch.stack([rows.sum(-1), (rows * start[:, None]).sum(-1)], -1)
        self.add(batch.documents, total.transpose(0, 1), torch.stack([lengths, start.sum(1)], -1)[:, None, None])


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats over the last axis; rows of zeros give 0. A vectorised logarithm, no temporary kept."""
    # Not finfo.tiny: 1e-30 × log(1e-30) is 0 in float32, and no weight that matters is changed.
    logs = weights.float().clamp_min(1e-30).log_()
    return -torch.linalg.vecdot(weights.float(), logs)


def rates(means: Tensor, counts: Tensor) -> dict[str, Tensor]:
    """The paper's quantities from class-to-class means.

    Parameters
    ----------
    means : Tensor [..., layer, head, query class, key class]
    counts : Tensor [..., query class]
        How many queries there are of each class.

    Returns
    -------
    dict of Tensor [..., layer, head]
        ``cls, sep, punct, other``: attention to the class over all queries; ``cls_to_cls``, ``sep_to_sep``
        and ``other_to_cls``, ``other_to_sep``: to a special class from itself and from all other queries.
    """

    def mean_over(queries: Tensor) -> Tensor:
        weights = queries / queries.sum(-1, keepdim=True)
        return torch.einsum("...lhqk,...q->...lhk", means, weights)

    every = mean_over(counts)
    result = {name: every[..., k] for k, name in enumerate(TOKEN_CLASSES)}
    for k, name in ((CLS, "cls"), (SEP, "sep")):
        rest = counts.clone()
        rest[..., k] = 0
        result[f"{name}_to_{name}"] = means[..., k, k]
        result[f"other_to_{name}"] = mean_over(rest)[..., k]
    return result


class Surface:
    """Both measures of the section with their intervals: what the chapter's tables and figures are made of."""

    def __init__(self, encoder: Encoder) -> None:
        shape = (encoder.layers, encoder.heads)
        self.classes, self.entropy = ClassAttention(*shape), Entropy(*shape)
        self.measures = (self.classes, self.entropy)

    def means(self) -> dict[str, Tensor]:
        """Quantity → [layer, head]."""
        counts = self.classes.count.sum(0)[0, 0, :, 0]
        entropies = self.entropy.compute()[:-1]
        return rates(self.classes.compute(), counts) | {
            "entropy": entropies[..., 0],
            "entropy_cls": entropies[..., 1],
        }

    def resamples(self) -> dict[str, Tensor]:
        """Quantity → [resample, layer, head], bootstrapped over groups of documents."""
        total, counts = self.classes.resample_sums()
        entropies = self.entropy.resample()[:, :-1]
        return rates(total / counts, counts[:, 0, 0, :, 0]) | {
            "entropy": entropies[..., 0],
            "entropy_cls": entropies[..., 1],
        }

    def uniform_entropy(self) -> tuple[float, float]:
        """Entropy of uniform attention in nats, over all rows and over ``[CLS]`` rows."""
        every, start = self.entropy.compute()[-1, 0].tolist()
        return every, start

    def class_share(self) -> dict[str, float]:
        """Share of the tokens that belong to each class: what attention without preference would give it."""
        counts = self.classes.count.sum(0)[0, 0, :, 0]
        return dict(zip(TOKEN_CLASSES, (counts / counts.sum()).tolist(), strict=True))

    def sink(self) -> str:
        """The special class that gets the most attention over all layers and heads: ``"cls"`` or ``"sep"``."""
        means = self.means()
        return max(("cls", "sep"), key=lambda name: float(means[name].mean()))

    def heads(self) -> pd.DataFrame:
        """One row a head, layers and heads from 1."""
        return tidy(self.means())[
            ["layer", "head", "cls", "sep", "punct", "other", "sep_to_sep", "other_to_sep", "entropy", "entropy_cls"]
        ]


def tidy(columns: dict[str, Tensor]) -> pd.DataFrame:
    """Quantities [layer, head] as one table with a row a head; layers and heads from 1."""
    layers, heads = next(iter(columns.values())).shape
    table = {
        "layer": torch.arange(1, layers + 1).repeat_interleave(heads),
        "head": torch.arange(1, heads + 1).repeat(layers),
    }
    return pd.DataFrame({name: values.flatten().cpu().numpy() for name, values in (table | columns).items()})
