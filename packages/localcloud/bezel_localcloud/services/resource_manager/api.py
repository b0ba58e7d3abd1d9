"""Resource Manager v1 and v3: the project and its IAM policy."""

from bezel_localcloud.access.permissions import PROJECT_NAME
from bezel_localcloud.core.errors import unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.routing.iam_policies import serve_policy
from bezel_localcloud.routing.router import Api, Call

api = Api("cloudresourcemanager.googleapis.com", "Cloud Resource Manager API")
_PROJECT = "/crm/v1/projects/{project:id}"
_PROJECT_3 = "/crm/v3/projects/{project:id}"
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
    projects = [(PROJECT, get_project(call))] if _matches(call.query("filter")) else []
    return call.page(projects, "projects")


@api.route("GET", _PROJECT_3, needs="resourcemanager.projects.get")
def get_project_3(call: Call) -> Json:
    """The one project, in the shape of v3."""
    created = call.cloud.store.setting("created")
    return {
        "name": f"projects/{PROJECT_NUMBER}",
        "projectId": PROJECT,
        "displayName": PROJECT,
        "state": "ACTIVE",
        "createTime": created,
        "updateTime": created,
        "etag": 'W/"1"',
    }


@api.route(
    "GET",
    "/crm/v3/projects:search",
    needs="resourcemanager.projects.get",
    on=f"projects/{PROJECT}",
    query="query pageSize pageToken",
)
def search_projects(call: Call) -> Json:
    """As `list_projects`, in the shape of v3."""
    projects = [(PROJECT, get_project_3(call))] if _matches(call.query("query")) else []
    return call.page(projects, "projects")


def _matches(query: str) -> bool:
    """Whether a filter is empty or names the project.

    Raises:
        NotServedError: For a filter of something else.
    """
    field, _, value = query.partition(":")
    if field not in {"", "id", "projectId", "name", "displayName"}:
        raise unserved_error(f"the filter {query!r}", "use id:, projectId: or name:")
    return not field or value.strip('"') in {PROJECT, "*"}


for _path in (_PROJECT, _PROJECT_3):
    serve_policy(api, _path, PROJECT_NAME, "resourcemanager.projects", lambda _: PROJECT_NAME, read="POST", query="")
