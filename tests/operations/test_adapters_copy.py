"""Adapters of a stack file are copied with its model: two files of each; what is no adapter is refused."""

import json
import os
from pathlib import Path

import pytest

from bezel.operations.context import Context
from bezel.operations.model_files.model_files import ModelFilesArguments
from bezel.operations.model_files.model_files import model_files as model_files_of
from bezel.operations.weights.weights_copy import CopyArguments, apply_copy, plan_copy
from bezel_localcloud import control
from tests.support.weights.copies import WANTED, Shelf
from tests.support.weights.fake_hub import COMMIT, FakeHub, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUCKET, FOLDER = "bezel-local-models", "gemma-4-12B-it-qat-w4a16-ct"
ADAPTER = {
    "adapter_config.json": json.dumps({"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}).encode(),
    "adapter_model.safetensors": b"\0" * 64,
}
# What a repository of an adapter holds beside it: steps of its training, pickles, the tokenizer.
BESIDE = {"checkpoint-1/adapter_model.safetensors": b"\1", "training_args.bin": b"\1", "tokenizer.json": b"{}"}


@pytest.fixture
def shelf(endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    new_shelf = Shelf(endpoint, BUCKET, tmp_path, None)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", new_shelf.token)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    new_shelf.make()
    yield new_shelf
    new_shelf.remove(BUCKET)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose stack has two adapters, one of the hub."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    text = (ROOT / "Pulumi.l4-qat.yaml").read_text()
    adapters = "  bezel:adapters:\n    - {name: sql, source: acme/sql-lora, rank: 8}\n    - {name: law}\n"
    (folder / "Pulumi.l4-qat.yaml").write_text(text.replace("config:\n", f"config:\n{adapters}", 1))
    return folder


def context_of(project: Path, hub: FakeHub) -> Context:
    """A context whose hub is a server of this machine."""
    return Context(project, {**os.environ, "HF_ENDPOINT": hub.base}, show=lambda _: None)


def test_a_copy_takes_the_adapters_of_the_hub_along(shelf: Shelf, project: Path) -> None:
    with serving() as hub, context_of(project, hub) as context:
        hub.models |= {f"google/{FOLDER}": dict(WANTED), "acme/sql-lora": ADAPTER | BESIDE}
        planned = plan_copy(context, CopyArguments(stack="l4-qat"))
        assert planned.refusals == ()
        assert [change.name.removeprefix(f"gs://{BUCKET}/") for change in planned.changes] == [FOLDER, "adapters/sql"]
        assert apply_copy(context, planned).verdict == "done"
        assert shelf.stored_objects("adapters/sql") == ADAPTER
        folders = {each.address: each for each in model_files_of(context, ModelFilesArguments(stack="l4-qat")).folders}
        copied, missing = folders[f"gs://{BUCKET}/adapters/sql"], folders[f"gs://{BUCKET}/adapters/law"]
        assert (copied.is_complete, copied.source, copied.revision) == (True, "hf:acme/sql-lora", COMMIT)
        assert not missing.is_complete
        again = plan_copy(context, CopyArguments(stack="l4-qat"))
        assert f"adapters/sql: 2 files ({sum(map(len, ADAPTER.values()))} B) there" in again.summary


def test_a_copy_refuses_what_is_no_adapter(shelf: Shelf, project: Path) -> None:
    with serving() as hub, context_of(project, hub) as context:
        hub.models |= {f"google/{FOLDER}": dict(WANTED), "acme/sql-lora": {"adapter_model.bin": b"\1"}}
        (refusal,) = plan_copy(context, CopyArguments(stack="l4-qat")).refusals
    assert "is not a complete adapter (adapter_config.json is missing" in refusal
    assert shelf.stored_objects("adapters/sql") == {}
