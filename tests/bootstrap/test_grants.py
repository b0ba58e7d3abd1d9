"""Before a set-up asks, it shows who gets and who loses which role."""

from __future__ import annotations

from typing import Any

import pytest

from bezel.engine.events.values import Change, Op
from bezel.gitops.project_setup.grants import grants_text

MEMBER = "user:you@acme.example"
ON_PROJECT = "gcp:projects/iAMMember:IAMMember"
ON_BUCKET = "gcp:storage/bucketIAMMember:BucketIAMMember"
ON_KEY = "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember"


def change(op: Op, kind: str, **states: dict[str, Any]) -> Change:
    return Change(op, f"urn:pulumi:s::p::{kind}::{op}", kind, old=states.get("old"), new=states.get("new"))


@pytest.mark.parametrize(
    ("kind", "inputs", "text"),
    [
        (ON_PROJECT, {"project": "acme", "role": "projects/acme/roles/bezelDeploy"}, "bezelDeploy on the project acme"),
        (ON_BUCKET, {"bucket": "b", "role": "roles/storage.objectUser"}, "roles/storage.objectUser on the bucket b"),
        (ON_KEY, {"role": "roles/cloudkms.admin"}, "roles/cloudkms.admin on the key"),
        (
            ON_BUCKET,
            {"bucket": "b", "role": "roles/x", "condition": {"title": "plans"}},
            "roles/x on the bucket b (condition plans)",
        ),
    ],
)
def test_a_new_grant_is_told_with_its_role_and_place(kind: str, inputs: dict[str, Any], text: str) -> None:
    assert grants_text([change("create", kind, new={"member": MEMBER, **inputs})]) == f"  {MEMBER} gets {text}"


def test_grants_of_one_member_share_a_line_and_a_lost_one_has_its_own() -> None:
    first = {"member": MEMBER, "project": "acme", "role": "roles/a"}
    made = [change("create", ON_PROJECT, new=first), change("create", ON_PROJECT, new=first | {"role": "roles/b"})]
    text = grants_text([*made, change("delete", ON_PROJECT, old=first)])
    assert text.splitlines() == [
        f"  {MEMBER} gets roles/a on the project acme, roles/b on the project acme",
        f"  {MEMBER} loses roles/a on the project acme",
    ]


def test_what_is_no_grant_is_not_told() -> None:
    assert grants_text([change("create", "gcp:storage/bucket:Bucket", new={"name": "b"})]) == ""
