"""Every property that a row of the stand-in can send, nested ones too: localcloud's messages have it."""

from collections.abc import Iterator

import pytest

from bezel_localcloud.http.messages import definitions
from bezel_pulumi_offline.lifecycle.fields import Fields, Mark
from bezel_pulumi_offline.resources import TYPES
from localcloud_support.discovery_documents import SOURCES
from pulumi_offline_support.discovery import SCHEMAS
from pulumi_offline_support.discovery_kinds import ELSEWHERE

SILENT = Mark.LOCAL | Mark.REFUSED | Mark.UNSENT | Mark.OUTPUT


def unknown_fields(fields: Fields, message: str, path: str = "") -> Iterator[str]:
    """The properties that the message, or one in it, does not have."""
    api = message.partition(".")[0]
    for item in fields:
        if item.marks & SILENT:
            continue
        kind, is_field = f"@{message.partition('.')[2]}", True
        for step in item.path:
            kind = definitions().get(f"{api}.{kind.lstrip('![]{}')[1:]}", {}).get(step, "")
            is_field = is_field and bool(kind)
        if not is_field:
            yield path + item.name
        elif item.fields:
            yield from unknown_fields(item.fields, f"{api}.{kind.lstrip('![]{}')[1:]}", f"{path}{item.name}.")


@pytest.mark.parametrize("token", SCHEMAS)
def test_localcloud_knows_each_property_that_a_row_sends(token: str) -> None:
    document, name = SCHEMAS[token]
    title = document.partition(".")[0]
    api = next((source.api for source in SOURCES if source.document == document), title)
    made = {path for path, (kind, why) in ELSEWHERE.get(token, {}).items() if kind == "nothing" and "newer" not in why}
    assert set(unknown_fields(TYPES[token].fields, f"{api}.{name}")) <= made


def test_a_property_that_localcloud_lacks_would_be_noticed() -> None:
    fields = TYPES["gcp:cloudrunv2/service:Service"].fields
    missing = set(unknown_fields(fields, "compute.Network"))
    assert {"template", "ingress"} <= missing
