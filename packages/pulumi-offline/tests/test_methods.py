"""Every request of the golden wire log is a method of Google's discovery documents, with its parameters and its body.

What the published provider sends beside the documents (recorded, so the stand-in sends it too) stands in ODD.
"""

from typing import Any

import pytest

from pulumi_offline_support.discovery_methods import LOG, ODD, odd, requests


@pytest.mark.slow
@pytest.mark.parametrize("token", LOG)
def test_every_request_is_one_that_google_documents(token: str) -> None:
    for request in requests(token):
        assert {(request["request"], text) for text in odd(request)} <= ODD.keys()


@pytest.mark.slow
def test_every_oddity_is_still_sent() -> None:
    sent = {(request["request"], text) for token in LOG for request in requests(token) for text in odd(request)}
    assert sent == ODD.keys()


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"request": "PUT /run/v2/projects/p/locations/l/services/s", "query": {}}, "no such method"),
        ({"request": "GET /run/v2/projects/p/locations/l/services/s", "query": {"mask": "x"}}, "no parameter mask"),
        (
            {"request": "POST /secretmanager/v1/projects/p/secrets", "query": {}, "body": {"lables": {}}},
            "no lables in the body",
        ),
    ],
)
def test_what_google_does_not_document_would_be_noticed(sent: dict[str, Any], text: str) -> None:
    assert odd(sent) == [text]
