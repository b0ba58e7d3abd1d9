"""Settings of buckets, keys of service accounts, and jobs of Cloud Scheduler, compared with their declaration. Pure.

Fields are those of the discovery document of storage v1 (Bucket); a bucket's declaration has the engine's names.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from bezel.outside_changes.change import NOT_SET, OutsideChange
from bezel.outside_changes.fields import Field, differences, text_of
from bezel.outside_changes.service_rules import RESTORE
from bezel_base.text.shell import shell_word

BUCKET_FIELDS = (
    Field("versioning.enabled", "cost", default=False),
    Field("autoclass.enabled", "cost", default=False),
    Field("autoclass.terminalStorageClass", "cost"),
    Field("storageClass", "cost", "STANDARD"),
    Field("rpo", "cost", "DEFAULT"),
    Field("retentionPolicy.retentionPeriod", "cost", 0),
    Field("retentionPolicy.isLocked", "cost", default=False),
    Field("defaultEventBasedHold", "cost", default=False),
    Field("billing.requesterPays", "cost", default=False, declared="requesterPays"),
    Field("logging.logBucket", "cost", ""),
    Field("encryption.defaultKmsKeyName", "access", ""),
    Field("ipFilter.mode", "access", "Disabled"),
    Field("ipFilter.allowAllServiceAgentAccess", "access"),
    Field("ipFilter.allowCrossOrgVpcs", "access"),
    Field("ipFilter.publicNetworkSource.allowedIpCidrRanges", "access"),
    Field("website.mainPageSuffix", "access", ""),
)
"""Compared fields of a bucket, beside those that are compared part by part."""
_CONDITIONS = {
    "matchesStorageClasses": "matchesStorageClass", "matchesPrefixes": "matchesPrefix",
    "matchesSuffixes": "matchesSuffix",
}  # fmt: skip
"""The engine's names of a rule's conditions that are not Google's."""
_SOFT_DELETE = 604_800
"""Seconds for which Cloud Storage keeps a deleted object by default (its page on soft delete)."""


def bucket_changes(name: str, declared: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """The changes of a bucket that the program made.

    Args:
        name: Name of the bucket.
        declared: Its declared inputs.
        live: The bucket as Cloud Storage has it.
    """
    what, access = f"bucket {name}", live.get("iamConfiguration") or {}
    wanted = str(declared.get("publicAccessPrevention") or "inherited")
    there = str(access.get("publicAccessPrevention") or "inherited").replace("unspecified", "inherited")
    if there != wanted:
        setting = "iamConfiguration.publicAccessPrevention"
        yield OutsideChange(what, setting, there, wanted, "access", RESTORE)
    uniform = bool((access.get("uniformBucketLevelAccess") or {}).get("enabled"))
    if bool(declared.get("uniformBucketLevelAccess")) != uniform:
        setting = "iamConfiguration.uniformBucketLevelAccess.enabled"
        yield OutsideChange(what, setting, str(uniform).lower(), str(not uniform).lower(), "access", RESTORE)
    for item, value, declared_value in differences(BUCKET_FIELDS, declared, live):
        yield OutsideChange(what, item.path, text_of(value), text_of(declared_value), item.kind, RESTORE)
    retained = "Enabled" if declared.get("enableObjectRetention") else ""
    if (mode := (live.get("objectRetention") or {}).get("mode") or "") != retained:
        yield OutsideChange(what, "objectRetention.mode", text_of(mode), text_of(retained), "cost", RESTORE)
    rules = [
        sorted(map(_rule_text, each or ()))
        for each in ((live.get("lifecycle") or {}).get("rule"), declared.get("lifecycleRules"))
    ]
    if rules[0] != rules[1]:
        yield OutsideChange(what, "lifecycle.rule", text_of(rules[0]), text_of(rules[1]), "cost", RESTORE)
    kept = int((live.get("softDeletePolicy") or {}).get("retentionDurationSeconds") or 0)
    declared_value = (declared.get("softDeletePolicy") or {}).get("retentionDurationSeconds")
    if kept > int(declared_value if declared_value is not None else _SOFT_DELETE):
        repair = f"`gcloud storage buckets update gs://{shell_word(name)} --soft-delete-duration=7d`."
        yield OutsideChange(
            what,
            "softDeletePolicy.retentionDurationSeconds",
            str(kept),
            str(declared_value or _SOFT_DELETE),
            "cost",
            repair,
        )
    rows = list(live.get("cors") or ())
    if rows and not declared.get("cors"):
        origins = ", ".join(str(origin) for row in rows for origin in row.get("origin") or ())
        yield OutsideChange(what, "cors", origins or "any", NOT_SET, "access", RESTORE)


def _rule_text(rule: Mapping[str, Any]) -> str:
    """A rule of the lifecycle, the same for Google's names and the engine's."""
    action: Mapping[str, Any] = rule.get("action") or {}
    condition: dict[str, Any] = dict(rule.get("condition") or {})
    if state := condition.pop("withState", None):
        condition |= {"LIVE": {"isLive": True}, "ARCHIVED": {"isLive": False}}.get(str(state), {})
    values: dict[str, Any] = {}
    for key, value in condition.items():
        # The engine's own notes, and its zero values; `isLive: false` is a condition.
        if (
            key == "noAge"
            or key.startswith(("send", "__"))
            or value is None
            or (value in ("", [], 0) and value is not False)
        ):
            continue
        values[_CONDITIONS.get(key, key)] = sorted(map(str, value)) if isinstance(value, list | tuple) else value
    if condition.get("age") == 0 and condition.get("sendAgeIfZero", not values):
        values["age"] = 0
    values = {key: int(value) if isinstance(value, float) else value for key, value in values.items()}
    conditions = ", ".join(f"{key} {json.dumps(values[key])}" for key in sorted(values))
    return " ".join(filter(None, (str(action.get("type")), str(action.get("storageClass") or ""), conditions)))


def repository_changes(name: str, declared: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """The scanner of a repository, which costs money by image, where it was off when the program last read it.

    Args:
        name: `projects/P/locations/L/repositories/R`.
        declared: Its declared inputs, with the scanner as the state has it.
        live: The repository as Artifact Registry has it.
    """
    states = [
        str((side.get("vulnerabilityScanningConfig") or {}).get("enablementState") or "") for side in (live, declared)
    ]
    if states[0] != "SCANNING_ACTIVE" or states[0] == states[1]:
        return
    _, project, _, location, _, short = name.split("/")
    repair = (
        f"`gcloud artifacts repositories update {shell_word(short)} --location={shell_word(location)} "
        f"--project={shell_word(project)} --disable-vulnerability-scanning`."
    )
    setting = "vulnerabilityScanningConfig.enablementState"
    yield OutsideChange(f"repository {short}", setting, states[0], states[1] or NOT_SET, "cost", repair)


def key_changes(email: str, project: str, keys: Iterable[Mapping[str, Any]]) -> Iterator[OutsideChange]:
    """User-managed keys of a service account, made or uploaded; Google's own are not among them."""
    for key in keys:
        if key.get("keyType", "USER_MANAGED") != "USER_MANAGED" or key.get("disabled"):
            continue
        short = str(key.get("name") or "").rpartition("/")[2]
        repair = (
            f"`gcloud iam service-accounts keys delete {shell_word(short)} --iam-account={shell_word(email)} "
            f"--project={shell_word(project)}`."
        )
        yield OutsideChange(f"service account {email}", "keys", short, NOT_SET, "access", repair)


def job_changes(
    jobs: Iterable[Mapping[str, Any]], declared: Collection[str], targets: Collection[str], emails: Collection[str]
) -> Iterator[OutsideChange]:
    """Jobs that are paused, and undeclared ones that call what the stack has, or act as one of its accounts.

    Args:
        jobs: Jobs of a location.
        declared: Names of the declared jobs.
        targets: Parts of the addresses of what the stack has, e.g. `/services/llm`.
        emails: Its service accounts.
    """
    for job in jobs:
        name, http = str(job.get("name")), job.get("httpTarget") or {}
        short, uri = name.rpartition("/")[2], str(http.get("uri") or "")
        _, project, _, location, *_ = name.split("/")
        place = f" --location={shell_word(location)} --project={shell_word(project)}`."
        if name in declared:
            if job.get("state") not in {None, "ENABLED"}:
                repair = f"`gcloud scheduler jobs resume {shell_word(short)}" + place
                yield OutsideChange(f"job {short}", "state", str(job["state"]), "ENABLED", "cost", repair)
            continue
        acts_as = {str((http.get(kind) or {}).get("serviceAccountEmail")) for kind in ("oauthToken", "oidcToken")}
        path = f"{uri.partition('?')[0].replace(':', '/')}/"
        if acts_as & set(emails) or any(f"{target}/" in path for target in targets):
            text = f"{http.get('httpMethod') or 'POST'} {uri}"
            repair = f"`gcloud scheduler jobs delete {shell_word(short)}" + place
            yield OutsideChange(f"job {short}", "httpTarget", text, NOT_SET, "cost", repair)
