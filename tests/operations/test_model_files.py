"""Model files against localcloud's own APIs: size, completeness, revision and users of a folder; the registry."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.model_files.model_files import ModelFiles, ModelFilesArguments, ModelFolder, model_files
from bezel.rest.endpoints import regional_endpoint
from bezel_base.errors import UserError
from bezel_simulated_vllm.synthetic_weights import model_files as synthetic
from tests.support.operations.project_cloud import OneProject, one_project
from tests.support.rest.fake_google import Answer

BUCKET = "bezel-local-models"
FOLDER = "gemma-4-12B-it-qat-w4a16-ct"
ADDRESS = f"gs://{BUCKET}/{FOLDER}"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REGISTRY = "/aiplatform/v1/projects/bezel-local/locations/us-east4/models"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    with one_project(tmp_path, monkeypatch) as project_cloud:
        yield project_cloud


def of(cloud: OneProject, stack: str | None = "l4-qat") -> ModelFiles:
    with cloud.context() as context:
        return model_files(context, ModelFilesArguments(stack=stack))


def folders(report: ModelFiles) -> dict[str, ModelFolder]:
    return {each.address: each for each in report.folders}


def store_model(cloud: OneProject, folder: str = FOLDER, *, without: str = "") -> dict[str, bytes]:
    files = {name: content for name, content in synthetic(f"google/{FOLDER}").items() if name != without}
    for name, content in files.items():
        cloud.put(BUCKET, f"{folder}/{name}", content, bezel_source=f"hf:google/{FOLDER}@{COMMIT}")
    return files


@pytest.mark.slow
def test_a_complete_folder_has_its_size_revision_and_stacks(cloud: OneProject) -> None:
    files = store_model(cloud)
    report = of(cloud)
    folder = folders(report)[ADDRESS]
    assert (folder.files, folder.bytes) == (len(files), sum(map(len, files.values())))
    assert (folder.is_complete, folder.problems, folder.stacks) == (True, (), ("l4-qat",))
    assert (folder.source, folder.revision) == (f"hf:google/{FOLDER}", COMMIT)
    assert report.exit_code == 0
    assert f"{COMMIT[:12]}" in report.text()
    assert cloud.changing_calls == []


@pytest.mark.slow
@pytest.mark.parametrize("without", ["config.json", "tokenizer.json", "model-00001-of-00002.safetensors"])
def test_a_folder_without_one_of_its_files_is_incomplete_and_says_which(cloud: OneProject, without: str) -> None:
    store_model(cloud, without=without)
    if without == "tokenizer.json":
        cloud.project.call("DELETE", f"/storage/v1/b/{BUCKET}/o/{FOLDER}%2Ftokenizer_config.json")
    report = of(cloud)
    folder = folders(report)[ADDRESS]
    assert not folder.is_complete
    assert any(without.partition(".")[0] in problem for problem in folder.problems)
    assert report.exit_code == 1


@pytest.mark.slow
def test_a_stack_s_missing_folder_is_shown_with_its_repair(cloud: OneProject) -> None:
    cloud.put(BUCKET, "notes.txt", b"no model")
    report = of(cloud)
    assert [(each.address, each.files) for each in report.folders] == [(ADDRESS, 0)]
    assert "`bezel weights copy l4-qat` copies it" in report.text()
    assert report.exit_code == 1


@pytest.mark.slow
def test_a_bucket_shows_all_its_models_and_the_stacks_that_load_each(cloud: OneProject) -> None:
    store_model(cloud)
    store_model(cloud, "mine/other")
    folders_by_address = folders(of(cloud, f"gs://{BUCKET}"))
    assert folders_by_address[f"gs://{BUCKET}/mine/other"].stacks == ()
    assert "l4-qat" in folders_by_address[ADDRESS].stacks
    assert folders(of(cloud, BUCKET)).keys() == folders_by_address.keys()


@pytest.mark.slow
def test_without_a_name_all_stacks_are_shown_and_a_missing_bucket_noted(cloud: OneProject) -> None:
    report = of(cloud, None)
    assert len({stack for each in report.folders for stack in each.stacks}) > 10
    assert any(f"gs://{BUCKET}" in note and "does not exist" in note for note in report.notes)
    assert report.exit_code == 1


@pytest.mark.slow
def test_registered_models_of_the_stack_s_region_alone_are_listed(cloud: OneProject) -> None:
    store_model(cloud)
    model = {"displayName": "gemma", "artifactUri": ADDRESS}
    cloud.project.ok("POST", f"{REGISTRY}:upload", {"model": model, "modelId": "gemma"})
    other = REGISTRY.replace("us-east4", "us-west1")
    cloud.project.ok("POST", f"{other}:upload", {"model": model, "modelId": "elsewhere"})
    report = of(cloud)
    assert [(each.name, each.region, each.artifact_uri, each.version) for each in report.registry] == [
        ("gemma", "us-east4", ADDRESS, "1")
    ]
    assert "gemma" in report.text()


@pytest.mark.slow
def test_a_registry_that_refuses_is_a_note_with_its_repair(cloud: OneProject) -> None:
    store_model(cloud)
    cloud.project.cloud.store.put("api", "aiplatform.googleapis.com", {"state": "DISABLED"})
    report = of(cloud)
    assert (report.registry, report.exit_code) == ((), 0)
    assert any(
        "gcloud services enable aiplatform.googleapis.com --project=bezel-local" in note for note in report.notes
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("No-Such-Stack", "neither a stack"),
        ("../x", "neither a stack"),
        ("gs://", "neither a stack"),
        ("gs://no-such-bucket", "does not exist"),
    ],
)
def test_what_is_neither_stack_nor_bucket_is_refused(cloud: OneProject, name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        of(cloud, name)


@pytest.mark.slow
def test_a_refused_bucket_is_told_with_the_role_that_is_missing(cloud: OneProject) -> None:
    refusal = {"error": {"code": 403, "message": "no storage.objects.list", "status": "PERMISSION_DENIED"}}
    cloud.answers[f"/b/{BUCKET}/o"] = Answer(403, refusal)
    assert any("roles/storage.objectViewer" in note for note in of(cloud).notes)


@pytest.mark.parametrize(
    ("override", "address"),
    [
        ({}, "https://us-east4-aiplatform.googleapis.com/v1/"),
        ({"GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT": "http://127.0.0.1:1/x"}, "http://127.0.0.1:1/x/"),
    ],
)
def test_a_region_has_an_address_of_its_own_unless_it_is_overridden(override: dict[str, Any], address: str) -> None:
    assert regional_endpoint("VERTEX_AI", "us-east4", override) == address


@pytest.mark.slow
def test_an_unreadable_bucket_is_unknown_and_nothing_is_to_be_copied(cloud: OneProject) -> None:
    store_model(cloud)
    refused = {"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}}
    cloud.server.routes.insert(0, lambda call: Answer(403, refused) if f"/b/{BUCKET}/" in call.path else None)
    report = of(cloud)
    folder = folders(report)[ADDRESS]
    assert (folder.files, folder.bytes, folder.is_complete, folder.problems) == (None, None, None, ())
    assert report.exit_code == 1
    assert "unknown" in report.text()
    assert "weights copy" not in report.text()
    assert any(note.startswith(f"gs://{BUCKET}: ") and "\n" not in note for note in report.notes)
