"""Logging's query language: what entries a filter takes, what it refuses, and how a long log is read."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.logging.filters import parse_filter
from localcloud_support.client import PARENT

ENTRY = {
    "timestamp": "2026-11-21T10:00:00.500000Z",
    "severity": "WARNING",
    "textPayload": 'Out of "memory" at step 7',
    "resource": {"type": "cloud_run_revision", "labels": {"service_name": "llm"}},
    "labels": {"run.googleapis.com/base": "x"},
    "httpRequest": {"status": 503, "latency": "0.5s"},
    "jsonPayload": {"stages": [{"name": "load"}, {"name": "compile"}]},
}
LIST = "/logging/v2/entries:list"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "severity=WARNING",
        "severity>=INFO AND severity<error",
        'severity="warning" textPayload:memory',
        "severity=ERROR OR severity=WARNING",
        "severity=(ERROR OR WARNING)",
        "severity=(NOT ERROR AND WARNING)",
        "NOT severity=ERROR",
        "-severity=ERROR",
        "NOT (severity=ERROR OR httpRequest.status=404)",
        # OR binds closer than AND: (a OR b) AND (c OR d)
        "severity=ERROR OR severity=WARNING AND httpRequest.status=404 OR httpRequest.status=503",
        "httpRequest.status>=500 -- a comment\n AND httpRequest.status!=504",
        "httpRequest.latency:*",
        "NOT httpRequest.remoteIp:*",
        "httpRequest.remoteIp!=1",
        'labels."run.googleapis.com/base"=x',
        'jsonPayload.stages.name="compile"',
        'timestamp>="2026-11-21T10:00:00Z" timestamp<"2026-11-21T11:00:00+00:00"',
        'timestamp>"2026-11-21T11:00:00+02:00"',
        'textPayload=~"step [0-9]$"',
        'textPayload!~"^step"',
        'textPayload:"\\"memory\\""',
        "memory",
        '"OUT OF" llm',
        "resource.type=CLOUD_RUN_REVISION",
    ],
)
def test_an_entry_that_fulfils_a_filter_is_taken(text):
    assert parse_filter(text).holds(ENTRY)
    assert text == "" or not parse_filter(f"NOT ({text})").holds(ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "severity=ERROR",
        "severity<WARNING",
        "severity=WARNING AND severity=ERROR",
        "(severity=WARNING OR severity=ERROR) AND httpRequest.status=404",
        "severity=(ERROR OR INFO)",
        "httpRequest.remoteIp:*",
        "httpRequest.remoteIp=1",
        "httpRequest.status<500",
        "textPayload>5",
        'timestamp<"2026-11-21T10:00:00Z"',
        'textPayload=~"^step"',
        "compiled",
    ],
)
def test_an_entry_that_does_not_is_left_out(text):
    assert not parse_filter(text).holds(ENTRY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('log_id("x")', "does not serve the function log_id()"),
        ("severity=", "a value is missing"),
        ("severity=LOUD", "is not a severity"),
        ("timestamp>yesterday", "is not a time"),
        ('textPayload=~"("', "is not a regular expression"),
        ("(severity=INFO", "closing parenthesis"),
        ("severity=INFO)", "unexpected"),
        ("a=b AND", "a value is missing"),
        ("OR", "a value is missing"),
        ("(" * 60 + "a" + ")" * 60, "nested too deeply"),
        ("a" * 20_001, "more than 20000"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(cloud, text, message):
    answer = cloud.post(LIST, {"resourceNames": [PARENT], "filter": text})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.slow
@given(st.text(alphabet='aORNDT ="()-:*<>!~\\.x', max_size=30))
def test_no_text_is_more_than_refused(text):
    with contextlib.suppress(ApiError):
        parse_filter(text).holds(ENTRY)


def test_only_bounds_that_every_entry_must_keep_limit_what_is_read():
    hour = "2026-11-21T10:00:00Z"
    bounds = [(f'timestamp>="{hour}" AND a=b', True), (f'timestamp>="{hour}" OR a=b', False)]
    for text, limits in [*bounds, (f'NOT timestamp>="{hour}"', False), (f'(timestamp>="{hour}")', False)]:
        assert (parse_filter(text).since is not None) == limits


def test_a_log_is_read_in_slices_in_both_orders_from_any_place(tmp_path):
    store = Store(tmp_path / "cloud.db")
    store.add_log([(float(n // 2), {"n": n}) for n in range(7)])
    up = store.log_slice(newest_first=False, limit=4)
    assert [entry["n"] for _, entry in up] == [0, 1, 2, 3]
    assert [e["n"] for _, e in store.log_slice(newest_first=False, after=up[-1][0])] == [4, 5, 6]
    assert [e["n"] for _, e in store.log_slice(newest_first=True, after=up[-1][0])] == [2, 1, 0]
    assert [e["n"] for _, e in store.log_slice(newest_first=True, since=1.0, until=2.0)] == [5, 4, 3, 2]
    store.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "At least one resource name"),
        ({"resourceNames": [PARENT], "orderBy": "severity"}, "Unsupported order"),
        ({"resourceNames": [PARENT], "pageSize": -1}, "is negative"),
        ({"resourceNames": [PARENT], "pageToken": "x"}, "Invalid page token"),
        ({"resourceNames": ["projects/other"]}, "logging.logEntries.list"),
        ({"projectIds": ["bezel-local"]}, "does not serve project_ids"),
    ],
)
def test_a_reading_that_cannot_be_is_refused(cloud, body, message):
    answer = cloud.post(LIST, body)
    assert answer.status_code in {400, 403}
    assert message in answer.json()["error"]["message"]


def test_a_long_log_is_paged_by_tokens_that_are_good_for_their_own_filter(cloud):
    store = Store(Paths(cloud.endpoint.directory).database)
    store.add_log([(float(n), {"insertId": str(n), "textPayload": f"old line {n}"}) for n in range(1_600)])
    store.close()
    ids, token = [], ""
    body = {"resourceNames": [PARENT], "filter": 'textPayload=~"old line .*7"', "pageSize": 100}
    while token is not None:
        page = cloud.post(LIST, body | {"pageToken": token}).json()
        ids += [entry["insertId"] for entry in page["entries"]]
        used, token = token, page.get("nextPageToken")
    assert ids == [str(n) for n in range(1_600) if "7" in str(n)]
    assert cloud.post(LIST, body | {"filter": "textPayload:8", "pageToken": used}).status_code == 400
