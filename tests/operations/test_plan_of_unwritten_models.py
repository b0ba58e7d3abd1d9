"""Stacks that name a model of a hub: `bezel plan` reads it, everything else wants its row in the project's files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.context import Context
from bezel.operations.plan.plan import PlanArguments, plan, plan_of
from bezel.planner import PlanError
from bezel_base.errors import UserError
from tests.support.model_sources.tiny import llama, llama_tensors, size_of
from tests.support.weights.fake_hub import COMMIT, FakeHub, serving

MODEL = "acme/Tiny-Llama"
STACK = """config:
  bezel:model: {model}
  bezel:accelerator: nvidia-l4
  bezel:region: us-east4
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    with serving() as served:
        served.models[MODEL] = llama()
        yield served


@pytest.fixture
def context(hub: FakeHub, tmp_path: Path) -> Context:
    environ = {"HF_ENDPOINT": hub.base, "XDG_STATE_HOME": str(tmp_path / "state"), "GOOGLE_CLOUD_PROJECT": "acme-llm"}
    return Context(tmp_path, environ, show=lambda _: None)


def write_stack(context: Context, model: str) -> None:
    (context.folder / "Pulumi.dev.yaml").write_text(STACK.format(model=model))


def add_row(context: Context, model: str = MODEL) -> None:
    apply_add_model(context, plan_add_model(context, AddModelArguments(model=model)))


@pytest.mark.parametrize("model", [MODEL, f"{MODEL}@main", f"{MODEL}@{COMMIT}"])
def test_plan_reads_a_model_without_a_row_and_says_so(context: Context, model: str) -> None:
    write_stack(context, model)
    report = plan(context, PlanArguments(stack="dev"))
    assert f"was made from hf:{MODEL}@{COMMIT}" in (report.read or "")
    assert f"`bezel catalog add-model {model}`" in report.text()
    assert report.values["fit"]["weights_gib"] == pytest.approx(size_of(llama_tensors()) / 2**30, abs=0.01)


def test_plan_takes_no_folder_of_the_models_name(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    (context.folder / MODEL).mkdir(parents=True)
    monkeypatch.chdir(context.folder)
    write_stack(context, MODEL)
    assert f"hf:{MODEL}@{COMMIT}" in (plan(context, PlanArguments(stack="dev")).read or "")


def test_everything_else_refuses_a_model_without_a_row(context: Context) -> None:
    write_stack(context, MODEL)
    with pytest.raises(PlanError) as refused:
        plan_of(context, "dev")
    assert f"`bezel catalog add-model {MODEL}`" in str(refused.value)


@pytest.mark.parametrize("model", ["tiny-llama", MODEL, f"{MODEL}@main", f"{MODEL}@{COMMIT}"])
def test_row_gives_the_same_plan_without_a_network(context: Context, hub: FakeHub, model: str) -> None:
    write_stack(context, MODEL)
    read = plan(context, PlanArguments(stack="dev"))
    add_row(context)
    hub.models.clear()
    hub.requests.clear()
    write_stack(context, model)
    written = plan(context, PlanArguments(stack="dev"))
    assert written.read is None
    assert (written.values, written.arguments, written.summary) == (read.values, read.arguments, read.summary)
    assert not hub.requests


@pytest.mark.slow
def test_row_of_another_revision_is_not_taken(context: Context) -> None:
    add_row(context)
    write_stack(context, f"{MODEL}@v1")
    with pytest.raises(PlanError, match=f"add-model {MODEL}@v1"):
        plan_of(context, "dev")


def test_weights_are_copied_from_the_commit_of_the_row(context: Context) -> None:
    add_row(context)
    write_stack(context, "tiny-llama")
    assert plan_of(context, "dev")[0].weights.source == f"{MODEL}@{COMMIT}"


@pytest.mark.slow
def test_server_that_loads_from_the_hub_takes_the_commit_of_the_row(context: Context) -> None:
    add_row(context)
    write_stack(context, "tiny-llama\n  bezel:weights: {loading: hub}")
    made, _ = plan_of(context, "dev")
    assert made.server.arguments[0] == MODEL
    assert f"--revision={COMMIT}" in made.server.arguments


def test_name_of_the_catalogue_is_not_read_from_the_hub(context: Context, hub: FakeHub) -> None:
    write_stack(context, "google/gemma-4-12B-it")
    with pytest.raises(PlanError, match="did you mean gemma-4-12b-it"):
        plan(context, PlanArguments(stack="dev"))
    assert not hub.requests


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[model.x", "not valid TOML"),
        ("[models.x]\n", "tables of this name only"),
        ("[model.x]\n", "every row needs this field"),
        ("[model]\nx = 5\n", "a model is a table"),
    ],
)
def test_file_of_models_that_cannot_be_read_is_named(context: Context, text: str, reason: str) -> None:
    (context.folder / "catalog.toml").write_text(text)
    write_stack(context, "gemma-4-12b-it")
    with pytest.raises(UserError) as refused:
        plan(context, PlanArguments(stack="dev"))
    assert "catalog.toml" in str(refused.value)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[model.tiny-llama]", "[model.gemma-4-12b-it]", "the catalogue has a model of this name"),
        ("[model.tiny-llama]", '[model."Tiny Llama"]', "no label of a resource"),
        ("weight_bytes = 279_168", "weight_bytes = 0", "planned as none"),
        (f'commit = "{COMMIT}"', 'commit = "main"', "the files of a branch change"),
        ('"model_type": "llama",', '"model_type": "llama"', "not a JSON object"),
        ("weight_bytes = 279_168", "weight_bytes = true", "expected an integer"),
        ("active_parameters = 139_584", "active_parameters = 139_585", "at most"),
    ],
)
def test_row_that_a_hand_made_wrong_is_refused(context: Context, old: str, new: str, reason: str) -> None:
    add_row(context)
    file = context.folder / "catalog.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    write_stack(context, "gemma-4-12b-it")
    with pytest.raises(UserError) as refused:
        plan(context, PlanArguments(stack="dev"))
    assert reason in str(refused.value)
