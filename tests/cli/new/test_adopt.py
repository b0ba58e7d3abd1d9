"""`bezel adopt STACK`: what cannot be adopted is named before anything is previewed, and no file is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from tests.support.rest.fake_google import Answer, Call, Server, key_file, serving, token_route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bezel.engine.project.project import Project


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Cloud Run without a service, and with one that the caller may not read."""

    def route(call: Call) -> Answer | None:
        if call.path.endswith("/services/hidden"):
            return Answer(403, json={"error": {"code": 403, "message": "Permission 'run.services.get' denied."}})
        return Answer(404, json={"error": {"code": 404, "message": "not found"}}) if "/v2/" in call.path else None

    with serving() as server:
        server.routes += [token_route(), route]
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file(tmp_path, server)))
        monkeypatch.setenv("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT", f"{server.url}/v2/")
        monkeypatch.setenv("GOOGLE_PROJECT", "acme-llm")
        yield server


LEASE = """\
config:
  bezel:model: gemma-4-12b-it
  bezel:accelerator: v6e-1
  bezel:region: us-east5
  bezel:lease: {zones: [{zone: us-east5-b}]}
  bezel:vllm: {max-model-len: 8192}
  bezel:labels: {owner: me, expires-at: never}
"""
# what is put behind the stack's file, or in its place; the stack; what is said; the exit code
REFUSED = {
    "an unknown stack": ("", "other", ("STACK = other", "no Pulumi.other.yaml", "choose one of dev"), 2),
    "a service that is not there": ("", "dev", ("bezel:service_name = projects/acme-llm", "no such service"), 1),
    "a service of another": (
        "  bezel:service_name: hidden\n",
        "dev",
        ("/services/hidden", "run.services.get", "roles/run.viewer"),
        1,
    ),
    "a stack that is not planned": ("  bezel:service_name: Chat!\n", "dev", ("bezel:service_name = Chat!",), 1),
    "a stack of leases": (LEASE, "dev", ("STACK = dev", "it leases machines", "an accelerator of Cloud Run"), 1),
}


@pytest.mark.usefixtures("google")
@pytest.mark.parametrize(("text", "stack", "phrases", "code"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_adopted_is_named(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    text: str,
    stack: str,
    phrases: tuple[str, ...],
    code: int,
) -> None:
    file = project.folder / "Pulumi.dev.yaml"
    file.write_text(text if text.startswith("config:") else file.read_text() + text)
    before = sorted(project.folder.rglob("*"))
    assert main(["adopt", stack]) == code
    error = capsys.readouterr().err
    for phrase in (*phrases, "Repair: "):
        assert phrase in error, error
    assert sorted(project.folder.rglob("*")) == before


def test_without_a_project_of_google_nothing_is_adopted(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    assert main(["adopt", "dev"]) == 1
    assert "no Google Cloud project is named" in capsys.readouterr().err
    assert not list(project.folder.glob("import-*"))
