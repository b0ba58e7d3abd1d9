"""Entries that a caller writes to Cloud Logging: stored once with their defaults, or refused with the reason."""

import pytest

from bezel_localcloud.core.json_types import whole_seconds
from localcloud_support.client import PARENT
from localcloud_support.in_process import SCOPE

WRITE, LIST = "/logging/v2/entries:write", "/logging/v2/entries:list"
NODE = {"type": "generic_node", "labels": {"location": "us-east5-a", "namespace": "s", "node_id": "n"}}
ENTRY = {"logName": f"{PARENT}/logs/tried", "resource": NODE, "severity": "WARNING", "jsonPayload": {"left": 0}}


def list_entries(project, text='logName:"logs/tried"'):
    answer = project.ok("POST", LIST, {"resourceNames": [PARENT], "filter": text})
    return answer.get("entries", [])


def test_an_entry_is_listed_with_what_the_request_says_for_all_of_them(project):
    shared = {"logName": f"{PARENT}/logs/tried", "resource": NODE, "labels": {"a": "1", "b": "1"}}
    assert project.ok("POST", WRITE, {**shared, "entries": [{"textPayload": "x", "labels": {"b": "2"}}]}) == {}
    (entry,) = list_entries(project)
    assert (entry["resource"], entry["labels"], entry["textPayload"]) == (NODE, {"a": "1", "b": "2"}, "x")
    assert entry["timestamp"] == entry["receiveTimestamp"]
    assert entry["insertId"]
    assert list_entries(project, 'labels.b="1"') == []


def test_an_entry_that_is_sent_again_is_there_once(project):
    """An entry that is sent again is there once and another time or id is another one."""
    sent = ENTRY | {"insertId": "one", "timestamp": whole_seconds(project.clock.now())}
    for entry in (sent, sent, sent | {"insertId": "two"}, sent | {"timestamp": whole_seconds(project.clock.now() - 1)}):
        project.ok("POST", WRITE, {"entries": [entry]})
    assert sorted(entry["insertId"] for entry in list_entries(project)) == ["one", "one", "two"]
    assert list_entries(project)[0]["jsonPayload"] == {"left": 0}


def test_what_is_only_tried_or_older_than_the_retention_is_not_listed(project):
    project.ok("POST", WRITE, {"entries": [ENTRY], "dryRun": True})
    for seconds in (-31 * 86_400, 2 * 86_400):
        project.ok("POST", WRITE, {"entries": [ENTRY | {"timestamp": whole_seconds(project.clock.now() + seconds)}]})
    assert list_entries(project) == []


WRONG = {
    "no entry": ({"entries": []}, 400, "At least one"),
    "no log": ({"entries": [{"resource": NODE}]}, 400, "Invalid log name"),
    "a slash in the log's id": ({"entries": [ENTRY | {"logName": f"{PARENT}/logs/a/b"}]}, 400, "%2F"),
    "no resource": ({"entries": [{"logName": f"{PARENT}/logs/tried"}]}, 400, "monitored resource"),
    "two payloads": ({"entries": [ENTRY | {"textPayload": "x"}]}, 400, "one payload"),
    "another severity": ({"entries": [ENTRY | {"severity": "LOUD"}]}, 400, "severity"),
    "too large": ({"entries": [ENTRY | {"jsonPayload": {"x": "y" * 262_144}}]}, 400, "exceeds maximum size"),
    "another project": ({"entries": [ENTRY | {"logName": "projects/other/logs/x"}]}, 403, "logging.logEntries.create"),
    "a message of protobuf": ({"entries": [{**ENTRY, "protoPayload": {}, "jsonPayload": None}]}, 400, "jsonPayload"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_entry_is_refused_and_nothing_is_written(project, name):
    body, status, says = WRONG[name]
    entries = [ENTRY, *body["entries"]] if body["entries"] else []
    assert says in str(project.refusal(status, "POST", WRITE, {"entries": entries}))
    assert list_entries(project) == []


def test_with_partial_success_the_entries_that_can_be_are_written(project):
    wrong = ENTRY | {"textPayload": "x"}
    body = {"entries": [wrong, ENTRY], "partialSuccess": True}
    assert "logEntryErrors" in str(project.refusal(400, "POST", WRITE, body))
    assert len(list_entries(project)) == 1


def test_only_an_account_with_the_permission_writes(project):
    project.cloud.store.put("api", "iam.googleapis.com", {"state": "ENABLED"})
    project.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": "writer"})
    account = "writer@bezel-local.iam.gserviceaccount.com"
    owner, token = project.token, project.cloud.tokens.access_token(account, SCOPE, 3600)[0]
    project.token = token
    assert "logging.logEntries.create" in str(project.refusal(403, "POST", WRITE, {"entries": [ENTRY]}))
    project.token = owner
    policy = project.ok("POST", f"/crm/v1/{PARENT}:getIamPolicy", {})
    policy["bindings"].append({"role": "roles/logging.logWriter", "members": [f"serviceAccount:{account}"]})
    project.ok("POST", f"/crm/v1/{PARENT}:setIamPolicy", {"policy": policy})
    project.token = token
    project.ok("POST", WRITE, {"entries": [ENTRY]})
    project.refusal(403, "POST", LIST, {"resourceNames": [PARENT]})
    project.token = owner
    assert len(list_entries(project)) == 1
