"""Resources of Cloud Run's API: look-ups, etags, refusals and results, the same for services, jobs and executions."""

import uuid

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, PROJECT
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.cloud_run.containers.checks import Violation
from bezel_localcloud.services.cloud_run.status import short

LOCATION = "/run/v2/projects/{project:id}/locations/{location:id}"
PARENT = "projects/{project}/locations/{location}"


def location_name(call: Call) -> str:
    """Return the name of the path's location.

    Raises:
        ApiError: INVALID_ARGUMENT for "-", which means every location in other APIs.
    """
    if call.param("location") == "-":
        raise invalid("Location must be a region, and cannot be the '-' wildcard.", ("parent", "is not a region"))
    return call.name(PARENT)


def row_of(call: Call, kind: str, template: str) -> Json:
    """Return the row of the path's resource.

    Raises:
        ApiError: NOT_FOUND.
    """
    name = call.name(template)
    text = f"Resource '{short(name)}' of kind '{kind.upper()}' in region '{call.param('location')}' in project "
    return call.row_of(kind, name, f"{text}'{PROJECT}' does not exist.")


def check_absent(call: Call, kind: str, name: str) -> None:
    """Check that a name is free.

    Raises:
        ApiError: ALREADY_EXISTS.
    """
    call.check_absent(kind, name, f"Resource '{short(name)}' already exists.")


def check_etag(row: Json, etag: str) -> None:
    """Compare a given etag with the current one.

    Raises:
        ApiError: ABORTED.
    """
    if etag not in {"", row["etag"]}:
        text = f"Conflict for resource '{short(row['name'])}': the etag given is not the current one."
        raise ApiError("ABORTED", text)


def check_violations(request: str, violations: list[Violation]) -> None:
    """Refuse a request that has violations.

    Raises:
        ApiError: INVALID_ARGUMENT with every violation.
    """
    if violations:
        raise invalid("\n".join(f"Violation in {request}.{field}: {text}" for field, text in violations), *violations)


def check_account(call: Call, template: Json) -> None:
    """Check that the caller may act as the service account of a template.

    Raises:
        ApiError: PERMISSION_DENIED.
    """
    call.act_as(template.get("serviceAccount") or DEFAULT_COMPUTE_ACCOUNT, "iam.serviceaccounts.actAs")


def settable(body: Json, message: str) -> Json:
    """The fields of a message that a caller may set, without nulls and empty lists."""
    fields = settable_fields(message)
    return {key: value for key, value in body.items() if key in fields and value not in (None, [])}


def validation_response(call: Call, metadata: Json, response: Json) -> Json:
    """Response to validateOnly: the result of the call, without storing it or its operation."""
    name = f"{call.name(PARENT)}/operations/{uuid.uuid4()}"
    return {"name": name, "done": True, "response": response, "metadata": metadata}
