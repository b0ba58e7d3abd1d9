"""Buckets: each setting with a cost or a way in is compared with its declaration, and with Google's default."""

import json
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from bezel.outside_changes.other_rules import BUCKET_FIELDS, bucket_changes

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
OWN = {"uniformBucketLevelAccess": True, "publicAccessPrevention": "enforced"}
# A new bucket as Cloud Storage has it.
LIVE: dict[str, Any] = {
    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"},
    "storageClass": "STANDARD", "softDeletePolicy": {"retentionDurationSeconds": "604800"}, "rpo": "DEFAULT",
    "versioning": {"enabled": False}, "hierarchicalNamespace": {"enabled": False}, "locationType": "region",
}  # fmt: skip
RULE: dict[str, Any] = {
    "action": {"type": "Delete"},
    "condition": {"age": 30, "isLive": False, "matchesPrefix": ["tmp/"]},
}
OWN_RULE = {
    "action": {"type": "Delete", "storageClass": ""},
    "condition": {"age": 30.0, "withState": "ARCHIVED", "matchesPrefixes": ["tmp/"], "numNewerVersions": 0,
                  "sendAgeIfZero": True, "__defaults": ["age"], "createdBefore": "", "matchesSuffixes": []},
}  # fmt: skip


def change_names(live: dict[str, Any], declared: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    changes = bucket_changes("models", OWN | (declared or {}), LIVE | live)
    return [(change.setting, change.kind) for change in changes]


# Live settings, the finding, and the declaration that has them.
CASES: list[tuple[dict[str, Any], str, str, dict[str, Any]]] = [
    ({"versioning": {"enabled": True}}, "versioning.enabled", "cost", {"versioning": {"enabled": True}}),
    ({"autoclass": {"enabled": True, "terminalStorageClass": "NEARLINE"}}, "autoclass.enabled", "cost",
     {"autoclass": {"enabled": True, "terminalStorageClass": "NEARLINE"}}),
    ({"storageClass": "ARCHIVE"}, "storageClass", "cost", {"storageClass": "ARCHIVE"}),
    ({"rpo": "ASYNC_TURBO"}, "rpo", "cost", {"rpo": "ASYNC_TURBO"}),
    ({"retentionPolicy": {"retentionPeriod": "86400"}}, "retentionPolicy.retentionPeriod", "cost",
     {"retentionPolicy": {"retentionPeriod": 86400}}),
    ({"retentionPolicy": {"isLocked": True}}, "retentionPolicy.isLocked", "cost",
     {"retentionPolicy": {"isLocked": True}}),
    ({"defaultEventBasedHold": True}, "defaultEventBasedHold", "cost", {"defaultEventBasedHold": True}),
    ({"objectRetention": {"mode": "Enabled"}}, "objectRetention.mode", "cost", {"enableObjectRetention": True}),
    ({"billing": {"requesterPays": True}}, "billing.requesterPays", "cost", {"requesterPays": True}),
    ({"logging": {"logBucket": "other"}}, "logging.logBucket", "cost", {"logging": {"logBucket": "other"}}),
    ({"encryption": {"defaultKmsKeyName": "k"}}, "encryption.defaultKmsKeyName", "access",
     {"encryption": {"defaultKmsKeyName": "k"}}),
    ({"ipFilter": {"mode": "Enabled"}}, "ipFilter.mode", "access", {"ipFilter": {"mode": "Enabled"}}),
    ({"website": {"mainPageSuffix": "index.html"}}, "website.mainPageSuffix", "access",
     {"website": {"mainPageSuffix": "index.html"}}),
    ({"lifecycle": {"rule": [RULE]}}, "lifecycle.rule", "cost", {"lifecycleRules": [OWN_RULE]}),
    ({"softDeletePolicy": {"retentionDurationSeconds": "7776000"}}, "softDeletePolicy.retentionDurationSeconds",
     "cost", {"softDeletePolicy": {"retentionDurationSeconds": 7776000}}),
    ({"cors": [{"origin": ["*"]}]}, "cors", "access", {"cors": [{"origins": ["*"]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("live", "setting", "kind", "declared"), CASES)
def test_each_setting_of_a_bucket_is_named_unless_it_is_declared(
    live: dict[str, Any], setting: str, kind: str, declared: dict[str, Any]
) -> None:
    assert change_names({}) == []
    assert change_names(live) == [(setting, kind)]
    assert change_names(live, declared) == []


def test_what_a_bucket_lost_is_named() -> None:
    assert change_names({}, {"lifecycleRules": [OWN_RULE]}) == [("lifecycle.rule", "cost")]
    conditions = RULE["condition"]
    for condition in ({**conditions, "age": 3000}, {"age": 30, "matchesPrefix": ["tmp/"]}):
        other = {**RULE, "condition": condition}
        assert change_names({"lifecycle": {"rule": [other]}}, {"lifecycleRules": [OWN_RULE]}) == [
            ("lifecycle.rule", "cost")
        ]
    filtered = {"ipFilter": {"mode": "Enabled", "publicNetworkSource": {"allowedIpCidrRanges": ["10.0.0.0/8"]}}}
    opened = {"ipFilter": {"mode": "Enabled", "publicNetworkSource": {"allowedIpCidrRanges": ["0.0.0.0/0"]}}}
    assert change_names(filtered, filtered) == []
    assert change_names(opened, filtered) == [("ipFilter.publicNetworkSource.allowedIpCidrRanges", "access")]
    assert change_names({}, filtered)[0] == ("ipFilter.mode", "access")


# Compared part by part; Google's own; fixed when the bucket is made; or without a price and a way in.
_OTHERS = (
    "iamConfiguration softDeletePolicy cors lifecycle objectRetention etag generation hardDeleteTime id kind "
    "locationType metageneration owner projectNumber satisfiesPZI satisfiesPZS selfLink softDeleteTime timeCreated "
    "updated customPlacementConfig hierarchicalNamespace location name labels "
    "acl defaultObjectAcl"  # under uniform access, which is compared, they give nobody access
)


def test_each_field_of_a_bucket_is_compared_or_known() -> None:
    schema = json.loads((DOCUMENTS / "storage.v1.json").read_text())["schemas"]["Bucket"]["properties"]
    assert {item.path.partition(".")[0] for item in BUCKET_FIELDS} | set(_OTHERS.split()) == set(schema)
    for item in BUCKET_FIELDS:
        properties = schema
        for part in item.path.split("."):
            assert part in properties, item.path
            properties = properties[part].get("properties", {})
