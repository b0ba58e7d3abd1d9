"""Compute v1 and beta: the project, which the storage provider asks for; machines are not served here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.localcloud.api import Api
from bezel.localcloud.layout import PROJECT, PROJECT_NUMBER

if TYPE_CHECKING:
    from bezel.localcloud.api import Call
    from bezel.localcloud.shapes import Json

api = Api("compute.googleapis.com", "Compute Engine API")


@api.route("GET", "/compute/v1/projects/{project:id}", needs="compute.projects.get")
@api.route("GET", "/compute/beta/projects/{project:id}", needs="compute.projects.get")
def get_project(call: Call) -> Json:
    """The project by id or number."""
    link = f"{call.cloud.base}/compute/v1/projects/{PROJECT}"
    return {"kind": "compute#project", "id": PROJECT_NUMBER, "name": PROJECT, "selfLink": link}
