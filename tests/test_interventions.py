import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    RobertaConfig,
    RobertaModel,
)

from bertlook import BertlookError
from bertlook.attention import Segment, pad
from bertlook.encoder import CLS, OTHER, PUNCT, SEP, TOKEN_CLASSES, load, tapped
from bertlook.interventions import (
    MASKED_LM,
    STATES,
    Intervention,
    battery,
    final_states,
    gradients,
    heads_off,
    intervene,
    losses_of,
    mask_tokens,
    masked_lm_loss,
    norms,
    objective,
    random_ranks,
    table,
    transformed,
)

TAKES = [(take, rest) for take in ("all", "part", "random") for rest in ("dropped", "renormalised")]


def attention_of(encoder, batch):
    """Weights [layer, batch, head, query, key] and values [layer, batch, head, key, dimension], read by the tap."""
    kept = []

    def keep(layer, scores, value):
        kept.append((scores.softmax(-1), value))
        return kept[-1][0]

    with tapped(keep), torch.inference_mode():
        final_states(encoder, batch)
    return tuple(torch.stack(one) for one in zip(*kept, strict=True))


# Masking and losses


def test_tokens_are_masked_as_in_pre_training(tiny):
    items = [Segment((101, *[2000 + i] * 98, 102), (0,) * 100) for i in range(300)]
    batch = pad(tiny, items, list(range(300)))
    masked, labels = mask_tokens(tiny, batch, seed=1)
    chosen = labels >= 0
    assert (chosen.sum(1) == 15).all() and not chosen[:, [0, -1]].any()
    assert (labels[chosen] == batch.ids[chosen]).all() and (masked.ids[~chosen] == batch.ids[~chosen]).all()
    mask, same = (masked.ids[chosen] == other for other in (tiny.tokenizer.mask_token_id, batch.ids[chosen]))
    assert float(mask.double().mean()) == pytest.approx(0.8, abs=0.02)
    assert float(same.double().mean()) == pytest.approx(0.1, abs=0.02)


def test_masking_depends_on_the_segment_and_not_on_its_batch(tiny, short):
    together, labels = mask_tokens(tiny, pad(tiny, short, [0, 1, 2, 3]), seed=5)
    for i, segment in enumerate(short):
        alone, expected = mask_tokens(tiny, pad(tiny, [segment], [i]), seed=5)
        assert torch.equal(together.ids[i, : len(segment)], alone.ids[0])
        assert torch.equal(labels[i, : len(segment)], expected[0])
    assert not torch.equal(labels, mask_tokens(tiny, pad(tiny, short, [0, 1, 2, 3]), seed=6)[1])


def test_the_loss_is_transformers_own_for_each_segment(tiny, short):
    batch, labels = mask_tokens(tiny, pad(tiny, short, [0, 1, 2, 3]))
    found = masked_lm_loss(tiny, batch, labels)
    for i, segment in enumerate(short):
        alone, expected = mask_tokens(tiny, pad(tiny, [segment], [i]))
        loss = tiny.model(**alone.inputs(tiny), labels=expected).loss
        torch.testing.assert_close(found[i], loss)


def test_a_loss_that_the_model_does_not_have_is_refused(tiny, encoder, short):
    assert losses_of(tiny) == (MASKED_LM, STATES) and losses_of(encoder) == (STATES,)
    with pytest.raises(BertlookError, match="without a masked-LM head"):
        gradients(encoder, pad(encoder, short, [0, 1, 2, 3]), MASKED_LM)
    with pytest.raises(BertlookError, match="loss 'mlm' is not known"):
        gradients(tiny, pad(tiny, short, [0, 1, 2, 3]), "mlm")
    with pytest.raises(BertlookError, match="loss 'mlm' is not known"):
        intervene(encoder, short, [], "mlm", progress=None)


def test_a_model_with_its_head_is_the_same_model_without(tiny_folder, short):
    with_head, without = (load(str(tiny_folder), masked_lm=head) for head in (None, False))
    assert losses_of(with_head) == (MASKED_LM, STATES) and losses_of(without) == (STATES,)
    states = (final_states(one, pad(one, short, [0, 1, 2, 3])) for one in (with_head, without))
    torch.testing.assert_close(*states)


# Gradients


@pytest.mark.parametrize("loss", [MASKED_LM, STATES])
def test_gradients_are_finite_differences_of_one_weight(tiny, short, loss):
    """Each weight moved by itself through the tap, both ways; the row is not renormalised."""
    batch = pad(tiny, short[:2], [0, 1])
    found, _ = gradients(tiny, batch, loss, seed=2, directions=1)
    _, run = objective(tiny, batch, loss, seed=2, directions=1)
    lengths = [len(s) for s in short[:2]]

    def moved(place, step):
        def tap(layer, scores, value):
            weights = scores.softmax(-1)
            if layer == place[0]:
                weights = weights.clone()
                weights[place[1:]] += step
            return weights

        with tapped(tap), torch.inference_mode():
            return run().sum()

    chance = np.random.default_rng(0)
    seen = []
    for layer in range(2):
        for segment, length in enumerate(lengths):
            for head in range(3):
                for query, key in chance.integers(length, size=(4, 2)).tolist():
                    place = (layer, segment, head, query, key)
                    expected = (moved(place, 1e-5) - moved(place, -1e-5)).abs() / 2e-5
                    assert float(found[place]) == pytest.approx(float(expected), rel=1e-4, abs=1e-9)
                    seen.append(float(expected))
    assert max(seen) > 1e-6


def test_the_sensitivity_is_the_mean_over_random_directions(tiny, short):
    """By its definition √(2/π) times the length of the gradient of the states, over many directions."""
    batch = pad(tiny, short[:1], [0])
    found, _ = gradients(tiny, batch, STATES, directions=400)
    step, place = 1e-5, (0, 0, 1, 2, 3)

    def states(sign):
        def tap(layer, scores, value):
            weights = scores.softmax(-1).clone()
            if layer == place[0]:
                weights[place[1:]] += sign * step
            return weights

        with tapped(tap), torch.inference_mode():
            return final_states(tiny, batch)

    length = (states(1) - states(-1)).norm() / (2 * step)
    assert float(found[place]) == pytest.approx(float(length) * (2 / np.pi) ** 0.5, rel=0.15)


@pytest.mark.parametrize("loss", [MASKED_LM, STATES])
def test_gradients_do_not_depend_on_the_batch(tiny, short, loss):
    together, _ = gradients(tiny, pad(tiny, short, [0, 1, 2, 3]), loss)
    for i, segment in enumerate(short):
        alone, _ = gradients(tiny, pad(tiny, [segment], [i]), loss)
        n = len(segment)
        torch.testing.assert_close(together[:, i, :, :n, :n], alone[:, 0])


# What is passed on


@pytest.mark.parametrize(
    "model",
    [
        BertModel(BertConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32)),
        RobertaModel(
            RobertaConfig(
                vocab_size=30522, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32
            )
        ),
        ElectraForMaskedLM(
            ElectraConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, embedding_size=12)
        ),
        DistilBertForMaskedLM(DistilBertConfig(dim=24, n_layers=2, n_heads=3, hidden_dim=32)),
        AlbertModel(
            AlbertConfig(
                vocab_size=30522, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32
            )
        ),
    ],
    ids=["bert", "roberta", "electra", "distilbert", "albert"],
)
def test_passed_vectors_add_up_to_what_the_block_puts_out(model, encoder, short, tmp_path):
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    loaded = load(str(tmp_path))
    projections = loaded.output_projections
    outputs = []
    hooks = [one.register_forward_hook(lambda _, __, out: outputs.append(out)) for one in dict.fromkeys(projections)]
    batch = pad(loaded, short, [0, 1, 2, 3])
    weights, values = attention_of(loaded, batch)
    for hook in hooks:
        hook.remove()
    for layer, (projection, output) in enumerate(zip(projections, outputs, strict=True)):
        f = transformed(values[layer], projection)
        total = torch.einsum("bhqk,bhko->bqo", weights[layer], f) + projection.bias
        torch.testing.assert_close(total, output, atol=1e-5, rtol=1e-5)


def test_norms_are_those_recomputed_head_by_head(encoder, short):
    together = norms(encoder, pad(encoder, short, [0, 1, 2, 3]))["norm"]
    for i, segment in enumerate(short):
        batch = pad(encoder, [segment], [i])
        weights, values = attention_of(encoder, batch)
        each = torch.zeros_like(weights)
        for l, projection in enumerate(encoder.output_projections):
            for h in range(encoder.heads):
                part = projection.weight[:, h * 32 : (h + 1) * 32]
                for j in range(len(segment)):
                    vectors = weights[l, 0, h, :, j, None] * (part @ values[l, 0, h, j])
                    each[l, 0, h, :, j] = vectors.norm(dim=-1)
        n = len(segment)
        torch.testing.assert_close(together[:, i, :, :n, :n], each[:, 0], atol=1e-4, rtol=1e-4)


def test_where_the_projection_is_unknown_it_is_said(encoder, monkeypatch):
    monkeypatch.setattr("bertlook.encoder.OUTPUT_PROJECTION", re.compile("nowhere"))
    with pytest.raises(BertlookError, match=r"output projection .* not where BERT-like models keep it"):
        _ = replace(encoder).output_projections


# Attention taken away


def plain(weights, classes, order, token_class, take, rest):
    """The definition for one row: a list of weights, the tokens' classes, the random order."""
    chosen = [c == token_class for c in classes]
    mass = sum(w for w, c in zip(weights, chosen, strict=True) if c)
    left = sum(weights) - mass
    result = list(weights)
    if take == "random":
        budget = min(mass, left)
        for place in order:
            if not chosen[place]:
                taken = min(budget, result[place])
                result[place] -= taken
                budget -= taken
    else:
        share = 1 if take == "all" else min(1, left / mass) if mass else 0
        result = [w * (1 - share) if c else w for w, c in zip(weights, chosen, strict=True)]
    if rest == "renormalised":
        result = [w * sum(weights) / max(sum(result), 1e-9) for w in result]
    return result


rows = st.lists(st.tuples(st.floats(0.001, 1), st.sampled_from([CLS, SEP, PUNCT, OTHER])), min_size=2, max_size=8)


@given(row=rows, case=st.sampled_from(TAKES), token_class=st.sampled_from(TOKEN_CLASSES), seed=st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_an_intervention_is_what_its_definition_says_of_a_row(row, case, token_class, seed):
    classes = [c for _, c in row]
    total = sum(w for w, _ in row)
    weights = [w / total for w, _ in row]
    ranks = random_ranks(seed, 0, len(row))
    intervention = Intervention(token_class, *case)
    tensor = torch.tensor(weights, dtype=torch.float64)[None, None, None]
    found = intervention.applied(tensor, torch.tensor([classes]), ranks[None])[0, 0, 0]
    expected = plain(weights, classes, ranks.argsort().tolist(), TOKEN_CLASSES.index(token_class), *case)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)
    assert found.min() > -1e-12 and found.sum() < 1 + 1e-9


@pytest.mark.parametrize("loss", [MASKED_LM, STATES])
def test_taking_from_an_empty_class_changes_nothing(tiny, loss):
    """Segments without a comma or full stop."""
    items = [Segment((101, *range(2100, 2100 + n), 102), (0,) * (n + 2)) for n in (20, 31)]
    plan = [Intervention("punct", *case, layer=layer) for case in TAKES for layer in (None, 1)]
    changes = intervene(tiny, items, plan, loss, progress=None)
    for each in plan:
        change, mass = changes[each].compute().tolist()
        assert abs(change) < 1e-6 and mass == pytest.approx(0, abs=1e-6)


def test_on_minilm_too_an_empty_class_changes_nothing_to_float32s_rounding(encoder):
    items = [Segment((101, *range(2100, 2150), 102), (0,) * 52)]
    plan = [Intervention("punct", *case) for case in TAKES]
    changes = intervene(encoder, items, plan, progress=None)
    assert all(abs(float(changes[each].compute()[0])) < 1e-6 for each in plan)


def test_a_change_is_the_difference_of_two_runs(tiny, short):
    """By hand: one segment at a time, the weights replaced by the definition, row by row."""
    plan = [Intervention("sep", *case, layer=2) for case in TAKES]
    for loss in (MASKED_LM, STATES):
        changes = intervene(tiny, short, plan, loss, seed=4, progress=None)
        for each in plan:
            expected = []
            for i, segment in enumerate(short):
                batch = pad(tiny, [segment], [i])
                labels = None
                if loss == MASKED_LM:
                    batch, labels = mask_tokens(tiny, batch, 4)
                order = random_ranks(4, i, batch.ids.shape[1]).argsort().tolist()
                classes = batch.classes[0].tolist()

                def tap(layer, scores, value, each=each, classes=classes, order=order):
                    weights = scores.softmax(-1)
                    if layer != 1:
                        return weights
                    changed = [
                        [plain(row.tolist(), classes, order, SEP, each.take, each.rest) for row in head]
                        for head in weights[0]
                    ]
                    return torch.tensor([changed], dtype=weights.dtype)

                def run(batch=batch, labels=labels):
                    return final_states(tiny, batch) if labels is None else masked_lm_loss(tiny, batch, labels)

                with torch.inference_mode():
                    before = run()
                    with tapped(tap):
                        after = run()
                if labels is None:
                    distance = 1 - torch.nn.functional.cosine_similarity(after, before, dim=-1)
                    expected.append(float(distance.mean()))
                else:
                    expected.append(float(after - before))
            assert float(changes[each].compute()[0]) == pytest.approx(np.mean(expected), abs=1e-9)


def test_a_head_switched_off_is_one_whose_output_is_cut(tiny, short):
    """Against the same model with the head's slice of the output projection set to 0."""
    changes = intervene(tiny, short, heads_off(tiny), STATES, progress=None)
    batch = pad(tiny, short, [0, 1, 2, 3])
    with torch.inference_mode():
        before = final_states(tiny, batch)
        for each in heads_off(tiny):
            weight = tiny.output_projections[each.layer - 1].weight
            kept = weight.clone()
            weight[:, (each.head - 1) * 8 : each.head * 8] = 0
            after = final_states(tiny, batch)
            weight.copy_(kept)
            distance = 1 - torch.nn.functional.cosine_similarity(after, before, dim=-1)
            expected = (distance * batch.mask).sum(1) / batch.mask.sum(1)
            assert float(changes[each].compute()[0]) == pytest.approx(float(expected.mean()), abs=1e-12)
            assert float(changes[each].compute()[1]) == pytest.approx(1)


@pytest.mark.parametrize("budget", [16, 30, 1000])
def test_changes_do_not_depend_on_the_batches(tiny, short, budget):
    plan = battery(tiny, "cls")
    first, second = (intervene(tiny, short, plan, STATES, budget=b, progress=None) for b in (200, budget))
    for each in plan:
        torch.testing.assert_close(first[each].total, second[each].total)


def test_the_same_mass_is_taken_from_random_tokens(encoder, segments):
    plan = [Intervention("cls", take, layer=3) for take in ("all", "part", "random")]
    masses = [float(one.compute()[1]) for one in intervene(encoder, segments, plan, progress=None).values()]
    assert masses[1] == pytest.approx(masses[2], abs=1e-5) and masses[0] > masses[1]


def test_the_interventions_table_counts_from_one_and_leaves_all_blank(tiny, short):
    plan = [*battery(tiny, "sep"), *heads_off(tiny)]
    rows = table(intervene(tiny, short, plan, progress=None))
    assert list(rows.columns) == "token_class take rest layer head measure change low high mass n".split()
    assert rows["measure"].unique().tolist() == [MASKED_LM] and (rows["n"] == len(short)).all()
    assert rows["layer"].isna().sum() == 6 and rows["layer"].dropna().min() == 1
    assert rows.tail(6)["head"].tolist() == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        (Intervention("dots"), r"token_class 'dots' is not known. Use cls, sep, punct, other, every"),
        (Intervention("sep", "half"), r"take 'half' is not known. Use all, part, random"),
        (Intervention("sep", layer=3), r"layer 3 is not known. Use 1 to 2"),
        (Intervention("sep", head=0), r"head 0 is not known. Use 1 to 3"),
    ],
)
def test_an_intervention_that_cannot_be_is_refused(tiny, short, intervention, message):
    with pytest.raises(BertlookError, match=message):
        intervene(tiny, short, [intervention], progress=None)


def test_a_model_with_an_attention_of_its_own_is_refused(encoder, segments, monkeypatch):
    monkeypatch.setitem(encoder.__dict__, "tapped", False)
    with pytest.raises(BertlookError, match="can be read, but not changed"):
        intervene(encoder, segments, heads_off(encoder), progress=None)
