"""A project with a federation pool that trusts an issuer of the tests' own, and an account behind it."""

from urllib.parse import urlencode

from bezel_localcloud.core.paths import PROJECT_NUMBER
from localcloud_support.in_process import PARENT, Project
from localcloud_support.issuer import Issuer

POOLS = f"/iam/v1/{PARENT}/locations/global/workloadIdentityPools"
POOL = f"{POOLS}/pipeline"
PROVIDER = f"{POOL}/providers/forge"
NAME = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/pipeline"
AUDIENCE = f"//iam.googleapis.com/{NAME}/providers/forge"
ACCOUNT = "pipeline@bezel-local.iam.gserviceaccount.com"
ACCOUNT_PATH = f"/iam/v1/{PARENT}/serviceAccounts/{ACCOUNT}"
MAPPING = {
    "google.subject": "assertion.sub",
    "attribute.repository": "assertion.repository",
    "attribute.ref": "assertion.ref",
}
CONDITION = "assertion.repository_id == '12'"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def enable(project: Project) -> None:
    for name in ("iam", "iamcredentials", "sts"):
        project.cloud.store.put("api", f"{name}.googleapis.com", {"state": "ENABLED"})


def finish(project: Project, operation: dict) -> dict:
    """An operation's result, when the platform's time for it has passed."""
    project.clock.time += 3
    ended = project.ok("GET", f"/iam/v1/{operation['name']}")
    assert ended["done"], ended
    return ended.get("response", ended.get("error"))


def provider(issuer: str, **changed: object) -> dict:
    body = {"attributeMapping": MAPPING, "attributeCondition": CONDITION, "oidc": {"issuerUri": issuer}}
    return body | changed


def prepare(project: Project, issuer: Issuer, **changed: object) -> None:
    """Make the pool, its provider and the account."""
    enable(project)
    finish(project, project.ok("POST", POOLS, {"displayName": "CI"}, workloadIdentityPoolId="pipeline"))
    body = provider(issuer.url, **changed)
    finish(project, project.ok("POST", f"{POOL}/providers", body, workloadIdentityPoolProviderId="forge"))
    project.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "pipeline", "serviceAccount": {}})


def form(subject: str, **changed: str) -> dict[str, str]:
    """The fields of an exchange, as google-auth sends them."""
    return {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "audience": AUDIENCE,
        "scope": SCOPE,
        "subject_token": subject,
    } | changed


def exchange(project: Project, subject: str, **changed: str) -> dict:
    """The answer to an exchange: a token, or an error in OAuth's form."""
    content = urlencode(form(subject, **changed)).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return project.raw("POST", "/sts/v1/token", content, headers, token=False).json()


def let_in(project: Project, member: str, role: str = "roles/iam.workloadIdentityUser") -> None:
    """Grant a member a role on the account."""
    policy = {"bindings": [{"role": role, "members": [member]}]}
    project.ok("POST", f"{ACCOUNT_PATH}:setIamPolicy", {"policy": policy})


def impersonate(project: Project, token: str):
    """The answer to a request for the account's token by the holder of another one."""
    owner_token, project.token = project.token, token
    try:
        path = f"/iamcredentials/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"
        return project.call("POST", path, {"scope": [SCOPE]})
    finally:
        project.token = owner_token
