"""`bezel new NAME --from SERVICE|FILE`: a project of what serves today, or the input's problem and nothing made."""

from __future__ import annotations

import importlib.metadata
import json
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel.conversion.inputs.readers import MOST_BYTES
from bezel.engine.project.pipeline_file import read_pipeline
from bezel.engine.project.project import Project
from bezel.planner import Plan, make_plan
from tests.support.conversion.six_inputs import CREDENTIALS, LIVE, SIX
from tests.support.rest.fake_google import Answer, Call, Server, key_file, serving, token_route
from tests.support.weights import fake_hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "projects/acme-llm/locations/us-east4/services/chat"
DEPLOY = (
    "gcloud run deploy {name} --image=vllm/vllm-openai:v0.32.0 --region={region} --project=acme-llm --gpu=1"
    " --gpu-type={gpu} --no-gpu-zonal-redundancy --min=0 --max={most} --cpu={cpu} --memory={memory}"
    " --args=--model=google/gemma-4-E2B-it"
)
L4 = {"name": "chat", "region": "us-east4", "gpu": "nvidia-l4", "cpu": 4, "memory": "16Gi", "most": 1}
RTX = {**L4, "region": "us-central1", "gpu": "nvidia-rtx-pro-6000", "cpu": 20, "memory": "80Gi"}
TWO_SERVERS = """\
services:
  one: {image: "vllm/vllm-openai:v0.32.0", command: --model google/gemma-4-E4B-it}
  two: {image: "vllm/vllm-openai:v0.32.0", command: --model google/gemma-4-E2B-it}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / f"bezel-{importlib.metadata.version('bezel')}-py3-none-any.whl").touch()
    folder = tmp_path / "work"
    (folder / "scripts").mkdir(parents=True)
    (folder / "deploy.sh").write_text(DEPLOY.format(**L4))
    (folder / "bytes.sh").write_bytes(b"vllm serve \xff")
    (folder / "empty.sh").touch()
    (folder / "large.sh").write_text("vllm serve a " + "b" * MOST_BYTES)
    (folder / "llama.sh").write_text("llama-server -m gemma.gguf")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # no hub: nobody listens there
    return folder


@pytest.fixture
def google(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Cloud Run with one service, and one that the caller may not read."""

    def route(call: Call) -> Answer | None:
        if call.path == f"/v2/{NAME}":
            return Answer(json=LIVE)
        if call.path == f"/v2/{NAME}:getIamPolicy":
            return Answer(json={})
        if call.path == f"/v2/{NAME.replace('chat', 'hidden')}":
            error = {"code": 403, "message": "Permission 'run.services.get' denied.", "status": "PERMISSION_DENIED"}
            return Answer(403, json={"error": error})
        return None

    with serving() as server:
        server.routes += [token_route(), route]
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file(here.parent, server)))
        monkeypatch.setenv("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT", f"{server.url}/v2/")
        monkeypatch.setenv("GOOGLE_PROJECT", "acme-llm")
        yield server


def new(*arguments: str) -> int:
    return main(["new", *arguments, "--yes", "--packages", "../wheels"])


def contents(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


REFUSED = {
    "no such file": (["x", "--from", "other.sh"], ("--from = other.sh", "no such file", "correct the path")),
    "a folder": (["x", "--from", "scripts"], ("--from = scripts", "no such file", "give a service's name")),
    "a file of bytes": (["x", "--from", "bytes.sh"], ("--from = bytes.sh", "UTF-8", "give a command")),
    "an empty file": (["x", "--from", "empty.sh"], ("empty.sh", "it is empty", "vllm serve")),
    "a large file": (["x", "--from", "large.sh"], ("large.sh", "more than 262144 bytes", "compose file")),
    "another server": (["x", "--from", "llama.sh"], ("llama-server -m gemma.gguf", "no command in it", "vllm serve")),
    "a service without a region": (["x", "--from", "chat"], ("--from = chat", "by its region too", "projects/PROJECT")),
    "a service that is not there": (
        ["x", "--from", "other", "--region", "us-east4"],
        ("--from = projects/acme-llm/locations/us-east4/services/other", "no such service", "gcloud run services list"),
    ),
    "a service of another": (
        ["x", "--from", "hidden", "--region", "us-east4"],
        ("--from = projects/acme-llm", "run.services.get", "roles/run.viewer"),
    ),
    "two sources": (["x", "--from", "deploy.sh", "--from", "chat"], ("deploy.sh, chat", "made of one", "deploy.sh")),
    "no source": (["x", "--from", ""], ("--from", "it names nothing", "name a service")),
    "no name": (["--from", "deploy.sh"], ("NAME = (not set)", "has no default", "bezel new chat")),
    "an unknown model": (
        ["x", "--from", "deploy.sh", "--model", "llama"],
        ("--model = llama", "no such name", "choose one of gemma-4"),
    ),
    "an unknown accelerator": (
        ["x", "--from", "deploy.sh", "--accelerator", "nvidia-t4"],
        ("--accelerator = nvidia-t4", "no such name", "choose one of nvidia-l4"),
    ),
    "a folder in the way": (["scripts/x", "--from", "deploy.sh"], ("NAME = scripts/x", "it is a path", "change to")),
}


@pytest.mark.usefixtures("google")
@pytest.mark.parametrize(("arguments", "phrases"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_source_is_named_and_leaves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], phrases: tuple[str, ...]
) -> None:
    before = contents(here)
    assert new(*arguments) == 2
    error = capsys.readouterr().err
    for phrase in (*phrases, "Repair: "):
        assert phrase in error, error
    assert contents(here) == before


def test_sentences_fit_80_columns_and_no_command_is_broken(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("GOOGLE_PROJECT", "acme-llm")
    (here / "deploy.sh").write_text(DEPLOY.format(**L4))
    assert new("a-project-of-a-long-name" * 2, "--from", "deploy.sh") == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row for row in rows if len(row) > 80 and not row.startswith("    ")] == []
    assert any(row.startswith("  ") and not row.startswith("    ") for row in rows)  # a sentence goes on below
    assert "    .venv/bin/bezel adopt chat" in rows


@pytest.mark.usefixtures("google")
@pytest.mark.parametrize("source", ["chat", NAME])
def test_a_live_service_becomes_a_project_that_adopts_it(
    here: Path, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    assert new("team", "--from", source, *([] if "/" in source else ["--region", "us-east4"])) == 0
    shown = capsys.readouterr().out
    assert "Price, before -> after:" in shown
    assert "cd team\n    make setup\n    .venv/bin/bezel adopt chat" in shown
    project = Project(here / "team")
    text = (here / "team" / "Pulumi.chat.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=stack.schema.json\n")
    assert [each for each in CREDENTIALS if each in text + shown] == []
    settings = project.configuration("chat")
    plan = make_plan(settings, project="acme-llm", stack="chat")
    assert isinstance(plan, Plan)
    assert plan.service.name == "chat"
    # It has a minimum of one instance, which the limits of dev refuse.
    assert dict(read_pipeline(project).stacks) == {"chat": plan.environment} == {"chat": "prod"}
    assert settings["labels"] == {"team": "chat", "owner": "ml-platform", "expires-at": "never"}
    assert ".venv/bin/bezel adopt chat" in (here / "team" / "README.md").read_text()


@pytest.mark.parametrize(
    ("settings", "environment", "code"),
    [(L4, "dev", 0), (RTX, "prod", 0), (L4 | {"most": 3}, "prod", 0), (L4 | {"most": 12}, "prod", 3)],
)
def test_the_environment_is_the_first_whose_limits_allow_the_stack(
    here: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, object], environment: str, code: int
) -> None:
    (here / "deploy.sh").write_text(DEPLOY.format(**settings))
    assert new("team", "--from", "deploy.sh") == code
    assert Project(here / "team").configuration("chat")["environment"] == environment
    refused = "bezel:scaling.max_instances = 12\n   the limits of prod allow 8 at most.\n   Repair: raise the limits in"
    shown = capsys.readouterr().out
    assert (refused in shown) is (code == 3)
    for text in (shown, (here / "team" / "Pulumi.chat.yaml").read_text()):
        assert f"bezel:environment: {environment}: the input does not say it" in text
        assert text.count("bezel:environment: ") - text.count("write bezel:environment: prod") == (
            2 if "#" in text else 1
        )


def test_a_label_of_the_input_decides_the_environment(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "deploy.sh").write_text(f"{DEPLOY.format(**RTX)} --labels=environment=dev")
    assert new("team", "--from", "deploy.sh") == 3
    assert Project(here / "team").configuration("chat")["environment"] == "dev"
    assert "add it to allowed-accelerators in policies/hardware_cost.dev.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "named", "repair"),
    [
        (TWO_SERVERS, "services.two", "Keep it alone in a file, and convert that one."),
        ("vllm serve google/gemma-4-E2B-it --no-such-option 3", "--no-such-option: 3", "Remove it."),
    ],
)
def test_a_part_that_is_left_out_is_named_in_file_and_output(
    here: Path, capsys: pytest.CaptureFixture[str], text: str, named: str, repair: str
) -> None:
    (here / "server").write_text(text)
    assert new("team", "--from", "server") == 0
    (file,) = (here / "team").glob("Pulumi.*.yaml")
    for shown in (capsys.readouterr().out, " ".join(file.read_text().replace("#", "").split())):
        assert named in shown
        assert repair in shown


@pytest.mark.slow
def test_a_stack_that_the_plan_refuses_is_written_with_its_problems(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "deploy.sh").write_text(SIX["not_served"])
    with fake_hub.serving() as hub:  # it has no model; for one that does not respond, seven waits pass
        monkeypatch.setenv("HF_ENDPOINT", hub.base)
        assert new("team", "--from", "deploy.sh") == 3
    shown = capsys.readouterr().out
    assert "The plan objects to llama" in shown
    assert "Repair Pulumi.llama.yaml or the limits first" in shown
    assert (here / "team" / "Pulumi.llama.yaml").is_file()


def test_a_project_of_what_serves_is_what_this_version_writes(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert new("team", "--from", "deploy.sh") == 0
    monkeypatch.chdir(here / "team")
    assert main(["upgrade", "--check"]) == 0, capsys.readouterr().out


def test_options_replace_what_the_input_says(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "serve.sh").write_text("vllm serve /models/own --served-model-name gemma")
    options = ("--model", "gemma-4-e2b-it", "--accelerator", "nvidia-l4", "--region", "us-east4")
    assert new("team", "--from", "serve.sh", *options, "--project", "acme-llm") == 0
    project = Project(here / "team")
    settings = project.configuration("gemma-4-e2b-it")
    assert (settings["model"], settings["region"]) == ("gemma-4-e2b-it", "us-east4")
    readme = (here / "team" / "README.md").read_text()
    assert "export GOOGLE_PROJECT=acme-llm" in readme
    shown = capsys.readouterr().out
    assert "model: /models/own: you name the checkpoint gemma-4-e2b-it" in shown
    assert "make up" in shown
    assert "bezel adopt" not in shown + readme


def test_the_project_of_the_input_is_named_unless_the_shell_has_it(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    for number, (environment, is_named) in enumerate({"another": True, "acme-llm": False}.items()):
        monkeypatch.setenv("GOOGLE_PROJECT", environment)
        assert new(f"team{number}", "--from", "deploy.sh") == 0
        assert ("    export GOOGLE_PROJECT=acme-llm\n" in capsys.readouterr().out) is is_named
        # The stack file names none, so that localcloud can stand for it.
        assert Project(here / f"team{number}").cloud_project("chat", {}) is None


@pytest.mark.parametrize(("environment", "named"), [("", "my-project"), ("acme-llm", "")])
def test_a_service_without_a_project_asks_for_one_unless_the_shell_has_it(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, environment: str, named: str
) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    monkeypatch.setenv("GOOGLE_PROJECT", environment)
    (here / "deploy.sh").write_text(DEPLOY.format(**L4).replace(" --project=acme-llm", ""))
    assert new("team", "--from", "deploy.sh") == 0
    exports = [line for line in capsys.readouterr().out.splitlines() if "export GOOGLE_PROJECT" in line]
    assert exports == ([f"    export GOOGLE_PROJECT={named}"] if named else [])


def test_the_limits_of_a_new_project_are_the_shipped_ones(here: Path) -> None:
    assert new("team", "--from", "deploy.sh") == 0
    limits = json.loads((here / "team" / "policies" / "hardware_cost.dev.json").read_text())
    assert limits["allowed-accelerators"]["limits"]["dev"][0] == "nvidia-l4"
