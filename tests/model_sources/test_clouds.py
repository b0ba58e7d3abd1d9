"""A model in a bucket, and the hub's token in Secret Manager, on a localcloud."""

import base64
import importlib.metadata
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel.engine.project.project import Project
from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.context import Context
from bezel_base.errors import UserError
from bezel_catalog.project_models import FILE, read_project_models
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from tests.support.model_sources.tiny import llama_tensors, sharded_llama, size_of
from tests.support.weights.copies import Shelf
from tests.support.weights.fake_hub import TOKEN, serving

pytestmark = pytest.mark.slow

BUCKET, FOLDER = "acme-models", "team/Tiny-Llama"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    directory = tmp_path_factory.mktemp("cloud")
    yield control.start(directory, speed=10_000)
    control.stop(directory)


@pytest.fixture
def shelf(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """A project in `tmp_path`, and a bucket."""
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    made = Shelf(endpoint, BUCKET, tmp_path, None)  # type: ignore[arg-type]  # no hub but that of a test
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", made.token)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    made.make()
    yield made
    made.remove(BUCKET)


def context(shelf: Shelf, **more: str) -> Context:
    return Context(shelf.folder, {**os.environ, **more}, show=lambda _: None)


def add(shelf: Shelf, model: str, **values: str) -> None:
    plan = plan_add_model(context(shelf), AddModelArguments.model_validate({"model": model, **values}))
    apply_add_model(context(shelf), plan)


def test_model_in_a_bucket_gets_a_row_with_its_folder(shelf: Shelf) -> None:
    for name, content in sharded_llama().items():
        shelf.put(f"{FOLDER}/{name}", content)
    add(shelf, f"gs://{BUCKET}/{FOLDER}/")
    model = read_project_models(shelf.folder)["tiny-llama"]
    assert model.weight_bytes == size_of(llama_tensors())
    assert (model.source, model.folder, model.repository) == (f"gs://{BUCKET}/{FOLDER}", FOLDER, "")


def test_incomplete_model_in_a_bucket_is_refused(shelf: Shelf) -> None:
    for name, content in sharded_llama().items():
        if "00002-of" not in name:
            shelf.put(f"{FOLDER}/{name}", content)
    with pytest.raises(UserError, match="model-00002-of-00002"):
        add(shelf, f"gs://{BUCKET}/{FOLDER}")
    assert not (shelf.folder / FILE).exists()


@pytest.mark.parametrize("address", ["gs://acme-nothing/x", f"gs://{BUCKET}/nothing"])
def test_bucket_or_folder_that_is_not_there_is_refused(shelf: Shelf, address: str) -> None:
    with pytest.raises(UserError, match=r"does not exist|has no files"):
        add(shelf, address)
    assert not (shelf.folder / FILE).exists()


def test_token_is_read_from_the_secret_of_the_stack(shelf: Shelf) -> None:
    base = "/secretmanager/v1/projects/bezel-local/secrets"
    apis = {"serviceIds": ["secretmanager.googleapis.com"]}
    shelf.http.post("/serviceusage/v1/projects/bezel-local/services:batchEnable", json=apis)
    deadline, body = time.monotonic() + 60, {"replication": {"automatic": {}}}
    while shelf.http.post(base, params={"secretId": "hub-token"}, json=body).status_code not in {200, 409}:
        assert time.monotonic() < deadline
    payload = {"payload": {"data": base64.b64encode(TOKEN.encode()).decode()}}
    assert shelf.http.post(f"{base}/hub-token:addVersion", json=payload).is_success
    # The stack cannot be planned yet: its model has no row.
    text = "config:\n  bezel:model: tiny\n  bezel:secrets: {HF_TOKEN: hub-token}\n  gcp:project: bezel-local\n"
    (shelf.folder / "Pulumi.dev.yaml").write_text(text)
    with serving() as hub:
        hub.models["acme/tiny"] = sharded_llama()
        hub.gated.add("acme/tiny")
        arguments = AddModelArguments(model="acme/tiny", stack="dev")
        with context(shelf, HF_ENDPOINT=hub.base) as opened:
            plan = plan_add_model(opened, arguments)
        assert plan.target == "tiny"
        assert TOKEN not in plan.model_dump_json()
        assert {authorization for _, authorization, _ in hub.storage} == {""}


def test_new_project_reads_its_model_where_the_bucket_has_it(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in sharded_llama().items():
        shelf.put(f"{FOLDER}/{name}", content)
    here = tmp_path_factory.mktemp("outside")
    (here / f"bezel-{importlib.metadata.version('bezel')}-py3-none-any.whl").touch()
    monkeypatch.chdir(here)
    assert main(["new", "chat", "--model", f"gs://{BUCKET}/{FOLDER}", "--yes", "--packages", str(here)]) == 0
    project = Project(here / "chat")
    assert project.configuration("dev")["weights"] == {"bucket": BUCKET, "path": FOLDER}
    assert project.models()["tiny-llama"].source == f"gs://{BUCKET}/{FOLDER}"
    assert f"`gs://{BUCKET}/{FOLDER}` holds them" in (here / "chat" / "README.md").read_text()
