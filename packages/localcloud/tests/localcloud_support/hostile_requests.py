"""Requests that ask for much work: deep, long and wide bodies, patterns, digits and tokens, over all routes."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from bezel_localcloud.http.messages import definitions
from bezel_localcloud.http.methods import served_methods
from localcloud_support.in_process import PARENT

DEEP = {"a": {}}
for _ in range(95):
    DEEP = {"a": DEEP}
TEXTS = [
    "^(a+)+$",
    "(a*)*b",
    "a" * 5000 + "!",
    "{" * 900,
    "**/" * 300,
    "[" * 900,
    "\u00b2",
    "\u0661",
    "9" * 5000,
    "-1",
    "1e999",
    " " * 5000,
    "a/" * 2500,
    "a(" * 2500,
    "'a'" + ".replace('a', 'aaaaaaaa')" * 12,
    'x=~"(a+)+$" ' * 200,
    "NOT " * 900,
    "(" * 900,
    "assertion.a.all(b, assertion.a.all(c, true))",
    "max_over_time(" * 20 + "vector(1)" + "[1h:1s])" * 20,
    "sum by (a) (" * 49 + "a" + ")" * 49,
    "W10.W10.W10",
    "\x00",
    "..",
    "%",
    "\u00e9" * 900,
]
VALUES = [
    *TEXTS,
    DEEP,
    [DEEP],
    [[]] * 500,
    list(range(500)),
    {str(n): n for n in range(500)},
    2**70,
    1e300,
    -1,
    True,
    None,
]
RAW = [
    b"[" * 100_000,
    b'{"a":' * 3000 + b"1" + b"}" * 3000,
    b"{" + b'"a":1,' * 500,
    b'"\\ud800"',
    b"\xff\xfe{",
    b"9" * 6000,
]
OTHERS = [
    ("GET", "/hostile-shelf?max-keys={}"),
    ("GET", "/hostile-shelf?prefix={}&delimiter=a"),
    ("PUT", "/hostile-shelf/{}"),
    ("PUT", "/hostile-shelf/a?uploadId={}&partNumber={}"),
    ("POST", "/hostile-shelf/a?uploadId={}"),
    ("POST", "/hostile-shelf"),
    ("GET", "/hostile-shelf/a?GoogleAccessId=a&Expires={}&Signature={}"),
    ("GET", "/v2/{}/tags/list?n={}"),
    ("GET", "/v2/_catalog?n={}&last={}"),
    ("PUT", "/v2/bezel-local/hub/x/manifests/{}"),
    ("POST", "/v2/x/y/z/blobs/uploads/?digest={}"),
    ("POST", "/token"),
    ("POST", "/sts/v1/token"),
    ("POST", "/batch/storage/v1"),
    ("GET", "/v2/{}"),
    ("GET", "/huggingface/{}"),
    ("GET", "/v1{}/projects"),
    ("POST", "/upload/storage/v1/b/hostile-shelf/o?uploadType=multipart&name={}"),
]


@dataclass(frozen=True)
class Hostile:
    """One request as it is sent."""

    verb: str
    path: str
    content: bytes = b""
    headers: dict = field(default_factory=dict)


def hostile_requests(count: int) -> Iterator[Hostile]:
    """The same requests every time, over each route in turn."""
    chance = random.Random(40)  # noqa: S311 - the same requests every time
    # The deployer keeps its rights and its APIs, or the rest would be refused at the door.
    kept = ("serviceusage.", "cloudresourcemanager.projects.set")
    methods = [
        method
        for method in sorted(served_methods().values(), key=lambda each: each.id)
        if not method.id.startswith(kept)
    ]
    for number in range(count):
        if number % 4 == 3:
            verb, form = OTHERS[number // 4 % len(OTHERS)]
            yield Hostile(verb, fill(form, chance), content(chance, None), headers(chance))
        else:
            method = methods[number % len(methods)]
            path = method.path.replace("projects/{}", PARENT)
            names = [f"{quote(name)}={quote_text(chance)}" for name in method.query if chance.random() < 0.5]
            names += [f"fields={quote_text(chance)}"] * (chance.random() < 0.3)
            yield Hostile(
                method.http,
                f"{fill(path, chance)}?{'&'.join(names)}"[:50_000],
                content(chance, method),
                headers(chance),
            )


def fill(form, chance):
    for _ in range(form.count("{}")):
        form = form.replace(
            "{}", chance.choice(["us-east4", "a", "hostile-shelf", "global", quote_text(chance)[:3000]]), 1
        )
    return form


def quote_text(chance):
    return quote(chance.choice(TEXTS)[:3000], safe="")


def content(chance, method):
    if chance.random() < 0.2:
        return chance.choice(RAW)
    fields = definitions().get(method.request, {}) if method and method.request else {"a": ""}
    return json.dumps({name: chance.choice(VALUES) for name in fields if chance.random() < 0.5}).encode()


def headers(chance):
    kinds = ["application/json", "multipart/related; boundary=a", "multipart/mixed; boundary=(a+)+", "text/plain"]
    chosen = {"content-type": chance.choice(kinds)}
    if chance.random() < 0.1:
        chosen["Authorization"] = f"Bearer {chance.choice(['a', 'W10.W10.W10', 'e30.e30.e30', 'a.' * 1000])}"
    return chosen
