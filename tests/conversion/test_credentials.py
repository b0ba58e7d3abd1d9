"""No credential of an input is written to a stack file or output_of, wherever it stands."""

import json
from typing import Any

import pytest
import yaml

from bezel.conversion.conversion import Conversion, convert

SECRET = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3f"
MODEL = "google/gemma-4-E2B-it"


def service(**container: Any) -> str:
    base = {"image": "vllm/vllm-openai:v0.32.0", "args": [f"--model={MODEL}"]}
    resources = {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}}
    template = {
        "containers": [base | {"resources": resources} | container],
        "nodeSelector": {"accelerator": "nvidia-l4"},
    }
    return json.dumps({"name": "projects/acme-llm/locations/us-east4/services/chat", "template": template})


PLACES = {
    "a variable": f"HF_TOKEN={SECRET} vllm serve {MODEL}",
    "an exported variable": f"export HF_TOKEN={SECRET}\nvllm serve {MODEL}",
    "a variable without a telling name": f"VLLM_X={SECRET} vllm serve {MODEL}",
    "an option": f"vllm serve {MODEL} --hf-token {SECRET}",
    "a key": f"vllm serve {MODEL} --api-key {SECRET}",
    "several keys": f"vllm serve {MODEL} --api-key a-b-c-d-e-f {SECRET} --seed 1",
    "an option with another value": f"vllm serve {MODEL} --chat-template {SECRET}",
    "an unknown option": f"vllm serve {MODEL} --my-secret {SECRET}",
    "docker": f"docker run -e HF_TOKEN={SECRET} -e API={SECRET} vllm/vllm-openai:v0.32.0 --model {MODEL}",
    "gcloud": f"gcloud run deploy a --image vllm/vllm-openai:v0.32.0 --gpu 1 --region us-east4"
    f" --set-env-vars HF_TOKEN={SECRET},OTHER={SECRET} --args=--model={MODEL} --labels=a={SECRET}",
    "the place of another value": f"gcloud run deploy a --image vllm/vllm-openai:v0.32.0 --gpu 1 --ingress={SECRET}"
    f" --region us-east4 --network={SECRET} --network-tags=a,{SECRET} --args=--model={MODEL}",
    "a compose file": yaml.safe_dump(
        {"services": {"v": {"image": "vllm/vllm-openai", "command": f"--model {MODEL}", "environment": {"T": SECRET}}}}
    ),
    "a service": service(env=[{"name": "HF_TOKEN", "value": SECRET}, {"name": "B", "value": f"Bearer {SECRET}"}]),
    "a field that is not converted": service(workingDir=f"/x/{SECRET}"),
    "another command": f"curl -H 'Authorization: Bearer {SECRET}' x; vllm serve {MODEL}",
}


def output_of(made: Conversion) -> str:
    return made.stack_file() + made.text()


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES)
def test_a_credential_is_neither_written_nor_shown(text: str) -> None:
    assert SECRET in text
    made = convert(text, "FILE")
    assert made.converted.settings["model"] == "gemma-4-e2b-it"
    assert SECRET not in output_of(made)
    assert SECRET not in json.dumps(made.converted.settings)


def test_an_ordinary_value_is_written() -> None:
    made = convert(f"VLLM_LOGGING_LEVEL=DEBUG vllm serve {MODEL} --seed 7", "FILE")
    assert made.converted.settings["variables"] == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    assert made.converted.settings["vllm"]["seed"] == 7


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        (PLACES["a service"], {"HF_TOKEN": "hf-token", "B": "b"}),
        (PLACES["a variable"], None),
        (service(env=[{"name": "A_KEY", "valueSource": {"secretKeyRef": {"secret": "mine"}}}]), {"A_KEY": "mine"}),
    ],
)
def test_a_credential_becomes_a_secret_where_the_server_needs_one(text: str, secrets: dict[str, str] | None) -> None:
    assert convert(text, "FILE").converted.settings.get("secrets") == secrets
