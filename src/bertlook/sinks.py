"""What looking at a special token does: what is passed on, what hangs on it, what the model would miss (§3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn.functional import one_hot

from bertlook import interventions as forward
from bertlook.attention import Batch, Segment
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, Claim, number, published, same_depth
from bertlook.encoder import PUNCT, TOKEN_CLASSES, Encoder
from bertlook.interventions import MASKED_LM, STATES, UNITS, Change, Intervention
from bertlook.statistics import GroupedMean, estimates, interval

Measures = Mapping[str, "ByKeyClass"]
Changes = Mapping[Intervention, Change]
N = len(TOKEN_CLASSES)
PAPER = published()["surface"]

# ------------------------------------------------------------------------------------------------------- measures


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

    def sums(self, token_class: str) -> Tensor:
        """The mean over queries of the sum over a class, [layer, head]: for weights, the attention to it."""
        return self.compute()[:, :, 1, TOKEN_CLASSES.index(token_class)]


def passed(encoder: Encoder, segments: Sequence[Segment], progress: str | None = "norms") -> Measures:
    """What heads attend to and what they pass on: ``attention, norm, value_norm`` as :func:`interventions.norms`."""
    measures = {name: ByKeyClass(encoder.layers, encoder.heads) for name in ("attention", "norm", "value_norm")}
    for batch in forward.read(encoder, segments, progress):
        for name, values in forward.norms(encoder, batch).items():
            measures[name].update(values, batch)
    return measures


def importance(
    encoder: Encoder, segments: Sequence[Segment], seed: int, progress: str | None = "gradients"
) -> Measures:
    """Gradients of attention weights (Figure 3), for each loss that the model has."""
    measures = {loss: ByKeyClass(encoder.layers, encoder.heads) for loss in forward.losses_of(encoder)}
    for batch in forward.read(encoder, segments, progress):
        for loss, measure in measures.items():
            measure.update(*forward.gradients(encoder, batch, loss, seed))
    return measures


def sink(weights: ByKeyClass) -> str:
    """The special class that gets the most attention over all layers and heads: ``"cls"`` or ``"sep"``."""
    return max(TOKEN_CLASSES[:PUNCT], key=lambda name: float(weights.sums(name).mean()))


# --------------------------------------------------------------------------------------------------------- tables


def by_layer(**columns: Tensor | np.ndarray) -> pd.DataFrame:
    """Arrays [layer, class], or [class] for all layers, as columns beside ``layer, token_class``; layers from 1."""
    layers = len(next(iter(columns.values())))
    table = {"layer": np.repeat(np.arange(1, layers + 1), N), "token_class": TOKEN_CLASSES * layers}
    return pd.DataFrame(table | {k: np.broadcast_to(v, (layers, N)).flatten() for k, v in columns.items()})


def norms_table(passed: Measures, head: int | None = None) -> pd.DataFrame:
    """``layer, token_class, attention, norm, norm_share, value_norm, n``: means over heads, or of one head a layer.

    ``attention`` and ``norm`` are summed over a class's keys, mean over queries; ``norm_share`` is its part of all
    norms; ``n`` the pairs of query and key, each once a head.
    """
    means = {name: measure.compute().cpu() for name, measure in passed.items()}
    means = {name: each.mean(1) if head is None else each[:, head - 1] for name, each in means.items()}
    norms, lengths = means["norm"][:, 1], means["value_norm"][:, 0]
    share, n = norms / norms.sum(-1, keepdim=True), passed["norm"].pairs()
    return by_layer(attention=means["attention"][:, 1], norm=norms, norm_share=share, value_norm=lengths, n=n)


def importance_table(measures: Measures) -> pd.DataFrame:
    """``layer, token_class, loss, mean_abs_gradient, n, low, high, summed_abs_gradient``; ``n`` as for the norms.

    ``mean_abs_gradient`` is of one weight, with its 95% interval; ``summed_abs_gradient`` the paper's sum over the
    class's keys, mean over queries and heads.
    """
    tables = []
    for loss, measure in measures.items():
        one, summed = measure.compute().mean(1).cpu().unbind(1)  # [layer, class]
        low, high = interval(measure.resample().mean(2)[:, :, 0])
        table = by_layer(mean_abs_gradient=one, n=measure.pairs(), low=low, high=high, summed_abs_gradient=summed)
        table.insert(2, "loss", loss)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def in_words(table: pd.DataFrame, encoder: Encoder, sink: str) -> pd.DataFrame:
    """A table with classes, losses, units and ways of taking attention away in words."""
    name = encoder.token_name(sink)
    takes = {"all": f"all from {name}", "part": f"from {name}, at most half a row", "random": "as much, random tokens"}
    losses = {MASKED_LM: "loss (nats)", STATES: "final states, in random directions"}
    parts = {"attention": "share of the weights", "norm_share": "share of the norms passed on"}
    classes = {each: encoder.token_name(each) for each in TOKEN_CLASSES}
    return table.replace({"token_class": classes, "loss": losses, "measure": UNITS, "take": takes, "variable": parts})


def norms_columns(norms: pd.DataFrame) -> dict[str, Sequence[str]]:
    """The norms of one head, for reading."""
    return {
        "Token": list(norms["token_class"]),
        "Share of the weights": [number(x, "share") for x in norms["attention"]],
        "Mean length of the vector": [number(x) for x in norms["value_norm"]],
        "Share of what is passed on": [number(x, "share") for x in norms["norm_share"]],
    }


def interventions_columns(table: pd.DataFrame) -> dict[str, Sequence[str]]:
    """Interventions in all layers, for reading."""
    changes = [f"{number(row.change)} ({number(row.low)} to {number(row.high)})" for row in table.itertuples()]
    return {
        "Taken away": [f"{row.rest}: {row.take}" for row in table.itertuples()],
        "Mass of a row": [number(x, "share") for x in table["mass"]],
        f"Change ({table['measure'].iloc[0]}), 95%": changes,
    }


def questions_columns(questions: pd.DataFrame) -> dict[str, Sequence[str]]:
    """The questions with their answers, for reading."""
    values = [f"{number(row.value)} ({number(row.low)} to {number(row.high)})" for row in questions.itertuples()]
    return {
        "Question": [f"{row.question}: {row.rule} (yes above {row.threshold:g})" for row in questions.itertuples()],
        "Value, 95%": values,
        "Answer": list(questions["verdict"]),
    }


# ------------------------------------------------------------------------------------------- claims and questions


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
    """A weight to class ``k`` as a multiple of one to the others, in the layers where the paper's are “very small”."""
    deep = same_depth(weights.shape[-4], PAPER["sep_gradient_small_from_layer"], published()["setup"]["layers"])
    means = weights[..., deep, :, 0, :].mean((-3, -2))
    return means[..., k] / means[..., [c for c in range(N) if c != k]].nanmean(-1)


def quantities(passed: Measures, importance: Measures, changes: Changes, token_class: str, n: str) -> pd.DataFrame:
    """What claims and questions are about: ``quantity, value, low, high, n``, for norms and gradients as given."""
    k = TOKEN_CLASSES.index(token_class)

    def estimate(function: Callable[..., Tensor], *measures: GroupedMean) -> tuple[Tensor, Tensor]:
        return function(*(m.compute() for m in measures), k), function(*(m.resample() for m in measures), k)

    def over_half(rest: str) -> tuple[Tensor, Tensor]:
        part, random = (changes[Intervention(token_class, take, rest)] for take in ("part", "random"))
        return estimate(lambda a, b, _: a[..., 0] - b[..., 0] / 2, part, random)

    (loss, slopes), change = next(iter(importance.items())), next(iter(changes.values()))
    weights, norms = passed["attention"], passed["norm"]
    of = n if loss == MASKED_LM else f"{n}; sensitivity of the final states, as there is no masked-LM head"
    passing = {"attends": estimate(of_the_mean, weights), "no-op-passed": estimate(of_its_share, norms, weights)}
    hanging = {"gradient-small": estimate(of_others, slopes), "sensitive": estimate(of_the_mean, slopes)}
    causing = {"no-op-cause": over_half("dropped"), "renormalised": over_half("renormalised")}
    causes = f"{int(change.count.sum()):,} segments, {UNITS[change.loss]}"
    return pd.concat([estimates(passing, n), estimates(hanging, of), estimates(causing, causes)], ignore_index=True)


LESS_HALF = "change when its mass is taken away, less half of that for the same mass of random tokens"
#: Question → quantity, what that is, and what it exceeds for a yes: any small difference can be told with enough text.
QUESTIONS = {
    "attends to": ("attends", "attention to a token of the class, as a multiple of that to the mean token", 2.0),
    "passes on": ("no-op-passed", "the class's share of the norms, as a multiple of its share of the weights", 0.5),
    "depends on": ("no-op-cause", LESS_HALF, 0.0),
    "is sensitive to": ("sensitive", "gradient of a weight to the class, as a multiple of the mean weight's", 0.5),
    "depends on (renormalised)": ("renormalised", LESS_HALF, 0.0),
}


def questions(quantities: pd.DataFrame, token_class: str) -> pd.DataFrame:
    """``token_class, question, rule, threshold, value, low, high, verdict``: yes as a claim replicates, no as not."""
    found, answers = quantities.set_index("quantity").to_dict("index"), {REPLICATES: "yes", DOES_NOT: "no"}
    rows = []
    for question, (quantity, rule, threshold) in QUESTIONS.items():
        verdict = Claim(quantity, "", rule, "", threshold=threshold).verdict(found[quantity])
        measured = [found[quantity][name] for name in ("value", "low", "high")]
        rows.append((token_class, question, rule, threshold, *measured, answers.get(verdict, verdict)))
    return pd.DataFrame(rows, columns="token_class question rule threshold value low high verdict".split())


# ---------------------------------------------------------------------------------------------------------- words

#: The pieces of the answer: a claim's words if it replicates, if it does not, and for "whether …".
ANSWER = {
    "attends": (
        "{model} attends to {sink}",
        "{model} does not attend to {sink} much more than to other tokens",
        "whether {model} attends to {sink} much more than to other tokens",
    ),
    "no-op-passed": ("it passes on little", "it passes on what is there", "whether it passes on what is there"),
    "no-op-cause": ("its output hardly depends on it", "its output depends on it", "whether its output depends on it"),
}


def said(verdict: str, yes: str, no: str, whether: str) -> str:
    """One of two phrases as the verdict is, or ``whether …`` cannot be told or was not measured."""
    untold = f"{whether} {verdict.replace(NOT_MEASURED, f'was {NOT_MEASURED}')}"
    return {REPLICATES: yes, "yes": yes, DOES_NOT: no, "no": no}.get(verdict, untold)


def no_op(verdicts: Mapping[str, str]) -> str:
    """``holds`` if the three claims of the answer replicate, ``does not hold`` if one does not."""
    given = {verdicts[claim] for claim in ANSWER}
    if given == {REPLICATES}:
        return "holds"
    return "does not hold" if DOES_NOT in given else NOT_MEASURED if NOT_MEASURED in given else CANNOT_TELL


def elsewhere(dropped: str, renormalised: str) -> str:
    """What the answers to the question on dependence say of the place where the mass goes."""
    if (dropped, renormalised) == ("no", "yes"):
        return "the output does change: the sink works as a place to put attention, not as a source"
    return said(renormalised, "the output changes", "the output hardly changes", "whether the output changes")


def relation(correlation: float, p: float) -> str:
    """What the rank correlation of a head's attention to the sink with the change without it says, at the 5% level."""
    told = "they matter less" if correlation < 0 else "they matter more"
    return told if p < 0.05 else "that cannot be told from no relation"


def orders(slopes: pd.DataFrame) -> str:
    """How alike gradients of the loss and of the final states are, one column each, where there are both."""
    rank = slopes.corr("spearman").iloc[0, -1]
    both = f"The loss and the final states put layers and classes in orders that correlate with {rank:.2f} (Spearman)."
    return both if len(slopes.columns) > 1 else ""


def words(encoder: Encoder, passed: Measures, gradients: pd.DataFrame, interventions: pd.DataFrame) -> dict[str, str]:
    """What the chapter's prose says of this model, besides what hangs on verdicts."""
    name, norms = sink(passed["attention"]), norms_table(passed)
    means = norms.groupby("token_class")[["attention", "norm"]].mean()
    most = norms[norms["token_class"] == name].set_index("layer")["attention"]
    slopes = gradients.pivot(index=["layer", "token_class"], columns="loss", values="mean_abs_gradient")
    first = slopes[gradients["loss"].iloc[0]].unstack()
    beside = first[name] / first.drop(columns=name).mean(axis=1)
    off = interventions[interventions["head"].notna()].sort_values(["layer", "head"])["change"]
    link, p = map(float, spearmanr(passed["attention"].sums(name).flatten().cpu(), off))
    return {
        "sink": encoder.token_name(name),
        "measured-on": {MASKED_LM: "loss", STATES: "final states"}[gradients["loss"].iloc[0]],
        "sink-attention": number(means.loc[name, "attention"], "share"),
        "sink-layer": str(most.idxmax()),
        "sink-most": number(most.max(), "share"),
        "sink-norms": number(means.loc[name, "norm"] / means["norm"].sum(), "share"),
        "gradient-layer": str(beside.idxmin()),
        "gradient-least": number(beside.min(), "ratio"),
        "gradient-mean": number(beside.mean(), "ratio"),
        "orders": orders(slopes),
        "link": f"{link:.2f} (p = {p:.3f})",
        "relation": relation(link, p),
    }


def answer(verdicts: Mapping[str, str], questions: pd.DataFrame, **names: str) -> dict[str, str]:
    """The pieces of the answer, ``attends, no-op-passed, no-op-cause, no-op, elsewhere``."""
    replies = questions.set_index("question")["verdict"]
    place = elsewhere(replies["depends on"], replies["depends on (renormalised)"])
    pieces = {claim: said(verdicts[claim], *phrases).format(**names) for claim, phrases in ANSWER.items()}
    return pieces | {"no-op": no_op(verdicts), "elsewhere": place}
