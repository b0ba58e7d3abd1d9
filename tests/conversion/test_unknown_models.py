"""Models of inputs that the catalogue does not have: where their files are, and the row that takes their place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bezel.conversion.conversion import convert
from bezel_catalog.models import Model, models, using_models

DEPLOY = (
    "gcloud run deploy chat --image=vllm/vllm-openai:v0.32.0 --region=us-east4 --project=acme-llm --gpu=1"
    " --gpu-type=nvidia-l4 --cpu=4 --memory=16Gi {more}"
)
MOUNTED = (
    "--add-volume=name=m,type=cloud-storage,bucket={bucket} --add-volume-mount=volume=m,mount-path=/models"
    " --args=--model=/models/ours/llama"
)
PLACES = {
    "a hub's name": ("vllm serve acme/tiny", ("acme/tiny", "")),
    "a revision of it": ("vllm serve acme/tiny --revision v1", ("acme/tiny", "v1")),
    "a bucket's address": (
        "vllm serve gs://acme/ours/llama --load-format runai_streamer",
        ("gs://acme/ours/llama", ""),
    ),
    "a mounted bucket": (DEPLOY.format(more=MOUNTED.format(bucket="acme")), ("gs://acme/ours/llama", "")),
    "the project's own bucket": (
        DEPLOY.format(more=MOUNTED.format(bucket="acme-llm-models")),
        ("gs://acme-llm-models/ours/llama", ""),
    ),
    "a folder of that machine": ("vllm serve /models/llama", ("", "")),
    "a relative folder": ("vllm serve ./llama", ("", "")),
    "another address": ("vllm serve s3://acme/llama", ("", "")),
    "a name that leads outside": ("vllm serve acme/..", ("", "")),
    "a checkpoint of the catalogue": ("vllm serve google/gemma-4-E2B-it", ("", "")),
}


def own_model(**changes: object) -> Model:
    """A project's own model of the hub, by the figures of one of the catalogue."""
    base = models()["gemma-4-e2b-it"]
    values = {"id": "tiny", "hub_id": "acme/tiny", "commit": "c" * 40, "assistant": None, "source": "hf:acme/tiny"}
    return replace(base, **{**values, **changes})  # type: ignore[arg-type]  # of the fields' own types


@pytest.mark.parametrize(("text", "place"), PLACES.values(), ids=PLACES)
def test_place_of_an_unknown_model_follows_from_the_input(text: str, place: tuple[str, str]) -> None:
    assert convert(text, "serve.sh").unknown_model == place


def test_remark_of_an_unknown_model_names_the_command() -> None:
    remarks = convert(DEPLOY.format(more=MOUNTED.format(bucket="acme")), "deploy.sh").remarks("not converted")
    assert any("`bezel catalog add-model gs://acme/ours/llama`" in each.repair for each in remarks)


def test_row_of_a_model_takes_the_place_of_its_name() -> None:
    with using_models({"tiny": own_model()}):
        conversion = convert("vllm serve acme/tiny --revision v1", "serve.sh")
        assert conversion.unknown_model == ("", "")
    settings = conversion.converted.settings
    assert settings["model"] == "tiny"
    assert "revision" not in settings["vllm"]
    assert any(each.key == "--revision" and each.value == "v1" for each in conversion.remarks("changes"))


def test_row_of_a_bucket_is_found_by_its_folder() -> None:
    row = own_model(hub_id=None, commit="", source="gs://acme/ours/llama", bucket_folder="ours/llama", id="llama")
    with using_models({"llama": row}):
        conversion = convert(DEPLOY.format(more=MOUNTED.format(bucket="acme")), "deploy.sh")
    settings = conversion.converted.settings
    assert settings["model"] == "llama"
    assert settings["weights"] == {"bucket": "acme"}
    assert conversion.plan is not None
    assert conversion.plan.weights.path == "ours/llama"
