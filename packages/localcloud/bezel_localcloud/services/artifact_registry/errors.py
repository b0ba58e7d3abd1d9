"""Errors of the registry protocol: the codes of the OCI distribution spec and its JSON."""

from collections.abc import Mapping

from starlette.responses import JSONResponse, Response

# Statuses by the spec's tables; the GOOGLE_ ones are Artifact Registry's own, seen in its responses to deletes.
_STATUSES = {
    "BLOB_UNKNOWN": 404,
    "BLOB_UPLOAD_INVALID": 400,
    "BLOB_UPLOAD_UNKNOWN": 404,
    "DENIED": 403,
    "DIGEST_INVALID": 400,
    "GOOGLE_MANIFEST_DANGLING_PARENT_IMAGE": 400,
    "GOOGLE_MANIFEST_DANGLING_TAG": 400,
    "GOOGLE_MANIFEST_REFERRING_MANIFEST": 400,
    "MANIFEST_BLOB_UNKNOWN": 400,
    "MANIFEST_INVALID": 400,
    "MANIFEST_UNKNOWN": 404,
    "NAME_INVALID": 400,
    "NAME_UNKNOWN": 404,
    "PAGINATION_NUMBER_INVALID": 400,
    "SIZE_INVALID": 400,
    "TAG_INVALID": 400,
    "UNAUTHORIZED": 401,
    "UNKNOWN": 500,
    "UNSUPPORTED": 405,
}
VERSION = {"Docker-Distribution-API-Version": "registry/2.0"}


class RegistryError(Exception):
    """A refusal of the registry.

    Attributes:
        code: Code of the spec, e.g. "MANIFEST_UNKNOWN".
        message: Text for the reader; never holds a secret.
        status: HTTP status.
        headers: Further headers of the response.
    """

    def __init__(
        self, code: str, message: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.status = status or _STATUSES[code]
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """The spec's JSON."""
        body = {"errors": [{"code": self.code, "message": self.message}]}
        return JSONResponse(body, self.status, VERSION | self.headers)
