"""The preview of an update shows what is absent as the published provider does, recorded of a Cloud Run service."""

from typing import Any

import pytest

from bezel_pulumi_offline.lifecycle.fields import read_fields
from bezel_pulumi_offline.lifecycle.plan import foreseen_properties
from bezel_pulumi_offline.lifecycle.values import UNKNOWN
from pulumi_offline_support.client import Provider
from pulumi_offline_support.programs import PROGRAMS, with_change

SERVICE = "gcp:cloudrunv2/service:Service"
INNER = {"@": "block", "path": "text", "port": "whole", "items": "items", "labels": "table", "tls": "block"}
TABLE: dict[str, Any] = {
    "text": "text",
    "flag": "flag",
    "whole": "whole",
    "items": "items",
    "labels": "table",
    "block": INNER,
    "blocks": {**INNER, "@": "blocks"},
}
FIELDS = read_fields(TABLE, {})
READ = {"text": "", "flag": False, "whole": 0, "items": [], "labels": {}, "block": None, "blocks": []}
ZERO = {"path": "", "port": 0, "items": [], "labels": {}, "tls": None}


@pytest.mark.parametrize(
    ("planned", "prior", "shown"),
    [
        ({}, READ, READ),
        ({}, {}, dict.fromkeys(READ)),
        ({"text": "a", "items": ["b"]}, READ, {**READ, "text": "a", "items": ["b"]}),
        ({"text": None}, {"text": "was set"}, dict.fromkeys(READ)),
        ({"block": {"path": "/"}}, READ, {**READ, "block": {**ZERO, "path": "/"}}),
        ({"blocks": [{"port": 1}, UNKNOWN]}, READ, {**READ, "blocks": [{**ZERO, "port": 1}, UNKNOWN]}),
        ({"text": UNKNOWN, "block": UNKNOWN}, READ, {**READ, "text": UNKNOWN, "block": UNKNOWN}),
    ],
)
def test_an_absent_value_is_shown_as_it_was_read(planned: dict[str, Any], prior: Any, shown: Any) -> None:
    assert foreseen_properties(FIELDS, planned, prior) == shown


def test_only_a_previewed_update_shows_zeros(gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.args.1", "--seed=1")
    previewed = gcp.update(SERVICE, resource_id, made, wanted, preview=True)
    assert previewed["description"] == ""
    assert previewed["template"]["sessionAffinity"] is False
    assert previewed["template"]["labels"] == {}
    assert previewed["customAudiences"] is None, "a list of the resource itself is null until a refresh has read it"
    _, first = gcp.create(SERVICE, PROGRAMS[SERVICE], preview=True)
    assert first["description"] is None
