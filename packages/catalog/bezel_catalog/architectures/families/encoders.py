"""Encoders, which keep nothing of a sequence, and decoders that read an encoder's output.

Source: vLLM 0.32.0, `vllm/model_executor/layers/attention/encoder_only_attention.py` (no specification) and
`cross_attention.py` (CrossAttentionSpec: as many blocks as a step may have encoder tokens). The models are named beside
each rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.families.attention import Heads, attention_heads, key_value_heads, layer_count
from bezel_catalog.architectures.layers import CrossLayers, EncoderLayers, FullLayers, Layers

if TYPE_CHECKING:
    from bezel_catalog.architectures.configuration import Configuration

_BIDIRECTIONAL = (
    "Albert",
    "Camembert",
    "ConvBert",
    "Deberta",
    "Electra",
    "EuroBert",
    "MPNet",
    "RoFormer",
    "Bert",
    "Roberta",
    "XLMRoberta",
    "ModernBert",
    "GteModel",
    "GteNew",
    "NomicBert",
    "BgeM3",
    "HF_ColBERT",
    "ColBERTModernBert",
    "ColBERTJinaRoberta",
    "EmbeddingGemma2",
    "LlamaBidirectional",
    "LlamaNemotronVLModel",
    "LlamaNemotronVLForSequenceClassification",
    "VoyageQwen3Bidirectional",
    "SiglipModel",
    "OpenAIPrivacyFilter",
)


def is_encoder(config: Configuration, class_name: str) -> bool:
    """Whether every token attends to every other, so that nothing is kept (bert.py, modernbert.py, llama.py ...)."""
    if class_name.startswith(_BIDIRECTIONAL):
        return True
    if config.whole.get("is_causal") is False or config.values.get("is_causal") is False:
        return True
    if class_name == "Gemma3TextModel":
        return bool(config.get("use_bidirectional_attention"))
    return class_name == "JinaEmbeddingsV5Model" and config.whole.get("is_decoder") is False


def read_encoder(config: Configuration) -> list[Layers]:
    """Layers that keep nothing."""
    heads = attention_heads(config)
    width = config.number("hidden_size", default=0) // heads if heads else 0
    return [EncoderLayers(count=layer_count(config), kv_heads=heads, head_dim=width)]


def read_whisper(config: Configuration) -> list[Layers]:
    """Whisper (whisper.py): each decoder layer keeps its own tokens and what the encoder made."""
    heads = config.number("decoder_attention_heads")
    return _decoder(Heads(heads, config.number("d_model") // heads), config.number("decoder_layers"))


def read_decoder_with_encoder(config: Configuration) -> list[Layers]:
    """Decoders of Cohere's transcription and of Nemotron Parse (cohere_asr.py, nemotron_parse.py)."""
    inner = config.get("transf_decoder")
    if isinstance(inner, dict) and isinstance(inner.get("config_dict"), dict):
        rows = inner["config_dict"]
        heads = int(rows["num_attention_heads"])
        return _decoder(Heads(heads, int(rows["hidden_size"]) // heads), int(rows["num_layers"]))
    heads = config.number("decoder_attention_heads", "num_attention_heads")
    kv_heads = key_value_heads(config) or heads
    return _decoder(
        Heads(kv_heads, config.number("d_model", "hidden_size") // heads),
        config.number("decoder_layers", "num_hidden_layers"),
    )


def _decoder(heads: Heads, count: int) -> list[Layers]:
    return [
        FullLayers(count=count, kv_heads=heads.kv_heads, head_dim=heads.head_dim),
        CrossLayers(count=count, kv_heads=heads.kv_heads, head_dim=heads.head_dim),
    ]
