"""Google's error model: canonical codes, their HTTP statuses, and the JSON body of a refusal."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from bezel_localcloud.core.json_types import Json

NOT_SERVED = "notServedByLocalcloud"
"""Reason of a refusal of something that Google has and localcloud does not serve."""
ERRORS: Json = tomllib.loads((Path(__file__).parents[1] / "data" / "errors.toml").read_text(encoding="utf-8"))


_LONGEST_TEXT, _MOST_VIOLATIONS = 20_000, 100  # characters of a text of a refusal, violations that it names


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


class ApiError(Exception):
    """An error of an API, in Google's words.

    Attributes:
        code: Name of the google.rpc.Code, e.g. "NOT_FOUND".
        message: Text for the reader; never holds a secret.
        details: Messages of google.rpc.error_details as JSON.
        status: HTTP status.
        reason: Word of the older error list, where it is not the status's usual one.
    """

    def __init__(
        self, code: str, message: str, details: Sequence[Json] = (), *, status: int | None = None, reason: str = ""
    ) -> None:
        message = _shorten(message)  # it may quote what the caller sent
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.status = status or ERRORS["codes"][code][1]
        self.reason = reason

    def body(self, *, legacy: bool = False, older: bool = False) -> Json:
        """The JSON body.

        What is not served is shown in both shapes at once: a client shows the reason whichever it reads.

        Args:
            legacy: Whether it has the shape of Cloud Storage and Compute Engine.
            older: Whether it has the list of that shape too, as `$.xgafv=1` asks of the other APIs.
        """
        both = self.reason == NOT_SERVED or (older and not legacy)
        error: Json = {"code": self.status, "message": self.message}
        if legacy or both:
            reason = self.reason or ERRORS["legacy_reasons"].get(str(self.status), "backendError")
            error["errors"] = [{"message": self.message, "domain": "global", "reason": reason}]
        if not legacy or both:
            error["status"] = self.code
            if self.details:
                error["details"] = list(self.details)
        return {"error": error}

    def rpc_status(self) -> Json:
        """google.rpc.Status, as a failed operation holds it."""
        status: Json = {"code": ERRORS["codes"][self.code][0], "message": self.message}
        if self.details:
            status["details"] = list(self.details)
        return status


def error_info(reason: str, metadata: Json | None = None) -> Json:
    """google.rpc.ErrorInfo of the domain googleapis.com."""
    info: Json = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}
    return info | ({"metadata": metadata} if metadata else {})


def unauthenticated_error(reason: str) -> ApiError:
    """401 for a missing (`CREDENTIALS_MISSING`) or unusable (`ACCESS_TOKEN_TYPE_UNSUPPORTED`, ...) token."""
    lead = (
        "Request is missing required authentication credential."
        if reason == "CREDENTIALS_MISSING"
        else "Request had invalid authentication credentials."
    )
    text = (
        f"{lead} Expected OAuth 2 access token, login cookie or other valid authentication credential. "
        "See https://developers.google.com/identity/sign-in/web/devconsole-project."
    )
    return ApiError("UNAUTHENTICATED", text, [error_info(reason)])


def permission_denied(permission: str, resource: str) -> ApiError:
    """403 for a caller whose roles lack a permission; does not reveal whether the resource exists."""
    return ApiError(
        "PERMISSION_DENIED",
        f"Permission '{permission}' denied on resource '{resource}' (or it may not exist).",
        [error_info("IAM_PERMISSION_DENIED", {"permission": permission, "resource": resource})],
    )


def anonymous_denied(permission: str) -> ApiError:
    """401 for a call to Cloud Storage without a token whose permission `allUsers` do not have."""
    kind = "object" if ".objects." in permission and permission != "storage.objects.list" else "bucket"
    text = (
        f"Anonymous caller does not have {permission} access to the Google Cloud Storage {kind}. Permission "
        f"'{permission}' denied on resource (or it may not exist)."
    )
    return ApiError("UNAUTHENTICATED", text, reason="required")


def service_disabled(api: str, title: str, project: str) -> ApiError:
    """403 for a call to an API that the project has not enabled."""
    url = f"https://console.developers.google.com/apis/api/{api}/overview?project={project}"
    text = (
        f"{title} has not been used in project {project} before or it is disabled. Enable it by visiting {url} then "
        "retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
        "retry."
    )
    metadata = {
        "service": api,
        "serviceTitle": title,
        "consumer": f"projects/{project}",
        "containerInfo": project,
        "activationUrl": url,
    }
    return ApiError("PERMISSION_DENIED", text, [error_info("SERVICE_DISABLED", metadata)])


class NotServedError(ApiError):
    """400 for something of Google's that localcloud does not serve.

    A status from 500 on would be repeated by Google's clients until their deadline, which looks like a hang.
    """

    def __init__(self, message: str, method: str = "", service: str = "") -> None:
        """Describe a refusal.

        Args:
            message: Text for the reader.
            method: Google's name of the called method, "" where it is not known yet.
            service: Name of its API, such as "run.googleapis.com".
        """
        named = {key: value for key, value in {"method": method, "service": service}.items() if value}
        detail = error_info(NOT_SERVED, named) | {"domain": "localcloud"}
        super().__init__("FAILED_PRECONDITION", message, [detail], reason=NOT_SERVED)
        self._named = bool(named)

    def during(self, method: str, service: str) -> "NotServedError":
        """The same refusal with the method that was called and its API, where they are not named yet."""
        if self._named or not method:
            return self
        return NotServedError(f"{self.message} (Called: {method} of {service}.)", method, service)


def unserved_error(what: str, instead: str = "leave it out") -> NotServedError:
    """400 for a feature of Google's that localcloud does not serve."""
    return NotServedError(f"localcloud does not serve {what}: {instead}.")


def refuse_unserved(body: Json, fields: Iterable[str], of: str) -> None:
    """Check that a body sets none of the fields that localcloud does not support.

    An empty value is as good as an absent field, as in proto's JSON: Google's provider sends `"kmsKeyName": ""`.

    Raises:
        NotServedError: With the names of those that it sets.
    """
    if refused := [field for field in sorted(fields) if body.get(field)]:
        raise unserved_error(f"{', '.join(refused)} of {of}")


def invalid(message: str, *violations: tuple[str, str]) -> ApiError:
    """400 with a BadRequest detail, one (field, description) for each of the first violations."""
    details: list[Json] = []
    if violations:
        shown = violations[:_MOST_VIOLATIONS]
        fields = [{"field": _shorten(field), "description": _shorten(text)} for field, text in shown]
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields})
    return ApiError("INVALID_ARGUMENT", message, details)
