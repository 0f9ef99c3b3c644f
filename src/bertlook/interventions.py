"""Inside the forward pass: tokens masked, vectors passed on, gradients of weights (§3.2), attention taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy
from tqdm.auto import tqdm

from bertlook import BertlookError
from bertlook.attention import Batch, Segment, batches
from bertlook.encoder import PUNCT, TOKEN_CLASSES, Encoder, tapped
from bertlook.statistics import GroupedMean, interval

#: What a change is measured in: the masked-LM loss in nats a masked token, or the final states.
MASKED_LM, STATES = "masked_lm", "states"
UNITS = {MASKED_LM: "nats a masked token", STATES: "cosine distance of the final states"}
#: Ways of taking attention away, and what then becomes of the row.
TAKES, RESTS = ("all", "part", "random"), ("dropped", "renormalised")
#: All classes of token together: without its attention a head is off.
EVERY = "every"
#: Wordpieces a batch where gradients or changes are computed, which take more memory than reading.
BUDGET = 1024


def known(what: str, value: object, allowed: Sequence[object]) -> None:
    """A value that is allowed, or an error."""
    if value not in allowed:
        shown = f"1 to {len(allowed)}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
        raise BertlookError(f"{what} {value!r} is not known. Use {shown}.")


def losses_of(encoder: Encoder) -> tuple[str, ...]:
    """``("masked_lm", "states")`` for a model loaded with its masked-LM head, else ``("states",)``."""
    return (MASKED_LM, STATES) if encoder.model.base_model is not encoder.model else (STATES,)


def read(encoder: Encoder, segments: Sequence[Segment], progress: str | None, budget: int = BUDGET) -> Iterator[Batch]:
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


# ------------------------------------------------------------------------------------- what the model is run for


def wide(values: Tensor) -> Tensor:
    """In float32 at least: sums in half precision lose too much."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def mask_tokens(encoder: Encoder, batch: Batch, seed: int = 0, rate: float = 0.15) -> tuple[Batch, Tensor]:
    """Mask as in BERT's pre-training: of the chosen tokens 80% become the mask, 10% a random one, 10% stay.

    Which tokens depends on the seed and on the segment's number only, not on its batch. Returns the batch as the
    model reads it, its classes those of the tokens it sees, and what is to be predicted [batch, token], −100 elsewhere.
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


def prepared(encoder: Encoder, batch: Batch, loss: str, seed: int) -> tuple[Batch, Callable[[], Tensor]]:
    """The batch as the model reads it, and a function that runs the model: to losses [batch], or to final states."""
    known("loss", loss, (MASKED_LM, STATES))
    if loss == STATES:
        return batch, lambda: final_states(encoder, batch)
    if loss not in losses_of(encoder):
        raise BertlookError(
            f"model {encoder.name!r}: was loaded without a masked-LM head. Use masked_lm=True, or loss={STATES}."
        )
    masked, labels = mask_tokens(encoder, batch, seed)
    return masked, lambda: masked_lm_loss(encoder, masked, labels)


# ------------------------------------------------------------------------------- what heads pass on, and gradients


def transformed(value: Tensor, projection: torch.nn.Linear) -> Tensor:
    """``f(x)``: each head's value vectors through its slice of the output projection, without the latter's bias.

    ``value`` [batch, head, key, dimension] → [batch, head, key, hidden]. The attention block's output is the
    projection's bias plus, over heads and keys, the sum of ``α f(x)``.
    """
    slices = projection.weight.view(projection.out_features, value.shape[1], value.shape[3])
    return torch.einsum("bhkd,ohd->bhko", value, slices)


def norms(encoder: Encoder, batch: Batch) -> dict[str, Tensor]:
    """What heads attend to and what they pass on (Kobayashi et al. 2020), each [layer, batch, head, query, key].

    ``attention`` is ``α``, ``norm`` ``‖α f(x)‖``, and ``value_norm`` ``‖f(x)‖``, the same for each query.
    """
    kept: list[tuple[Tensor, Tensor]] = []

    def keep(layer: int, scores: Tensor, value: Tensor) -> Tensor:
        weights = scores.softmax(-1)
        lengths = transformed(value, encoder.output_projections[layer]).norm(dim=-1)
        kept.append((weights, lengths[:, :, None].expand_as(weights)))
        return weights

    with tapped(keep), torch.inference_mode():
        final_states(encoder, batch)
        weights, values = (torch.stack(one) for one in zip(*kept, strict=True))
        return {"attention": weights, "norm": weights * values, "value_norm": values}


def objective(
    encoder: Encoder, batch: Batch, loss: str, seed: int = 0, directions: int = 4
) -> tuple[Batch, Callable[[], Tensor]]:
    """What gradients are taken of: the batch as the model reads it, and a function that gives [objective, batch].

    ``masked_lm`` is the loss itself. ``states`` is ``⟨v, h⟩``, all final states of the segment along random
    directions ``v`` of standard normal numbers; over these, the mean of an absolute gradient is ``√(2/π)`` times
    the length of the states' gradient.
    """
    batch, run = prepared(encoder, batch, loss, seed)
    if loss == MASKED_LM:
        return batch, lambda: run()[None]
    hidden = encoder.model.config.hidden_size
    v = torch.zeros(directions, *batch.ids.shape, hidden, dtype=torch.float64)
    for row, (number, length) in enumerate(zip(batch.index, batch.mask.sum(1).tolist(), strict=True)):
        drawn = np.random.default_rng([seed, number]).standard_normal((directions, length, hidden))
        v[:, row, :length] = torch.from_numpy(drawn)
    return batch, lambda: (v.to(states := run()) * states).sum((-1, -2))


def gradients(encoder: Encoder, batch: Batch, loss: str, seed: int = 0, directions: int = 4) -> tuple[Tensor, Batch]:
    """``|∂L/∂α|`` for every attention weight (§3.2): how much the loss hangs on it, others held as they are.

    A weight is changed by itself, its row not renormalised; what it changes in later layers counts. ``L`` is each
    segment's own, so gradients do not depend on the batch. Returns the mean over the objectives
    [layer, batch, head, query, key], and the batch as the model read it.
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


# ------------------------------------------------------------------------------------------ attention taken away


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

    def check(self, encoder: Encoder) -> None:
        """One that this model can have, or an error."""
        known("intervention: token_class", self.token_class, (*TOKEN_CLASSES, EVERY))
        known("intervention: take", self.take, TAKES)
        known("intervention: rest", self.rest, RESTS)
        for what, place, count in (("layer", self.layer, encoder.layers), ("head", self.head, encoder.heads)):
            if place is not None:
                known(f"intervention: {what}", place, range(1, count + 1))

    def applied(self, weights: Tensor, classes: Tensor, ranks: Tensor) -> Tensor:
        """The weights [batch, head, query, key] after it, ``head`` apart; ``classes`` [batch, key].

        ``ranks`` [batch, key] are random numbers: ``"random"`` takes tokens in their order, lowest first.
        """
        member = classes >= 0 if self.token_class == EVERY else classes == TOKEN_CLASSES.index(self.token_class)
        theirs = weights * member[:, None, None]
        others = weights - theirs
        mass, left = theirs.sum(-1, keepdim=True), others.sum(-1, keepdim=True)
        part = mass if self.take == "all" else torch.minimum(mass, left)
        if self.take == "random":
            earlier = (ranks[:, :, None] < ranks[:, None]).to(weights.dtype)
            changed = weights - (part - others @ earlier[:, None]).clamp_min(0).minimum(others)
        else:
            changed = weights - theirs * (part / mass.clamp_min(1e-30))
        if self.rest == "renormalised":
            changed = changed * (weights.sum(-1, keepdim=True) / changed.sum(-1, keepdim=True).clamp_min(1e-30))
        return changed

    def run(self, forward: Callable[[], Tensor], batch: Batch, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """What ``forward`` gives under it, and the mass it takes, mean over rows of its layers and heads [batch]."""
        masses: list[Tensor] = []
        heads = slice(None) if self.head is None else slice(self.head - 1, self.head)

        def tap(layer: int, scores: Tensor, value: Tensor) -> Tensor:
            weights = scores.softmax(-1)
            if self.layer in (None, layer + 1):
                before = weights[:, heads]
                changed = self.applied(before, batch.classes, ranks)
                masses.append((before - changed).clamp_min(0).sum(-1).mean(1))
                weights = weights.slice_scatter(changed, 1, heads.start, heads.stop)
            return weights

        with tapped(tap):
            result = forward()
        return result, row_mean(torch.stack(masses).mean(0), batch)


def battery(encoder: Encoder, token_class: str) -> list[Intervention]:
    """The interventions on one class: everywhere, rows dropped or renormalised; and dropped in each layer alone."""
    everywhere = [Intervention(token_class, take, rest) for rest in RESTS for take in TAKES]
    layers = range(1, encoder.layers + 1)
    return everywhere + [Intervention(token_class, take, layer=layer) for layer in layers for take in TAKES]


def heads_off(encoder: Encoder) -> list[Intervention]:
    """Each head switched off by itself."""
    layers, heads = range(1, encoder.layers + 1), range(1, encoder.heads + 1)
    return [Intervention(EVERY, layer=layer, head=head) for layer in layers for head in heads]


def row_mean(values: Tensor, batch: Batch) -> Tensor:
    """Mean over each segment's tokens, [batch, token] → [batch]; padding may hold anything finite."""
    return (wide(values) * batch.mask).sum(1) / batch.mask.sum(1)


def random_ranks(seed: int, number: int, length: int) -> Tensor:
    """A random number for each of a segment's tokens, the same however far it is padded."""
    return torch.from_numpy(np.random.default_rng([seed, number, 1]).random(length))


class Change(GroupedMean):
    """Means over segments of two numbers: what an intervention changed, and the mass it took from a row.

    ``total`` [group, 2], ``count`` [group, 1]. The change is that of the masked-LM loss in nats a masked token, or the
    cosine distance of the final states before and after, mean over tokens: ``loss`` says which.
    """

    def __init__(self, loss: str) -> None:
        super().__init__((2,), (1,))
        self.loss = loss

    def update(self, before: Tensor, after: Tensor, mass: Tensor, batch: Batch) -> None:
        """Losses ``before, after`` [batch] or states [batch, token, hidden]; ``mass`` [batch]."""
        change = after - before
        if self.loss == STATES:
            change = row_mean(1 - cosine_similarity(after, before, dim=-1), batch)
        self.add(batch.documents, torch.stack([change, mass], -1), torch.ones_like(change)[:, None])


def intervene(
    encoder: Encoder,
    segments: Sequence[Segment],
    interventions: Sequence[Intervention],
    loss: str | None = None,
    *,
    seed: int = 0,
    budget: int = BUDGET,
    progress: str | None = "interventions",
) -> dict[Intervention, Change]:
    """Run the model with and without each intervention, and measure what each changed.

    ``loss`` is ``"masked_lm"`` or ``"states"``; the first that the model has if None. ``seed`` is of the masking, and
    of which tokens are the random ones: one order a segment, the same in all layers.
    """
    loss = loss or losses_of(encoder)[0]
    for each in interventions:
        each.check(encoder)
    measures = {each: Change(loss) for each in interventions}
    for batch in read(encoder, segments, progress, budget):
        ranks = torch.stack([random_ranks(seed, i, batch.ids.shape[1]) for i in batch.index]).to(encoder.device)
        seen, forward = prepared(encoder, batch, loss, seed)
        with torch.inference_mode():
            before = forward()
            for each, measure in measures.items():
                measure.update(before, *each.run(forward, seen, ranks), seen)
    return measures


def table(changes: Mapping[Intervention, Change]) -> pd.DataFrame:
    """``token_class, take, rest, layer, head, measure, change, low, high, mass, n``; no layer or head means all."""
    rows = []
    for each, measure in changes.items():
        change, mass = measure.compute().tolist()
        low, high = map(float, interval(measure.resample()[:, 0]))
        found = {"measure": measure.loss, "change": change, "low": low, "high": high, "mass": mass}
        rows.append(vars(each) | found | {"n": int(measure.count.sum())})
    return pd.DataFrame(rows).astype({"layer": "Int64", "head": "Int64"})
