"""Suggestions: the name that was meant, and none where only the spelling is near."""

import pytest

from bezel_catalog import closest, closest_record, ids_by_hub_id, models

SIZES_OF_OTHERS = {
    "gemma": ("2b", "2b-it", "7b", "7b-it", "1.1-2b-it", "1.1-7b-it"),
    "gemma-2": ("2b", "2b-it", "9b", "9b-it", "27b", "27b-it", "2b-jpn-it"),
    "gemma-3": ("270m", "270m-it", "1b-it", "1b-pt", "4b-it", "4b-pt", "12b-it", "12b-pt", "27b-it", "27b-pt"),
    "gemma-3n": ("E2B", "E2B-it", "E4B", "E4B-it"),
    "medgemma": ("4b-it", "4b-pt", "27b-it", "27b-text-it", "1.5-4b-it"),
    "translategemma": ("4b-it", "12b-it", "27b-it"),
    "codegemma": ("2b", "7b", "7b-it", "1.1-7b-it"),
    "shieldgemma": ("2b", "9b", "27b", "2-4b-it"),
    "recurrentgemma": ("2b-it", "9b-it"),
    "paligemma2": ("3b-mix-224", "10b-mix-448", "28b-pt-896"),
    "t5gemma-2": ("270m-270m", "1b-1b", "4b-4b"),
    "embeddinggemma": ("300m",),
    "functiongemma": ("270m-it",),
    "vaultgemma": ("1b",),
    "txgemma": ("2b-predict", "9b-chat", "27b-chat"),
    "datagemma": ("rag-27b-it",),
    "llama-4": ("12b-it",),
    "qwen3": ("4b", "8b", "32b"),
}
OTHER_MODELS = [f"google/{name}-{size}" for name, sizes in SIZES_OF_OTHERS.items() for size in sizes]
OTHERS_OF_GEMMA_4 = [
    *(f"gemma-4-{size}-it" for size in ("27b", "13b", "21b", "1b", "e12b", "3b", "26b-a3b", "120b")),
    *(f"gemma-{number}-12b-it" for number in (3, 5, 44)),
    *(f"google/gemma-4-{size}-it-assistant" for size in ("E2B", "E4B", "12B", "26B-A4B", "31B")),
    "gemma-4-12b-pt",
    "gemma-4-31b-it-awq",
    "gemma-4-31b-it-nvfp4",
    "gemma-4-26b-it-int4",
    "gemma-4-12b-it-q4_0-gguf",
    "gemma-4-26b-a4b-it-qat-w4a16",
    "gemma-4",
    "gemma-4-it",
    "gemma",
]
MISSPELT = {
    "gema-4-12b-it": "gemma-4-12b-it",
    "gemma4-12b-it": "gemma-4-12b-it",
    "Gemma_4_12B_it": "gemma-4-12b-it",
    "gemma-4-12b-ti": "gemma-4-12b-it",
    "gemma-4-12bit": "gemma-4-12b-it",
    "gemma-4-12-it": "gemma-4-12b-it",
    "gemma4:12b": "gemma-4-12b-it",
    "gemma-4-12b": "gemma-4-12b-it",
    "gemma-4-2b-it": "gemma-4-e2b-it",
    "gemma-4-e2-b-it": "gemma-4-e2b-it",
    "gemma-4-4b-it": "gemma-4-e4b-it",
    "gemma-4-26b-it": "gemma-4-26b-a4b-it",
    "gemma-4-12b-w4a16": "gemma-4-12b-it-qat-w4a16",
    "gemma-4-31b-it-fp8-block": "gemma-4-31b-it-fp8",
}


@pytest.mark.parametrize("name", [*OTHER_MODELS, *OTHERS_OF_GEMMA_4])
def test_a_name_of_another_family_size_or_form_suggests_nothing(name: str) -> None:
    assert closest_record(name, models(), ids_by_hub_id()) is None


@pytest.mark.parametrize(("name", "meant"), [*MISSPELT.items(), *ids_by_hub_id().items()])
def test_a_misspelt_or_published_name_suggests_what_was_meant(name: str, meant: str) -> None:
    assert closest_record(name, models(), ids_by_hub_id()) == meant


@pytest.mark.parametrize(
    ("name", "candidates", "meant"),
    [
        ("0.31.0", ("0.32.0",), None),
        ("0.32", ("0.32.0",), "0.32.0"),
        ("us-east1", ("us-east4",), None),
        ("us-eats4", ("us-east4",), "us-east4"),
        ("us-east5", ("us-east5-a",), "us-east5-a"),
        ("fp8_e5m3", ("fp8_e5m2", "fp8_e4m3"), None),
        ("max-model-length", ("max-model-len",), "max-model-len"),
        ("l4-26b", ("l4-31b-qat", "l4-26b-qat"), "l4-26b-qat"),
    ],
)
def test_names_with_other_numbers_are_not_near(name: str, candidates: tuple[str, ...], meant: str | None) -> None:
    assert closest(name, candidates) == meant
