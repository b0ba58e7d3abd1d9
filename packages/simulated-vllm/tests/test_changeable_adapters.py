"""Adapters that callers load and unload: answers of a real vLLM 0.32.0 with VLLM_ALLOW_RUNTIME_LORA_UPDATING."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bezel_simulated_vllm.configuration.adapters import LoadedAdapters, LoRAModulePath, local_files
from bezel_simulated_vllm.configuration.options import parse

CONFIG = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}
ONE = "1 validation error:\n  {'type': "
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"


def put(folder: Path, config: dict) -> str:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(b"\0" * 8)
    return str(folder)


@pytest.fixture
def client(serve, tmp_path: Path):
    """A server with the adapter `good`, whose callers may change its adapters."""
    module = LoRAModulePath("good", put(tmp_path / "good", CONFIG))
    options = parse(["/mnt/models/tiny", "--enable-lora"])

    def change(settings):
        adapters = LoadedAdapters(options, settings.served_names, lambda path: local_files(Path(path)), [module])
        return replace(settings, adapters=(module,), changeable_adapters=adapters)

    with serve("/mnt/models/tiny", "--served-model-name=tiny", speed=200.0, change=change) as started:
        yield started


def names_of(client: httpx.Client) -> list[tuple[str, str | None]]:
    return [(row["id"], row["parent"]) for row in client.get("/v1/models").json()["data"]]


def post(client: httpx.Client, path: str, **body: object) -> tuple[int, str, str]:
    """Status, and type and text of the error; of a success its text."""
    answer = client.post(path, json=body)
    if answer.is_success:
        return answer.status_code, "", answer.text
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    return answer.status_code, error["type"], error["message"]


def test_a_loaded_adapter_is_listed_and_answers_until_it_is_unloaded(client: httpx.Client, tmp_path: Path) -> None:
    path, asked = str(tmp_path / "good"), {"model": "n1", "prompt": "a", "max_tokens": 1}
    assert client.post("/v1/completions", json=asked).status_code == 404
    loaded = (200, "", "Success: LoRA adapter 'n1' added successfully.")
    assert post(client, LOAD, lora_name="n1", lora_path=path) == loaded
    assert post(client, LOAD, lora_name="n1", lora_path=path, load_inplace=True) == loaded
    assert names_of(client) == [("tiny", None), ("good", "tiny"), ("n1", "tiny")]
    assert client.post("/v1/completions", json=asked).status_code == 200
    removed = (200, "", "Success: LoRA adapter 'n1' removed successfully.")
    assert post(client, UNLOAD, lora_name="n1") == removed
    assert names_of(client) == [("tiny", None), ("good", "tiny")]
    assert client.post("/v1/completions", json=asked).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "text"),
    [
        (LOAD, {"lora_name": "tiny", "lora_path": "/x"}, 400, "InvalidUserInput", "conflicts with a served base model"),
        (LOAD, {"lora_name": "good", "lora_path": "/x"}, 400, "InvalidUserInput", "has already been loaded. If you"),
        (LOAD, {"lora_name": "", "lora_path": ""}, 400, "InvalidUserInput", "Both 'lora_name' and 'lora_path' must be"),
        (
            LOAD,
            {"lora_name": "z", "lora_path": "/nowhere/x"},
            404,
            "NotFoundError",
            "Loading lora z failed: No adapter found for /nowhere/x",
        ),
        (
            LOAD,
            {"lora_name": "n"},
            400,
            "Bad Request",
            f"{ONE}'missing', 'loc': 'body.lora_path', 'msg': 'Field required', 'input': '<dict of 1 items>'}}",
        ),
        (
            LOAD,
            {"lora_name": 5, "lora_path": "/x"},
            400,
            "Bad Request",
            f"{ONE}'string_type', 'loc': 'body.lora_name', 'msg': 'Input should be a valid string', 'input': '5'}}",
        ),
        (UNLOAD, {"lora_name": "n"}, 404, "NotFoundError", "The lora adapter 'n' cannot be found."),
        (UNLOAD, {"lora_name": ""}, 400, "InvalidUserInput", "'lora_name' needs to be provided to unload"),
        (UNLOAD, {}, 400, "Bad Request", "'loc': 'body.lora_name', 'msg': 'Field required'"),
    ],
)
def test_a_wrong_change_is_refused_as_vllm_does(client, path, body, status, kind, text) -> None:
    before = names_of(client)
    refusal = post(client, path, **body)
    assert refusal[:2] == (status, kind)
    assert text in refusal[2]
    assert names_of(client) == before


def test_an_adapter_that_cannot_be_loaded_is_an_error_of_the_server(client: httpx.Client, tmp_path: Path) -> None:
    path = put(tmp_path / "large", CONFIG | {"r": 64})
    refusal = post(client, LOAD, lora_name="large", lora_path=path)
    text = "Call to add_lora method failed: LoRA rank 64 is greater than max_lora_rank 16."
    assert refusal == (500, "InternalServerError", text)


def test_adapters_of_other_servers_stay_as_they_are(serve) -> None:
    with serve("/mnt/models/tiny", "--served-model-name=tiny", speed=200.0) as started:
        assert started.post(LOAD, json={"lora_name": "a", "lora_path": "/x"}).status_code == 404
        assert started.post(UNLOAD, json={"lora_name": "a"}).status_code == 404


def test_server_answers_while_an_adapter_is_read_from_a_hub(serve, tmp_path: Path) -> None:
    path, is_answered = put(tmp_path / "slow", CONFIG), threading.Event()

    def read(name: str):
        assert is_answered.wait(60)
        return local_files(Path(name))

    def change(settings):
        options = parse(["/mnt/models/tiny", "--enable-lora"])
        return replace(settings, changeable_adapters=LoadedAdapters(options, settings.served_names, read, []))

    with serve("/mnt/models/tiny", "--served-model-name=tiny", change=change) as client, ThreadPoolExecutor() as pool:
        loads = [pool.submit(post, client, LOAD, lora_name="n1", lora_path=path) for _ in range(2)]
        assert client.get("/health").status_code == 200
        assert names_of(client) == [("tiny", None)]
        is_answered.set()
        assert sorted(load.result()[0] for load in loads) == [200, 400]
