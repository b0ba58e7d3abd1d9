"""Rights of the pipeline's accounts on localcloud: what a deployment needs not is refused with 403."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel_bootstrap.deploy import APIS
from bezel_components.base import granted_roles
from bezel_localcloud.core.paths import PROJECT
from localcloud_support.in_process import Project
from tests.support.bootstrap.accounts import BUCKET, Accounts, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POOLS = f"/iam/v1/projects/{PROJECT}/locations/global/workloadIdentityPools"
ACCOUNTS = f"/iam/v1/projects/{PROJECT}/serviceAccounts"
CRM = f"/crm/v1/projects/{PROJECT}"
SECRETS = f"/secretmanager/v1/projects/{PROJECT}/secrets"
STACK_SECRET = f"{SECRETS}/bezel-stack-old-collector"
OBJECTS = "/storage/v1/b/{}/o/{}"
OWN_STATE = ".pulumi%2Fstacks%2Fbezel-bootstrap%2Fbezel-local.json"
RUNTIME = f"bezel-dev@{PROJECT}.iam.gserviceaccount.com"
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
        {"policy": {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": ["allUsers"]}]}},
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
    "read the secret of another name": ("GET", f"{SECRETS}/other/versions/latest:access", None),
    "delete a secret that no stack made": ("DELETE", f"{SECRETS}/hf-token", None),
    "share another secret": ("POST", f"{SECRETS}/other:setIamPolicy", {"policy": {}}),
    "enable an API": ("POST", f"/serviceusage/v1/projects/{PROJECT}/services/pubsub.googleapis.com:enable", {}),
}
ALLOWED: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "share a named secret": ("POST", f"{SECRETS}/hf-token:setIamPolicy", {"policy": {}}),
    "make a secret": ("POST", f"{SECRETS}?secretId=bezel-stack-chat-collector", {"replication": {"automatic": {}}}),
    "write the secret of a stack": ("POST", f"{STACK_SECRET}:addVersion", {"payload": {"data": "YQ=="}}),
    "read the secret of a stack": ("GET", f"{STACK_SECRET}/versions/latest:access", None),
    "share the secret of a stack": ("POST", f"{STACK_SECRET}:setIamPolicy", {"policy": {}}),
    "list states": ("GET", f"/storage/v1/b/{BUCKET}/o", None),
    "read a stack's state": ("GET", OBJECTS.format(BUCKET, ".pulumi%2Fstacks%2Fbezel%2Fdev.json") + "?alt=media", None),
    "delete a stack's state": ("DELETE", OBJECTS.format(BUCKET, ".pulumi%2Fstacks%2Fbezel%2Fold.json"), None),
    "list models": ("GET", f"/storage/v1/b/{MODELS}/o", None),
    "read the policy of a bucket of weights": ("GET", f"/storage/v1/b/{MODELS}/iam", None),
    "change a bucket of weights": ("PATCH", f"/storage/v1/b/{MODELS}", {"labels": {"a": "b"}}),
    "list services": ("GET", f"/run/v2/projects/{PROJECT}/locations/us-east4/services", None),
    "make an account": ("POST", ACCOUNTS, {"accountId": "bezel-more"}),
    "make a job": (
        "POST",
        f"/cloudscheduler/v1/projects/{PROJECT}/locations/us-east4/jobs",
        {
            "name": f"projects/{PROJECT}/locations/us-east4/jobs/chat-scaling-0",
            "schedule": "0 8 * * 1-5",
            "timeZone": "Europe/Berlin",
            "httpTarget": {
                "uri": f"https://run.googleapis.com/v2/projects/{PROJECT}/locations/us-east4/services/chat",
                "httpMethod": "PATCH",
                "oauthToken": {"serviceAccountEmail": RUNTIME},
            },
        },
    ),
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
        (BUCKET, ".pulumi%2Fstacks%2Fbezel%2Fold.json"),
        ("others", "secret.txt"),
    ):
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        assert project.raw("POST", path, b"{}").is_success
    for secret in ("hf-token", "other", "bezel-stack-old-collector"):
        project.ok("POST", SECRETS, {"replication": {"automatic": {}}}, secretId=secret)
    project.ok("POST", f"{STACK_SECRET}:addVersion", {"payload": {"data": "YQ=="}})
    project.ok("POST", ACCOUNTS, {"accountId": "bezel-dev"})
    repository = {"format": "DOCKER"}
    project.ok("POST", REPOSITORIES, repository, repositoryId="images")
    container = {"image": "us-docker.pkg.dev/cloudrun/container/hello"}
    project.ok("POST", SERVICES, {"template": {"containers": [container]}}, serviceId="chat")
    made = Accounts(lambda verb, path, body: send(project, verb, path, body).json(), settings())
    made.make()
    yield project, {name: made.token(name) for name in ("preview", "deploy")}
    project.close()


def send(project: Project, verb: str, path: str, body: dict[str, Any] | None, token: str = "") -> Any:
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
    answer = send(project, *FORBIDDEN[step], tokens[account])
    assert answer.status_code == 403, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("step", ALLOWED)
def test_what_a_deployment_needs_is_not_refused(accounts: tuple[Project, dict[str, str]], step: str) -> None:
    project, tokens = accounts
    answer = send(project, *ALLOWED[step], tokens["deploy"])
    assert answer.is_success, answer.text


REPOSITORIES = f"/artifactregistry/v1/projects/{PROJECT}/locations/us-east4/repositories"
SERVICES = f"/run/v2/projects/{PROJECT}/locations/us-east4/services"
# Resource -> how its policy is read and written, and the roles that stacks grant on it.
PLACES: dict[str, tuple[tuple[str, str], tuple[str, str], tuple[str, ...]]] = {
    "project": (("POST", f"{CRM}:getIamPolicy"), ("POST", f"{CRM}:setIamPolicy"), granted_roles.ON_PROJECT),
    "account": (
        ("POST", f"{ACCOUNTS}/{RUNTIME}:getIamPolicy"),
        ("POST", f"{ACCOUNTS}/{RUNTIME}:setIamPolicy"),
        granted_roles.ON_ACCOUNT,
    ),
    "service": (
        ("GET", f"{SERVICES}/chat:getIamPolicy"),
        ("POST", f"{SERVICES}/chat:setIamPolicy"),
        granted_roles.ON_SERVICE_OR_REPOSITORY,
    ),
    "repository": (
        ("GET", f"{REPOSITORIES}/images:getIamPolicy"),
        ("POST", f"{REPOSITORIES}/images:setIamPolicy"),
        granted_roles.ON_SERVICE_OR_REPOSITORY,
    ),
    "bucket": (("GET", f"/storage/v1/b/{MODELS}/iam"), ("PUT", f"/storage/v1/b/{MODELS}/iam"), granted_roles.ON_BUCKET),
    "secret": (
        ("GET", f"{SECRETS}/hf-token:getIamPolicy"),
        ("POST", f"{SECRETS}/hf-token:setIamPolicy"),
        granted_roles.ON_SECRET,
    ),
}
EVERY_GRANT = {role for *_, roles in PLACES.values() for role in roles}
REFUSED = {
    "roles/owner", "roles/editor", "roles/logging.admin", "roles/iam.serviceAccountTokenCreator",
    "roles/iam.serviceAccountAdmin", "roles/iam.workloadIdentityUser", "roles/resourcemanager.projectIamAdmin",
    "roles/run.admin", "roles/storage.admin", "roles/secretmanager.admin", "roles/compute.admin",
    "roles/artifactregistry.admin", f"projects/{PROJECT}/roles/bezelDeploy",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_deployment_grants_the_roles_of_stacks_and_no_other(
    accounts: tuple[Project, dict[str, str]], place: str
) -> None:
    project, tokens = accounts
    read, write, allowed = PLACES[place]
    for role in sorted(EVERY_GRANT | REFUSED):
        if place == "bucket" and not role.startswith("roles/storage."):
            continue  # no bucket takes it from anybody
        version = {"options": {"requestedPolicyVersion": 3}} if read[0] == "POST" else None
        policy = send(project, *read, version, tokens["deploy"]).json()
        member = f"serviceAccount:{Accounts.email('preview')}"
        changed = {
            **policy,
            "version": 3,
            "bindings": [*policy.get("bindings", []), {"role": role, "members": [member]}],
        }
        body = changed if place == "bucket" else {"policy": changed}
        assert send(project, *write, body, tokens["preview"]).status_code == 403
        answer = send(project, *write, body, tokens["deploy"])
        assert (answer.status_code == 200) is (role in allowed), f"{role}: {answer.text}"
        assert answer.status_code in (200, 403), f"{role}: {answer.text}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        "share a named secret",
        "make a secret",
        "write the secret of a stack",
        "delete a stack's state",
        "change a bucket of weights",
        "make an account",
        "make a job",
    ],
)
def test_a_preview_changes_nothing(accounts: tuple[Project, dict[str, str]], step: str) -> None:
    project, tokens = accounts
    assert send(project, *ALLOWED[step], tokens["preview"]).status_code == 403


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("step", "granted"), [("list states", True), ("list another bucket", False)])
def test_the_request_log_says_who_called_and_what_was_granted_and_denied(
    accounts: tuple[Project, dict[str, str]], step: str, granted: bool
) -> None:
    project, tokens = accounts
    send(project, *(ALLOWED | FORBIDDEN)[step], tokens["deploy"])
    last = json.loads(project.cloud.layout.wire_log.read_text().splitlines()[-1])
    asked = ["storage.objects.list"]
    assert (last["caller"], last["granted"], last["denied"]) == (
        Accounts.email("deploy"),
        asked if granted else [],
        [] if granted else asked,
    )
