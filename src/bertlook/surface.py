"""What heads look at on the surface: token classes (§3.2) and focus (§3.3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from bertlook.attention import Batch
from bertlook.claims import number, same_depth
from bertlook.encoder import CLS, SEP, TOKEN_CLASSES, Encoder
from bertlook.figures import View
from bertlook.statistics import GroupedMean, estimates, interval

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


# --------------------------------------------------------------------------------------------------------- tables

COLUMNS = ["layer", "head", *TOKEN_CLASSES, "sep_to_sep", "other_to_sep", "entropy", "entropy_cls"]


def heads_table(surface: Surface) -> pd.DataFrame:
    """``COLUMNS``, one row a head, layers and heads from 1; if the sink is the start token, also who looks at it."""
    more = ["cls_to_cls", "other_to_cls"] if surface.sink() == "cls" else []
    return tidy(surface.means())[[*COLUMNS, *more]]


def layers_table(surface: Surface) -> pd.DataFrame:
    """``layer, quantity, value, low, high``: means over a layer's heads with their intervals, layers from 1."""
    parts = []
    samples = surface.resamples()
    for name, values in surface.means().items():
        low, high = interval(samples[name].mean(-1))
        layers = np.arange(1, len(low) + 1)
        table = {"layer": layers, "quantity": name, "value": values.mean(-1).numpy(), "low": low, "high": high}
        parts.append(pd.DataFrame(table))
    return pd.concat(parts, ignore_index=True)


def tidy(columns: Mapping[str, Tensor]) -> pd.DataFrame:
    """Quantities [layer, head] as one table with a row a head; layers and heads from 1."""
    layers, heads = next(iter(columns.values())).shape
    table = {
        "layer": torch.arange(1, layers + 1).repeat_interleave(heads),
        "head": torch.arange(1, heads + 1).repeat(layers),
    }
    return pd.DataFrame({name: values.flatten().cpu().numpy() for name, values in (table | dict(columns)).items()})


def views(heads: pd.DataFrame, patterns: Mapping[str, str], tokens: list[str], maps: Tensor) -> list[View]:
    """For each pattern, the head with the greatest value in the table, seen on one text.

    Parameters
    ----------
    patterns : mapping
        Column of ``heads`` → what to call its extreme.
    tokens, maps : list of str, Tensor [layer, head, query, key]
        As from :func:`bertlook.attention.read_text`.
    """
    found = []
    for column, pattern in patterns.items():
        best = heads.loc[heads[column].idxmax()]
        layer, head = int(best["layer"]), int(best["head"])
        found.append(View(f"head {layer}-{head}, {pattern}", tokens, maps[layer - 1, head - 1].cpu().numpy()))
    return found


def quantities(surface: Surface, n: str) -> pd.DataFrame:
    """What the claims are about: ``quantity, value, low, high, n``; the paper's layers at the same relative depth."""
    layers = surface.classes.total.shape[1]
    sink, share = surface.sink(), surface.class_share()
    late = same_depth(layers, 11, 12)
    before = [layer for layer in range(layers) if layer not in late]

    def of(means: dict[str, Tensor]) -> dict[str, Tensor]:
        def over(name: str, depth: list[int]) -> Tensor:
            return means[name][..., depth, :].mean((-2, -1))

        middle = same_depth(layers, 6, 10)
        return {
            "sink-half": over(sink, middle),
            "sink-share": over(sink, middle) / share[sink],
            "early-cls": over("cls", same_depth(layers, 2, 4)) - over("cls", same_depth(layers, 9, 12)),
            "late-punct": over("punct", late) - over("punct", before),
            "sink-self": over(f"{sink}_to_{sink}", same_depth(layers, 5, 8)),
            "broad-early": over("entropy", [0]) - over("entropy", middle),
            "broad-cls": over("entropy_cls", [layers - 1]) - over("entropy_cls", list(range(layers - 1))),
        }

    values, samples = of(surface.means()), of(surface.resamples())
    return estimates({name: (value, samples[name]) for name, value in values.items()}, n)


# ---------------------------------------------------------------------------------------------------------- words


def words(surface: Surface, encoder: Encoder) -> dict[str, str]:
    """What the chapter's prose says of this model, besides the verdicts."""
    heads, share, sink = surface.means(), surface.class_share(), surface.sink()
    other = "sep" if sink == "cls" else "cls"
    average = {name: float(heads[name].mean()) for name in TOKEN_CLASSES}
    special = ("cls", "sep", "punct")
    return {
        "cls": encoder.token_name("cls"),
        "sep": encoder.token_name("sep"),
        "sink": encoder.token_name(sink),
        "to-cls": number(average["cls"], "share"),
        "to-sep": number(average["sep"], "share"),
        "to-punct": number(average["punct"], "share"),
        "to-other": number(average["other"], "share"),
        "other-share": number(share["other"], "share"),
        "sink-ratio": number(average[sink] / share[sink], "ratio"),
        "rest-ratio": number(average[other] / share[other], "ratio"),
        "to-special": number(sum(average[name] for name in special), "share"),
        "special-share": number(sum(share[name] for name in special), "share"),
        "sink-most": number(float(heads[sink].mean(1).max()), "share"),
        "same-sink": same_sink(sink),
    }


def same_sink(sink: str) -> str:
    """Whether the model's sink stands where BERT's does."""
    if sink == "sep":
        return "BERT’s is [SEP]: in this the two models agree."
    return "In BERT-base it is [SEP] that draws the attention: this model has found another token for the same place."
