"""The pipeline's accounts on a localcloud, with the roles that the foundation declares; made over REST, in a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.foundation.permissions import ROLES
from bezel.foundation.settings import Settings, checked_settings
from bezel_bootstrap import deploy as wiring
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from tests.support.bootstrap.project import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel_bootstrap.pipeline_account import PipelineAccountArgs

BUCKET = f"{PROJECT}-pulumi-state"
KEY = f"projects/{PROJECT}/locations/us-east4/keyRings/pulumi/cryptoKeys/states"
POOL = f"projects/{PROJECT_NUMBER}/locations/global/workloadIdentityPools/bezel"
Ask = "Callable[[str, str, dict[str, Any] | None], dict[str, Any]]"


def settings(**changes: Any) -> Settings:
    """Settings of a foundation on localcloud."""
    return checked_settings(SETTINGS | {"secrets": ("hf-token",)} | changes, PROJECT)


def account_args(name: str, chosen: Settings) -> PipelineAccountArgs:
    """The arguments of the account `preview` or `deploy`."""
    bucket = chosen.bucket_of(PROJECT)
    if name == "preview":
        return wiring._preview(chosen, PROJECT, PROJECT_NUMBER, bucket, KEY, POOL)
    return wiring._deploy(chosen, PROJECT, PROJECT_NUMBER, bucket, KEY, POOL)


@dataclass
class Accounts:
    """Both accounts in a cloud.

    Attributes:
        ask: Sends a request (method, path, body) as the owner; returns the JSON of its answer.
        chosen: The settings.
    """

    ask: Callable[[str, str, dict[str, Any] | None], dict[str, Any]]
    chosen: Settings

    def make(self) -> None:
        """Make the custom roles and the accounts, and grant the roles."""
        for role in ROLES:
            body = {"roleId": role.id, "role": {"title": role.title, "includedPermissions": list(role.permissions)}}
            self.ask("POST", f"/iam/v1/projects/{PROJECT}/roles", body)
        for name in ("preview", "deploy"):
            self.ask("POST", f"/iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": f"pipeline-{name}"})
            self.grant(name)

    def grant(self, name: str) -> None:
        """Grant an account its roles on the project and on the bucket."""
        args = account_args(name, self.chosen)
        path = f"/crm/v1/projects/{PROJECT}"
        policy = self.ask("POST", f"{path}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}})
        policy = _change(policy, self.email(name), args.project_roles)
        self.ask("POST", f"{path}:setIamPolicy", {"policy": policy})
        path = f"/storage/v1/b/{args.bucket}/iam"
        policy = self.ask("GET", f"{path}?optionsRequestedPolicyVersion=3", None)
        self.ask("PUT", path, _change(policy, self.email(name), args.bucket_roles))

    def token(self, name: str) -> str:
        """An access token of an account."""
        path = f"/iamcredentials/v1/projects/-/serviceAccounts/{self.email(name)}:generateAccessToken"
        answer = self.ask("POST", path, {"scope": ["https://www.googleapis.com/auth/cloud-platform"]})
        return str(answer["accessToken"])

    @staticmethod
    def email(name: str) -> str:
        """E-mail address of an account."""
        return f"pipeline-{name}@{PROJECT}.iam.gserviceaccount.com"


def _change(policy: dict[str, Any], email: str, grants: Any) -> dict[str, Any]:
    """A policy with exactly these grants of an account."""
    member = f"serviceAccount:{email}"
    bindings = [
        {**one, "members": [name for name in one["members"] if name != member]} for one in policy.get("bindings", [])
    ]
    for grant in grants:
        binding: dict[str, Any] = {"role": grant.role, "members": [member]}
        if grant.title:
            binding["condition"] = {"title": grant.title, "expression": grant.condition}
        bindings.append(binding)
    return {**policy, "version": 3, "bindings": [one for one in bindings if one["members"]]}
