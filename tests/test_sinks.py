import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertModel

from bertlook import figures
from bertlook.attention import pad
from bertlook.claims import CANNOT_TELL, DOES_NOT, NOT_MEASURED, REPLICATES, claims
from bertlook.encoder import TOKEN_CLASSES, load
from bertlook.interventions import MASKED_LM, STATES, UNITS, battery, heads_off, intervene, table
from bertlook.sinks import (
    QUESTIONS,
    ByKeyClass,
    answer,
    by_layer,
    elsewhere,
    importance,
    importance_table,
    in_words,
    interventions_columns,
    no_op,
    norms_columns,
    norms_table,
    orders,
    passed,
    quantities,
    questions,
    questions_columns,
    relation,
    sink,
    words,
)
from looking import check, judged


@pytest.fixture(scope="module")
def minilm_passed(encoder, segments):
    return passed(encoder, segments, progress=None)


@pytest.fixture(scope="module")
def built(encoder, tmp_path_factory):
    """A function that builds a model whose heads look at [SEP] so much, and pass on so much of what they see there."""

    def build(gain, passes):
        folder = tmp_path_factory.mktemp("built")
        torch.manual_seed(0)
        config = BertConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32)
        model = BertModel(config)
        mark = torch.zeros(24)
        mark[0] = 1
        place = (mark - mark.mean()) / (mark - mark.mean()).norm()
        with torch.no_grad():
            words = model.embeddings.word_embeddings.weight
            for table in model.embeddings.parameters():
                if table.dim() == 2:
                    table[:, 0] = table.mean(1)  # only the separator has its mark
            words[encoder.tokenizer.sep_token_id] = 3 * mark
            for layer in model.encoder.layer:
                heads = layer.attention.self
                first = torch.arange(0, 24, 8)
                for part in (heads.query, heads.key):
                    part.weight[first] = 0
                    part.weight.mul_(10)
                heads.query.bias[first] = 1
                heads.key.weight[first] = gain * place
                value = 0.2 * torch.randn(24, 24)
                heads.value.weight.copy_(value - (value @ place)[:, None] * place + passes * torch.randn(24, 1) * place)
                layer.attention.output.dense.weight.copy_(0.2 * torch.randn(24, 24))
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        return load(str(folder))

    return build


def test_by_key_class_is_the_loop_over_weights(tiny, short):
    batch = pad(tiny, short, [0, 1, 2, 3])
    values = torch.rand(2, 4, 3, *[batch.ids.shape[1]] * 2)
    measure = ByKeyClass(2, 3)
    measure.update(values, batch)
    for k in range(len(TOKEN_CLASSES)):
        cells, rows = [], []
        for b, segment in enumerate(short):
            keys = [j for j in range(len(segment)) if batch.classes[b, j] == k]
            for query in range(len(segment)):
                cells += [values[:, b, :, query, j].double() for j in keys]
                rows.append(sum((values[:, b, :, query, j].double() for j in keys), torch.zeros(2, 3).double()))
        torch.testing.assert_close(measure.compute()[:, :, 1, k], torch.stack(rows).mean(0), atol=1e-6, rtol=1e-6)
        if cells:
            torch.testing.assert_close(measure.compute()[:, :, 0, k], torch.stack(cells).mean(0), atol=1e-6, rtol=1e-6)
        assert int(measure.count.sum(0)[0, 0, 0, k]) == len(cells)


def test_a_model_with_the_head_has_both_importances(tiny, encoder, short):
    table = importance_table(importance(tiny, short, 0, progress=None))
    assert list(table.columns)[:5] == ["layer", "token_class", "loss", "mean_abs_gradient", "n"]
    assert table["loss"].unique().tolist() == [MASKED_LM, STATES] and len(table) == 2 * 2 * 4
    assert table["layer"].tolist()[:5] == [1, 1, 1, 1, 2]
    some = table[table["n"] > 0]
    assert (some["mean_abs_gradient"] > 0).all() and (some["low"] <= some["mean_abs_gradient"]).all()
    assert list(importance(encoder, short[:1], 0, progress=None)) == [STATES]


def test_half_precision_counts_exactly(tiny_folder, segments):
    """256 is the last whole number up to which bfloat16 can count."""
    half, full = (load(str(tiny_folder), dtype=dtype, masked_lm=True) for dtype in ("bfloat16", "float32"))
    found, expected = (passed(model, segments, progress=None)["attention"] for model in (half, full))
    assert torch.equal(found.count, expected.count)
    torch.testing.assert_close(found.compute(), expected.compute(), rtol=0.02, atol=1e-4)
    assert importance(half, segments[:2], 0, progress=None)[STATES].compute().nanmean() > 0


def test_the_norms_table_adds_up(minilm_passed, encoder):
    table = norms_table(minilm_passed)
    assert list(table.columns) == "layer token_class attention norm norm_share value_norm n".split()
    by_layer = table.groupby("layer")
    np.testing.assert_allclose(by_layer["attention"].sum(), 1, atol=1e-5)
    np.testing.assert_allclose(by_layer["norm_share"].sum(), 1, atol=1e-5)
    assert table["layer"].nunique() == encoder.layers and (table["n"] > 0).all()


# Claims, questions and words


@pytest.mark.parametrize(
    ("gain", "passes", "expected"),
    [
        (2.0, 0.0, {"attends to": "yes", "passes on": "no", "depends on": "no", "is sensitive to": "no"}),
        (2.0, 1.0, {"attends to": "yes", "passes on": "yes", "depends on": "yes", "is sensitive to": "yes"}),
        (0.0, 1.0, {"attends to": "no", "passes on": "yes", "depends on": "yes", "is sensitive to": "yes"}),
        (0.0, 0.0, {"attends to": "no", "passes on": "no", "depends on": "no", "is sensitive to": "no"}),
    ],
    ids=["idle sink", "working sink", "no sink, loud", "no sink, silent"],
)
def test_verdicts_come_out_as_the_model_was_built(built, segments, gain, passes, expected):
    model = built(gain, passes)
    norms = passed(model, segments, progress=None)
    changes = intervene(model, segments, battery(model, "sep")[:6], progress=None)
    slopes = importance(model, segments, 0, progress=None)
    rows = questions(quantities(norms, slopes, changes, "sep", "12 segments"), "sep")
    assert list(rows.columns) == "token_class question rule threshold value low high verdict".split()
    assert list(rows["question"]) == list(QUESTIONS)
    found = dict(zip(rows["question"], rows["verdict"], strict=True))
    assert {question: found[question] for question in expected} == expected
    assert (rows["low"] <= rows["value"] + 1e-9).all() and (rows["value"] <= rows["high"] + 1e-9).all()
    if gain:
        assert sink(norms["attention"]) == "sep"


@pytest.fixture(scope="module")
def minilm(encoder, segments, minilm_passed):
    """What the chapter computes: norms, gradients, changes, the table of interventions, quantities, questions."""
    slopes = importance(encoder, segments[:4], 0, progress=None)
    changes = intervene(encoder, segments, battery(encoder, "cls")[:9], progress=None)
    off = intervene(encoder, segments[:1], heads_off(encoder), progress=None)
    numbers = quantities(minilm_passed, slopes, changes, "cls", "12 segments")
    return minilm_passed, slopes, changes, table(changes | off), numbers, questions(numbers, "cls")


def test_minilms_sink_is_its_start_token_and_idle(minilm):
    norms, *_, asked = minilm
    assert sink(norms["attention"]) == "cls"
    found = asked.set_index("question")["verdict"]
    assert found[["attends to", "passes on", "depends on"]].tolist() == ["yes", "no", "no"]


def test_questions_and_claims_agree_since_they_have_one_rule(minilm):
    *_, numbers, asked = minilm
    verdicts, found = judged("sinks", numbers, sink="[CLS]"), asked.set_index("question")["verdict"]
    assert list(verdicts) == ["attends", "gradient-small", "no-op-passed", "no-op-cause"]
    opposite = {"yes": DOES_NOT, "no": REPLICATES}
    assert verdicts["attends"] == {"yes": REPLICATES, "no": DOES_NOT}.get(found["attends to"], CANNOT_TELL)
    assert verdicts["no-op-passed"] == opposite.get(found["passes on"], CANNOT_TELL)
    assert verdicts["no-op-cause"] == opposite.get(found["depends on"], CANNOT_TELL)
    assert verdicts.frame["claim"].str.contains("[CLS]", regex=False).all()


def test_quantities_are_those_of_the_tables(minilm):
    """By hand from the tables of the chapter: means over layers of the means over heads."""
    norms, slopes, _, effects, numbers, _ = minilm
    found, rows = numbers.set_index("quantity"), norms_table(norms)
    means = rows.groupby("token_class")[["attention", "norm"]].mean()
    share = means["norm"] / means["norm"].sum()
    assert found.loc["no-op-passed", "value"] == pytest.approx(share["cls"] / means["attention"]["cls"], rel=1e-5)
    deep = importance_table(slopes).query("layer >= 3").pivot_table("mean_abs_gradient", "token_class")
    others = deep.drop("cls")["mean_abs_gradient"].mean()
    assert found.loc["gradient-small", "value"] == pytest.approx(deep.loc["cls"].item() / others, rel=1e-5)
    dropped = effects.query("layer.isna() and rest == 'dropped'").set_index("take")["change"]
    expected = dropped["part"] - dropped["random"] / 2
    assert found.loc["no-op-cause", "value"] == pytest.approx(expected, abs=1e-9)
    assert found["n"].tolist()[1:5:3] == ["12 segments", f"12 segments, {UNITS[STATES]}"]
    assert found.loc["gradient-small", "n"].startswith("12 segments; sensitivity of the final states")


@pytest.mark.parametrize(
    ("attends", "passes", "depends", "expected"),
    [
        (REPLICATES, REPLICATES, REPLICATES, "holds"),
        (REPLICATES, REPLICATES, CANNOT_TELL, "cannot be told"),
        (DOES_NOT, DOES_NOT, CANNOT_TELL, "does not hold"),
        (REPLICATES, REPLICATES, DOES_NOT, "does not hold"),
        (REPLICATES, NOT_MEASURED, DOES_NOT, "does not hold"),
        (REPLICATES, NOT_MEASURED, CANNOT_TELL, "not measured here"),
    ],
)
def test_the_no_op_holds_only_if_all_three_verdicts_say_so(attends, passes, depends, expected):
    verdicts = {"attends": attends, "no-op-passed": passes, "no-op-cause": depends, "gradient-small": DOES_NOT}
    assert no_op(verdicts) == expected


@pytest.mark.parametrize(
    ("verdict", "attends", "passes", "depends"),
    [
        (REPLICATES, "m attends to [X]", "it passes on little", "its output hardly depends on it"),
        (
            DOES_NOT,
            "m does not attend to [X] much more than to other tokens",
            "it passes on what is there",
            "its output depends on it",
        ),
        (
            CANNOT_TELL,
            "whether m attends to [X] much more than to other tokens cannot be told",
            "whether it passes on what is there cannot be told",
            "whether its output depends on it cannot be told",
        ),
        (
            NOT_MEASURED,
            "whether m attends to [X] much more than to other tokens was not measured here",
            "whether it passes on what is there was not measured here",
            "whether its output depends on it was not measured here",
        ),
    ],
)
def test_each_piece_of_the_answer_is_what_its_verdict_says(minilm, verdict, attends, passes, depends):
    verdicts = dict.fromkeys([claim.id for claim in claims("sinks")], verdict)
    found = answer(verdicts, minilm[-1], model="m", sink="[X]")
    assert (found["attends"], found["no-op-passed"], found["no-op-cause"]) == (attends, passes, depends)


@pytest.mark.parametrize(
    ("dropped", "renormalised", "expected"),
    [
        ("no", "yes", "the output does change: the sink works as a place to put attention, not as a source"),
        ("yes", "yes", "the output changes"),
        ("no", "no", "the output hardly changes"),
        ("no", "cannot be told", "whether the output changes cannot be told"),
        ("no", "not measured here", "whether the output changes was not measured here"),
    ],
)
def test_where_the_mass_goes_is_said_as_it_was_found(dropped, renormalised, expected):
    assert elsewhere(dropped, renormalised) == expected


@pytest.mark.parametrize(
    ("correlation", "p", "expected"),
    [
        (-0.5, 0.001, "they matter less"),
        (0.5, 0.001, "they matter more"),
        (0.5, 0.2, "that cannot be told from no relation"),
        (float("nan"), float("nan"), "that cannot be told from no relation"),
    ],
)
def test_the_relation_of_attention_and_change_is_said_as_it_was_found(correlation, p, expected):
    assert relation(correlation, p) == expected


def test_orders_are_compared_only_where_there_are_two():
    slopes = pd.DataFrame({"masked_lm": [1.0, 2, 3], "states": [3.0, 2, 1]})
    assert "correlate with -1.00" in orders(slopes) and orders(slopes[["states"]]) == ""


def test_the_words_are_of_this_model(minilm, encoder):
    norms, slopes, _, effects, *_ = minilm
    gradients, rows = importance_table(slopes), norms_table(norms).query("token_class == 'cls'")
    found = words(encoder, norms, gradients, effects)
    assert found["sink"] == "[CLS]" and found["measured-on"] == "final states" and found["orders"] == ""
    most = rows.loc[rows["attention"].idxmax()]
    assert (found["sink-layer"], found["sink-most"]) == (str(most["layer"]), f"{100 * most['attention']:.1f}%")
    assert found["sink-attention"] == f"{100 * rows['attention'].mean():.1f}%"
    beside = gradients.pivot(index="layer", columns="token_class", values="mean_abs_gradient")
    beside = beside["cls"] / beside[["sep", "punct", "other"]].mean(axis=1)
    assert (found["gradient-layer"], found["gradient-least"]) == (str(beside.idxmin()), f"{beside.min():.2f}×")


# Tables for reading, and figures


def test_tables_and_figures_name_classes_as_the_model_spells_them(encoder):
    rows = pd.DataFrame({"token_class": TOKEN_CLASSES, "loss": STATES, "measure": MASKED_LM, "take": "part"})
    told = in_words(rows, encoder, "sep")
    assert told["token_class"].tolist() == ["[CLS]", "[SEP]", ". or ,", "other tokens"]
    assert told["measure"].iloc[0] == "nats a masked token" and told["take"].iloc[0] == "from [SEP], at most half a row"


def test_figures_of_a_labelled_table_say_which_token_and_loss(minilm, encoder):
    told = in_words(importance_table(minilm[1]), encoder, "cls")
    labels = dict(xlabel="layer", ylabel="mean |gradient| of a weight", unit="number", name="gradients")
    picture = figures.lines(
        told, "layer", "mean_abs_gradient", "token_class", low="low", high="high", panel="loss", log=True, **labels
    )
    check(picture, "layer", "mean |gradient| of a weight")
    first = told.iloc[0]["mean_abs_gradient"]
    assert f"Final states, in random directions: [CLS]: {first:.3g} at 1" in picture.alt
    assert picture.figure.axes[0].get_yscale() == "log"


def test_tables_for_reading_say_units_and_intervals(minilm, encoder):
    norms, *_, effects, _, asked = minilm
    head = norms_columns(in_words(norms_table(norms, 3).query("layer == 2"), encoder, "cls"))
    assert head["Token"][0] == "[CLS]" and all(text.endswith("%") for text in head["Share of the weights"])
    everywhere = interventions_columns(in_words(effects.query("layer.isna()"), encoder, "cls"))
    assert (
        everywhere["Taken away"][0] == "dropped: all from [CLS]"
        and list(everywhere)[-1] == f"Change ({UNITS[STATES]}), 95%"
    )
    shown = questions_columns(asked)
    assert shown["Answer"] == list(asked["verdict"]) and shown["Question"][0].endswith("mean token (yes above 2)")
    row = asked.iloc[0]
    assert shown["Value, 95%"][0] == f"{row['value']:.3g} ({row['low']:.3g} to {row['high']:.3g})"


def test_one_heads_norms_are_its_own(minilm_passed, encoder):
    """The mean over heads is the mean of the tables of single heads."""
    heads = [norms_table(minilm_passed, head + 1) for head in range(encoder.heads)]
    mean = norms_table(minilm_passed)
    for column in ("attention", "norm", "value_norm"):
        np.testing.assert_allclose(np.mean([each[column] for each in heads], axis=0), mean[column], rtol=1e-6)


def test_values_a_class_stand_beside_those_a_layer_and_class():
    rows = by_layer(share=torch.arange(8.0).view(2, 4), n=np.array([1, 2, 3, 4]))
    assert rows["layer"].tolist() == [1] * 4 + [2] * 4 and rows["token_class"].tolist() == list(TOKEN_CLASSES) * 2
    assert rows["share"].tolist() == list(range(8)) and rows["n"].tolist() == [1, 2, 3, 4] * 2
