"""Resource Manager v1: the project and its IAM policy."""

from bezel.localcloud.access.permissions import PROJECT_NAME
from bezel.localcloud.core.errors import unserved
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel.localcloud.routing.iam_policies import serve_policy
from bezel.localcloud.routing.router import Api, Call

api = Api("cloudresourcemanager.googleapis.com", "Cloud Resource Manager API")
_PROJECT = "/crm/v1/projects/{project:id}"
_LISTED = "filter pageSize pageToken"


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


@api.route("GET", "/crm/v1/projects", needs="resourcemanager.projects.get", on=f"projects/{PROJECT}", query=_LISTED)
def list_projects(call: Call) -> Json:
    """The one project, without a filter or with one that names it by `id:`, `projectId:` or `name:`."""
    field, _, value = call.query("filter").partition(":")
    if field not in {"", "id", "projectId", "name"}:
        raise unserved(f"the filter {call.query('filter')!r}", "use id:, projectId: or name:")
    found = [(PROJECT, get_project(call))] if not field or value.strip('"') in {PROJECT, "*"} else []
    return call.page(found, "projects")


serve_policy(api, _PROJECT, PROJECT_NAME, "resourcemanager.projects", lambda _: PROJECT_NAME, read="POST", query="")
