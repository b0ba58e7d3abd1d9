"""Rights of the pipeline's accounts on localcloud: what a deployment needs not is refused with 403."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel.localcloud.core.paths import PROJECT
from bootstrap.deploy import APIS
from tests.support.bootstrap.accounts import BUCKET, Accounts, settings
from tests.support.localcloud.in_process import Project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POOLS = f"/iam/v1/projects/{PROJECT}/locations/global/workloadIdentityPools"
ACCOUNTS = f"/iam/v1/projects/{PROJECT}/serviceAccounts"
CRM = f"/crm/v1/projects/{PROJECT}"
SECRETS = f"/secretmanager/v1/projects/{PROJECT}/secrets"
OBJECTS = "/storage/v1/b/{}/o/{}"
OWN_STATE = ".pulumi%2Fstacks%2Fbezel-bootstrap%2Fbezel-local.json"
MODELS = f"{PROJECT}-models"
FORBIDDEN: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "act as itself": (
        "POST",
        f"/iamcredentials/v1/projects/-/serviceAccounts/{Accounts.email('deploy')}:generateAccessToken",
        {"scope": ["https://www.googleapis.com/auth/cloud-platform"]},
    ),
    "change who may act as an account": (
        "POST",
        f"{ACCOUNTS}/{Accounts.email('deploy')}:setIamPolicy",
        {"policy": {}},
    ),
    "change the project's policy": ("POST", f"{CRM}:setIamPolicy", {"policy": {}}),
    "make a role": (
        "POST",
        f"/iam/v1/projects/{PROJECT}/roles",
        {"roleId": "more", "role": {"title": "More", "includedPermissions": ["storage.objects.get"]}},
    ),
    "widen its role": (
        "PATCH",
        f"/iam/v1/projects/{PROJECT}/roles/bezelDeploy",
        {"includedPermissions": ["resourcemanager.projects.setIamPolicy"]},
    ),
    "make a pool": ("POST", f"{POOLS}?workloadIdentityPoolId=other", {}),
    "change the pool": ("PATCH", f"{POOLS}/bezel?updateMask=description", {"description": "x"}),
    "let in another repository": (
        "PATCH",
        f"{POOLS}/bezel/providers/github?updateMask=attributeCondition",
        {"attributeCondition": "true"},
    ),
    "delete the state bucket": ("DELETE", f"/storage/v1/b/{BUCKET}", None),
    "open the state bucket": ("PUT", f"/storage/v1/b/{BUCKET}/iam", {"bindings": []}),
    "change the state bucket": ("PATCH", f"/storage/v1/b/{BUCKET}", {"versioning": {"enabled": False}}),
    "read another bucket": ("GET", OBJECTS.format("others", "secret.txt") + "?alt=media", None),
    "list another bucket": ("GET", "/storage/v1/b/others/o", None),
    "delete another bucket": ("DELETE", "/storage/v1/b/others", None),
    "delete the foundation's state": ("DELETE", OBJECTS.format(BUCKET, OWN_STATE), None),
    "read a secret": ("GET", f"{SECRETS}/hf-token/versions/latest:access", None),
    "share another secret": ("POST", f"{SECRETS}/other:setIamPolicy", {"policy": {}}),
    "enable an API": ("POST", f"/serviceusage/v1/projects/{PROJECT}/services/pubsub.googleapis.com:enable", {}),
}
ALLOWED: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "share a named secret": ("POST", f"{SECRETS}/hf-token:setIamPolicy", {"policy": {}}),
    "list states": ("GET", f"/storage/v1/b/{BUCKET}/o", None),
    "read a stack's state": ("GET", OBJECTS.format(BUCKET, ".pulumi%2Fstacks%2Fbezel%2Fdev.json") + "?alt=media", None),
    "delete a stack's state": ("DELETE", OBJECTS.format(BUCKET, ".pulumi%2Fstacks%2Fbezel%2Fdev.json"), None),
    "list models": ("GET", f"/storage/v1/b/{MODELS}/o", None),
    "share a bucket of weights": ("PUT", f"/storage/v1/b/{MODELS}/iam", {"bindings": []}),
    "list services": ("GET", f"/run/v2/projects/{PROJECT}/locations/us-east4/services", None),
    "make an account": ("POST", ACCOUNTS, {"accountId": "bezel-dev"}),
}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, dict[str, str]]]:
    """A project with buckets, secrets, the pool and both accounts; and the tokens of these."""
    folder: Path = tmp_path_factory.mktemp("rights")
    project = Project(folder / "cloud")
    for api in APIS:
        project.cloud.store.put("api", api, {"state": "ENABLED"})
    for bucket in (BUCKET, MODELS, "others"):
        body = {"name": bucket, "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}}
        project.ok("POST", "/storage/v1/b", body, project=PROJECT)
    for bucket, name in (
        (BUCKET, OWN_STATE),
        (BUCKET, ".pulumi%2Fstacks%2Fbezel%2Fdev.json"),
        ("others", "secret.txt"),
    ):
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        assert project.raw("POST", path, b"{}").is_success
    for secret in ("hf-token", "other"):
        project.ok("POST", SECRETS, {"replication": {"automatic": {}}}, secretId=secret)
    made = Accounts(lambda verb, path, body: sent(project, verb, path, body).json(), settings())
    made.make()
    yield project, {name: made.token(name) for name in ("preview", "deploy")}
    project.close()


def sent(project: Project, verb: str, path: str, body: dict[str, Any] | None, token: str = "") -> Any:
    """The answer to a request with a query in its path."""
    path, _, query = path.partition("?")
    pairs = dict(pair.split("=", 1) for pair in query.split("&") if pair)
    owner, project.token = project.token, token or project.token
    try:
        return project.call(verb, path, body, **pairs)
    finally:
        project.token = owner


@pytest.mark.slow
@pytest.mark.parametrize("step", FORBIDDEN)
@pytest.mark.parametrize("account", ["deploy", "preview"])
def test_what_a_pipeline_needs_not_is_refused(
    accounts: tuple[Project, dict[str, str]], account: str, step: str
) -> None:
    project, tokens = accounts
    answer = sent(project, *FORBIDDEN[step], tokens[account])
    assert answer.status_code == 403, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("step", ALLOWED)
def test_what_a_deployment_needs_is_not_refused(accounts: tuple[Project, dict[str, str]], step: str) -> None:
    project, tokens = accounts
    answer = sent(project, *ALLOWED[step], tokens["deploy"])
    assert answer.is_success, answer.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "status"),
    [
        ("roles/logging.logWriter", 200),
        ("roles/logging.admin", 403),
        ("roles/owner", 403),
        (f"projects/{PROJECT}/roles/bezelDeploy", 403),
    ],
)
def test_a_deployment_grants_the_role_for_writing_logs_and_no_other(
    accounts: tuple[Project, dict[str, str]], role: str, status: int
) -> None:
    project, tokens = accounts
    version = {"options": {"requestedPolicyVersion": 3}}
    policy = sent(project, "POST", f"{CRM}:getIamPolicy", version, tokens["deploy"]).json()
    binding = {"role": role, "members": [f"serviceAccount:{Accounts.email('preview')}"]}
    changed = {"policy": {**policy, "version": 3, "bindings": [*policy["bindings"], binding]}}
    assert sent(project, "POST", f"{CRM}:setIamPolicy", changed, tokens["preview"]).status_code == 403
    assert sent(project, "POST", f"{CRM}:setIamPolicy", changed, tokens["deploy"]).status_code == status


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", ["share a named secret", "delete a stack's state", "share a bucket of weights", "make an account"]
)
def test_a_preview_changes_nothing(accounts: tuple[Project, dict[str, str]], step: str) -> None:
    project, tokens = accounts
    assert sent(project, *ALLOWED[step], tokens["preview"]).status_code == 403


def test_a_preview_may_add_a_plan_and_replace_none(accounts: tuple[Project, dict[str, str]]) -> None:
    project, tokens = accounts

    def put(name: str) -> int:
        owner, project.token = project.token, tokens["preview"]
        try:
            path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}"
            return int(project.raw("POST", path, b"{}").status_code)
        finally:
            project.token = owner

    assert put("plans%2Ftree%2Fdev.json") == 200
    assert put("plans%2Ftree%2Fdev.json") == 403
    assert put("locks%2Fdev.json") == 403
    assert put(".pulumi%2Fstacks%2Fbezel%2Fnew.json") == 403


@pytest.mark.parametrize(("step", "granted"), [("list states", True), ("list another bucket", False)])
def test_the_request_log_says_who_called_and_what_was_granted_and_denied(
    accounts: tuple[Project, dict[str, str]], step: str, granted: bool
) -> None:
    project, tokens = accounts
    sent(project, *(ALLOWED | FORBIDDEN)[step], tokens["deploy"])
    last = json.loads(project.cloud.layout.wire_log.read_text().splitlines()[-1])
    asked = ["storage.objects.list"]
    assert (last["caller"], last["granted"], last["denied"]) == (
        Accounts.email("deploy"),
        asked if granted else [],
        [] if granted else asked,
    )
