"""Look-ups of the `gcp` stand-in: projects, service accounts and the provider's own settings.

Supported: organizations/getProject, projects/getProject, serviceaccount/getAccount, organizations/getIAMPolicy,
organizations/getClientConfig (without its token). Any other is an error that names it.
"""

import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from bezel_pulumi_offline.google.cloud import Cloud
from bezel_pulumi_offline.google.errors import ProviderError, failing
from bezel_pulumi_offline.lifecycle.policy_document import policy_document
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT
from bezel_pulumi_offline.lifecycle.values import Properties

_TIMEOUT = 60.0


def invoke(cloud: Cloud, token: str, arguments: Mapping[str, Any]) -> Properties:
    """Return the result of a look-up.

    Raises:
        ProviderError: It is unknown, or Google refuses it.
    """
    look_up = _INVOKES.get(token)
    if look_up is None:
        tokens = ", ".join(sorted(_INVOKES))
        raise ProviderError(
            f"The stand-in provider has no look-up {token}, so this program cannot run on localcloud. It has: "
            f"{tokens}. Use one of these, or run with PROVIDER=real."
        )
    return look_up(cloud, arguments)


def _project(cloud: Cloud, arguments: Mapping[str, Any]) -> Properties:
    name = str(arguments.get("projectId") or cloud.project or "")
    if not name:
        raise ProviderError("projectId is not set, and there is no default project. Set gcp:project or GOOGLE_PROJECT.")
    response = _get(cloud, "RESOURCE_MANAGER", f"projects/{name}", GO_CLIENT)
    parent = response.get("parent") or {}
    labels = dict(response.get("labels") or {})
    return {
        "id": f"projects/{name}",
        "projectId": str(response.get("projectId", name)),
        "number": str(response.get("projectNumber", "")),
        "name": str(response.get("name", "")),
        "orgId": str(parent.get("id", "")) if parent.get("type") == "organization" else "",
        "folderId": str(parent.get("id", "")) if parent.get("type") == "folder" else "",
        "billingAccount": "",
        "autoCreateNetwork": False,
        "deletionPolicy": "PREVENT",
        "labels": labels,
        "effectiveLabels": labels,
        "pulumiLabels": labels,
        "tags": {},
    }


def _projects(cloud: Cloud, arguments: Mapping[str, Any]) -> Properties:
    query = str(arguments.get("filter", ""))
    response = _get(cloud, "RESOURCE_MANAGER", "projects", {**GO_CLIENT, "filter": query})
    projects = [
        {
            "projectId": str(item.get("projectId", "")),
            "number": str(item.get("projectNumber", "")),
            "name": str(item.get("name", "")),
            "createTime": str(item.get("createTime", "")),
            "lifecycleState": str(item.get("lifecycleState", "")),
            "labels": dict(item.get("labels") or {}),
            "parent": {key: str(value) for key, value in (item.get("parent") or {}).items()},
        }
        for item in response.get("projects", [])
    ]
    return {"id": query, "filter": query, "projects": projects}


def _account(cloud: Cloud, arguments: Mapping[str, Any]) -> Properties:
    name, project = str(arguments.get("accountId", "")), str(arguments.get("project") or cloud.project)
    email = name.rsplit("/", 1)[-1]
    if "@" not in email:
        email = f"{email}@{project}.iam.gserviceaccount.com"
    path = f"projects/{project}/serviceAccounts/{email}"
    response = _get(cloud, "IAM", path, GO_CLIENT)
    return {
        "id": path,
        "accountId": name,
        "project": project,
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": str(response.get("name", path)),
        "uniqueId": str(response.get("uniqueId", "")),
        "displayName": str(response.get("displayName", "")),
        "disabled": bool(response.get("disabled")),
    }


def _client_config(cloud: Cloud, arguments: Mapping[str, Any]) -> Properties:
    del arguments
    where = {"project": cloud.project or "", "region": cloud.region or "", "zone": cloud.zone or ""}
    return {"id": "/".join(where.values()), **where, "accessToken": "", "defaultLabels": cloud.default_labels}


def _policy(cloud: Cloud, arguments: Mapping[str, Any]) -> Properties:
    del cloud
    document = policy_document(arguments.get("bindings") or [], arguments.get("auditConfigs") or [])
    return {**arguments, "id": str(zlib.crc32(document.encode())), "policyData": document}


def _get(cloud: Cloud, api: str, path: str, query: Mapping[str, str]) -> Properties:
    with failing(f"Error reading {path}"):
        answer = cloud.call("GET", api, path, query, until=time.monotonic() + _TIMEOUT)
    return dict(answer or {})


_INVOKES: dict[str, Callable[[Cloud, Mapping[str, Any]], Properties]] = {
    "gcp:organizations/getProject:getProject": _project,
    "gcp:projects/getProject:getProject": _projects,
    "gcp:serviceaccount/getAccount:getAccount": _account,
    "gcp:organizations/getClientConfig:getClientConfig": _client_config,
    "gcp:organizations/getIAMPolicy:getIAMPolicy": _policy,
}
