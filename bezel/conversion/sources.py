"""Source of a conversion: a file, or a live service of Cloud Run, read at the edge.

A command that converts calls `convert_source`, one that adopts `read_live_service`. Leaves what is read to `readers`
and `cloud_run_service`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.conversion.conversion import Conversion, convert_server
from bezel.conversion.inputs.cloud_run_service import NAME, read_service
from bezel.conversion.inputs.readers import MOST_BYTES, read_text
from bezel.rest import ApiError
from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from pathlib import Path

    from bezel.conversion.converted import Wishes
    from bezel.conversion.inputs.found_server import FoundServer
    from bezel.rest import GoogleClient

_NOT_FOUND, _DENIED = 404, 403


def convert_source(
    source: str,
    *,
    folder: Path,
    wishes: Wishes,
    google: Callable[[], GoogleClient],
    endpoint: str,
    today: date | None = None,
) -> Conversion:
    """The stack that serves what a source describes.

    Args:
        source: Path of a file; else a service: its name, in the project and the region of `wishes`, or its whole name.
        folder: What a relative path begins at.
        wishes: What the caller decides.
        google: Makes the client that reads a service; not called for a file.
        endpoint: Address of run v2, with a slash at its end.
        today: Latest possible date of price rows.

    Raises:
        UserError: There is no such file or service, or it does not run vLLM's server.
        RestError: Cloud Run could not be asked.
    """
    path = folder / source
    if path.is_file():
        return convert_server(read_text(_content(path), path.name), wishes, today=today)
    name = _service_name(source, wishes, path)
    return convert_server(read_live_service(google(), endpoint, name, key="--from"), wishes, today=today)


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1).decode()
    except UnicodeDecodeError:
        consequence, repair = (
            "it is not encoded in UTF-8.",
            "give a command, a compose file or a service's description.",
        )
    except OSError as error:
        consequence, repair = f"it cannot be read: {error.strerror}.", "give a file that you may read."
    raise UserError(Problem("--from", path.name, consequence, repair))


def _service_name(source: str, wishes: Wishes, path: Path) -> str:
    if NAME.fullmatch(source):
        return source
    if "/" in source or path.suffix in (".yaml", ".yml", ".json", ".sh", ".txt") or path.is_dir():
        consequence = "there is no such file, and a service has no such name."
        raise UserError(Problem("--from", source, consequence, "correct the path, or give a service's name."))
    missing = [key for key, value in (("project", wishes.project), ("region", wishes.region)) if not value]
    if missing:
        consequence = f"there is no such file, and a service is found by its {' and '.join(missing)} too."
        repair = "add them, or write its whole name: projects/PROJECT/locations/REGION/services/SERVICE."
        raise UserError(Problem("--from", source, consequence, repair))
    return f"projects/{wishes.project}/locations/{wishes.region}/services/{source}"


def read_live_service(google: GoogleClient, endpoint: str, name: str, *, key: str) -> FoundServer:
    """The server of a live service, with who may call it.

    Args:
        google: Reads it.
        endpoint: Address of run v2, with a slash at its end.
        name: Its whole name.
        key: The option, argument or setting that names it, for messages.

    Raises:
        UserError: There is no such service.
        RestError: Cloud Run could not be asked.
    """
    try:
        document = google.get(f"{endpoint}{name}")
    except ApiError as error:
        if error.is_disabled or error.status not in (_NOT_FOUND, _DENIED):
            raise
        consequence = "Cloud Run has no such service."
        repair = "see which there are: `gcloud run services list`; a file is given by its path."
        if error.status == _DENIED:
            consequence = f"you may not read it: {error.message.rstrip('.')}."
            repair = "get the role roles/run.viewer in its project, or give `gcloud run services describe` as a file."
        raise UserError(Problem(key, name, consequence, repair)) from None
    try:
        policy = google.get(f"{endpoint}{name}:getIamPolicy")
    except ApiError as error:
        if error.status != _DENIED:
            raise
        server = read_service(document)
        repair = "list the callers: bezel:access: {invokers: [...]}; the grants of today stay."
        server.leave("IAM policy", "", "you may not read it, so its callers are not known.", repair)
        return server
    members: dict[str, list[str]] = {}
    for binding in policy.get("bindings") or ():
        members.setdefault(str(binding.get("role")), []).extend(map(str, binding.get("members") or ()))
    return read_service(document, members)
