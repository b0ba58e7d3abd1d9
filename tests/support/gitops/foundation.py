"""The foundation of a team's project on a localcloud: the accounts, roles and federation that `bezel init` makes.

Made over REST from the declarations of `bootstrap`, in a moment. Leaves out the state bucket, which `pipeline` has, and
running `bezel init` itself.
"""

from typing import Any

from bezel.foundation.settings import checked_settings
from bezel_bootstrap import access
from bezel_bootstrap.deploy import APIS
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from localcloud_support.client import PARENT
from tests.support.bootstrap.accounts import Accounts
from tests.support.bootstrap.project import SETTINGS
from tests.support.gitops.pipeline import STATES, Pipeline

PROVIDER = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/bezel/providers/gitea"
_POOLS = f"/iam/v1/{PARENT}/locations/global/workloadIdentityPools"


def lay(pipeline: Pipeline, issuer: str, repository: str, repository_id: str) -> dict[str, str]:
    """Let the jobs of a repository act as the two accounts; return the repository's variables for that.

    Args:
        pipeline: The cloud.
        issuer: Address of the issuer of the jobs' identity tokens.
        repository: Owner and name.
        repository_id: Its number at the forge.
    """
    cloud = pipeline.cloud
    named = {"repository": repository, "repository_id": repository_id, "state_bucket": STATES}
    chosen = checked_settings({**SETTINGS, **named, "forge": "gitea", "issuer": issuer}, PROJECT)
    cloud.enable(*(name.removesuffix(".googleapis.com") for name in APIS))

    def ask(method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        answer = cloud.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        content: dict[str, Any] = answer.json()
        return content

    accounts = Accounts(ask, chosen)
    accounts.make()
    cloud.finish("iam/v1", cloud.post(_POOLS, {}, workloadIdentityPoolId="bezel"))
    provider = {
        "attributeMapping": access.attribute_mapping(chosen),
        "attributeCondition": access.attribute_condition(chosen),
        "oidc": {"issuerUri": issuer},
    }
    cloud.finish(
        "iam/v1", cloud.post(f"{_POOLS}/bezel/providers", provider, workloadIdentityPoolProviderId=chosen.forge)
    )
    for name in (access.PREVIEW, access.DEPLOY):
        member = access.principals(PROVIDER.partition("/providers/")[0], name)
        policy = {"bindings": [{"role": "roles/iam.workloadIdentityUser", "members": [member]}]}
        ask("POST", f"/iam/v1/{PARENT}/serviceAccounts/{accounts.email(name)}:setIamPolicy", {"policy": policy})
    return {
        "BEZEL_IDENTITY_PROVIDER": PROVIDER,
        "BEZEL_PREVIEW_ACCOUNT": accounts.email(access.PREVIEW),
        "BEZEL_DEPLOY_ACCOUNT": accounts.email(access.DEPLOY),
    }
