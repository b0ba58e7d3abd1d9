"""Uploads by forms: POST of multipart/form-data to a bucket, allowed by a signed policy document.

Source: Cloud Storage's pages on policy documents and on POST Object.
"""

import base64
import re
from collections.abc import Mapping
from datetime import datetime
from email.message import Message

from starlette.responses import RedirectResponse, Response

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import bucket_of
from bezel_localcloud.services.storage.encryption.customer_keys import key_of, new_lock
from bezel_localcloud.services.storage.objects.generations import Placed
from bezel_localcloud.services.storage.uploads.single_request import in_pieces, whole
from bezel_localcloud.services.storage.uploads.writes import check_permitted, place_object
from bezel_localcloud.services.storage.xml.documents import XmlError, document
from bezel_localcloud.services.storage.xml.lists import quoted_etag
from bezel_localcloud.services.storage.xml.objects import fields_of, upload_response
from bezel_localcloud.services.storage.xml.signatures import form_signer

_LARGEST = 64 << 20  # bytes: the form is read into memory
_MOST_FIELDS, _LONGEST_HEAD = 100, 8 << 10  # fields before the file, bytes of the headers of one
_NOT_IN_POLICY = frozenset({"policy", "file", "x-goog-signature", "signature", "googleaccessid", "submit"})


async def upload(call: Call) -> Response:
    """Make the file of a form an object."""
    fields, content = _form(await whole(call, _LARGEST), call.request.headers.get("content-type", ""))
    bucket = bucket_of(call)
    name = fields.get("key", "").replace("${filename}", fields.get("", ""))
    if fields.get("policy"):
        now = call.cloud.pace.now()
        call.caller = form_signer(fields, call.cloud.store, now)
        _check_policy(fields | {"bucket": bucket["name"]}, len(content), now)
    check_permitted(call, bucket, name)
    lock = new_lock(key_of(fields))
    received = await call.cloud.objects.receive(in_pieces(content), lock.cipher if lock else None)
    placed = Placed(received, fields_of(fields), lock=lock.fields(received) if lock else None)
    row = place_object(call, bucket, name, placed, {})
    if target := fields.get("success_action_redirect"):
        return RedirectResponse(target, 303)
    if fields.get("success_action_status") == "201":
        nodes = [("Location", f"{call.base}/{bucket['name']}/{name}"), ("Bucket", bucket["name"]), ("Key", name)]
        response = document("PostResponse", [*nodes, ("ETag", quoted_etag(row))])
        response.status_code = 201
        return response
    response = upload_response(call, row)
    response.status_code = 200 if fields.get("success_action_status") == "200" else 204
    return response


def _check_policy(fields: Mapping[str, str], size: int, now: float) -> None:
    """Check a form against its policy.

    Raises:
        XmlError: The policy has expired, or does not allow the form.
    """
    try:
        policy = read_encodable_json(base64.b64decode(fields["policy"]))
        expires = datetime.fromisoformat(policy["expiration"]).timestamp()
        conditions = [_condition(condition) for condition in policy["conditions"]]
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        raise _form_error(
            400, "InvalidPolicyDocument", "The content of the form does not meet the conditions."
        ) from None
    if now >= expires:
        raise _form_error(400, "ExpiredToken", "The policy has expired.")
    for kind, field, value in conditions:
        if not _holds(kind, field, value, fields, size):
            raise _form_error(403, "AccessDenied", f"Policy did not reference or match the field {field}.")
    named = {field for _, field, _ in conditions}
    for field in fields:
        if field and field not in named | _NOT_IN_POLICY and not field.startswith("x-ignore-"):
            raise _form_error(403, "AccessDenied", f"Policy did not reference these fields: {field}")


def _condition(condition: object) -> tuple[str, str, tuple[object, ...]]:
    if isinstance(condition, dict) and len(condition) == 1:
        ((field, value),) = condition.items()
        return "eq", str(field).lower(), (value,)
    if isinstance(condition, list) and len(condition) == 3:
        kind, field, *value = condition
        if str(kind) == "content-length-range":
            return kind, kind, (_whole(field), _whole(value[0]))
        return str(kind), str(field).removeprefix("$").lower(), tuple(value)
    raise ValueError(condition)


def _whole(value: object) -> int:
    """A bound of a length, as a number or a text.

    Raises:
        ValueError: It is neither.
    """
    number = decimal(str(value))
    if number is None:
        raise ValueError(value)
    return number


def _holds(kind: str, field: str, value: tuple[object, ...], fields: Mapping[str, str], size: int) -> bool:
    if kind == "content-length-range":
        return int(str(value[0])) <= size <= int(str(value[1]))
    value_sent = fields.get(field, "")
    return value_sent.startswith(str(value[0])) if kind == "starts-with" else value_sent == str(value[0])


def _form(body: bytes, content_type: str) -> tuple[Json, bytes]:
    """Return (fields by names in lower case, content of the file); the file's name is the field ""."""
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/form-data" or not boundary:
        raise invalid("The body of a form upload must be multipart/form-data.")
    fields: Json = {}
    for piece in body.split(b"--" + str(boundary).encode(), _MOST_FIELDS + 2)[1:-1]:
        head, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if len(head) > _LONGEST_HEAD:
            raise invalid(f"The headers of a field of the form have more than {_LONGEST_HEAD} bytes.")
        name = re.search(r'name="([^"]*)"', head.decode("utf-8", "replace"))
        if name is None:
            raise invalid("A field of the form has no name.")
        if name[1] == "file":  # fields behind the file are ignored
            filename = re.search(r'filename="([^"]*)"', head.decode("utf-8", "replace"))
            return fields | {"": filename[1] if filename else ""}, content.removesuffix(b"\r\n")
        fields[name[1].lower()] = content.removesuffix(b"\r\n").decode("utf-8", "replace")
    raise invalid(f"The form has no field named file, or more than {_MOST_FIELDS} fields before it.")


def _form_error(status: int, code: str, details: str) -> XmlError:
    return XmlError(status, code, "Invalid argument." if status == 400 else "Access denied.", ("Details", details))
