"""`bezel new --model` with a model that is not in the catalogue: its row is in the project, or nothing is made."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel.engine.project.project import Project
from bezel.operations.catalog.add_model import AddModelArguments, plan_add_model
from bezel.operations.context import Context
from bezel.operations.plan.plan import PlanArguments, plan
from bezel.planner import make_plan
from bezel_base.errors import UserError
from bezel_catalog.project_models import FILE
from tests.support.model_sources.tiny import bert, llama
from tests.support.model_sources.wrong import MODEL, WRONG_FILES, WRONG_HUBS
from tests.support.weights.fake_hub import COMMIT, TOKEN, FakeHub, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bezel.planner import AnyPlan

WRONG = "acme/Wrong"
# Cases in which the name alone is wrong: the hub is not asked.
NAMES = ("name with periods", "revision with periods", "folder that is not there", "bucket without a name")
DEPLOY = (
    "gcloud run deploy chat --image=vllm/vllm-openai:v0.32.0 --region=us-east4 --project=acme-llm --gpu=1"
    " --gpu-type=nvidia-l4 --no-gpu-zonal-redundancy --min=0 --max=1 --cpu=4 --memory=16Gi"
    " --args=--model={model}{more}"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / f"bezel-{importlib.metadata.version('bezel')}-py3-none-any.whl").touch()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("GOOGLE_PROJECT", raising=False)
    return tmp_path / "work"


@pytest.fixture
def hub(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    assert here.is_dir()
    with serving() as served:
        served.models[MODEL] = llama()
        monkeypatch.setenv("HF_ENDPOINT", served.base)
        yield served


def new(*arguments: str) -> int:
    return main(["new", *arguments, "--yes", "--packages", "../wheels"])


def folder_of(here: Path, files: dict[str, bytes], name: str = "Tiny-Llama") -> Path:
    folder = here.parent / name
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    folder.mkdir(exist_ok=True)
    return folder


def plan_without_network(folder: Path, stack: str) -> AnyPlan:
    """The plan of a stack by the project's files alone."""
    project = Project(folder)
    return make_plan(project.configuration(stack), project="acme-llm", stack=stack, models=project.models())


def test_model_of_a_hub_makes_a_project_with_its_row(
    here: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new("chat", "--model", MODEL) == 0
    shown = capsys.readouterr().out
    row = (here / "chat" / FILE).read_text()
    assert all(line.strip() in shown for line in row.splitlines())
    assert f'commit = "{COMMIT}"' in row
    assert "tiny-llama on nvidia-l4" in shown
    hub.models.clear()
    planned = plan_without_network(here / "chat", "dev")
    assert (planned.model, planned.weights.path) == ("tiny-llama", "Tiny-Llama")
    assert Project(here / "chat").configuration("dev")["vllm"]["max-model-len"] == 8192  # the model's own limit
    assert "tiny-llama on vLLM" in (here / "chat" / "README.md").read_text()
    assert "Gemma" not in (here / "chat" / "Pulumi.yaml").read_text()


def test_row_of_a_new_project_is_the_one_that_add_model_writes(here: Path, hub: FakeHub) -> None:
    assert new("chat", "--model", f"{MODEL}@v1") == 0
    with Context(here / "chat", {"HF_ENDPOINT": hub.base}, show=lambda _: None) as context:
        assert plan_add_model(context, AddModelArguments(model=f"{MODEL}@v1")).is_empty


def test_model_of_a_folder_names_its_place_in_the_bucket(here: Path) -> None:
    folder = folder_of(here, llama())
    assert new("chat", "--model", "../Tiny-Llama") == 0
    assert plan_without_network(here / "chat", "dev").weights.path == "tiny-llama"
    text = (here / "chat" / "README.md").read_text()
    assert f"gcloud storage cp --recursive '../{folder.name}/*' gs://my-project-models/tiny-llama/" in text
    assert "weights copy" not in text


def test_model_for_embeddings_makes_a_project(here: Path) -> None:
    folder = folder_of(here, bert(), "mini-bert")
    assert new("find", "--model", str(folder)) == 0
    assert Project(here / "find").configuration("dev")["vllm"]["max-model-len"] == 512


def test_name_on_a_hub_means_the_checkpoint_of_the_catalogue(here: Path, hub: FakeHub) -> None:
    assert new("chat", "--model", "google/Gemma-4-E2B-it") == 0
    assert Project(here / "chat").configuration("dev")["model"] == "gemma-4-e2b-it"
    assert not (here / "chat" / FILE).exists()
    assert not hub.requests


def test_gated_model_is_read_with_the_token_of_the_environment(
    here: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.gated.add(MODEL)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert new("chat", "--model", MODEL) == 0
    ended = capsys.readouterr()
    assert TOKEN not in ended.out + ended.err
    assert all(TOKEN not in file.read_text() for file in (here / "chat").rglob("*") if file.is_file())


def test_model_that_does_not_fit_leaves_nothing(here: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]) -> None:
    assert new("chat", "--model", MODEL, "--accelerator", "nvidia-l5") == 2
    assert "--accelerator = nvidia-l5" in capsys.readouterr().err
    assert hub.requests
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("case", WRONG_FILES)
def test_wrong_model_is_refused_by_new_and_by_a_stack_file(
    here: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    files, consequence, repair = WRONG_FILES[case]
    hub.models[WRONG] = files()
    _assert_nothing_new(here, capsys, WRONG, consequence, repair)
    _assert_no_plan(here, WRONG, consequence, repair)


@pytest.mark.parametrize("case", WRONG_FILES)
def test_folder_of_a_wrong_model_makes_no_project(here: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    files, consequence, repair = WRONG_FILES[case]
    _assert_nothing_new(here, capsys, str(folder_of(here, files())), consequence, repair)


@pytest.mark.parametrize("case", [each for each in WRONG_HUBS if each != "in the catalogue"])
def test_model_that_cannot_be_read_makes_no_project(
    here: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    model, token, prepare, consequence, repair = WRONG_HUBS[case]
    prepare(hub)
    monkeypatch.setenv("HF_TOKEN", token)
    text = _assert_nothing_new(here, capsys, model, consequence, repair, code=2 if case in NAMES else 1)
    assert not token or token not in text


@pytest.mark.slow
def test_hub_that_does_not_respond_is_named_and_nothing_made(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    _assert_nothing_new(here, capsys, MODEL, "does not respond", "check this machine's network", code=1)


def test_table_has_25_wrong_models() -> None:
    assert len(WRONG_FILES) + len(WRONG_HUBS) >= 25


def test_input_with_another_model_makes_a_project_with_its_row(
    here: Path, hub: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "deploy.sh").write_text(DEPLOY.format(model=MODEL, more=",--revision=v1"))
    assert new("team", "--from", "deploy.sh") == 0
    hub.models.clear()
    assert f"v1 is commit {COMMIT} now" in capsys.readouterr().out
    settings = Project(here / "team").configuration("chat")
    assert settings["model"] == "tiny-llama"
    assert settings["weights"] == {"loading": "hub"}
    assert settings["vllm"]["served-model-name"] == MODEL
    assert "revision" not in settings["vllm"]
    assert f"--revision={COMMIT}" in plan_without_network(here / "team", "chat").service.arguments


def test_option_names_the_folder_that_an_input_serves(here: Path) -> None:
    folder = folder_of(here, llama())
    (here / "serve.sh").write_text("vllm serve /models/ours --served-model-name chat")
    assert new("team", "--from", "serve.sh", "--model", str(folder)) == 0
    assert Project(here / "team").configuration("tiny-llama")["model"] == "tiny-llama"


@pytest.mark.slow
def test_unread_model_of_an_input_names_the_command(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    (here / "deploy.sh").write_text(DEPLOY.format(model=MODEL, more=",--revision=v1"))
    assert new("team", "--from", "deploy.sh") == 3
    shown = capsys.readouterr().out
    assert f"`bezel catalog add-model {MODEL}@v1` writes it" in shown
    assert "the hub does not respond" in shown
    assert not (here / "team" / FILE).exists()


def _assert_nothing_new(
    here: Path, capsys: pytest.CaptureFixture[str], model: str, consequence: str, repair: str, *, code: int = 2
) -> str:
    """Assert that no project is made with a model, and return the text that says why."""
    assert new("chat", "--model", model) == code
    error = capsys.readouterr().err
    assert consequence in error, error
    assert "Repair: " in error
    assert repair in error, error
    assert "Traceback" not in error
    assert list(here.iterdir()) == []
    return error


def _assert_no_plan(here: Path, model: str, consequence: str, repair: str) -> None:
    """Assert that a stack file with a model cannot be planned."""
    folder = here.parent / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text(
        f"config:\n  bezel:model: {model}\n  bezel:accelerator: nvidia-l4\n  bezel:region: us-east4\n"
    )
    with Context(folder, show=lambda _: None) as context, pytest.raises(UserError) as refused:
        plan(context, PlanArguments(stack="dev"))
    assert consequence in str(refused.value)
    assert repair in str(refused.value)
