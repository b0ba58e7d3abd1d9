"""Copy of weights in two steps on a localcloud of its own: planned, confirmed, with progress, cancelled, continued."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.context import Context
from bezel.operations.model_files.model_files import ModelFilesArguments
from bezel.operations.model_files.model_files import model_files as model_files_of
from bezel.operations.weights.weights_copy import CopyArguments, apply_copy, plan_copy
from bezel.rest.vertex_ai import folders_of
from bezel_base.errors import UserError
from bezel_localcloud import control, seed
from bezel_localcloud.core.paths import Endpoint
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.weights.copies import LARGE, WANTED, Shelf
from tests.support.weights.fake_hub import serving

ROOT = Path(__file__).parents[2]
BUCKET, FOLDER = "bezel-local-models", "gemma-4-12B-it-qat-w4a16-ct"
ID = f"google/{FOLDER}"
GARDEN, GARDEN_ID = "garden:google/gemma4@gemma-4-12b-it", "google/gemma-4-12B-it"
PUBLIC = "vertex-model-garden-public-us"
RESTRICTED = "gs://vertex-model-garden-restricted-us/gemma4/gemma-4-12B-it"


class Copying:
    """A localcloud, and copies into the bucket of a stack."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.said: list[str] = []
        self.cancelled = threading.Event()

    def context(self, **more: str) -> Context:
        environ = {**os.environ, "XDG_STATE_HOME": str(self.shelf.folder / "state"), **more}
        return Context(ROOT, environ, show=self.said.append, cancelled=self.cancelled)

    def plan(self, stack: str = "l4-qat", origin: str | None = None, **more: str) -> Plan:
        with self.context(**more) as context:
            return plan_copy(context, CopyArguments(stack=stack, origin=origin))

    def apply(self, planned: Plan, **more: str) -> Outcome:
        with self.context(**more) as context:
            return apply_copy(context, planned)

    def stored_files(self, folder: str = FOLDER) -> dict[str, bytes]:
        files: dict[str, bytes] = self.shelf.stored_objects(folder)
        return files


@pytest.fixture
def copying(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Copying]:
    """Copies into a new bucket, as the stack's is the same in every test."""
    for name, value in control.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    made = Copying(Shelf(endpoint, BUCKET, tmp_path, None))  # type: ignore[arg-type]  # the hub is localcloud's
    # Each client would read the key file anew, which takes 50 ms of CPU.
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", made.shelf.token)
    made.shelf.make()
    yield made
    made.shelf.remove(BUCKET, "other-bucket", PUBLIC)


@pytest.mark.slow
def test_a_plan_writes_nothing_and_a_second_plan_is_empty(copying: Copying) -> None:
    planned = copying.plan()
    files = model_files(ID)
    assert f"{len(files)} files" in planned.summary
    assert (planned.confirm_name, planned.refusals, planned.is_empty) == (None, (), False)
    assert copying.stored_files() == {}
    outcome = copying.apply(planned)
    assert (outcome.verdict, outcome.problems) == ("done", ())
    assert copying.stored_files() == files
    assert any("config.json: copied" in line for line in copying.said)
    again = copying.plan()
    assert again.is_empty
    assert copying.apply(again).verdict == "unchanged"


@pytest.mark.slow
def test_files_to_replace_are_named_and_need_the_stack_s_name(copying: Copying) -> None:
    copying.apply(copying.plan())
    copying.shelf.put(f"{FOLDER}/config.json", b"mine")
    planned = copying.plan()
    assert planned.confirm_name == "l4-qat"
    assert [text.partition(",")[0] for text in planned.destroyed] == ["config.json"]
    assert copying.stored_files()["config.json"] == b"mine"
    assert copying.apply(planned).verdict == "done"
    assert copying.stored_files() == model_files(ID)


@pytest.mark.slow
def test_a_garden_model_is_copied_from_the_named_folder_that_can_be_read(
    copying: Copying,
) -> None:
    seed.enable(copying.shelf.endpoint, "aiplatform.googleapis.com")
    with pytest.raises(UserError, match="none of its folders can be read") as refused:
        copying.plan("v6e1-12b", GARDEN)
    assert PUBLIC in str(refused.value)
    assert "restricted" in str(refused.value)
    files = model_files(GARDEN_ID)
    seed.seed(copying.shelf.endpoint, PUBLIC, "gemma4/gemma-4-12B-it", files)
    planned = copying.plan("v6e1-12b", GARDEN)
    assert f"gs://{PUBLIC}/gemma4/gemma-4-12B-it" in planned.summary
    assert copying.apply(planned).verdict == "done"
    assert copying.stored_files("gemma-4-12B-it") == files
    with copying.context() as context:
        (folder,) = model_files_of(context, ModelFilesArguments(stack="v6e1-12b")).folders
    assert (folder.source, folder.revision, folder.is_complete) == ("garden:google/gemma4", "gemma-4-12b-it", True)
    with pytest.raises(UserError, match="no such model"):
        copying.plan("v6e1-12b", "garden:google/gemma4@gemma-4-13b-it")
    with pytest.raises(UserError, match="none of the forms"):
        copying.plan("v6e1-12b", "garden:../../x")


@pytest.mark.slow
def test_a_plan_is_worth_nothing_once_its_source_has_changed(copying: Copying) -> None:
    copying.shelf.make("other-bucket")
    for name, content in model_files(ID).items():
        copying.shelf.put(f"mine/{name}", content, "other-bucket")
    planned = copying.plan(origin="gs://other-bucket/mine")
    copying.shelf.put("mine/config.json", b"another", "other-bucket")
    with pytest.raises(ChangedError, match="source of"):
        copying.apply(planned)
    assert copying.stored_files() == {}


@pytest.mark.slow
def test_an_incomplete_model_is_refused_before_anything_is_copied(copying: Copying) -> None:
    """The source is a folder without weights."""
    copying.shelf.make("other-bucket")
    copying.shelf.put("mine/config.json", b"{}", "other-bucket")
    planned = copying.plan(origin="gs://other-bucket/mine")
    assert "there are no weights" in planned.refusals[0]


@pytest.mark.slow
def test_a_cancelled_copy_ends_keeps_what_is_complete_and_is_continued(copying: Copying) -> None:
    files = {**WANTED, LARGE: os.urandom(1 << 20) * 24}
    with serving() as hub:
        hub.models[ID] = files
        planned = copying.plan(HF_ENDPOINT=hub.base)
        hub.held, hub.held_after = threading.Event(), 20 << 20
        ended: list[Any] = []
        thread = threading.Thread(target=lambda: ended.append(copying.apply(planned, HF_ENDPOINT=hub.base)))
        thread.start()
        end = time.monotonic() + 60
        while "config.json" not in copying.stored_files() and time.monotonic() < end:
            copying.cancelled.wait(0.05)
        copying.cancelled.set()
        hub.held.set()
        thread.join(60)
        assert [outcome.verdict for outcome in ended] == ["cancelled"]
        assert LARGE not in copying.stored_files()
        copying.cancelled.clear()
        assert copying.apply(copying.plan(HF_ENDPOINT=hub.base), HF_ENDPOINT=hub.base).verdict == "done"
        assert copying.stored_files() == files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "origin", "says"),
    [
        ("absent", None, "Pulumi.absent.yaml"),
        ("l4-qat", " ", "it names no model"),
        ("l4-qat", "hf:no-owner", "is not the name of a model"),
        ("l4-qat", "gs://no-such-bucket/x", "does not exist"),
    ],
)
def test_what_cannot_be_copied_says_why(copying: Copying, stack: str, origin: str | None, says: str) -> None:
    with pytest.raises(UserError, match=says):
        copying.plan(stack, origin)


def option(**parts: Any) -> dict[str, Any]:
    return {"supportedActions": {"multiDeployVertex": {"multiDeployVertex": [parts]}}}


@pytest.mark.parametrize(
    ("model", "folders"),
    [
        ({}, []),
        (option(containerSpec={"args": ["--model=gs://a-bucket/m/"]}), ["gs://a-bucket/m"]),
        (option(containerSpec={"args": ["python", "--model", "gs://a-bucket/m"]}), ["gs://a-bucket/m"]),
        (option(artifactUri="gs://a-bucket/n"), ["gs://a-bucket/n"]),
        ({"supportedActions": {"deploy": {"artifactUri": "gs://a-bucket/o"}}}, ["gs://a-bucket/o"]),
        (option(containerSpec={"args": ["--model=google/gemma"]}), []),
        (option(artifactUri="https://example.com/x"), []),
        (
            option(containerSpec={"args": [f"--model={RESTRICTED}"]}),
            [RESTRICTED.replace("restricted", "public"), RESTRICTED],
        ),
    ],
)
def test_the_folders_of_a_publisher_model_are_those_that_it_names(model: dict[str, Any], folders: list[str]) -> None:
    assert folders_of(model) == folders
