"""A bucket without a whole model stops the deploy, and the message says how to copy one."""

import json
import pickle
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dill
import pulumi
import pytest
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.output import Unknown

from bezel_base.errors import Problem, UserError, caused_by
from bezel_components.model_files import ModelFiles, ModelFilesArgs
from bezel_components.providers.model_files import ModelFilesError, ModelFilesProvider
from tests.support.components.fake_engine import declare
from tests.support.components.fake_storage import TOKEN, FakeStorage, serving

FOLDER = "gemma-4-12b-it"
PLACE = f"gs://acme-models/{FOLDER}"
PROPS = {
    "bucket": "acme-models",
    "path": FOLDER,
    "source": "google/gemma-4-12b-it",
    "bucket_url": "gs://acme-models",
    "stack": "acme",
}
MODEL = {
    "config.json": 700,
    "tokenizer.json": 30,
    "model-00001-of-00002.safetensors": 5,
    "model-00002-of-00002.safetensors": 6,
}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStorage]:
    with serving() as server:
        monkeypatch.setenv("GOOGLE_STORAGE_CUSTOM_ENDPOINT", server.base)
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
        server.buckets["acme-models"] = {f"{FOLDER}/{name}": size for name, size in MODEL.items()}
        yield server


def reasons(props: dict[str, object]) -> list[str]:
    return [failure.reason for failure in ModelFilesProvider().check({}, dict(props)).failures]


@pytest.mark.slow
def test_a_whole_model_passes_and_is_counted(storage: FakeStorage) -> None:
    storage.buckets["acme-models"][f"{FOLDER}/original/other.safetensors"] = 999
    storage.buckets["acme-models"]["gemma-4-12b-it-other/config.json"] = 999
    assert reasons(PROPS) == []
    created = ModelFilesProvider().create(PROPS)
    assert created.id == PLACE
    assert (created.outs["files"], created.outs["total_bytes"]) == (4, 741)


def test_an_empty_folder_is_found_in_a_preview_with_its_repair(storage: FakeStorage) -> None:
    """An empty folder is found in a preview with the command that copies the model."""
    storage.buckets["acme-models"].clear()
    (reason,) = reasons(PROPS)
    assert "config.json is missing" in reason
    assert "vLLM would exit during its start" in reason
    assert ".venv/bin/bezel weights copy acme --from hf:google/gemma-4-12b-it" in reason


@pytest.mark.slow
def test_a_draft_model_is_whole_without_a_tokenizer(storage: FakeStorage) -> None:
    del storage.buckets["acme-models"][f"{FOLDER}/tokenizer.json"]
    assert reasons({**PROPS, "draft": True}) == []
    assert "tokenizer" in reasons(PROPS)[0]


def test_an_adapter_is_looked_for_and_its_rank_compared(storage: FakeStorage) -> None:
    adapter = {**PROPS, "path": "sql", "source": "", "adapter_rank": 16}
    place = "gs://acme-models/sql"
    (reason,) = reasons(adapter)
    assert f"{place} = not an adapter that the server can load" in reason
    assert "adapter_config.json is missing; there are no weights (adapter_model.safetensors)" in reason
    assert f"gcloud storage cp --recursive FOLDER_WITH_YOUR_COPY/* {place}/" in reason
    storage.buckets["acme-models"] |= {"sql/adapter_config.json": 99, "sql/adapter_model.safetensors": 9}
    storage.contents["sql/adapter_config.json"] = {"r": 64, "lora_alpha": 16, "target_modules": ["q_proj"]}
    (reason,) = reasons(adapter)
    assert "its rank is 64, above max-lora-rank=16" in reason
    assert reasons({**adapter, "adapter_rank": 64}) == []
    created = ModelFilesProvider().create({**adapter, "adapter_rank": 64})
    assert (created.id, created.outs["files"]) == (place, 2)


def test_tensors_of_an_adapter_are_compared_with_the_model(
    storage: FakeStorage, capsys: pytest.CaptureFixture[str]
) -> None:
    adapter = {**PROPS, "path": "sql", "source": "acme/sql-lora", "adapter_rank": 16}
    adapter |= {"base_source": "google/gemma-4-12b-it", "base_hidden_size": 64, "base_layers": 2}
    config = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}
    storage.contents["sql/adapter_config.json"] = config

    def put(layer: int) -> list[str]:
        shape = {f"model.layers.{layer}.self_attn.q_proj.lora_A.weight": {"dtype": "BF16", "shape": [8, 64]}}
        header = json.dumps(shape).encode()
        content = struct.pack("<Q", len(header)) + header + bytes(1024)
        storage.buckets["acme-models"] |= {"sql/adapter_config.json": 99, "sql/adapter_model.safetensors": len(content)}
        storage.contents["sql/adapter_model.safetensors"] = content
        return reasons(adapter)

    assert put(layer=1) == []
    assert capsys.readouterr().err == ""
    (reason,) = put(layer=2)
    assert "it has tensors of layer 2, and the model has 2" in reason
    assert "copy the adapter with `.venv/bin/bezel weights copy acme`" in reason
    config["base_model_name_or_path"] = "acme/other"
    assert put(layer=0) == []
    assert "warning: gs://acme-models/sql: it was made for acme/other" in capsys.readouterr().err


@pytest.mark.slow
def test_a_half_copied_model_is_no_model(storage: FakeStorage) -> None:
    del storage.buckets["acme-models"][f"{FOLDER}/model-00002-of-00002.safetensors"]
    (reason,) = reasons(PROPS)
    assert "model-00002-of-00002.safetensors" in reason
    with pytest.raises(ModelFilesError, match="model-00002-of-00002"):
        ModelFilesProvider().create(PROPS)


def test_a_bucket_that_nobody_makes_is_named(storage: FakeStorage) -> None:
    storage.buckets.clear()
    (reason,) = reasons(PROPS)
    assert "bucket acme-models = does not exist" in reason
    assert "create: true" in reason


def test_a_bucket_that_is_still_to_be_made_is_not_looked_at(storage: FakeStorage) -> None:
    storage.buckets.clear()
    assert reasons({**PROPS, "bucket_url": Unknown()}) == []
    assert storage.server.calls == []


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_look_previews_with_a_warning_but_does_not_deploy(
    storage: FakeStorage, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    storage.fault = status
    assert reasons(PROPS) == []
    warning = capsys.readouterr().err
    assert f"{PLACE}\n   it is unknown whether it holds a model" in warning
    with pytest.raises(ModelFilesError, match=r"roles/storage\.objectViewer") as raised:
        ModelFilesProvider().create(PROPS)
    assert TOKEN not in warning + str(raised.value)


def test_without_credentials_a_preview_warns(
    storage: FakeStorage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setenv("GOOGLE_CREDENTIALS", str(tmp_path / "absent.json"))
    assert reasons(PROPS) == []
    assert "cannot be listed" in capsys.readouterr().err
    assert storage.server.calls == []


def test_an_address_that_would_leak_the_token_is_an_error_not_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_STORAGE_CUSTOM_ENDPOINT", "http://storage.example/storage/v1/")
    (reason,) = reasons(PROPS)
    assert "GOOGLE_STORAGE_CUSTOM_ENDPOINT" in reason


@pytest.mark.parametrize(
    ("change", "replaced"),
    [
        ({}, []),
        ({"source": "google/other", "bucket_url": Unknown(), "files": 9.0}, []),
        ({"path": "other"}, ["path"]),
        ({"bucket": "b", "path": "other"}, ["bucket", "path"]),
    ],
)
def test_only_another_place_is_looked_at_as_another_resource(change: dict[str, object], replaced: list[str]) -> None:
    difference = ModelFilesProvider().diff(PLACE, dict(PROPS), {**PROPS, **change})
    assert (difference.changes, difference.replaces) == (bool(replaced), replaced)


def test_a_refresh_sees_a_model_that_was_deleted_by_hand(storage: FakeStorage) -> None:
    seen = ModelFilesProvider().read(PLACE, dict(PROPS))
    assert (seen.id, seen.outs["files"]) == (PLACE, 4)
    storage.buckets["acme-models"].clear()
    gone = ModelFilesProvider().read(PLACE, dict(PROPS))
    assert (gone.id, gone.outs) == ("", {})


def test_the_provider_is_pickled_by_reference_and_holds_nothing() -> None:
    provider = ModelFilesProvider()
    assert vars(provider) == {}
    assert serialize_provider(provider) == serialize_provider(ModelFilesProvider())
    pickled = dill.dumps(provider, recurse=True)
    assert b"bezel_components.providers.model_files" in pickled
    assert len(pickled) < 200


def test_the_resource_says_what_it_looks_at_and_keeps_no_secret() -> None:
    args = ModelFilesArgs(bucket="acme-models", path=f"/{FOLDER}/", source="google/x", bucket_url="gs://acme-models")
    declared = declare(lambda: ModelFiles("model", args)).one("ModelFiles")
    assert declared.type == "pulumi-python:dynamic/components:ModelFiles"
    assert declared.inputs["path"] == FOLDER
    assert isinstance(declared.inputs["__provider"], str)


def test_programs_of_tests_leave_the_pickler_as_it_was() -> None:
    pickler: Any = pickle._Pickler
    before = pickler._batch_setitems
    args = ModelFilesArgs(bucket="acme-models", path=FOLDER, source="google/x", bucket_url="gs://acme-models")
    assert declare(lambda: ModelFiles("model", args)).one("ModelFiles").inputs["__provider"]
    assert pickler._batch_setitems is before
    try:
        serialize_provider(ModelFilesProvider())  # Pulumi alone wraps it once more
        assert pickler._batch_setitems is not before
    finally:
        pickler._batch_setitems = before


def test_while_the_bucket_is_unknown_its_name_is_not() -> None:
    def program() -> None:
        url = pulumi.Output.from_input("gs://acme-models")
        ModelFiles("model", ModelFilesArgs(bucket="acme-models", path=FOLDER, source="google/x", bucket_url=url))

    assert declare(program, preview=True).one("ModelFiles").inputs["bucket"] == "acme-models"


def test_a_problem_keeps_the_repair_of_its_cause_and_has_its_own_otherwise() -> None:
    cause = UserError(Problem("the clock", "2026", "a key was refused.", "set the clock."))
    error = caused_by(cause, PLACE, "it cannot be listed", "log in.")
    assert error == Problem(PLACE, None, "it cannot be listed: the clock = 2026: a key was refused.", "set the clock.")
    assert caused_by(UserError("503"), PLACE, "it fails", "try again.").repair == "try again."
    assert caused_by(ValueError("no"), PLACE, "it fails", "try again.").consequence == "it fails: no"
