"""The port for clients that send no credentials: their requests are the deployer's, and no other's are."""

import asyncio

import pytest

from bezel.localcloud.http.emulator import EmulatorMiddleware


def sent(*requests, lifetime=3600.0):
    """The Authorization that an application gets with each of some requests, given by their headers and query."""
    made, got = [], []

    async def application(scope, _, __):
        got.append([value.decode() for name, value in scope["headers"] if name == b"authorization"])

    def token():
        made.append(None)
        return f"token-{len(made)}", 4_000_000_000.0 if lifetime else 0.0

    async def main():
        middleware = EmulatorMiddleware(application, token)
        for headers, query in requests:
            await middleware({"type": "http", "headers": headers, "query_string": query}, None, None)

    asyncio.run(main())
    return got


def test_a_request_without_credentials_gets_a_token_which_is_made_once():
    assert sent(([], b""), ([(b"host", b"x")], b"alt=json")) == [["Bearer token-1"], ["Bearer token-1"]]


def test_an_expired_token_is_replaced():
    assert sent(([], b""), ([], b""), lifetime=0.0) == [["Bearer token-1"], ["Bearer token-2"]]


@pytest.mark.parametrize("query", [b"X-Goog-Algorithm=a&X-Goog-Signature=1", b"Signature=x", b"access_token=x"])
def test_a_request_with_credentials_in_its_url_is_left_alone(query):
    assert sent(([], query)) == [[]]


def test_a_request_with_a_token_keeps_it():
    assert sent(([(b"authorization", b"Bearer mine")], b"")) == [["Bearer mine"]]
