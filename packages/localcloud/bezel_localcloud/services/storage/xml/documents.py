"""Documents of the XML API: errors, lists and results, and the reading of requests."""

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from starlette.responses import Response

from bezel_localcloud.core.errors import NOT_SERVED, ApiError, invalid

_LISTS = "http://doc.s3.amazonaws.com/2006-03-01"
UPLOADS = "http://s3.amazonaws.com/doc/2006-03-01/"
"""Namespace of the documents of multipart uploads."""
_HEAD = b"<?xml version='1.0' encoding='UTF-8'?>"
_TYPE = "application/xml; charset=UTF-8"
_CONTROL = {code: None for code in range(32) if chr(code) not in "\t\n\r"}
# HTTP status -> code and text. Source: Cloud Storage's page on the XML API's status and error codes.
_CODES = {
    400: ("InvalidArgument", "Invalid argument."),
    401: ("AuthenticationRequired", "Authentication required."),
    403: ("AccessDenied", "Access denied."),
    404: ("NoSuchKey", "The specified key does not exist."),
    405: ("MethodNotAllowed", "The specified method is not allowed against this resource."),
    409: ("OperationAborted", "A conflicting conditional operation is currently in progress against this resource."),
    411: ("MissingContentLength", "You must provide the Content-Length HTTP header."),
    412: ("PreconditionFailed", "At least one of the pre-conditions you specified did not hold."),
    413: (
        "EntityTooLarge",
        "Your proposed upload is larger than the maximum size of an object.",
    ),
    416: ("InvalidRange", "The requested range cannot be satisfied."),
    500: ("InternalError", "We encountered an internal error. Please try again."),
}
# Beginning of the JSON API's text -> code and text of the same error here.
_TEXTS = {
    "The specified bucket does not exist": ("NoSuchBucket", "The specified bucket does not exist."),
    "No such upload": ("NoSuchUpload", "The requested upload was not found."),
    "The bucket you tried to delete": ("BucketNotEmpty", "The bucket you tried to delete is not empty."),
    "Your previous request": ("BucketAlreadyOwnedByYou", "You already own this bucket."),
    "Invalid bucket name": ("InvalidBucketName", "The specified bucket is not valid."),
    "Provided ": ("BadDigest", "The checksum you specified did not match what the server received."),
    "The specified object name is too long": ("KeyTooLong", "Your key is too long."),
}  # fmt: skip
_MOST_TAGS = 100_000  # of a caller's document: 10,000 parts, the most of an upload, have 60,000
Node = tuple[str, "str | Iterable[Node]"]  # name, and text or children


class XmlError(Exception):
    """An error that only the XML API has.

    Attributes:
        status: HTTP status.
        code: Google's word for it.
        details: Further nodes of the document.
    """

    def __init__(self, status: int, code: str, message: str, *details: tuple[str, str]) -> None:
        super().__init__(message)
        self.status, self.code, self.details = status, code, details

    def response(self) -> Response:
        """The error as a response."""
        nodes: list[Node] = [("Code", self.code), ("Message", str(self)), *self.details]
        return Response(_HEAD + _to_bytes("Error", nodes, ""), self.status, media_type=_TYPE)


def refusal(error: ApiError, *, anonymous: bool = False) -> Response:
    """The response to a request that a handler of the JSON API's rules refused."""
    if error.status == 304:
        return Response(status_code=304)
    # A reader without a token is refused as one without a permission; the JSON API asks it to log in.
    status = 403 if error.status == 401 and anonymous else error.status
    code, message = _CODES.get(status, _CODES[500 if status >= 500 else 400])
    if error.reason.startswith(("cloudKms", "customerEncryption", "resource")):  # the same words in both APIs
        code, message = error.reason[0].upper() + error.reason[1:], error.message
    if error.reason == NOT_SERVED:
        code, message = NOT_SERVED, error.message
    for beginning, named in _TEXTS.items():
        if error.message.startswith(beginning):
            code, message = named
    details = error.message.translate(_CONTROL).encode(errors="replace").decode()
    return XmlError(status, code, message, ("Details", details)).response()


def document(root: str, nodes: str | Iterable[Node], namespace: str = _LISTS) -> Response:
    """A document of a text or of nodes as a response."""
    return Response(_HEAD + _to_bytes(root, nodes, namespace), media_type=_TYPE)


def parse(body: bytes) -> ET.Element:
    """The root of a document that a caller sent.

    Raises:
        ApiError: INVALID_ARGUMENT, it is malformed or declares entities.
    """
    try:
        # No document of the API needs a declaration, and entities can grow without bounds. UTF-16 would hide one.
        if b"<!" in body or b"\0" in body:
            raise invalid("Malformed XML: declarations are not allowed.")
        if body.count(b"<") > _MOST_TAGS:
            raise invalid(f"Malformed XML: it has more than {_MOST_TAGS} tags.")
        return ET.fromstring(body)  # noqa: S314 - without declarations
    except (ET.ParseError, LookupError, ValueError):  # the latter for an encoding that is unknown, or has several bytes
        raise invalid(
            "The XML you provided was not well-formed or did not validate against our published schema."
        ) from None


def texts(node: ET.Element, name: str) -> list[str]:
    """Texts of the children of a name, in any namespace."""
    return [child.text or "" for child in node if child.tag.rpartition("}")[2] == name]


def children(node: ET.Element, name: str) -> list[ET.Element]:
    """The children of a name, in any namespace."""
    return [child for child in node if child.tag.rpartition("}")[2] == name]


def _to_bytes(root: str, nodes: str | Iterable[Node], namespace: str) -> bytes:
    element = ET.Element(root, {"xmlns": namespace} if namespace else {})
    _fill(element, nodes)
    return bytes(ET.tostring(element, encoding="utf-8"))


def _fill(element: ET.Element, content: str | Iterable[Node]) -> None:
    if isinstance(content, str):
        element.text = content.translate(_CONTROL)
        return
    for name, inner in content:
        _fill(ET.SubElement(element, name), inner)
