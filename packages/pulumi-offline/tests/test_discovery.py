"""The rows against Google's discovery documents: what a row sends and reads is a property of that kind there.

64-bit integers are strings on the wire, 32-bit ones are numbers: the document's type says which. A property that the
document lacks, or has in another kind, stands in ELSEWHERE with the reason.
"""

import pytest

from bezel_pulumi_offline.lifecycle.fields import read_fields
from bezel_pulumi_offline.resources import TYPES
from bezel_pulumi_offline.resources.iam_members import MemberType
from pulumi_offline_support.discovery import SCHEMAS, discovery
from pulumi_offline_support.discovery_kinds import ELSEWHERE, differing


def test_every_type_with_a_body_of_its_own_is_compared() -> None:
    members = {token for token, row in TYPES.items() if isinstance(row, MemberType)}
    assert TYPES.keys() - members - {"gcp:projects/service:Service"} == SCHEMAS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("token", SCHEMAS)
def test_each_property_is_of_the_kind_that_google_documents(token: str) -> None:
    document, name = SCHEMAS[token]
    differences = dict(differing(TYPES[token].fields, discovery(document)[name], document))
    assert differences == {path: kind for path, (kind, _) in ELSEWHERE.get(token, {}).items()}


def test_a_property_in_another_place_or_of_another_kind_would_be_noticed() -> None:
    document, name = SCHEMAS["gcp:cloudrunv2/service:Service"]
    table = {"description": "text", "descriptoin": "text", "generation": "whole"}
    fields = read_fields({**table, "template": {"@": "block", "revision": "flag"}}, {})
    assert dict(differing(fields, discovery(document)[name], document)) == {
        "descriptoin": "nothing",
        "generation": "string int64",
        "template.revision": "string",
    }
