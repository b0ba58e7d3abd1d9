"""Large requests, kind by kind: what takes localcloud the longest, as far as its routes and their bounds tell.

Owns the requests and the state that they need. Leaves out the measurement (pauses.py).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.client
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bezel_localcloud.core.paths import DEPLOYER, PROJECT

if TYPE_CHECKING:
    from bezel_localcloud.core.paths import Endpoint

PARENT = f"projects/{PROJECT}"
BUCKET = "pauses"
UPLOAD = "UPLOAD"
"""Stands in a path for the id of a multipart upload."""
OBJECTS, LOG_ENTRIES = 10_000, 50_000
_MIB = 1 << 20
_JSON = {"content-type": "application/json"}
_OBJECTS = f"/storage/v1/b/{BUCKET}/o"
_UPLOAD = f"/upload/storage/v1/b/{BUCKET}/o?uploadType="
_LOCATION = f"{PARENT}/locations/us-east4"
_APIS = ("run", "iam", "secretmanager", "artifactregistry", "cloudkms", "monitoring", "cloudscheduler")
_REPOSITORY = f"us-east4-docker.pkg.dev/{PROJECT}/hub/x"
_CONDITION = 'resource.name.startsWith("projects/_/buckets/a") || request.time < timestamp("2030-01-01T00:00:00Z")'


@dataclass(frozen=True)
class Sent:
    """One request as it is sent."""

    verb: str
    path: str
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def prepare(endpoint: Endpoint, token: str) -> str:
    """Enable APIs, make the objects and log entries that lists go through, and return the id of a multipart upload."""
    parts = urlsplit(endpoint.base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)

    def send(request: Sent) -> str:
        headers = {"Authorization": f"Bearer {token}"} | request.headers
        connection.request(request.verb, request.path, request.content, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{request.verb} {request.path}: {answer.status} {text[:300]!r}")
        return text.decode()

    for api in _APIS:
        send(Sent("POST", f"/serviceusage/v1/{PARENT}/services/{api}.googleapis.com:enable"))
    for bucket in (BUCKET, "hostile-shelf"):
        body = {"name": bucket, "versioning": {"enabled": bucket == BUCKET}}
        send(_call("POST", f"/storage/v1/b?project={PROJECT}", body))
    send(_call("POST", f"/artifactregistry/v1/{_LOCATION}/repositories?repositoryId=hub", {"format": "DOCKER"}))
    for first in range(0, OBJECTS, 500):
        for number in range(first, first + 500):
            send(Sent("POST", f"{_UPLOAD}media&name=folder-{number % 10}/{number:05d}", b"x"))
    for first in range(0, LOG_ENTRIES, 1000):
        send(_call("POST", "/logging/v2/entries:write", _entries(range(first, first + 1000), 200)))
    return send(Sent("POST", f"/{BUCKET}/a?uploads")).partition("<UploadId>")[2].partition("<")[0]


def large_kinds() -> dict[str, Iterable[Sent]]:
    """Requests by kind; they are made when they are sent."""
    makers = (_of_json, _of_batches, _of_lists, _of_policies, _of_logs, _of_registry, _of_xml, _of_bytes, _of_tokens)
    return {name: _make(maker) for kinds in makers for name, maker in kinds().items()}


def _make(maker: Callable[[], Iterable[Sent]]) -> Iterator[Sent]:
    yield from maker()


def _five_lists(query: str) -> list[Sent]:
    return [Sent("GET", f"{_OBJECTS}?{query}")] * 5


Makers = dict[str, Callable[[], Iterable[Sent]]]


def _call(verb: str, path: str, body: Any) -> Sent:
    return Sent(verb, path, json.dumps(body, separators=(",", ":")).encode(), _JSON)


def _fill(form: str, piece: Callable[[int], str], size: int = 10 * _MIB - 1024) -> bytes:
    """A text of about `size` bytes: a form whose %s has as many pieces, separated by commas."""
    sample = len(piece(500_000)) + 1
    return (form % ",".join(map(piece, range(size // sample)))).encode()


def _of_json() -> Makers:
    """Bodies of 10 MB."""
    bucket, service = f"/storage/v1/b?project={PROJECT}", f"/run/v2/{_LOCATION}/services?serviceId=a"
    forms: dict[str, tuple[str, str, Callable[[int], str]]] = {
        "lists in lists": (bucket, '{"name":"x","labels":[%s]}', lambda _: "[]"),
        "numbers": (bucket, '{"name":"x","labels":[%s]}', lambda _: "1"),
        "a map of labels": (bucket, '{"name":"x","labels":{%s}}', lambda n: f'"a{n}":"b"'),
        "unknown fields": (bucket, '{"name":"x",%s}', lambda n: f'"a{n}":1'),
        "wrong values": (service, '{"template":{"containers":[%s]}}', lambda _: '{"env":1}'),
        "variables": (
            service,
            '{"template":{"containers":[{"image":"a","env":[%s]}]}}',
            lambda n: f'{{"name":"A{n}","value":"b"}}',
        ),
        "escapes": (bucket, '{"name":"x","labels":{"a":"%s"}}', lambda _: "\\u00e9"),
        "a text": (bucket, '{"name":"x","labels":{"a":"%s"}}', lambda _: "a" * 100),
        "a dashboard": (
            f"/monitoring/v1/{PARENT}/dashboards",
            '{"displayName":"a","gridLayout":{"widgets":[%s]}}',
            lambda _: '{"title":"a","blank":{}}',
        ),
        "a secret": (
            f"/secretmanager/v1/{PARENT}/secrets/a:addVersion",
            '{"payload":{"data":"%s"}}',
            lambda _: "A" * 99,
        ),
    }
    return {
        f"JSON of 10 MB, {name}": lambda path=path, form=form, piece=piece: [
            Sent("POST", path, _fill(form, piece), _JSON)
        ]
        for name, (path, form, piece) in forms.items()
    } | {
        "JSON deep": lambda: [
            Sent("POST", bucket, b"[" * 10 * _MIB, _JSON),
            Sent("POST", bucket, b'{"a":' * 2 * _MIB, _JSON),
        ]
    }


def _of_batches() -> Makers:
    def batch(lines: Iterable[str], head: str = "") -> Sent:
        parts = "".join(f"--a\r\nContent-Type: application/http\r\n{head}\r\n{line}\r\n\r\n" for line in lines)
        return Sent(
            "POST", "/batch/storage/v1", f"{parts}--a--\r\n".encode(), {"content-type": "multipart/mixed; boundary=a"}
        )

    listed = f"GET {_OBJECTS}?maxResults=1000 HTTP/1.1"
    return {
        "batch of 1,000 reads": lambda: [batch([f"GET {_OBJECTS}/folder-1%2F00001 HTTP/1.1"] * 1000)],
        "batch of 100 lists": lambda: [batch([listed] * 100)],
        "batch of 1,000 deletes": lambda: [
            batch(f"DELETE {_OBJECTS}/folder-{n % 10}%2F{n:05d} HTTP/1.1" for n in range(1000))
        ],
        "batch of 1,000 changes": lambda: [
            batch(
                f"POST {_OBJECTS}/folder-{n % 10}%2F{n:05d}/copyTo/b/{BUCKET}/o/copy-{n} HTTP/1.1"
                for n in range(1000, 2000)
            )
        ],
        "batch with a million parts": lambda: [
            Sent("POST", "/batch/storage/v1", b"--a\r\n" * 2 * _MIB, {"content-type": "multipart/mixed; boundary=a"})
        ],
        "batch with long heads": lambda: [batch([listed] * 5, "x: y\r\n" * 300_000)],
    }


def _of_lists() -> Makers:
    queries = {
        "1,000 entries": "", "versions": "versions=true", "versions of a page": "versions=true&maxResults=1",
        "fields": "fields=items(name,size,generation),nextPageToken", "a pattern": "matchGlob=**0*1*2*3*4*5**",
        "a delimiter": "delimiter=/", "contexts": "filter=contexts.%22a%22:*", "soft-deleted": "softDeleted=true",
        "many fields": "fields=" + ",".join(f"items/a{n}" for n in range(8000)),
    }  # fmt: skip
    makers: Makers = {f"list of 10,000 objects, {name}": partial(_five_lists, query) for name, query in queries.items()}
    makers["list of 10,000 objects, XML"] = lambda: [
        Sent("GET", f"/{BUCKET}?versions&max-keys=1000"),
        Sent("GET", f"/{BUCKET}?encoding-type=url"),
    ]
    return makers


def _of_policies() -> Makers:
    def bindings(count: int, members: int, condition: str) -> list[Any]:
        return [
            {
                "role": "roles/storage.objectViewer",
                "members": [f"user:{n}-{m}@example.com" for m in range(members)],
                "condition": {"title": f"t{n}", "expression": condition},
            }
            for n in range(count)
        ]

    def policy(bindings: list[Any], version: int = 3) -> Iterable[Sent]:
        own_bindings = [{"role": "roles/storage.admin", "members": [f"serviceAccount:{DEPLOYER}"]}]
        path = f"/storage/v1/b/{BUCKET}/iam"
        yield _call("PUT", path, {"version": version, "bindings": own_bindings + bindings})
        for count in (100, 1000):
            permissions = "&".join(["permissions=storage.objects.get"] * count)
            yield Sent("GET", f"{path}/testPermissions?{permissions}")
        yield Sent("GET", f"{path}?optionsRequestedPolicyVersion=3")
        yield Sent("GET", f"{_OBJECTS}?maxResults=10")
        yield _call("PUT", path, {"version": 3, "bindings": own_bindings})

    long = " || ".join([_CONDITION] * 10)
    return {
        "policy of 1,500 bindings": lambda: policy(bindings(1499, 1, _CONDITION)),
        "policy of 100 bindings": lambda: policy(bindings(100, 1, _CONDITION)),
        "policy of 400 bindings with long conditions": lambda: policy(bindings(400, 1, long)),
        "policy of 10,000 bindings": lambda: policy(bindings(10_000, 1, long)),
        "policy of 200,000 members": lambda: policy(bindings(2, 100_000, _CONDITION)),
        "policy with a condition of 8 MB": lambda: policy(bindings(1, 1, "!" * 8 * _MIB)),
        "policy with a long condition": lambda: policy(bindings(1, 1, "(" * 149)),
        "permissions, 10,000 tested": lambda: [
            _call(
                "POST",
                f"/crm/v1/{PARENT}:testIamPermissions",
                {"permissions": [f"run.services.get{n}" for n in range(100_000)]},
            )
        ],
        "roles with 100,000 permissions": lambda: [
            _call(
                "POST",
                f"/iam/v1/{PARENT}/roles",
                {"roleId": "a", "role": {"includedPermissions": ["run.services.get"] * 400_000}},
            )
        ],
    }


def _entries(numbers: Iterable[int], size: int, *, apart: bool = True) -> Any:
    """The body of a write: entries of a size in bytes, a millisecond apart or all of one time."""
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    entries = [
        {
            "textPayload": f"{n} " + "a" * size,
            "labels": {"a": str(n)},
            "timestamp": (now + timedelta(milliseconds=n * apart)).isoformat(),
        }
        for n in numbers
    ]
    resource = {"type": "global", "labels": {}}
    return {"logName": f"{PARENT}/logs/a", "resource": resource, "entries": entries}


def _of_logs() -> Makers:
    def list_entries(text: str, size: int = 1000) -> list[Sent]:
        body = {"resourceNames": [PARENT], "filter": text, "pageSize": size}
        return [_call("POST", "/logging/v2/entries:list", body)]

    return {
        "log entries, all listed": lambda: list_entries(""),
        "log entries, none matches": lambda: list_entries('textPayload="b"'),
        "log entries, a pattern": lambda: list_entries('textPayload=~"^(a+)+$"'),
        "log entries, a long filter": lambda: list_entries(" OR ".join(['textPayload:"b"'] * 1000)),
        "log entries, a word anywhere": lambda: list_entries("bbb ccc ddd"),
        "log entries, 20,000 written": lambda: [
            _call("POST", "/logging/v2/entries:write", _entries(range(20_000), 200))
        ],
        "log entries, 35,000 of one time": lambda: [
            _call("POST", "/logging/v2/entries:write", _entries(range(35_000), 50, apart=False))
        ],
        "log entries, 40 of 250 KB": lambda: [_call("POST", "/logging/v2/entries:write", _entries(range(40), 250_000))],
        "log entries of 250 KB, listed": lambda: (
            list_entries(" OR ".join(['textPayload:"b"'] * 100)) + list_entries("")
        ),
    }


def _of_registry() -> Makers:
    kind = "application/vnd.oci.image.manifest.v1+json"

    def layers(count: int) -> list[Sent]:
        part = {"mediaType": "a/b", "size": 1, "digest": "sha256:" + "0" * 64}
        body = {"schemaVersion": 2, "mediaType": kind, "config": part, "layers": [part] * count}
        content = json.dumps(body, separators=(",", ":")).encode()
        return [Sent("PUT", f"/v2/{_REPOSITORY}/manifests/a", content, {"content-type": kind})]

    def blob(size: int) -> list[Sent]:
        content = os.urandom(_MIB) * (size // _MIB)
        digest = hashlib.sha256(content).hexdigest()
        return [Sent("POST", f"/v2/{_REPOSITORY}/blobs/uploads/?digest=sha256:{digest}", content)]

    return {
        "manifest of 30,000 layers": lambda: layers(30_000),
        "manifest of 4 MB of lists": lambda: [
            Sent(
                "PUT",
                f"/v2/{_REPOSITORY}/manifests/a",
                b'{"a":[' + b"[]," * (4 * _MIB // 3 - 10) + b"[]]}",
                {"content-type": kind},
            )
        ],
        "blob of 256 MiB": lambda: blob(256 * _MIB),
    }


def _of_xml() -> Makers:
    part = b"<Part><PartNumber>%d</PartNumber><ETag>0</ETag></Part>"
    forms = {
        "10,000 parts": lambda: b"<a>" + b"".join(part % n for n in range(1, 10_001)) + b"</a>",
        "500,000 parts": lambda: b"<a>" + b"<Part/>" * 500_000 + b"</a>",
        "50,000 levels": lambda: b"<a>" * 49_000 + b"</a>" * 49_000,
        "500,000 levels": lambda: b"<a>" * 500_000 + b"</a>" * 500_000,
        "entities": lambda: b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "200,000 attributes": lambda: b"<a " + b" ".join(b"a%d='b'" % n for n in range(200_000)) + b"/>",
    }

    def requests(body: Callable[[], bytes]) -> list[Sent]:
        return [Sent("POST", f"/{BUCKET}/a?uploadId={UPLOAD}", body()), Sent("PUT", f"/{BUCKET}?versioning", body())]

    return {f"XML with {name}": partial(requests, body) for name, body in forms.items()}


def _of_bytes() -> Makers:
    head = {"content-type": "multipart/related; boundary=a"}
    form = {"content-type": "multipart/form-data; boundary=a"}
    related = b'--a\r\n\r\n{"name":"b"}\r\n--a\r\n\r\n%s\r\n--a--\r\n'
    field_of = b'--a\r\nContent-Disposition: form-data; name="x%d"\r\n\r\nv\r\n'
    key = {"x-goog-encryption-algorithm": "AES256", "x-goog-encryption-key": base64.b64encode(b"k" * 32).decode()}
    key["x-goog-encryption-key-sha256"] = base64.b64encode(hashlib.sha256(b"k" * 32).digest()).decode()
    zeros = gzip.compress(bytes(_MIB)) * 200
    sources = [{"name": f"part-{n}"} for n in range(32)]

    def compose() -> Iterator[Sent]:
        for number in range(32):
            yield Sent("POST", f"{_UPLOAD}media&name=part-{number}", os.urandom(_MIB) * 4)
        yield _call("POST", f"{_OBJECTS}/whole/compose", {"sourceObjects": sources})
        yield Sent("POST", f"{_OBJECTS}/whole/rewriteTo/b/{BUCKET}/o/other", b"{}", _JSON)
        yield Sent("POST", f"{_OBJECTS}/whole/rewriteTo/b/{BUCKET}/o/locked", b"{}", _JSON | key)

    def bomb() -> Iterator[Sent]:
        inner = gzip.compress(bytes(512 * _MIB), 1)
        yield Sent("POST", f"{_UPLOAD}media&name=bomb&contentEncoding=gzip", inner)
        yield Sent("GET", f"{_OBJECTS}/bomb?alt=media", b"", {"accept-encoding": "identity"})

    field_of_file = b'--a\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    file = field_of_file % (b"key", b"b") + field_of_file % (b"file", b"x" * 60 * _MIB) + b"--a--"

    def media(content: bytes, headers: dict[str, str] | None = None) -> list[Sent]:
        return [Sent("POST", f"{_UPLOAD}media&name=b", content, headers or {})]

    def multipart(content: bytes) -> list[Sent]:
        return [Sent("POST", f"{_UPLOAD}multipart", related % content, head)]

    def fields() -> bytes:
        return b"".join(field_of % n for n in range(500_000)) + b"--a--"

    return {
        "upload of 256 MiB": lambda: media(os.urandom(_MIB) * 256),
        "upload of 64 MiB in two parts": lambda: multipart(b"x" * 60 * _MIB),
        "upload of 60 MB of boundaries": lambda: multipart(b"\n--a\n" * 12 * _MIB),
        "upload of 64 MiB, encrypted": lambda: media(b"x" * 64 * _MIB, key),
        "XML upload of 32 MiB": lambda: [Sent("PUT", f"/{BUCKET}/b", os.urandom(_MIB) * 32)],
        "form of 60 MiB": lambda: [Sent("POST", f"/{BUCKET}", file, form)],
        "form of 500,000 fields": lambda: [Sent("POST", f"/{BUCKET}", fields(), form)],
        "compose of 32, rewrite of 128 MiB": compose,
        "gzip of 200 MiB as JSON": lambda: [Sent("POST", "/storage/v1/b", zeros, _JSON | {"content-encoding": "gzip"})],
        "gzip of 512 MiB, downloaded unpacked": bomb,
        "body of 32 MiB beyond the limit": lambda: [
            Sent("POST", f"/run/v2/{_LOCATION}/services", bytes(32 * _MIB), _JSON)
        ],
    }


def _of_tokens() -> Makers:
    form = {"content-type": "application/x-www-form-urlencoded"}
    grant = b"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
    bodies = [b"a=b&" * 16_000, grant + b"a." * 30_000]
    queries = ["/storage/v1/b?" + "a=b&" * 15_000, "/run/v2/a?" + "%24fields=a&" * 5000]
    paths = ["/run/v2/projects/" + "a/" * 30_000, "/storage/v1/b/a/o/" + "%2F" * 20_000]
    paths.append("/v2/" + "a/" * 30_000 + "manifests/a")
    override = form | {"x-http-method-override": "GET"}
    return {
        "tokens of 64 KB": lambda: [
            Sent("POST", path, body, form) for path in ("/token", "/sts/v1/token") for body in bodies
        ],
        "query of 60 KB": lambda: [Sent("GET", path) for path in queries],
        "path of 60 KB": lambda: [Sent("GET", path) for path in paths],
        "query as a form of 64 KB": lambda: [Sent("POST", "/storage/v1/b", bodies[0], override)],
    }
