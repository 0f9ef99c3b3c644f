"""What looking at a special token does: gradients (§3.2, Figure 3), what is passed on, and interventions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, one_hot
from tqdm.auto import tqdm

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, batches
from bertlook.encoder import PUNCT, TOKEN_CLASSES, Encoder, tapped
from bertlook.statistics import GroupedMean, interval

N = len(TOKEN_CLASSES)
#: What a change is measured in: the masked-LM loss in nats a masked token, or the final states.
MASKED_LM, STATES = "masked_lm", "states"
#: Wordpieces a batch where gradients or changes are computed, which take more memory than reading.
BUDGET = 1024
#: Where BERT-like models keep the output projection of a layer's heads.
OUTPUT_PROJECTION = re.compile(r"attention\.(output\.dense|out_lin|dense)$")


def losses_of(encoder: Encoder) -> tuple[str, ...]:
    """``("masked_lm", "states")`` for a model loaded with its masked-LM head, else ``("states",)``."""
    return (MASKED_LM, STATES) if encoder.model.base_model is not encoder.model else (STATES,)


def check_loss(encoder: Encoder, loss: str) -> None:
    """A loss that this model has, or an error."""
    if loss not in (MASKED_LM, STATES):
        raise BertlookError(f"loss {loss!r} is not known. Use {MASKED_LM} or {STATES}.")
    if loss not in losses_of(encoder):
        raise BertlookError(
            f"model {encoder.name!r}: was loaded without a masked-LM head. Use masked_lm=True, or loss={STATES}."
        )


def wide(values: Tensor) -> Tensor:
    """In float32 at least: sums in half precision lose too much."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def read(encoder: Encoder, segments: Sequence[Segment], budget: int, progress: str | None) -> Iterator[Batch]:
    """Batches for a model whose attention can be changed."""
    if not encoder.tapped:
        raise BertlookError(
            f"model {encoder.name!r}: its attention can be read, but not changed. "
            "Leave this chapter out, or choose BERT, RoBERTa, ELECTRA, DistilBERT or ALBERT."
        )
    with tqdm(total=len(segments), desc=progress, unit="segment", disable=progress is None) as bar:
        for batch in batches(encoder, segments, budget):
            yield batch
            bar.update(len(batch.index))


def mask_tokens(encoder: Encoder, batch: Batch, seed: int = 0, rate: float = 0.15) -> tuple[Batch, Tensor]:
    """Mask as in BERT's pre-training: of the chosen tokens 80% become the mask, 10% a random one, 10% stay.

    Which tokens depends on the seed and on the segment's number only, not on its batch.

    Returns
    -------
    Batch, Tensor [batch, token]
        The batch as the model reads it, its classes those of the tokens it sees; and what is to be predicted,
        −100 elsewhere.
    """
    if encoder.tokenizer.mask_token_id is None:
        raise BertlookError(f"model {encoder.name!r}: its tokenizer has no mask token. Use loss={STATES}.")
    ids, labels = batch.ids.clone(), torch.full_like(batch.ids, -100)
    for row, number in enumerate(batch.index):
        chance = np.random.default_rng([seed, number])
        candidates = (batch.classes[row] >= PUNCT).nonzero().flatten().cpu().numpy()
        count = min(len(candidates), max(1, round(rate * len(candidates))))
        chosen = torch.as_tensor(chance.choice(candidates, count, replace=False), device=ids.device)
        fate = torch.as_tensor(chance.random(count), device=ids.device)
        random = torch.as_tensor(chance.integers(len(encoder.tokenizer), size=count), device=ids.device)
        labels[row, chosen] = ids[row, chosen]
        kept = torch.where(fate < 0.9, ids[row, chosen], random)
        ids[row, chosen] = torch.where(fate < 0.8, encoder.tokenizer.mask_token_id, kept)
    classes = encoder.token_classes.to(ids.device)[ids].masked_fill(~batch.mask, -1)
    return replace(batch, ids=ids, classes=classes), labels


def masked_lm_loss(encoder: Encoder, batch: Batch, labels: Tensor) -> Tensor:
    """Mean cross-entropy over each segment's masked tokens in nats, [batch]."""
    logits = encoder.model(**batch.inputs(encoder)).logits
    masked = labels >= 0
    losses = cross_entropy(wide(logits[masked]), labels[masked], reduction="none")
    rows = masked.nonzero()[:, 0]
    return losses.new_zeros(len(labels)).index_add(0, rows, losses) / masked.sum(1).clamp_min(1)


def final_states(encoder: Encoder, batch: Batch) -> Tensor:
    """The last layer's output, [batch, token, hidden]."""
    return wide(encoder.model.base_model(**batch.inputs(encoder)).last_hidden_state)


def objective(
    encoder: Encoder, batch: Batch, loss: str, seed: int = 0, directions: int = 4
) -> tuple[Batch, Callable[[], Tensor]]:
    """What gradients are taken of.

    ``masked_lm`` is the loss itself. ``states`` is ``⟨v, h⟩``, all final states of the segment along random
    directions ``v`` of standard normal numbers; over these, the mean of an absolute gradient is ``√(2/π)`` times
    the length of the states' gradient.

    Returns
    -------
    Batch, function
        The batch as the model reads it, and a function that runs the model: Tensor [objective, batch].
    """
    check_loss(encoder, loss)
    if loss == MASKED_LM:
        masked, labels = mask_tokens(encoder, batch, seed)
        return masked, lambda: masked_lm_loss(encoder, masked, labels)[None]
    hidden = encoder.model.config.hidden_size
    v = torch.zeros(directions, *batch.ids.shape, hidden, dtype=torch.float64)
    for row, (number, length) in enumerate(zip(batch.index, batch.mask.sum(1).tolist(), strict=True)):
        drawn = np.random.default_rng([seed, number]).standard_normal((directions, length, hidden))
        v[:, row, :length] = torch.from_numpy(drawn)

    def run() -> Tensor:
        states = final_states(encoder, batch)
        return (v.to(states) * states).sum((-1, -2))

    return batch, run


def gradients(encoder: Encoder, batch: Batch, loss: str, seed: int = 0, directions: int = 4) -> tuple[Tensor, Batch]:
    """``|∂L/∂α|`` for every attention weight (§3.2): how much the loss hangs on it, others held as they are.

    A weight is changed by itself, its row not renormalised; what it changes in later layers counts. ``L`` is each
    segment's own, so gradients do not depend on the batch.

    Returns
    -------
    Tensor [layer, batch, head, query, key], Batch
        Mean over the objectives of the absolute gradients, and the batch as the model read it.
    """
    kept: list[Tensor] = []

    def leaf(layer: int, scores: Tensor, value: Tensor) -> Tensor:
        kept.append(scores.softmax(-1).requires_grad_())
        return kept[-1]

    batch, run = objective(encoder, batch, loss, seed, directions)
    with tapped(leaf), torch.enable_grad():
        values = run()
    total = torch.zeros(len(kept), *kept[0].shape, dtype=kept[0].dtype, device=kept[0].device)
    for one in values:
        for layer, gradient in enumerate(torch.autograd.grad(one.sum(), kept, retain_graph=True)):
            total[layer] += gradient.abs()
    return total / len(values), batch


class ByKeyClass(GroupedMean):
    """Any quantity of attention weights, by the class of the token attended to.

    ``total`` [group, layer, head, 2, class] is the quantity summed over queries and the class's keys, twice;
    ``count`` [group, 1, 1, 2, class] the pairs of query and key, and the queries. So ``compute`` gives the mean of a
    single weight's quantity, and the mean over queries of its sum over the class, [layer, head, 2, class].
    """

    def __init__(self, layers: int, heads: int, groups: int = 64) -> None:
        super().__init__((layers, heads, 2, N), (1, 1, 2, N), groups)

    def update(self, values: Tensor, batch: Batch) -> None:
        """``values`` [layer, batch, head, query, key]; padding may hold anything finite."""
        values = wide(values)
        queries = batch.mask.to(values.dtype)
        member = one_hot(batch.classes.clamp_min(0), N).to(values.dtype) * queries[..., None]
        total = (queries[:, None, None] @ values @ member[:, None]).transpose(0, 1)  # [batch, layer, head, 1, class]
        lengths = queries.sum(1, keepdim=True)
        count = torch.stack([lengths * member.sum(1), lengths.expand(-1, N)], 1)[:, None, None]
        self.add(batch.documents, total.expand(*total.shape[:-2], 2, N), count)


def importance(
    encoder: Encoder,
    segments: Sequence[Segment],
    losses: Sequence[str] | None = None,
    *,
    seed: int = 0,
    directions: int = 4,
    budget: int = BUDGET,
    progress: str | None = "gradients",
) -> dict[str, ByKeyClass]:
    """Gradient importance by token class (Figure 3), for each loss; those the model has, if none are named."""
    losses = losses or losses_of(encoder)
    for loss in losses:
        check_loss(encoder, loss)
    measures = {loss: ByKeyClass(encoder.layers, encoder.heads) for loss in losses}
    for batch in read(encoder, segments, budget, progress):
        for loss, measure in measures.items():
            measure.update(*gradients(encoder, batch, loss, seed, directions))
    return measures


def importance_table(measures: Mapping[str, ByKeyClass]) -> pd.DataFrame:
    """``layer, token_class, loss, mean_abs_gradient, n`` and more, layers from 1.

    ``mean_abs_gradient`` is of one weight, with its interval ``low, high``; ``n`` the pairs of query and key, each
    once a head; ``summed_abs_gradient`` the paper's sum over the class's keys, mean over queries and heads.
    """
    tables = []
    for loss, measure in measures.items():
        means = measure.compute().mean(1).cpu()  # [layer, 2, class]
        low, high = interval(measure.resample().mean(2)[:, :, 0])
        table = by_layer(mean_abs_gradient=means[:, 0], n=pairs(measure, len(means)), low=low, high=high)
        table["summed_abs_gradient"] = means[:, 1].flatten().numpy()
        table.insert(2, "loss", loss)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def by_layer(**columns: Tensor | np.ndarray) -> pd.DataFrame:
    """Arrays [layer, class] as columns beside ``layer, token_class``."""
    layers = len(next(iter(columns.values())))
    table = {"layer": np.repeat(np.arange(1, layers + 1), N), "token_class": TOKEN_CLASSES * layers}
    return pd.DataFrame(table | {name: np.asarray(values).flatten() for name, values in columns.items()})


def pairs(measure: ByKeyClass, layers: int) -> np.ndarray:
    """How many pairs of query and key there are of each class, [layer, class]."""
    return np.tile(measure.count.sum(0)[0, 0, 0].long().cpu().numpy(), (layers, 1))


def output_projections(encoder: Encoder) -> list[torch.nn.Linear]:
    """The linear map after each layer's heads; layers that share one (ALBERT) have the same.

    Raises
    ------
    BertlookError
        The model does not keep it where BERT-like models do.
    """
    found = [module for name, module in encoder.model.named_modules() if OUTPUT_PROJECTION.search(name)]
    fits = all(getattr(one, "in_features", 0) % encoder.heads == 0 for one in found)
    if not found or not fits or encoder.layers % len(found):
        raise BertlookError(
            f"model {encoder.name!r}: the output projection of its heads is not where BERT-like models keep it, "
            "so what they pass on cannot be computed. Leave the norms out, or choose BERT, RoBERTa, ELECTRA, "
            "DistilBERT or ALBERT."
        )
    return [one for one in found for _ in range(encoder.layers // len(found))]


def transformed(value: Tensor, projection: torch.nn.Linear) -> Tensor:
    """``f(x)``: each head's value vectors through its slice of the output projection, without the latter's bias.

    ``value`` [batch, head, key, dimension] → [batch, head, key, hidden]. The attention block's output is the
    projection's bias plus, over heads and keys, the sum of ``α f(x)``.
    """
    slices = projection.weight.view(projection.out_features, value.shape[1], value.shape[3])
    return torch.einsum("bhkd,ohd->bhko", value, slices)


@dataclass(frozen=True)
class Passed:
    """What heads attend to and what they pass on: ``α``, ``‖α f(x)‖`` and ``‖f(x)‖`` by the key's class."""

    weights: ByKeyClass
    norms: ByKeyClass
    values: ByKeyClass


def passed(
    encoder: Encoder, segments: Sequence[Segment], *, budget: int = BUDGET, progress: str | None = "norms"
) -> Passed:
    """Norms of the vectors that are passed on (Kobayashi et al. 2020), beside the plain weights."""
    projections = output_projections(encoder)
    result = Passed(*(ByKeyClass(encoder.layers, encoder.heads) for _ in range(3)))
    kept: list[tuple[Tensor, Tensor]] = []

    def keep(layer: int, scores: Tensor, value: Tensor) -> Tensor:
        weights = scores.softmax(-1)
        kept.append((weights, transformed(value, projections[layer]).norm(dim=-1)[:, :, None]))
        return weights

    for batch in read(encoder, segments, budget, progress):
        with tapped(keep), torch.inference_mode():
            final_states(encoder, batch)
            weights, values = (torch.stack(one) for one in zip(*kept, strict=True))
            kept.clear()
            result.weights.update(weights, batch)
            result.norms.update(weights * values, batch)
            result.values.update(values.expand_as(weights), batch)
    return result


def norms_table(passed: Passed) -> pd.DataFrame:
    """``layer, token_class, attention, norm, norm_share, value_norm, n``, means over heads, layers from 1.

    ``attention`` and ``norm`` are summed over the class's keys, mean over queries; ``norm_share`` is the class's part
    of all norms, to be held against ``attention``; ``value_norm`` the mean of ``‖f(x)‖``; ``n`` as for importance.
    """
    weights, norms, values = (each.compute().mean(1).cpu() for each in (passed.weights, passed.norms, passed.values))
    share = norms[:, 1] / norms[:, 1].sum(-1, keepdim=True)
    n = pairs(passed.weights, len(weights))
    return by_layer(attention=weights[:, 1], norm=norms[:, 1], norm_share=share, value_norm=values[:, 0], n=n)


def sink(weights: ByKeyClass) -> str:
    """The special class with the highest mean attention over all layers and heads: ``"cls"`` or ``"sep"``."""
    attention = weights.compute()[:, :, 1].mean((0, 1))
    return TOKEN_CLASSES[int(attention[:PUNCT].argmax())]


@dataclass(frozen=True)
class Intervention:
    """Attention taken away from a class of tokens.

    Attributes
    ----------
    token_class : str
        One of ``TOKEN_CLASSES``, or ``"every"``: all tokens, which switches heads off.
    take : str
        ``"all"`` of its mass; ``"part"`` of it, in each row no more than all other tokens have together; or
        ``"random"``: as much as ``"part"``, but from random other tokens, one after the other until it is enough.
    rest : str
        ``"dropped"``: rows then sum to less; ``"renormalised"``: what is left grows until rows sum to 1 again; a row
        of which nothing is left stays empty.
    layer, head : int or None
        Where, from 1; everywhere if None.
    """

    token_class: str
    take: str = "all"
    rest: str = "dropped"
    layer: int | None = None
    head: int | None = None

    def applied(self, weights: Tensor, classes: Tensor, ranks: Tensor) -> Tensor:
        """The weights after it.

        Parameters
        ----------
        weights : Tensor [batch, head, query, key]
        classes : Tensor [batch, key]
        ranks : Tensor [batch, key]
            Random numbers: ``"random"`` takes tokens in their order, lowest first.
        """
        if self.head is not None:
            one = replace(self, head=None).applied(weights[:, self.head - 1 : self.head], classes, ranks)
            return torch.cat([weights[:, : self.head - 1], one, weights[:, self.head :]], 1)
        member = classes >= 0 if self.token_class == "every" else classes == TOKEN_CLASSES.index(self.token_class)
        theirs = weights * member[:, None, None]
        if self.take == "all":
            changed = weights - theirs
        else:
            others = weights - theirs
            mass, left = theirs.sum(-1, keepdim=True), others.sum(-1, keepdim=True)
            part = torch.minimum(mass, left)
            if self.take == "part":
                changed = weights - theirs * (part / mass.clamp_min(1e-30))
            else:
                earlier = (ranks[:, :, None] < ranks[:, None]).to(weights.dtype)
                before = others @ earlier[:, None]
                changed = weights - (part - before).clamp_min(0).minimum(others)
        if self.rest == "renormalised":
            changed = changed * (weights.sum(-1, keepdim=True) / changed.sum(-1, keepdim=True).clamp_min(1e-30))
        return changed


def battery(encoder: Encoder, token_class: str, by_layer: bool = True) -> list[Intervention]:
    """The interventions on one class: everywhere, rows dropped or renormalised; and dropped in each layer alone."""
    takes = ("all", "part", "random")
    everywhere = [Intervention(token_class, take, rest) for rest in ("dropped", "renormalised") for take in takes]
    layers = range(1, encoder.layers + 1) if by_layer else ()
    return everywhere + [Intervention(token_class, take, layer=layer) for layer in layers for take in takes]


def heads_off(encoder: Encoder) -> list[Intervention]:
    """Each head switched off by itself."""
    places = [(layer, head) for layer in range(1, encoder.layers + 1) for head in range(1, encoder.heads + 1)]
    return [Intervention("every", layer=layer, head=head) for layer, head in places]


class Change(GroupedMean):
    """Means over segments of two numbers: what an intervention changed, and the mass it took from a row.

    ``total`` [group, 2], ``count`` [group, 1]. The change is that of the masked-LM loss in nats a masked token, or the
    cosine distance of the final states before and after, mean over tokens. The mass is what the class or the random
    tokens lost in the end, mean over the rows of the layers and heads concerned.
    """

    def __init__(self, groups: int = 64) -> None:
        super().__init__((2,), (1,), groups)

    def update(self, change: Tensor, mass: Tensor, batch: Batch) -> None:
        """``change`` [batch], ``mass`` [batch]."""
        self.add(batch.documents, torch.stack([change, mass], -1), torch.ones_like(change)[:, None])


@dataclass(frozen=True)
class Changes:
    """What each intervention changed, measured by ``loss``."""

    loss: str
    measures: dict[Intervention, Change]

    def __getitem__(self, intervention: Intervention) -> Change:
        return self.measures[intervention]


def intervene(
    encoder: Encoder,
    segments: Sequence[Segment],
    interventions: Sequence[Intervention],
    loss: str | None = None,
    *,
    seed: int = 0,
    budget: int = BUDGET,
    progress: str | None = "interventions",
) -> Changes:
    """Run the model with and without each intervention.

    Parameters
    ----------
    loss : str, optional
        ``"masked_lm"`` or ``"states"``; the first that the model has if None.
    seed : int
        Of the masking, and of which tokens are the random ones: one order a segment, the same in all layers.
    """
    loss = loss or losses_of(encoder)[0]
    check_loss(encoder, loss)
    for each in interventions:
        check(each, encoder)
    measures = {each: Change() for each in interventions}
    for batch in read(encoder, segments, budget, progress):
        ranks = torch.stack([random_ranks(seed, i, batch.ids.shape[1]) for i in batch.index]).to(encoder.device)
        masked, labels = mask_tokens(encoder, batch, seed) if loss == MASKED_LM else (batch, batch.ids)
        run = change_of(encoder, masked, labels, loss)
        with torch.inference_mode():
            for each, measure in measures.items():
                measure.update(*run(each, ranks), batch)
    return Changes(loss, measures)


def change_of(
    encoder: Encoder, batch: Batch, labels: Tensor, loss: str
) -> Callable[[Intervention, Tensor], tuple[Tensor, Tensor]]:
    """A function that gives an intervention's change and the mass it takes from a row, both [batch]."""

    def output() -> Tensor:
        return masked_lm_loss(encoder, batch, labels) if loss == MASKED_LM else final_states(encoder, batch)

    with torch.inference_mode():
        before = output()
    mask = batch.mask.to(before.dtype)

    def run(intervention: Intervention, ranks: Tensor) -> tuple[Tensor, Tensor]:
        masses: list[Tensor] = []

        def tap(layer: int, scores: Tensor, value: Tensor) -> Tensor:
            weights = scores.softmax(-1)
            if intervention.layer not in (None, layer + 1):
                return weights
            changed = intervention.applied(weights, batch.classes, ranks)
            heads = slice(None) if intervention.head is None else slice(intervention.head - 1, intervention.head)
            masses.append((weights - changed)[:, heads].clamp_min(0).sum(-1).mean(1))
            return changed

        with tapped(tap):
            after = output()
        mass = (torch.stack(masses).mean(0) * mask).sum(1) / mask.sum(1)
        if loss == MASKED_LM:
            return after - before, mass
        distance = 1 - cosine_similarity(after, before, dim=-1)
        return (distance * mask).sum(1) / mask.sum(1), mass

    return run


def random_ranks(seed: int, number: int, length: int) -> Tensor:
    """A random number for each of a segment's tokens, the same however far it is padded."""
    return torch.from_numpy(np.random.default_rng([seed, number, 1]).random(length))


def check(intervention: Intervention, encoder: Encoder) -> None:
    """An intervention that this model can have, or an error."""
    for name, value, allowed in (
        ("token_class", intervention.token_class, (*TOKEN_CLASSES, "every")),
        ("take", intervention.take, ("all", "part", "random")),
        ("rest", intervention.rest, ("dropped", "renormalised")),
        ("layer", intervention.layer, (None, *range(1, encoder.layers + 1))),
        ("head", intervention.head, (None, *range(1, encoder.heads + 1))),
    ):
        if value not in allowed:
            shown: Sequence[Any] = allowed if isinstance(allowed[-1], str) else (f"1 to {allowed[-1]}",)
            raise BertlookError(f"intervention: {name} {value!r} is not known. Use {', '.join(map(str, shown))}.")


def interventions_table(changes: Changes) -> pd.DataFrame:
    """``token_class, take, rest, layer, head, measure, change, low, high, mass, n``; no layer or head means all."""
    rows = []
    for each, measure in changes.measures.items():
        change, mass = measure.compute().tolist()
        low, high = interval(measure.resample()[:, 0])
        place = {"layer": each.layer, "head": each.head}
        rows.append(
            {"token_class": each.token_class, "take": each.take, "rest": each.rest}
            | place
            | {"measure": changes.loss, "change": change, "low": float(low), "high": float(high)}
            | {"mass": mass, "n": int(measure.count.sum())}
        )
    return pd.DataFrame(rows).astype({"layer": "Int64", "head": "Int64"})


#: The verdicts' rules: question → (what the number is, what it is held against). Twice or half is what counts, since
#: with enough text any small difference can be told from none.
RULES = {
    "attends to": ("attention to a token of the class, as a multiple of that to the mean token", 2.0),
    "passes on": ("the class's share of the norms, as a multiple of its share of the weights", 0.5),
    "depends on": ("change when its mass is taken away, less half of that for the same mass of random tokens", 0.0),
    "is sensitive to": ("gradient of a weight to the class, as a multiple of the mean weight's", 0.5),
}


def verdicts(
    token_class: str, passed: Passed, changes: Changes, gradients: ByKeyClass | None = None, rest: str = "dropped"
) -> pd.DataFrame:
    """Whether the model attends to a class, passes it on, and depends on it: three questions, each by its rule.

    ``yes`` if the whole interval (95%, bootstrap over documents) lies above the rule's number, ``no`` if it lies
    below, else ``cannot be told``. The no-op hypothesis is: attends to, but neither passes on nor depends on.

    Returns
    -------
    DataFrame
        ``token_class, question, rule, threshold, value, low, high, verdict``.
    """
    k = TOKEN_CLASSES.index(token_class)
    part, random = (changes[Intervention(token_class, take, rest)] for take in ("part", "random"))

    def of_the_mean(weights: Tensor) -> Tensor:
        means = weights.mean((-4, -3))  # [..., 2, class]: of a weight, of a row's sum over the class
        sums, keys = means[..., 1, :], means[..., 1, :] / means[..., 0, :]
        return means[..., 0, k] / (sums.nansum(-1) / keys.nansum(-1))

    def of_its_share(norms: Tensor, weights: Tensor) -> Tensor:
        norm, weight = (each.mean((-4, -3))[..., 1, :] for each in (norms, weights))
        return (norm[..., k] / norm.sum(-1)) / (weight[..., k] / weight.sum(-1))

    def both(function: Callable[..., Tensor], *measures: GroupedMean) -> tuple[float, Tensor]:
        return float(function(*(m.compute() for m in measures))), function(*(m.resample() for m in measures))

    found = {
        "attends to": both(of_the_mean, passed.weights),
        "passes on": both(of_its_share, passed.norms, passed.weights),
        "depends on": both(lambda a, b: a[..., 0] - b[..., 0] / 2, part, random),
    }
    if gradients is not None:
        found["is sensitive to"] = both(of_the_mean, gradients)
    rows = []
    for question, (value, samples) in found.items():
        rule, threshold = RULES[question]
        low, high = map(float, interval(samples))
        verdict = "yes" if low > threshold else "no" if high < threshold else "cannot be told"
        rows.append((token_class, question, rule, threshold, value, low, high, verdict))
    return pd.DataFrame(rows, columns="token_class question rule threshold value low high verdict".split())


#: What the no-op hypothesis says to each question.
NO_OP = {"attends to": "yes", "passes on": "no", "depends on": "no"}


def no_op(answers: Mapping[str, str]) -> str:
    """``holds`` if all three verdicts are those of the hypothesis, ``does not hold`` if one is the contrary.

    Parameters
    ----------
    answers : mapping of question to verdict
        As in :func:`verdicts`. One that cannot be told leaves the whole so, unless another one is the contrary.
    """
    given = {question: answers[question] for question in NO_OP}
    if given == NO_OP:
        return "holds"
    contrary = any(given[q] not in (NO_OP[q], "cannot be told") for q in NO_OP)
    return "does not hold" if contrary else "cannot be told"
