"""`bezel ci login` on localcloud, with an issuer of the tests' own in the place of the forge's."""

import json
import os
import stat
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel.rest import Credentials, CredentialsError
from bezel_localcloud import control
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_pulumi_offline.google.errors import ProviderError
from bezel_pulumi_offline.google.tokens import Tokens
from localcloud_support.client import PARENT, Client, plain
from localcloud_support.issuer import REQUEST_TOKEN, Issuer
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow  # a daemon

POOLS = f"/iam/v1/{PARENT}/locations/global/workloadIdentityPools"
POOL = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/pipeline"
PROVIDER = f"{POOL}/providers/forge"
ACCOUNT = f"pipeline@{PROJECT}.iam.gserviceaccount.com"
ACCOUNT_PATH = f"/iam/v1/{PARENT}/serviceAccounts/{ACCOUNT}"
MEMBER = f"principalSet://iam.googleapis.com/{POOL}/attribute.repository/example/bezel"
USED = ("ACTIONS_", "BEZEL_", "CLOUDSDK_", "GITEA_", "GITHUB_", "GOOGLE_", "RUNNER_")


@pytest.fixture(scope="module")
def issuer():
    with Issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def cloud(tmp_path_factory, issuer):
    """A localcloud with a pool that trusts the issuer, and an account that jobs of the repository may act as."""
    directory = tmp_path_factory.mktemp("cloud")
    client = Client(warm_localcloud.start_fake(directory))
    client.enable("iam", "iamcredentials", "sts")
    client.finish("iam/v1", client.post(POOLS, {}, workloadIdentityPoolId="pipeline"))
    provider = {
        "attributeMapping": {"google.subject": "assertion.sub", "attribute.repository": "assertion.repository"},
        "attributeCondition": "assertion.repository_id == '12'",
        "oidc": {"issuerUri": issuer.url},
    }
    path = f"{POOLS}/pipeline/providers"
    client.finish("iam/v1", client.post(path, provider, workloadIdentityPoolProviderId="forge"))
    client.account("pipeline")
    policy = {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [MEMBER]}]}
    assert client.post(f"{ACCOUNT_PATH}:setIamPolicy", {"policy": policy}).status_code == 200
    yield client
    control.stop(directory)


@pytest.fixture
def job(cloud, issuer, tmp_path, monkeypatch):
    """A step of a forge's job; the folder of its temporary files."""
    for name in [name for name in os.environ if name.startswith(USED)]:
        monkeypatch.delenv(name)
    temporary, workspace = tmp_path / "temp", tmp_path / "checkout"
    workspace.mkdir()
    (workspace / ".git").mkdir()
    variables = {
        **{name: value for name, value in control.environment(cloud.endpoint).items() if name.endswith("_ENDPOINT")},
        **issuer.environment(),
        "BEZEL_IDENTITY_PROVIDER": PROVIDER,
        "BEZEL_ACCOUNT": ACCOUNT,
        "GITHUB_ACTIONS": "true",
        "GITHUB_ENV": str(tmp_path / "env"),
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_TEMP": str(temporary),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(workspace)
    issuer.claims |= {
        "repository": "example/bezel",
        "repository_id": "12",
        "sub": "repo:example/bezel:ref:refs/heads/main",
    }
    issuer.requests.clear()
    return temporary


def later(job):
    """The variables of the later steps."""
    return dict(line.split("=", 1) for line in (job.parent / "env").read_text().splitlines())


def visible(captured):
    """What the forge's log shows: lines without those that mask something, and with what they mask hidden."""
    lines = (captured.out + captured.err).splitlines()
    masked = [line.removeprefix("::add-mask::") for line in lines if line.startswith("::add-mask::")]
    text = "\n".join(line for line in lines if not line.startswith("::add-mask::"))
    return masked, text


def test_a_job_logs_in_and_leaves_its_credentials_to_the_later_steps(job, capsys):
    assert main(["ci", "login"]) == 0
    masked, text = visible(capsys.readouterr())
    assert f"account  {ACCOUNT}" in text
    assert "subject  repo:example/bezel:ref:refs/heads/main" in text
    assert "token    until 20" in text
    assert len(masked) == 4, "the request token, the job's, the federated and the account's"
    assert not [secret for secret in masked if secret in text]
    variables = later(job)
    assert variables.keys() == {"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_PROJECT"}
    assert variables["GOOGLE_PROJECT"] == PROJECT
    file = Path(variables["GOOGLE_APPLICATION_CREDENTIALS"])
    assert file.parent == job
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [secret for secret in masked[1:] if secret in file.read_text()] == [], "only the job's own request token"


def test_the_later_steps_are_the_account_and_renew_their_token(job, cloud, issuer, monkeypatch):
    assert main(["ci", "login"]) == 0
    environ = {**os.environ, **later(job)}
    for name, value in later(job).items():
        monkeypatch.setenv(name, value)
    issuer.requests.clear()
    ours = Credentials(environ=environ)
    for token in (ours.access_token(), Tokens(environ)()):
        answer = plain.get(f"{cloud.endpoint.base}/crm/v1/{PARENT}", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 403, "known, and without a role of its own"
    assert ours.identity_token("https://llm.example").startswith("eyJ")
    ours.forget()
    ours.access_token()
    assert issuer.requests.count("/token") == 4, "each client, the identity token and the renewal ask the forge once"


def test_a_second_login_of_a_job_writes_the_same_file(job):
    assert main(["ci", "login"]) == 0
    assert main(["ci", "login"]) == 0
    assert len(list(job.iterdir())) == 1


def test_json_stays_json_while_tokens_are_masked(job, capsys):
    assert main(["ci", "login", "--format", "json", "--out", str(job.parent / "login.json")]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["account"], report["project"]) == ("login", ACCOUNT, PROJECT)
    assert json.loads((job.parent / "login.json").read_text()) == report
    assert REQUEST_TOKEN not in json.dumps(report)


def test_outside_of_a_forge_nothing_is_masked_and_the_variables_are_shown(job, monkeypatch, capsys):
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.delenv("GITHUB_ENV")
    assert main(["ci", "login"]) == 0
    captured = capsys.readouterr()
    assert "::add-mask::" not in captured.out + captured.err
    assert f"export GOOGLE_APPLICATION_CREDENTIALS={job}/" in captured.out


REFUSED = {
    "another repository": (
        {"claims": {"repository": "example/other", "repository_id": "13"}},
        "rejected by the attribute condition",
        "repository=example/other, repository_id=13",
    ),
    "a fork's pull request": (
        {"claims": {"sub": "repo:fork/bezel:pull_request", "repository_id": "99"}},
        "rejected by the attribute condition",
        "repository_id=99",
    ),
    "a wrong pool": (
        {"env": {"BEZEL_IDENTITY_PROVIDER": PROVIDER.replace("pipeline", "missing")}},
        "pool or provider is disabled or deleted",
        "gcloud iam workload-identity-pools providers describe forge",
    ),
    "a missing role": (
        {"claims": {"repository": "example/renamed"}},
        "iam.serviceAccounts.getAccessToken",
        "--role=roles/iam.workloadIdentityUser --member=principal://iam.googleapis.com/",
    ),
    "another account": (
        {"env": {"BEZEL_ACCOUNT": f"nobody@{PROJECT}.iam.gserviceaccount.com"}},
        "cannot be impersonated by this job (HTTP 403",
        f"add-iam-policy-binding nobody@{PROJECT}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_cause_and_repair(case, job, issuer, monkeypatch, capsys):
    changed, cause, repair = REFUSED[case]
    issuer.claims |= changed.get("claims", {})
    for name, value in changed.get("env", {}).items():
        monkeypatch.setenv(name, value)
    assert main(["ci", "login"]) == 1
    masked, text = visible(capsys.readouterr())
    assert cause in text
    assert repair in text
    assert not [secret for secret in masked if secret in text]
    assert not job.exists(), "nothing is left to the later steps"
    assert not (job.parent / "env").exists()


@pytest.mark.usefixtures("job")
def test_a_disabled_api_is_named_with_the_command_that_enables_it(cloud, capsys):
    path = f"/serviceusage/v1/{PARENT}/services/sts.googleapis.com"
    cloud.finish("serviceusage/v1", cloud.post(f"{path}:disable"))
    try:
        assert main(["ci", "login"]) == 1
        assert "gcloud services enable sts.googleapis.com" in capsys.readouterr().err
    finally:
        cloud.enable("sts")


@pytest.mark.usefixtures("job")
def test_a_forge_that_refuses_is_named(issuer, capsys):
    issuer.status = 403
    try:
        assert main(["ci", "login"]) == 1
    finally:
        issuer.status = 200
    assert "the forge's token for this job" in capsys.readouterr().err


WITHOUT = {
    "by hand": ({"GITHUB_ACTIONS": None}, "gcloud auth application-default login"),
    "on GitHub": ({}, "permissions: {id-token: write}"),
    "on Gitea": ({"GITEA_ACTIONS": "true"}, "this forge gives its jobs no identity tokens"),
}


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.usefixtures("job")
def test_a_job_without_tokens_is_told_why(case, monkeypatch, capsys):
    changed, text = WITHOUT[case]
    for name, value in ({"ACTIONS_ID_TOKEN_REQUEST_URL": None} | changed).items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    assert main(["ci", "login"]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("BEZEL_IDENTITY_PROVIDER", "", "--provider = (not set)"),
        ("BEZEL_IDENTITY_PROVIDER", PROVIDER.replace(PROJECT_NUMBER, "my-project"), "number, not its id"),
        ("BEZEL_ACCOUNT", "me@example.com", "--account = me@example.com"),
        ("GOOGLE_CREDENTIALS", "{}", "Pulumi would use it instead"),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", "x", "Pulumi would use it instead"),
    ],
)
@pytest.mark.usefixtures("job")
def test_a_wrong_setting_is_exit_2_before_anything_is_sent(name, value, text, issuer, monkeypatch, capsys):
    monkeypatch.setenv(name, value)
    assert main(["ci", "login"]) == 2
    assert text in capsys.readouterr().err
    assert issuer.requests == []


@pytest.mark.parametrize("inside", ["checkout", "checkout/deeper"])
def test_credentials_never_get_into_a_checkout(inside, job, monkeypatch, capsys):
    folder = job.parent / inside / "temp"
    monkeypatch.setenv("RUNNER_TEMP", str(folder))
    monkeypatch.delenv("GITHUB_WORKSPACE")
    assert main(["ci", "login"]) == 1
    assert "is in a checkout" in capsys.readouterr().err
    assert not folder.exists()


def test_without_a_runner_s_folder_the_user_s_state_folder_is_used(job, monkeypatch):
    monkeypatch.delenv("RUNNER_TEMP")
    assert main(["ci", "login"]) == 0
    assert Path(later(job)["GOOGLE_APPLICATION_CREDENTIALS"]).parent == job.parent / "state" / "bezel" / "login"


def test_no_token_is_sent_to_an_address_elsewhere_in_plain_text(job, monkeypatch, capsys):
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", "http://forge.example/token")
    assert main(["ci", "login"]) != 0
    captured = capsys.readouterr()
    assert "a token sent to this address could be read on the way" in captured.err
    assert not job.exists()


def credentials(folder, **changed):
    """A credential file as a login writes it, with changes."""
    file = folder / "changed.json"
    (written,) = [path for path in folder.iterdir() if path != file]
    file.write_text(json.dumps(json.loads(written.read_text()) | changed))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}


def test_a_token_can_come_from_a_file_too(job, issuer):
    assert main(["ci", "login"]) == 0
    token = job.parent / "token"
    token.write_text(issuer.token(f"https://iam.googleapis.com/{PROVIDER}"))
    environ = {**os.environ, **credentials(job, credential_source={"file": str(token)})}
    assert Credentials(environ=environ).access_token().startswith("eyJ")
    assert Tokens(environ)().startswith("eyJ")
    text = (job / "changed.json").read_text()
    by_text = {**os.environ, "GOOGLE_CREDENTIALS": text}
    assert Credentials(environ=by_text).access_token().startswith("eyJ")
    assert Tokens(by_text)().startswith("eyJ")
    token.unlink()
    for fails, error in (
        (Credentials(environ=environ).access_token, CredentialsError),
        (Tokens(environ), ProviderError),
    ):
        with pytest.raises(error):
            fails()


def test_a_refused_identity_is_said_by_the_clients_without_a_token(job, issuer):
    assert main(["ci", "login"]) == 0
    environ = {**os.environ, **later(job)}
    issuer.claims |= {"repository_id": "13"}
    with pytest.raises(CredentialsError, match=r"a federated identity was refused.*attribute condition") as ours:
        Credentials(environ=environ).access_token()
    with pytest.raises(ProviderError, match="rejected by the attribute condition") as standin:
        Tokens(environ)()
    issuer.claims |= {"repository_id": "12", "repository": "example/renamed"}
    with pytest.raises(CredentialsError, match=r"cannot be impersonated \(403") as account:
        Credentials(environ=environ).access_token()
    with pytest.raises(ProviderError, match="refused the federated identity") as impersonation:
        Tokens(environ)()
    for caught in (ours, standin, account, impersonation):
        assert REQUEST_TOKEN not in str(caught.value)
        assert "eyJ" not in str(caught.value)


@pytest.mark.parametrize("name", ["token_url", "credential_source"])
def test_a_credential_that_names_an_open_address_is_not_used(name, job):
    assert main(["ci", "login"]) == 0
    value = "http://sts.example/v1/token"
    environ = {**os.environ, **credentials(job, **{name: value if name == "token_url" else {"url": value}})}
    with pytest.raises(CredentialsError.__mro__[1], match="could be read on the way"):
        Credentials(environ=environ).access_token()
    with pytest.raises(ProviderError):
        Tokens(environ)()
