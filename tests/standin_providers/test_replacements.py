"""For each property of each row: whether its change takes a new resource, and how that is known.

Known from the resource's own path (what a URL names cannot be changed by a request to it), from the SDK's
documentation, from Google's discovery documents, or from a source named in `replacements.json`. Top-level properties
are held by the recordings as well (`stables` of every Diff, see tools/traffic/compare.py).
"""

import fnmatch
import functools
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Mark
from bezel_pulumi_offline.resources import TYPES
from tests.support.record_results import check_results
from tests.support.standin_providers.sdk import documentation, short

# The published SDK's docs of every resource are read, and loading that of Compute alone takes seconds.
pytestmark = pytest.mark.slow
STATED = json.loads((Path(__file__).parent / "replacements.json").read_text())
HINT = re.compile(
    r"forces a new|recreate the|(?:can|may) ?not be changed|trigger replacement|immutable\b(?!_)", re.IGNORECASE
)
SCHEMAS = {
    "gcp:artifactregistry/repository:Repository": ("artifactregistry.v1", "Repository"),
    "gcp:billing/budget:Budget": ("billingbudgets.v1", "GoogleCloudBillingBudgetsV1Budget"),
    "gcp:cloudrunv2/service:Service": ("run.v2", "GoogleCloudRunV2Service"),
    "gcp:compute/firewall:Firewall": ("compute.v1", "Firewall"),
    "gcp:compute/network:Network": ("compute.v1", "Network"),
    "gcp:compute/router:Router": ("compute.v1", "Router"),
    "gcp:compute/routerNat:RouterNat": ("compute.v1", "RouterNat"),
    "gcp:compute/subnetwork:Subnetwork": ("compute.v1", "Subnetwork"),
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": ("iam.v1", "WorkloadIdentityPool"),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": ("iam.v1", "WorkloadIdentityPoolProvider"),
    "gcp:kms/cryptoKey:CryptoKey": ("cloudkms.v1", "CryptoKey"),
    "gcp:kms/keyRing:KeyRing": ("cloudkms.v1", "KeyRing"),
    "gcp:projects/iAMCustomRole:IAMCustomRole": ("iam.v1", "Role"),
    "gcp:monitoring/notificationChannel:NotificationChannel": ("monitoring.v3", "NotificationChannel"),
    "gcp:monitoring/alertPolicy:AlertPolicy": ("monitoring.v3", "AlertPolicy"),
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": ("monitoring.v3", "UptimeCheckConfig"),
    "gcp:monitoring/dashboard:Dashboard": ("monitoring.v1", "Dashboard"),
    "gcp:cloudscheduler/job:Job": ("cloudscheduler.v1", "Job"),
    "gcp:secretmanager/secret:Secret": ("secretmanager.v1", "Secret"),
    "gcp:secretmanager/secretVersion:SecretVersion": ("secretmanager.v1", "SecretVersion"),
    "gcp:serviceaccount/account:Account": ("iam.v1", "ServiceAccount"),
    "gcp:storage/bucket:Bucket": ("storage.v1", "Bucket"),
    "gcp:storage/bucketObject:BucketObject": ("storage.v1", "Object"),
}


@functools.cache
def discovery(name: str) -> dict[str, Any]:
    text = files("googleapiclient").joinpath("discovery_cache", "documents", f"{name}.json").read_text("utf-8")
    return dict(json.loads(text)["schemas"])


def settable(fields: Fields, path: str = "") -> Iterator[tuple[str, Field]]:
    for item in fields:
        if not item.marks & (Mark.OUTPUT | Mark.REFUSED) and not item.name.startswith("effective"):
            yield path + item.name, item
            yield from settable(item.fields, f"{path}{item.name}.")


def said_by_google(token: str, fields: Fields, path: str) -> str:
    """The discovery document's words on a property that is in the body, found by its place on the wire."""
    if token not in SCHEMAS:
        return ""
    document, name = SCHEMAS[token]
    schema: dict[str, Any] = discovery(document)[name]
    words = ""
    for part in path.split("."):
        item = next(found for found in fields if found.name == part)
        for step in item.path:
            schema = schema.get("properties", {}).get(step, {})
            words = schema.get("description", "")
            inner = schema.get("items") or schema.get("additionalProperties") or schema
            schema = discovery(document)[inner["$ref"]] if "$ref" in inner else inner
        fields = item.fields
    return words


def stated(part: str, token: str, path: str) -> bool:
    return any(
        fnmatch.fnmatchcase(token, entry["of"])
        and any(fnmatch.fnmatchcase(path, pattern) for pattern in entry["paths"])
        for entry in STATED[part]
    )


@functools.cache
def known_by(token: str) -> dict[str, list[str]]:
    """How it is known that a property replaces: path, documentation, discovery, stated; nothing where it is not."""
    row = TYPES[token]
    named = set(re.findall(r"{(\w+)}", row.id + row.collection + row.path))
    docs = documentation(token)
    found: dict[str, list[str]] = {}
    for path, _ in settable(row.fields):
        ways = {
            "path": path in named,
            "documentation": bool(HINT.search(docs.get(path, ""))),
            "discovery": bool(HINT.search(said_by_google(token, row.fields, path))),
            "stated": stated("replaces", token, path),
        }
        found[path] = [way for way, so in ways.items() if so]
    return found


@pytest.mark.parametrize("token", TYPES)
def test_what_replaces_is_known_to(token: str) -> None:
    ways = known_by(token)
    for path, item in settable(TYPES[token].fields):
        if item.marks & Mark.NEW:
            assert ways[path], f"{path} replaces, and nothing says so: replacements.json"
            assert not stated("updates", token, path)
        elif ways[path]:
            assert stated("updates", token, path), f"{path} does not replace, though it is known by {ways[path]}"


@pytest.mark.parametrize("part", ["replaces", "updates"])
def test_what_is_stated_is_there_and_needed(part: str) -> None:
    for entry in STATED[part]:
        for pattern in entry["paths"]:
            met = [
                (token, path)
                for token in TYPES
                if fnmatch.fnmatchcase(token, entry["of"])
                for path, item in settable(TYPES[token].fields)
                if fnmatch.fnmatchcase(path, pattern) and bool(item.marks & Mark.NEW) == (part == "replaces")
            ]
            assert met, f"{entry['of']} {pattern}"
            assert any("".join(known_by(token)[path]) == "stated" for token, path in met) or part == "updates"
        assert entry["why"]
        assert entry["evidence"]


def test_the_table_of_replacements() -> None:
    rows = []
    for token in sorted(TYPES):
        ways, fields = known_by(token), dict(settable(TYPES[token].fields))
        replacing = [path for path, item in fields.items() if item.marks & Mark.NEW]
        by = [sum(way in ways[path] for path in replacing) for way in ("path", "documentation", "discovery", "stated")]
        rows.append([short(token), len(fields), len(replacing), *by])
    notes = [
        {
            "what": f"{entry['of']}, {what}: {', '.join(entry['paths'])}",
            "why": entry["why"],
            "evidence": entry["evidence"],
        }
        for part, what in (("replaces", "a new resource"), ("updates", "in place"))
        for entry in STATED[part]
    ]
    check_results(
        "provider-replacements",
        {
            "title": "Google provider: update or replacement",
            "document": "fidelity",
            "order": 12,
            "about": "For every property of every row: whether a change of it takes a new resource, and how that is "
            "known (one property may be known in several ways): it is part of the resource's path; the SDK's "
            "documentation says so; Google's discovery document does; a source of its own is stated below.",
            "command": "pytest tests/standin_providers/test_replacements.py",
            "stamp": None,
            "columns": ["resource", "properties", "replace", "path", "documentation", "discovery", "stated"],
            "rows": rows,
            "notes": notes,
        },
    )
