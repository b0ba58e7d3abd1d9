"""Resource Manager v1: the project and its IAM policy."""

from bezel.localcloud.core.errors import ApiError
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel.localcloud.routing.iam_policies import held_permissions, read_policy, write_policy
from bezel.localcloud.routing.router import Api, Call

api = Api("cloudresourcemanager.googleapis.com", "Cloud Resource Manager API")
_PROJECT = "/crm/v1/projects/{project:id}"
_NAME = "projects/{project}"
_LISTED = "filter pageSize pageToken"


@api.route("GET", _PROJECT, needs="resourcemanager.projects.get")
def get_project(call: Call) -> Json:
    """The one project."""
    return _project(call)


@api.route("GET", "/crm/v1/projects", needs="resourcemanager.projects.get", on=f"projects/{PROJECT}", query=_LISTED)
def list_projects(call: Call) -> Json:
    """The one project, without a filter or with one that names it by `id:`, `projectId:` or `name:`."""
    field, _, value = call.query("filter").partition(":")
    if field not in {"", "id", "projectId", "name"}:
        text = f"localcloud does not serve the filter {call.query('filter')!r}: use id:, projectId: or name:."
        raise ApiError("UNIMPLEMENTED", text)
    found = [(PROJECT, _project(call))] if not field or value.strip('"') in {PROJECT, "*"} else []
    return call.page(found, "projects")


def _project(call: Call) -> Json:
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
    version = (call.body.get("options") or {}).get("requestedPolicyVersion", "")
    return read_policy(call.cloud.store, call.name(_NAME), str(version))


@api.route("POST", _PROJECT + ":setIamPolicy", needs="resourcemanager.projects.setIamPolicy")
def set_policy(call: Call) -> Json:
    """Replace the policy of the project."""
    return write_policy(call.cloud.store, call.name(_NAME), call.body)


@api.route("POST", _PROJECT + ":testIamPermissions")
def test_permissions(call: Call) -> Json:
    """The requested permissions that the caller has on the project."""
    return held_permissions(call, call.name(_NAME), call.body.get("permissions") or [])
