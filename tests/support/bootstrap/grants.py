"""Grants of the pipeline's accounts in a cloud: which there are, and one taken away while a step runs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_localcloud.core.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

ACCOUNTS = ("preview", "deploy")


@dataclass(frozen=True)
class Grant:
    """A role of an account on something.

    Attributes:
        account: `preview` or `deploy`.
        place: `project`, `bucket`, `key`, or `account`, where the job's identity has the role on the account.
        role: The last part of the role's name.
    """

    account: str
    place: str
    role: str


@dataclass(frozen=True)
class Policies:
    """The policies that hold the grants.

    Attributes:
        http: Sends requests as the owner.
        bucket: Name of the bucket of states.
        key: Name of the key.
    """

    http: httpx.Client
    bucket: str
    key: str

    def grants(self) -> set[Grant]:
        """Every grant."""
        return {
            Grant(account, place, role_of(binding))
            for account in ACCOUNTS
            for place in ("project", "bucket", "key", "account")
            for binding in self._read(place, account).get("bindings", [])
            if place == "account" or member_of(account) in binding["members"]
        }

    @contextmanager
    def without(self, grant: Grant) -> Iterator[None]:
        """Take one grant away while the block runs."""
        before = self._read(grant.place, grant.account)
        # On an account itself, the members are the jobs' identities.
        lost = None if grant.place == "account" else member_of(grant.account)
        bindings = []
        for binding in before["bindings"]:
            members = binding["members"]
            if role_of(binding) == grant.role:
                members = [name for name in members if lost is not None and name != lost]
            bindings += [{**binding, "members": members}] if members else []
        self._write(grant, {**before, "bindings": bindings})
        try:
            yield
        finally:
            after = self._read(grant.place, grant.account)
            self._write(grant, {**before, "etag": after.get("etag", "")})

    def _read(self, place: str, account: str) -> dict[str, Any]:
        path, method = self._path(place, account)
        version = {"options": {"requestedPolicyVersion": 3}}
        if method == "PUT":
            answer = self.http.get(path, params={"optionsRequestedPolicyVersion": 3})
        elif place == "key":
            answer = self.http.get(f"{path}:getIamPolicy", params={"options.requestedPolicyVersion": 3})
        else:
            answer = self.http.post(f"{path}:getIamPolicy", json=version if place == "project" else None)
        assert answer.is_success, answer.text
        policy: dict[str, Any] = answer.json()
        return policy

    def _write(self, grant: Grant, policy: dict[str, Any]) -> None:
        path, method = self._path(grant.place, grant.account)
        policy = {**policy, "version": 3}
        if method == "PUT":
            answer = self.http.put(path, json=policy)
        else:
            answer = self.http.post(f"{path}:setIamPolicy", json={"policy": policy})
        assert answer.is_success, answer.text

    def _path(self, place: str, account: str) -> tuple[str, str]:
        return {
            "project": (f"/crm/v1/projects/{PROJECT}", "POST"),
            "bucket": (f"/storage/v1/b/{self.bucket}/iam", "PUT"),
            "key": (f"/cloudkms/v1/{self.key}", "POST"),
            "account": (f"/iam/v1/projects/{PROJECT}/serviceAccounts/{email_of(account)}", "POST"),
        }[place]


def email_of(account: str) -> str:
    """E-mail address of an account."""
    return f"pipeline-{account}@{PROJECT}.iam.gserviceaccount.com"


def member_of(account: str) -> str:
    """An account as a member of a binding."""
    return f"serviceAccount:{email_of(account)}"


def role_of(binding: dict[str, Any]) -> str:
    """The last part of a binding's role."""
    return str(binding["role"]).rpartition("/")[2]
