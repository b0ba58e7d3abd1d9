"""Jobs of Cloud Scheduler: what a job may say, the values that Google fills in, and when it is due. Pure.

Targets of App Engine and Pub/Sub, and schedules in the English-like format, are refused as not served.

A job is due on the platform's clock: the time until its next run passes as much faster as the platform's other waits.
So each row holds where the schedule's own time stood (`clock`) at an instant of this machine (`at`).
"""

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from bezel_base.cron import CronError, parse_cron, time_zone
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.errors import ApiError, invalid, refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of, timestamp

KIND = "schedulerJob"
"""Kind of the rows: {"job": the job, "clock", "at", "next": Unix seconds, "retries", "first": of this execution}."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_BAD_SCHEDULE = "Schedule or time zone is invalid."
_LONGEST_URI, _LONGEST_DESCRIPTION = 2083, 500
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_RETRY = {"maxRetryDuration": "0s", "minBackoffDuration": "5s", "maxBackoffDuration": "3600s", "maxDoublings": 5}
_MOST_RETRIES = 5
_DEADLINE, _SHORTEST, _LONGEST = 180.0, 15.0, 1800.0
_OWN_HEADER = re.compile(r"(?i)(host|content-length|x-google-.*|x-appengine-.*|x-cloudscheduler.*)")


def job_with_defaults(job: Json) -> Json:
    """A job's settable fields with the values that Google fills in.

    Raises:
        ApiError: INVALID_ARGUMENT for a job that cannot be; NotServedError for some parts.
    """
    refuse_unserved(job, ("appEngineHttpTarget", "pubsubTarget"), "a job")
    target = job.get("httpTarget")
    if not target:
        raise invalid("Job target is not specified.", ("job.target", "is required"))
    if len(job.get("description", "")) > _LONGEST_DESCRIPTION:
        raise invalid(f"Job description is longer than {_LONGEST_DESCRIPTION} characters.", ("job.description", "long"))
    zone = job.get("timeZone") or "UTC"
    schedule = str(job.get("schedule", ""))
    if re.match(r"\s*(every|[0-9]+(st|nd|rd|th)|first|second|third|fourth|fifth)\b", schedule, re.IGNORECASE):
        raise unserved_error(f"the schedule {schedule!r}", "use the unix-cron format, such as */5 * * * *")
    if next_run(schedule, zone, 0.0) is None:
        raise invalid(_BAD_SCHEDULE, ("job.schedule", "never occurs"))
    deadline = _seconds(job.get("attemptDeadline"), _DEADLINE, "attempt_deadline")
    if not _SHORTEST <= deadline <= _LONGEST:
        raise invalid("attempt_deadline must be in the range [15s, 1800s].", ("job.attempt_deadline", f"{deadline:g}s"))
    kept = {key: value for key, value in job.items() if value not in ("", None)}
    filled: Json = {"timeZone": zone, "attemptDeadline": f"{deadline:g}s"}
    if job.get("retryConfig") is not None:
        filled["retryConfig"] = _retry(job["retryConfig"])
    return kept | filled | {"httpTarget": _target(target)}


def _retry(retry: Json) -> Json:
    count = retry.get("retryCount", 0)
    if not 0 <= count <= _MOST_RETRIES:
        raise invalid("retry_count must be between 0 and 5.", ("job.retry_config.retry_count", str(count)))
    config = _RETRY | {key: value for key, value in retry.items() if value not in ("", None)}
    for name in ("maxRetryDuration", "minBackoffDuration", "maxBackoffDuration"):
        _seconds(str(config[name]), 0.0, f"retry_config.{name}")
    return config


def _target(sent: Json) -> Json:
    uri, method = str(sent.get("uri", "")), sent.get("httpMethod") or "POST"
    method = "POST" if method == "HTTP_METHOD_UNSPECIFIED" else method
    try:
        parts = urlsplit(uri)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or len(uri) > _LONGEST_URI:
        raise invalid("Invalid url for HttpTarget.uri.", ("job.http_target.uri", "must begin with http:// or https://"))
    if sent.get("body") and method not in _WITH_BODY:
        raise invalid("HttpTarget.body is only allowed for POST, PUT and PATCH.", ("job.http_target.body", method))
    oauth, oidc = sent.get("oauthToken"), sent.get("oidcToken")
    if oauth and oidc:
        raise invalid("Only one of oauth_token and oidc_token may be set.", ("job.http_target", "has two tokens"))
    headers = {name: text for name, text in (sent.get("headers") or {}).items() if not _OWN_HEADER.fullmatch(name)}
    if sent.get("body") and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/octet-stream"
    headers = {name: text for name, text in headers.items() if name.lower() != "user-agent"}
    target = {key: value for key, value in sent.items() if value not in ("", None)}
    target |= {"httpMethod": method, "headers": headers | {"User-Agent": "Google-Cloud-Scheduler"}}
    if oauth:
        target["oauthToken"] = {**oauth, "scope": oauth.get("scope") or SCOPE}
    if oidc:
        target["oidcToken"] = {**oidc, "audience": oidc.get("audience") or uri}
    return target


def account_of(job: Json) -> str:
    """The account whose token a job's request carries, "" for none."""
    target = job["httpTarget"]
    return str((target.get("oauthToken") or target.get("oidcToken") or {}).get("serviceAccountEmail", ""))


def next_run(schedule: str, zone: str, after: float) -> float | None:
    """Unix seconds of the first occurrence of a schedule after an instant, None if there is none.

    Raises:
        ApiError: INVALID_ARGUMENT if it is no schedule or no time zone.
    """
    try:
        moment = parse_cron(schedule).after(datetime.fromtimestamp(after, UTC), time_zone(zone))
    except CronError as error:
        raise invalid(_BAD_SCHEDULE, ("job.schedule", str(error))) from None
    return moment.timestamp() if moment else None


def new_row(job: Json, now: float) -> Json:
    """The row of a job whose schedule begins now."""
    next_time = next_run(job["schedule"], job["timeZone"], now) or now
    return {
        "job": job | {"scheduleTime": timestamp(next_time)},
        "clock": now,
        "at": now,
        "next": next_time,
        "retries": 0,
    }


def clock_of(row: Json, pace: PlatformClock) -> float:
    """Where the schedule's own time stands."""
    return float(row["clock"] + (pace.now() - row["at"]) / pace.seconds(1.0))


def due(row: Json, pace: PlatformClock) -> float:
    """Unix seconds of this machine at which a job is to run."""
    return float(row["at"] + pace.seconds(row["next"] - row["clock"]))


def row_after(row: Json, scheduled: float, started: float, pace: PlatformClock, *, succeeded: bool) -> Json:
    """The row after an execution: a retry if it failed and may be tried again, else the next occurrence.

    Args:
        row: The row as it is now.
        scheduled: The time that the execution was for.
        started: The schedule's time when it began: what was due before is not made up for.
        pace: The platform's clock.
        succeeded: Its outcome.
    """
    job, now = row["job"], clock_of(row, pace)
    config, retries, first = _RETRY | (job.get("retryConfig") or {}), row["retries"], row.get("first", scheduled)
    anchored: dict[str, Any] = row | {"clock": now, "at": pace.now(), "first": first, "retries": 0}
    if not succeeded and _tries_again(config, retries, now - first):
        again = now + _backoff(config, retries)
        return anchored | {"next": again, "retries": retries + 1, "job": job | {"scheduleTime": timestamp(again)}}
    del anchored["first"]
    following = next_run(job["schedule"], job["timeZone"], max(scheduled, started)) or now
    return anchored | {"next": following, "job": job | {"scheduleTime": timestamp(following)}}


def _tries_again(config: Json, retries: int, seconds: float) -> bool:
    longest = seconds_of(config["maxRetryDuration"], 0.0)
    count = config.get("retryCount", 0)
    if not count and not longest:
        return False
    # With both limits, retries go on until both are reached.
    return bool((count and retries < count) or (longest and seconds < longest))


def _backoff(config: Json, retries: int) -> float:
    least, most = (seconds_of(config[name], 0.0) for name in ("minBackoffDuration", "maxBackoffDuration"))
    doublings = config["maxDoublings"]
    doubled = least * 2.0 ** min(retries, doublings)
    return float(min(doubled * (1 + max(0, retries - doublings)), most))


def _seconds(duration: str | None, default: float, field: str) -> float:
    try:
        return seconds_of(duration, default)
    except ValueError as error:
        raise ApiError("INVALID_ARGUMENT", f"Invalid value for {field}: {error}.") from None
