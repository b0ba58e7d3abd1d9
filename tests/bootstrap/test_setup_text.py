"""`bezel init` shows what to paste into the forge, names the problems of its options, and checks the billing first."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bezel.cli.main import main
from bezel.foundation.settings import checked_settings
from bezel.gitops.project_setup import forge_settings, hand_settings, preflight
from bezel.gitops.project_setup.folder import SetupFolder
from bezel.gitops.project_setup.repository import repository_id
from bezel.gitops.project_setup.setup import changes_text
from bezel_base.errors import UserError
from tests.support.bootstrap.project import PROJECT, SETTINGS, FakeProject
from tests.support.rest.fake_google import Answer, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTPUTS = {
    "project": PROJECT,
    "backend_url": "gs://acme-llm-pulumi-state",
    "secrets_provider": "gcpkms://projects/acme-llm/locations/us-east4/keyRings/pulumi/cryptoKeys/k-1",
    "identity_provider": "projects/1/locations/global/workloadIdentityPools/bezel/providers/github",
    "preview_account": "pipeline-preview@acme-llm.iam.gserviceaccount.com",
    "deploy_account": "pipeline-deploy@acme-llm.iam.gserviceaccount.com",
}
FOLDER = SetupFolder(Path("/home/a user/.local/state/bezel/init/acme-llm"), PROJECT)


def text(*, has_key: bool = True, **changes: Any) -> str:
    settings = checked_settings(SETTINGS | changes, PROJECT)
    return forge_settings.text(OUTPUTS, settings, FOLDER, has_key=has_key)


def test_every_variable_of_a_github_repository_is_a_command_to_paste() -> None:
    commands = [shlex.split(line) for line in text().splitlines() if line.startswith("    gh variable set")]
    assert {command[3]: command[7] for command in commands} == forge_settings.variables(OUTPUTS, has_key=True)
    assert {command[5] for command in commands} == {"acme/llm"}
    assert "https://github.com/acme/llm/settings/variables/actions" in text()
    assert text().count("gh api --method PUT repos/acme/llm/environments/") == 2
    assert "https://github.com/acme/llm/settings/branches" in text()


@pytest.mark.parametrize("forge", [{}, {"forge": "gitea", "issuer": "https://forge.example/oidc"}])
def test_what_only_the_forge_can_hold_is_named(forge: dict[str, str]) -> None:
    printed = text(**forge)
    assert ".github/CODEOWNERS.example" in printed
    assert "runs as the branch wrote it" in printed


def test_a_github_repository_may_pin_the_judge_and_the_steps_of_deploys() -> None:
    assert f"set the variable {forge_settings.OPTIONAL} to a commit" in text()
    assert "(now: any workflow of the main branch may deploy)" in text()
    pinned = "acme/pipelines/.github/workflows/deploy.yml@" + "0" * 40
    assert f"(now: {pinned})" in text(deploy_workflows=(pinned,))


def test_a_passphrase_is_a_secret_that_is_read_from_its_file() -> None:
    printed = text(has_key=False)
    assert "gh secret set PULUMI_CONFIG_PASSPHRASE --repo acme/llm < '/home/a user/" in printed
    assert "gcpkms" not in printed
    assert "PASSPHRASE" not in text()


def test_a_gitea_server_gets_values_for_its_pages() -> None:
    printed = text(forge="gitea", issuer="https://forge.example/oidc")
    assert "BEZEL_DEPLOY_ACCOUNT = pipeline-deploy@" in printed
    assert "/acme/llm/settings/actions/variables" in printed
    assert "gh " not in printed


@pytest.mark.parametrize(
    ("changes", "summary"),
    [({}, "0 changes"), ({"create": 1}, "1 change: 1 to create"), ({"update": 2, "import": 1}, "1 to adopt, 2 to")],
)
def test_changes_are_counted(changes: dict[str, int], summary: str) -> None:
    assert summary in changes_text(changes)


def test_wrong_options_are_all_named_as_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--project", "Acme", "--repository", "llm", "--environment", "none"]) == 2
    printed = capsys.readouterr().err
    for key in ("--project = Acme", "--repository = llm", "--billing-account = (not set)", "--alert-email"):
        assert key in printed


def test_a_set_up_without_a_repository_names_the_way_without_a_forge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--project", PROJECT, "--region", "us-east4"]) == 2
    assert "--repository = (not set)" in (printed := capsys.readouterr().err)
    assert "without a repository's pipeline: --no-forge" in printed


MEMBER = "user:you@acme.example"
HANDS = ["--no-forge", "--project", PROJECT, "--region", "us-east4", "--smoke-user", MEMBER]
BILLED = ["--billing-account", "012345-6789AB-CDEF01"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--repository", "acme/llm"], "--repository = acme/llm\n   it is about a pipeline"),
        (["--repository-id", "4711"], "--repository-id = 4711\n   it is about a pipeline"),
        (["--forge", "gitea"], "--forge = gitea\n   it is about a pipeline"),
        (["--issuer", "https://forge.example"], "--issuer = https://forge.example\n   it is about a pipeline"),
        (["--main-branch", "trunk"], "--main-branch = trunk\n   it is about a pipeline"),
        (["--environment", "dev"], "--environment = "),
        (["--weights-bucket", "w-1"], "--weights-bucket = "),
        (["--weights-bucket", "w-1", "--weights-bucket", "w-2", "w-3"], '--weights-bucket = ["w-1", "w-2", "w-3"]'),
        (["--secret", "hf-token"], "--secret = "),
        (["--domain", "llm.acme.example"], "--domain = "),
        (["--alert-email", "a@acme.example"], "--alert-email = a@acme.example\n   no budget is made"),
        (["--budget", "100"], "--budget = 100\n   no budget is made"),
        (BILLED, "--alert-email = (not set)\n   it is required"),
        (["--smoke-user", "you@acme.example"], "--smoke-user = you@acme.example\n   IAM refuses it"),
        (["--smoke-user", "user:you"], "--smoke-user = user:you\n   IAM refuses it"),
        (["--region", "USA"], "--region = USA"),
        (["--project", "1lm"], "--project = 1lm\n   it is not the ID"),
        (["--state-bucket", "A"], "--state-bucket = A"),
    ],
)
def test_what_a_set_up_without_a_forge_cannot_use_is_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["init", *HANDS, *options]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "Repair: " in printed


def test_a_set_up_without_a_forge_needs_somebody_who_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", *HANDS[:-2]]) == 2
    assert "--smoke-user = (not set)\n   a person's login gets no identity token" in capsys.readouterr().err


def test_the_steps_by_hand_name_state_key_account_and_destroy() -> None:
    account = f"bezel-smoke@{PROJECT}.iam.gserviceaccount.com"
    outputs = {name: OUTPUTS[name] for name in ("project", "backend_url", "secrets_provider")}
    outputs["smoke_account"] = account
    printed = hand_settings.text(outputs, FOLDER, has_key=True)
    assert f"    pulumi stack init STACK --secrets-provider={OUTPUTS['secrets_provider']}\n" in printed
    assert f"   bezel:smoke: {{impersonate: {account}}}\n" in printed
    assert f"    bezel init --destroy --project {PROJECT} --state-bucket acme-llm-pulumi-state\n" in printed
    assert "PASSPHRASE" not in printed
    assert "PULUMI_CONFIG_PASSPHRASE_FILE='/home/a user/" in hand_settings.text(outputs, FOLDER, has_key=False)


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"permissions": []}, "you may not create budgets on it"),
        (None, "it does not exist, or you may not see it"),
    ],
)
def test_an_account_that_cannot_get_a_budget_stops_the_set_up(
    billing: dict[str, Any], resources: dict[str, Any] | None, message: str
) -> None:
    billing["rights"] = resources
    with pytest.raises(UserError, match=message) as refused:
        preflight.check(checked_settings(SETTINGS, PROJECT), PROJECT)
    assert "Repair: " in str(refused.value)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"billingEnabled": False}, "not linked to a billing account"),
        ({"billingEnabled": True, "billingAccountName": "billingAccounts/FFFFFF-000000-000000"}, "is billed to FFFFFF"),
    ],
)
def test_a_project_without_this_billing_account_stops_the_set_up(
    billing: dict[str, Any], info: dict[str, Any], message: str
) -> None:
    billing["info"] = info
    with pytest.raises(UserError, match=message):
        preflight.check(checked_settings(SETTINGS, PROJECT), PROJECT)


@pytest.mark.usefixtures("billing")
def test_a_project_that_is_billed_and_an_api_that_is_off_let_it_begin(project: FakeProject) -> None:
    preflight.check(checked_settings(SETTINGS, PROJECT), PROJECT)
    project.server.routes.insert(0, lambda _: _error(403, "Cloud Billing API has not been used in project 1 before"))
    preflight.check(checked_settings(SETTINGS, PROJECT), PROJECT)


def test_a_project_that_nobody_pays_stops_a_set_up_without_a_budget(billing: dict[str, Any]) -> None:
    settings = checked_settings({"no_forge": True, "region": "us-east4", "smoke_users": (MEMBER,)}, PROJECT)
    preflight.check(settings, PROJECT)
    billing["info"] = {"billingEnabled": False}
    with pytest.raises(UserError, match="not linked to a billing account"):
        preflight.check(settings, PROJECT)


@pytest.fixture
def billing(project: FakeProject, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    account = SETTINGS["billing_account"]
    answers: dict[str, Any] = {
        "rights": {"permissions": [f"billing.budgets.{verb}" for verb in ("create", "get", "list", "update")]},
        "info": {"billingEnabled": True, "billingAccountName": f"billingAccounts/{account}"},
    }

    def route(call: Any) -> Answer | None:
        if call.path == f"/cloud_billing/billingAccounts/{account}:testIamPermissions":
            return _error(404, "gone") if answers["rights"] is None else Answer(json=answers["rights"])
        return Answer(json=answers["info"]) if call.path == f"/cloud_billing/projects/{PROJECT}/billingInfo" else None

    project.server.routes.insert(0, route)
    monkeypatch.setenv("GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT", f"{project.server.url}/cloud_billing/")
    return answers


@pytest.fixture
def forge() -> Iterator[Server]:
    with serving() as server:
        yield server


def test_the_number_of_a_repository_is_asked_at_its_forge(forge: Server) -> None:
    forge.routes.append(lambda call: Answer(json={"id": 4711}) if call.path == "/repos/acme/llm" else None)
    assert repository_id("github", "acme/llm", {"GITHUB_API_URL": forge.url, "GITHUB_TOKEN": "t"}) == "4711"
    assert forge.calls[0].headers["authorization"] == "Bearer t"


@pytest.mark.parametrize("answer", [Answer(404), Answer(json=[]), Answer(text="<html>"), Answer(reset=True)])
def test_a_number_that_is_not_told_is_an_error_with_the_way_to_give_it(forge: Server, answer: Answer) -> None:
    forge.routes.append(lambda _: answer)
    with pytest.raises(UserError, match="--repository-id"):
        repository_id("github", "acme/llm", {"GITHUB_API_URL": forge.url})
    with pytest.raises(UserError, match="GITHUB_API_URL"):
        repository_id("gitea", "acme/llm", {})


def _error(status: int, message: str) -> Answer:
    return Answer(status, {"error": {"code": status, "message": message, "status": "REFUSED"}})
