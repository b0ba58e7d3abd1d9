"""Resource Manager v1: the project and its IAM policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.localcloud.api import Api
from bezel.localcloud.layout import PROJECT, PROJECT_NUMBER
from bezel.localcloud.policies import read_policy, write_policy

if TYPE_CHECKING:
    from bezel.localcloud.api import Call
    from bezel.localcloud.shapes import Json

api = Api("cloudresourcemanager.googleapis.com", "Cloud Resource Manager API")
_PROJECT = "/crm/v1/projects/{project:id}"
_NAME = "projects/{project}"


@api.route("GET", _PROJECT, needs="resourcemanager.projects.get")
def get_project(call: Call) -> Json:
    """The one project."""
    return {
        "projectNumber": PROJECT_NUMBER,
        "projectId": PROJECT,
        "lifecycleState": "ACTIVE",
        "name": PROJECT,
        "createTime": call.cloud.store.setting("created"),
    }


@api.route("POST", _PROJECT + ":getIamPolicy", needs="resourcemanager.projects.getIamPolicy")
def get_policy(call: Call) -> Json:
    """Policy of the project."""
    return read_policy(call.cloud.store, call.name(_NAME))


@api.route("POST", _PROJECT + ":setIamPolicy", needs="resourcemanager.projects.setIamPolicy")
async def set_policy(call: Call) -> Json:
    """Replace the policy of the project."""
    return write_policy(
        call.cloud.store, call.name(_NAME), (await call.message("crm.SetIamPolicyRequest")).get("policy")
    )


@api.route("POST", _PROJECT + ":testIamPermissions")
async def test_permissions(call: Call) -> Json:
    """Those of the given permissions that the caller has."""
    asked = (await call.json()).get("permissions") or []
    held = [p for p in asked if call.cloud.access.allows(call.caller, p, call.name(_NAME))]
    return {"permissions": held} if held else {}
