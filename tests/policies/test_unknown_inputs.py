"""Inputs that may be unknown in a preview, as docs/policies.md lists them, and those that may not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy

from tests.support.policies.harness import LIMITS, POLICIES, SERVICE, UNKNOWN, change, service, violations

DOCUMENT = Path(__file__).parents[2] / "docs" / "policies.md"
INPUTS: dict[str, dict[str, Any]] = {
    SERVICE: service(
        {
            "template.volumes": [{"name": "weights", "gcs": {"bucket": "acme-models", "readOnly": True}}],
            "template.vpcAccess": {"networkInterfaces": [{"network": "llm", "subnetwork": "llm"}]},
        }
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": {
        "bucket": "acme-models",
        "role": "roles/storage.objectViewer",
        "member": "serviceAccount:chat@acme-llm.iam.gserviceaccount.com",
    },
    "pulumi-python:dynamic/components:ModelFiles": {
        "bucket": "acme-models",
        "path": "gemma",
        "source": "google/gemma",
        "bucket_url": "gs://acme-models",
    },
}


def rows(number: int) -> list[tuple[str, str, str]]:
    """The rows of a table of the section, as its cells."""
    section = DOCUMENT.read_text(encoding="utf-8").partition("## Inputs that may be unknown")[2].partition("\n## ")[0]
    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[number]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return [(kind.strip("`"), path.strip("`"), last) for kind, path, last in cells]


def policies_that_refuse(kind: str, inputs: dict[str, Any]) -> list[str]:
    """Names of the policies that report something of a resource."""
    return [
        name
        for name, policy in POLICIES.items()
        if isinstance(policy, ResourceValidationPolicy)
        if policy.enforcement_level is not EnforcementLevel.REMEDIATE
        if violations(name, kind, inputs, LIMITS.get(name, {}))
    ]


@pytest.mark.parametrize("kind", INPUTS)
def test_no_policy_refuses_the_known_values(kind: str) -> None:
    assert policies_that_refuse(kind, INPUTS[kind]) == []


@pytest.mark.parametrize(("kind", "path", "argument"), rows(0))
def test_listed_input_may_be_unknown(kind: str, path: str, argument: str) -> None:
    assert argument
    assert policies_that_refuse(kind, change(INPUTS[kind], {path: UNKNOWN})) == []


@pytest.mark.parametrize(("kind", "path", "policy"), rows(1))
def test_input_that_a_policy_reads_may_not_be_unknown(kind: str, path: str, policy: str) -> None:
    assert policy.strip("`") in policies_that_refuse(kind, change(INPUTS[kind], {path: UNKNOWN}))
