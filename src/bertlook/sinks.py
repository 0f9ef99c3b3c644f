"""What looking at a special token does: what is passed on, what hangs on it, what the model would miss (§3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn.functional import one_hot

from bertlook import interventions as forward
from bertlook.attention import Batch, Segment
from bertlook.encoder import PUNCT, TOKEN_CLASSES, Encoder
from bertlook.interventions import EVERY, MASKED_LM, RESTS, STATES, TAKES, Change, Intervention
from bertlook.results import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, Claim, number, published, same_depth
from bertlook.statistics import GroupedMean, estimates, interval

N = len(TOKEN_CLASSES)
PAPER = published()["surface"]
#: What a change is measured in, in words.
UNITS = {MASKED_LM: "nats a masked token", STATES: "cosine distance of the final states"}

# Measures


class ByKeyClass(GroupedMean):
    """Any quantity of attention weights, by the class of the token attended to.

    ``total`` [group, layer, head, 2, class] is the quantity summed over queries and the class's keys, twice;
    ``count`` [group, 1, 1, 2, class] the pairs of query and key, and the queries. So ``compute`` gives the mean of a
    single weight's quantity, and the mean over queries of its sum over the class, [layer, head, 2, class].
    """

    def __init__(self, layers: int, heads: int) -> None:
        super().__init__((layers, heads, 2, N), (1, 1, 2, N))

    def update(self, values: Tensor, batch: Batch) -> None:
        """``values`` [layer, batch, head, query, key]; padding may hold anything finite."""
        values = forward.wide(values)
        queries = batch.mask.to(values.dtype)
        member = one_hot(batch.classes.clamp_min(0), N).to(values.dtype) * queries[..., None]
        total = (queries[:, None, None] @ values @ member[:, None]).transpose(0, 1)  # [batch, layer, head, 1, class]
        lengths = queries.sum(1, keepdim=True)
        count = torch.stack([lengths * member.sum(1), lengths.expand(-1, N)], 1)[:, None, None]
        self.add(batch.documents, total.expand(*total.shape[:-2], 2, N), count)

    def pairs(self) -> np.ndarray:
        """How many pairs of query and key there are of each class, [class]."""
        return self.count.sum(0)[0, 0, 0].long().cpu().numpy()


def collected(
    encoder: Encoder,
    segments: Sequence[Segment],
    of: Callable[[Batch], Mapping[str, tuple[Tensor, Batch]]],
    progress: str | None,
) -> dict[str, ByKeyClass]:
    """One measure for each quantity that ``of`` gives of a batch, with the batch as the model read it."""
    measures: dict[str, ByKeyClass] = {}
    for batch in forward.read(encoder, segments, progress):
        for name, found in of(batch).items():
            measures.setdefault(name, ByKeyClass(encoder.layers, encoder.heads)).update(*found)
    return measures


def importance(
    encoder: Encoder, segments: Sequence[Segment], seed: int = 0, progress: str | None = "gradients"
) -> dict[str, ByKeyClass]:
    """Gradients of attention weights (Figure 3), for each loss that the model has."""
    losses = forward.losses_of(encoder)
    return collected(
        encoder,
        segments,
        lambda batch: {loss: forward.gradients(encoder, batch, loss, seed) for loss in losses},
        progress,
    )


def passed(encoder: Encoder, segments: Sequence[Segment], progress: str | None = "norms") -> dict[str, ByKeyClass]:
    """What heads attend to and pass on: ``attention`` ``α``, ``norm`` ``‖α f(x)‖`` and ``value_norm`` ``‖f(x)‖``."""
    return collected(
        encoder,
        segments,
        lambda batch: {name: (values, batch) for name, values in forward.vectors(encoder, batch).items()},
        progress,
    )


def attention_to(weights: ByKeyClass, token_class: str) -> Tensor:
    """Mean attention of each head to a class, [layer, head]."""
    return weights.compute()[:, :, 1, TOKEN_CLASSES.index(token_class)]


def sink(weights: ByKeyClass) -> str:
    """The special class that gets the most attention over all layers and heads: ``"cls"`` or ``"sep"``."""
    return max(TOKEN_CLASSES[:PUNCT], key=lambda name: float(attention_to(weights, name).mean()))


def battery(encoder: Encoder, token_class: str) -> list[Intervention]:
    """The interventions on one class: everywhere, rows dropped or renormalised; and dropped in each layer alone."""
    everywhere = [Intervention(token_class, take, rest) for rest in RESTS for take in TAKES]
    layers = range(1, encoder.layers + 1)
    return everywhere + [Intervention(token_class, take, layer=layer) for layer in layers for take in TAKES]


def heads_off(encoder: Encoder) -> list[Intervention]:
    """Each head switched off by itself."""
    places = [(layer, head) for layer in range(1, encoder.layers + 1) for head in range(1, encoder.heads + 1)]
    return [Intervention(EVERY, layer=layer, head=head) for layer, head in places]


# Tables


def by_layer(**columns: Tensor | np.ndarray) -> pd.DataFrame:
    """Arrays [layer, class], or [class] for all layers, as columns beside ``layer, token_class``; layers from 1."""
    layers = len(next(iter(columns.values())))
    table = {"layer": np.repeat(np.arange(1, layers + 1), N), "token_class": TOKEN_CLASSES * layers}
    return pd.DataFrame(table | {k: np.broadcast_to(v, (layers, N)).flatten() for k, v in columns.items()})


def norms_table(passed: Mapping[str, ByKeyClass], head: int | None = None) -> pd.DataFrame:
    """``layer, token_class, attention, norm, norm_share, value_norm, n``: means over heads, or of one head a layer.

    ``attention`` and ``norm`` are summed over the class's keys, mean over queries; ``norm_share`` is the class's part
    of all norms, to be held against ``attention``; ``value_norm`` the mean of ``‖f(x)‖``; ``n`` the pairs of query
    and key, each once a head.
    """
    means = {name: measure.compute().cpu() for name, measure in passed.items()}
    means = {name: each.mean(1) if head is None else each[:, head - 1] for name, each in means.items()}
    norms = means["norm"][:, 1]
    share, n = norms / norms.sum(-1, keepdim=True), passed["norm"].pairs()
    lengths = means["value_norm"][:, 0]
    return by_layer(attention=means["attention"][:, 1], norm=norms, norm_share=share, value_norm=lengths, n=n)


def importance_table(measures: Mapping[str, ByKeyClass]) -> pd.DataFrame:
    """``layer, token_class, loss, mean_abs_gradient, n, low, high, summed_abs_gradient``; ``n`` as for the norms.

    ``mean_abs_gradient`` is of one weight, with its 95% interval; ``summed_abs_gradient`` the paper's sum over the
    class's keys, mean over queries and heads.
    """
    tables = []
    for loss, measure in measures.items():
        means = measure.compute().mean(1).cpu()  # [layer, 2, class]
        low, high = interval(measure.resample().mean(2)[:, :, 0])
        found = {"mean_abs_gradient": means[:, 0], "n": measure.pairs(), "low": low, "high": high}
        table = by_layer(**found, summed_abs_gradient=means[:, 1])
        table.insert(2, "loss", loss)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def interventions_table(changes: Mapping[Intervention, Change]) -> pd.DataFrame:
    """``token_class, take, rest, layer, head, measure, change, low, high, mass, n``; no layer or head means all."""
    rows = []
    for each, measure in changes.items():
        change, mass = measure.compute().tolist()
        low, high = map(float, interval(measure.resample()[:, 0]))
        found = {"measure": measure.loss, "change": change, "low": low, "high": high, "mass": mass}
        rows.append(vars(each) | found | {"n": int(measure.count.sum())})
    return pd.DataFrame(rows).astype({"layer": "Int64", "head": "Int64"})


# For people to read


def labelled(table: pd.DataFrame, encoder: Encoder, sink: str) -> pd.DataFrame:
    """A table with classes, losses and ways of taking attention away in words, for a figure or for reading."""
    spelt = encoder.token_name(sink)
    return table.replace(
        {
            "token_class": {name: encoder.token_name(name) for name in TOKEN_CLASSES},
            "loss": {MASKED_LM: "loss (nats)", STATES: "final states, in random directions"},
            "measure": UNITS,
            "take": {
                "all": f"all attention to {spelt}",
                "part": f"attention to {spelt}, at most half a row",
                "random": "the same mass, from random tokens",
            },
        }
    )


def shares(norms: pd.DataFrame) -> pd.DataFrame:
    """``layer, token_class, of, share``: shares of the weights, and of the norms passed on."""
    names = {"attention": "weights", "norm_share": "norms passed on"}
    return norms.rename(columns=names).melt(["layer", "token_class"], list(names.values()), "of", "share")


def norm_columns(norms: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Norms of one layer or head, for reading."""
    return {
        "Token": list(norms["token_class"]),
        "Share of the weights": [number(x, "share") for x in norms["attention"]],
        "Mean length of the vector": [number(x) for x in norms["value_norm"]],
        "Share of what is passed on": [number(x, "share") for x in norms["norm_share"]],
    }


def intervention_columns(interventions: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Interventions, for reading."""
    unit = interventions["measure"].iloc[0]
    return {
        "Taken away": list(interventions["take"]),
        "The rest of the row": list(interventions["rest"]),
        "Mass of a row": [number(x, "share") for x in interventions["mass"]],
        f"Change ({unit}), 95%": [
            f"{row.change:.4f} ({row.low:.4f} to {row.high:.4f})" for row in interventions.itertuples()
        ],
    }


def question_columns(questions: pd.DataFrame, sink: str) -> dict[str, Sequence[str]]:
    """The questions with their answers, for reading."""
    return {
        f"Does the model … {sink}?": list(questions["question"]),
        "Measured": list(questions["rule"]),
        "Value, 95%": [f"{row.value:.3g} ({row.low:.3g} to {row.high:.3g})" for row in questions.itertuples()],
        "Yes above": [number(x) for x in questions["threshold"]],
        "Verdict": list(questions["verdict"]),
    }


# Quantities, claims and questions


def of_the_mean(weights: Tensor, k: int) -> Tensor:
    """A weight to class ``k`` as a multiple of the mean weight; ``weights`` [..., layer, head, 2, class]."""
    means = weights.mean((-4, -3))  # [..., 2, class]: of a weight, of a row's sum over the class
    sums, keys = means[..., 1, :], means[..., 1, :] / means[..., 0, :]
    return means[..., 0, k] / (sums.nansum(-1) / keys.nansum(-1))


def of_its_share(norms: Tensor, weights: Tensor, k: int) -> Tensor:
    """Class ``k``'s share of the norms as a multiple of its share of the weights; both [..., layer, head, 2, class]."""
    norm, weight = (each.mean((-4, -3))[..., 1, :] for each in (norms, weights))
    return (norm[..., k] / norm.sum(-1)) / (weight[..., k] / weight.sum(-1))


def of_others(weights: Tensor, k: int) -> Tensor:
    """A weight to class ``k`` as a multiple of one to the others, in the layers where the paper has it “very small”."""
    layers, of = PAPER["sep_gradient_small_from_layer"], published()["setup"]["layers"]
    means = weights[..., same_depth(weights.shape[-4], layers, of), :, 0, :].mean((-3, -2))
    return means[..., k] / means[..., [c for c in range(N) if c != k]].nanmean(-1)


def quantities(
    passed: Mapping[str, ByKeyClass],
    importance: Mapping[str, ByKeyClass],
    changes: Mapping[Intervention, Change],
    token_class: str,
    segments: int,
) -> pd.DataFrame:
    """What claims and questions are about: ``quantity, value, low, high, n``; norms and gradients of ``segments``."""
    k = TOKEN_CLASSES.index(token_class)
    loss, gradient = next(iter(importance.items()))

    def estimate(function: Callable[..., Tensor], *measures: GroupedMean) -> tuple[Tensor, Tensor]:
        return function(*(m.compute() for m in measures), k), function(*(m.resample() for m in measures), k)

    def more_than_half(rest: str) -> tuple[Tensor, Tensor]:
        part, random = (changes[Intervention(token_class, take, rest)] for take in ("part", "random"))
        return estimate(lambda a, b, k: a[..., 0] - b[..., 0] / 2, part, random)

    weights, norms = passed["attention"], passed["norm"]
    passing = {"attends": estimate(of_the_mean, weights), "no-op-passed": estimate(of_its_share, norms, weights)}
    small = {"gradient-small": estimate(of_others, gradient), "sensitive": estimate(of_the_mean, gradient)}
    causes = {"no-op-cause": more_than_half("dropped"), "renormalised": more_than_half("renormalised")}
    n, change = f"{segments:,} segments", next(iter(changes.values()))
    of = "" if loss == MASKED_LM else "; sensitivity of the final states, as there is no masked-LM head"
    n_causes = f"{int(change.count.sum()):,} segments, {UNITS[change.loss]}"
    return pd.concat([estimates(passing, n), estimates(small, n + of), estimates(causes, n_causes)], ignore_index=True)


CLAIMS = (
    Claim(
        "attends",
        "3.2",
        "Attends to: a token of the sink's class ({sink}) gets more than twice the attention of the mean token",
        "over half of the attention in layers {} to {}, to [SEP]".format(*PAPER["sep_over_half_layers"]),
        threshold=2,
        unit="ratio",
        evidence="fig-norms",
    ),
    Claim(
        "gradient-small",
        "3.2",
        "In the deeper layers, gradients of weights to the sink ({sink}) are less than half of those to other tokens",
        f"“very small” from layer {PAPER['sep_gradient_small_from_layer']} on, for [SEP]",
        threshold=0.5,
        below=True,
        unit="ratio",
        evidence="fig-gradients",
    ),
    Claim(
        "no-op-passed",
        "3.2",
        "No-op, passes on: the sink's ({sink}) share of what is passed on is less than half of its share of the weights",
        "suspected, not measured",
        threshold=0.5,
        below=True,
        unit="ratio",
        evidence="fig-norms",
    ),
    Claim(
        "no-op-cause",
        "3.2",
        "No-op, depends on: dropping the sink's ({sink}) mass changes less than half of what random tokens' mass does "
        "(the difference)",
        "suspected, not measured",
        below=True,
        unit="number",
        evidence="fig-by-layer",
    ),
)
LESS_HALF = "change when its mass is taken away, less half of that for the same mass of random tokens"
#: What is asked of a class of token, answered as a claim is judged: twice or half is what counts, since with enough
#: text any small difference can be told from none.
QUESTIONS = {
    "attends to": Claim(
        "attends", "", "attention to a token of the class, as a multiple of that to the mean token", "", 2.0
    ),
    "passes on": Claim(
        "no-op-passed", "", "the class's share of the norms, as a multiple of its share of the weights", "", 0.5
    ),
    "depends on": Claim("no-op-cause", "", LESS_HALF, ""),
    "is sensitive to": Claim(
        "sensitive", "", "gradient of a weight to the class, as a multiple of the mean weight's", "", 0.5
    ),
    "depends on (renormalised)": Claim("renormalised", "", LESS_HALF, ""),
}


def questions(quantities: pd.DataFrame, token_class: str) -> pd.DataFrame:
    """``token_class, question, rule, threshold, value, low, high, verdict``: ``yes``, ``no`` or ``cannot be told``."""
    found, answers = quantities.set_index("quantity").to_dict("index"), {REPLICATES: "yes", DOES_NOT: "no"}
    rows = []
    for question, claim in QUESTIONS.items():
        measured, verdict = found[claim.id], claim.verdict(found[claim.id])
        row = {"token_class": token_class, "question": question, "rule": claim.text, "threshold": claim.threshold}
        row |= {name: measured[name] for name in ("value", "low", "high")}
        rows.append(row | {"verdict": answers.get(verdict, verdict)})
    return pd.DataFrame(rows)


# Words

#: The pieces of the answer, by the verdict on a claim, and by that on the no-op as a whole.
ANSWER = {
    "attends": {
        REPLICATES: "attends to {sink}",
        DOES_NOT: "does not attend to {sink} much more than to other tokens",
        CANNOT_TELL: "may or may not attend to {sink} much more than to other tokens",
        NOT_MEASURED: "was not asked how much it attends to {sink}",
    },
    "no-op-passed": {
        REPLICATES: "it passes on little of what stands there",
        DOES_NOT: "it passes on what stands there",
        CANNOT_TELL: "whether it passes on what stands there cannot be told",
        NOT_MEASURED: "whether it passes on what stands there was not measured",
    },
    "no-op-cause": {
        REPLICATES: "its output hardly depends on that",
        DOES_NOT: "its output depends on that",
        CANNOT_TELL: "whether its output depends on that cannot be told",
        NOT_MEASURED: "whether its output depends on that was not measured",
    },
    "no-op": {
        "holds": "holds for this model",
        "does not hold": "does not hold as it stands for this model",
        CANNOT_TELL: "can neither be confirmed nor ruled out here",
        NOT_MEASURED: "was not tested here",
    },
}


def no_op(verdicts: Mapping[str, str]) -> str:
    """``holds`` if the claims on all three questions replicate, ``does not hold`` if one does not."""
    given = {verdicts[claim] for claim in ("attends", "no-op-passed", "no-op-cause")}
    if given == {REPLICATES}:
        return "holds"
    return "does not hold" if DOES_NOT in given else NOT_MEASURED if NOT_MEASURED in given else CANNOT_TELL


def answer(verdicts: Mapping[str, str], sink: str) -> dict[str, str]:
    """The pieces of the answer: ``attends, no-op-passed, no-op-cause, no-op``."""
    outcomes = {**verdicts, "no-op": no_op(verdicts)}
    return {piece: phrases[outcomes[piece]].format(sink=sink) for piece, phrases in ANSWER.items()}


def elsewhere(dropped: str, renormalised: str) -> str:
    """What the answers to the question on dependence say of the place where the mass goes."""
    changes = {"yes": "the output changes", "no": "the output hardly changes"}
    what = changes.get(renormalised, "whether the output changes cannot be told")
    place = (
        ": the sink works as a place to put attention, not as a source"
        if (dropped, renormalised) == ("no", "yes")
        else ""
    )
    return f"When the same mass is given to other tokens instead, {what}{place}."


def relation(correlation: float, p: float) -> str:
    """What a rank correlation between attention to the sink and the change without a head says, at the 5% level."""
    if not p < 0.05:
        return "that cannot be told from no relation"
    return "they matter less" if correlation < 0 else "they matter more"


def words(
    encoder: Encoder,
    passed: Mapping[str, ByKeyClass],
    gradients: pd.DataFrame,
    interventions: pd.DataFrame,
    questions: pd.DataFrame,
    verdicts: Mapping[str, str],
) -> dict[str, str]:
    """What the chapter's prose glues in."""
    name = sink(passed["attention"])
    spelt, norms = encoder.token_name(name), norms_table(passed)
    shares = norms.groupby("token_class")[["attention", "norm"]].mean()
    most = norms[norms["token_class"] == name].set_index("layer")["attention"]
    first = gradients[gradients["loss"] == gradients["loss"].iloc[0]]
    slopes = first.pivot(index="layer", columns="token_class", values="mean_abs_gradient")
    beside = slopes[name] / slopes.drop(columns=name).mean(axis=1)
    off = interventions.query("head.notna()").sort_values(["layer", "head"])["change"]
    link, p = map(float, spearmanr(attention_to(passed["attention"], name).flatten().cpu(), off))
    replies = questions.set_index("question")["verdict"]
    return answer(verdicts, spelt) | {
        "model": encoder.name,
        "sink": spelt,
        "sink-attention": number(shares.loc[name, "attention"], "share"),
        "sink-layer": str(most.idxmax()),
        "sink-most": number(most.max(), "share"),
        "sink-norms": number(shares.loc[name, "norm"] / shares["norm"].sum(), "share"),
        "elsewhere": elsewhere(replies["depends on"], replies["depends on (renormalised)"]),
        "gradient-layer": str(beside.idxmin()),
        "gradient-least": number(beside.min(), "ratio"),
        "gradient-mean": number(beside.mean(), "ratio"),
        "link": f"{link:.2f}",
        "link-p": f"{p:.3f}",
        "relation": relation(link, p),
    }
