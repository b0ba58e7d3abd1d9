"""Hostile requests as bytes at the wire: heads, targets, methods, framings, ranges, sessions, documents, nesting."""

import gzip
import random
from dataclasses import dataclass

BUCKET = "wire-shelf"
TARGETS = [
    f"/storage/v1/b/{BUCKET}",
    f"/storage/v1/b/{BUCKET}/o",
    f"/storage/v1/b/{BUCKET}/o/a?alt=media",
    f"/{BUCKET}",
    f"/{BUCKET}/a",
    "/v2/us-east4-docker.pkg.dev/bezel-local/hub/x/manifests/a",
    "/v2/us-east4-docker.pkg.dev/bezel-local/hub/x/blobs/uploads/",
    "/run/v2/projects/bezel-local/locations/us-east4/services",
    "/compute/v1/projects/bezel-local/global/networks",
    "/logging/v2/entries:list",
    "/crm/v1/projects/bezel-local:getIamPolicy",
    "/iam/v1/projects/bezel-local/serviceAccounts",
    "/monitoring/v3/projects/bezel-local/timeSeries",
    "/batch/storage/v1",
    "/token",
    "/sts/v1/token",
    "/localcloud/faults",
    "/oauth2/v3/certs",
]
ESCAPES = [
    "%00",
    "%0a",
    "%0d%0a",
    "%2F",
    "%2f%2e%2e%2f",
    "..",
    "%2e%2e",
    "%ff",
    "%ed%a0%80",
    "%25",
    "%",
    "%zz",
    "//",
    "\\",
]
ESCAPES += [
    "\x00",
    "\x7f",
    "\u00e9",
    " ",
    "#",
    "?",
    ";a=b",
    "%3F",
    "%23",
    "%E2%80%AE",
    "a" * 1024,
    "%41" * 400,
    "/." * 300,
]
METHODS = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "get",
    "G" * 300,
    "G@T",
]
NAMES = ["host", "content-length", "transfer-encoding", "authorization", "content-type", "content-encoding", "range"]
NAMES += [
    "x-goog-fieldmask",
    "x-http-method-override",
    "x-goog-hash",
    "content-md5",
    "if-match",
    "if-none-match",
    "expect",
]
NAMES += [
    "x-goog-encryption-key",
    "x-goog-encryption-algorithm",
    "x-goog-copy-source",
    "x-goog-resumable",
    "content-range",
]
NAMES += [
    "x-goog-if-generation-match",
    "x-upload-content-length",
    "accept",
    "accept-encoding",
    "x-goog-meta-a",
    "cookie",
    "a b",
    "",
]
TEXTS = [
    "",
    "0",
    "-1",
    "9" * 400,
    "a" * 3000,
    "\x00",
    "\xb2",
    "\t",
    "a,b" * 300,
    "bytes=0-",
    '"' * 99,
    "=?utf-8?q?a?=",
    "gzip, gzip",
]
TEXTS += [
    "chunked",
    "chunked, chunked",
    "identity",
    "100-continue",
    "multipart/mixed",
    "multipart/mixed; boundary=",
    "none\r\n b",
]
TYPES = [
    "application/json",
    "text/xml",
    "multipart/related; boundary=a",
    "multipart/form-data; boundary=a",
    "multipart/mixed; boundary=a",
]
TYPES += [
    "application/x-www-form-urlencoded",
    "application/json; charset=utf-16",
    "a" * 2000,
    "/",
    ";",
    'multipart/mixed; boundary="a',
]
RANGES = [
    "bytes=0-",
    "bytes=-0",
    "bytes=-1",
    "bytes=5-2",
    "bytes=0-0,2-3",
    "bytes=" + "0-1," * 900,
    "bytes=" + "9" * 18 + "-",
    "lines=1",
    "bytes=-",
]
CHUNK_RANGES = [
    "bytes 0-0/1",
    "bytes */*",
    "bytes */0",
    "bytes 5-2/9",
    "bytes 0-*/*",
    "bytes 9-9/3",
    "bytes 0-262143/*",
    "bytes a",
    "",
]
XML = [
    b"<!DOCTYPE a [<!ENTITY b '" + b"c" * 900 + b"'>]><a>" + b"&b;" * 900 + b"</a>",
    b"<!DOCTYPE a [" + b"".join(b"<!ENTITY e%d '&e%d;&e%d;'>" % (n + 1, n, n) for n in range(30)) + b"]><a>&e30;</a>",
    b"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
    b"<a>" * 9000 + b"</a>" * 9000,
    b"<a " + b" ".join(b"b%d=''" % n for n in range(3000)) + b"/>",
    b"<CompleteMultipartUpload>"
    + b"<Part><PartNumber>1</PartNumber><ETag>a</ETag></Part>" * 900
    + b"</CompleteMultipartUpload>",
    "<a>\u00e9</a>".encode("utf-16"),
    b"<?xml version='1.0' encoding='none'?><a/>",
    b"<a>&#0;&#xD800;</a>",
]


@dataclass(frozen=True)
class OnWire:
    """One request: its kind, and its bytes with the token's place marked."""

    kind: str
    content: bytes


TOKEN = b"THE-TOKEN"


def wire_requests(count, seed=2026):
    """The same requests every time, each kind in turn."""
    chance = random.Random(seed)  # noqa: S311 - the same requests every time
    kinds = list(KINDS.items())
    for number in range(count):
        name, make = kinds[number % len(kinds)]
        yield OnWire(name, make(chance))


def request_bytes(method, target, lines=(), body=b"", *, length=True):
    """The bytes of a request that ends its connection."""
    head = [
        f"{method} {target} HTTP/1.1",
        "Host: 127.0.0.1",
        "Connection: close",
        f"Authorization: Bearer {TOKEN.decode()}",
    ]
    head += [*lines, *([f"Content-Length: {len(body)}"] if length else [])]
    return "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + body


def target(chance):
    return chance.choice(TARGETS)


def verb(chance):
    return chance.choice(["GET", "POST", "PUT", "PATCH", "DELETE"])


def of_headers(chance):
    """Headers twice, without a value, unknown, and long."""
    lines = [f"{chance.choice(NAMES)}: {chance.choice(TEXTS)}" for _ in range(chance.randrange(1, 6))]
    return request_bytes(
        verb(chance), target(chance), lines * chance.choice([1, 1, 2, 20]), b"{}", length=chance.random() < 0.5
    )


def of_long_heads(chance):
    many = [f"x-{n}: {'a' * chance.choice([0, 10, 60])}" for n in range(chance.choice([100, 900, 3000]))]
    long = [f"x: {'a' * chance.choice([1000, 60_000, 70_000])}"]
    return request_bytes(verb(chance), target(chance), chance.choice([many, long]))


def of_targets(chance):
    pieces = "".join(chance.choice(ESCAPES) for _ in range(chance.choice([1, 3, 20])))
    return request_bytes(
        verb(chance), f"{target(chance)}{chance.choice(['/', '?a=', '?fields=', ''])}{pieces}", body=b"{}"
    )


def of_long_targets(chance):
    return request_bytes(
        verb(chance), target(chance) + chance.choice(["/a", "%2F", "?a=b&", "/"]) * chance.choice([2000, 9000, 22_000])
    )


def of_methods(chance):
    return request_bytes(chance.choice(METHODS), target(chance), body=chance.choice([b"", b"{}"]))


def of_types(chance):
    body = chance.choice([b"{}", b"--a\r\n\r\n{}\r\n--a--", b"<a/>", b"a=b", b"\xff", b""])
    return request_bytes(
        "POST", target(chance), [f"Content-Type: {chance.choice(TYPES)}"] * chance.choice([1, 2]), body
    )


def of_chunks(chance):
    """Chunked bodies: extensions, trailers, sizes that are none."""
    sizes = ["2", "02", "2;a=b", f"2;{'a' * 900}", "g", "-2", "2 ", "f" * 17, "0x2"]
    body = b"".join(f"{chance.choice(sizes)}\r\n".encode() + b"{}\r\n" for _ in range(chance.choice([1, 2, 50])))
    trailers = chance.choice(
        [b"", b"x: y\r\n", b"content-length: 9\r\n", b"x: " + b"y" * 9000 + b"\r\n", b"authorization: a\r\n"]
    )
    return request_bytes(
        "POST", target(chance), ["Transfer-Encoding: chunked"], body + b"0\r\n" + trailers + b"\r\n", length=False
    )


def of_ranges(chance):
    return request_bytes(
        "GET", chance.choice(TARGETS[2:5]), [f"Range: {chance.choice(RANGES)}"] * chance.choice([1, 3])
    )


def of_sessions(chance):
    """Requests to resumable sessions that do not exist, with ranges that cannot be."""
    place = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name=a"
    place += chance.choice(["", "&upload_id=", "&upload_id=x", "&upload_id=../x", "&upload_id=" + "a" * 900])
    lines = [f"Content-Range: {chance.choice(CHUNK_RANGES)}", f"X-Upload-Content-Length: {chance.choice(TEXTS)}"]
    return request_bytes(
        chance.choice(["PUT", "POST", "DELETE"]),
        place,
        lines[: chance.choice([1, 2])],
        chance.choice([b"", b"x", b"null"]),
    )


def of_xml(chance):
    place = chance.choice(
        [f"/{BUCKET}?versioning", f"/{BUCKET}/a?uploadId=x", f"/{BUCKET}/a?uploads", f"/{BUCKET}?location"]
    )
    return request_bytes(chance.choice(["PUT", "POST"]), place, ["Content-Type: text/xml"], chance.choice(XML))


def of_nesting(chance):
    """Batches in batches, uploads in uploads, forms in forms."""
    outer = chance.choice(["multipart/mixed", "multipart/related", "multipart/form-data"])
    inner = b'--a\r\nContent-Type: multipart/mixed; boundary=a\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
    call = b"POST /batch/storage/v1 HTTP/1.1\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    call += b"--b\r\n\r\nGET / HTTP/1.1\r\n--b--"
    body = (
        inner * chance.choice([1, 2, 500])
        + chance.choice([call, b"{}", b""])
        + b"\r\n--a--" * chance.choice([0, 1, 500])
    )
    place = chance.choice(
        [
            "/batch/storage/v1",
            "/batch",
            "/run/batch",
            f"/{BUCKET}",
            f"/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart",
        ]
    )
    return request_bytes("POST", place, [f"Content-Type: {outer}; boundary=a"], body)


def of_upgrades(chance):
    kinds = ["websocket", "h2c", "TLS/1.0", "a" * 900]
    lines = [
        f"Upgrade: {chance.choice(kinds)}",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]
    return request_bytes("GET", target(chance), ["Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAAA", *lines])


def of_packed(chance):
    packed = gzip.compress(bytes(chance.choice([10, 1 << 20, 12 << 20])))
    body = chance.choice([packed, packed[:-5], packed * 3, b"\x1f\x8b" + packed, b""])
    return request_bytes(
        "POST", target(chance), [f"Content-Encoding: {chance.choice(['gzip', 'x-gzip', 'br', 'gzip, gzip'])}"], body
    )


def of_pieces(chance):
    """Bytes that are no request at all, or the beginning of one."""
    whole = request_bytes("POST", target(chance), body=b"{}" * 50)
    return chance.choice(
        [
            whole[: chance.randrange(len(whole))],
            b"\x16\x03\x01" + whole,
            b"\r\n" * 50 + whole,
            whole + whole,
            b"\x00" * 900,
        ]
    )


KINDS = {
    "headers": of_headers,
    "long heads": of_long_heads,
    "targets": of_targets,
    "long targets": of_long_targets,
    "methods": of_methods,
    "content types": of_types,
    "chunks": of_chunks,
    "ranges": of_ranges,
    "sessions": of_sessions,
    "XML": of_xml,
    "nesting": of_nesting,
    "upgrades": of_upgrades,
    "packed bodies": of_packed,
    "pieces": of_pieces,
}
