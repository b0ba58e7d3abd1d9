"""Connections to another place than a name leads to: everything but the place is that of the name."""

import asyncio
from dataclasses import replace
from pathlib import Path
from socket import AddressFamily

import httpx
import pytest

from bezel.proxy.request_body import RequestBody
from bezel.proxy.upstream import Exchange, RefusedError, Upstream
from bezel.rest.connect_to import ConnectTo
from bezel_bench.client.route import Route
from bezel_bench.load.plan import Target
from bezel_bench.server.http_probe import asker
from tests.support.rest.tls_server import tls_server

DOMAIN = "llm.acme.example"


def ask(place: ConnectTo, domain: str = DOMAIN) -> str:
    with place.client(60.0) as client:
        return client.get(f"https://{domain}/v1/models", headers={"Authorization": "Bearer it"}).text


async def ask_proxy(place: ConnectTo) -> str:
    """The answer to a request of the proxy."""

    async def receive() -> dict[str, object]:
        raise AssertionError("it has no body")

    async with Upstream(f"https://{DOMAIN}", None, wait_seconds=0.0, connect_to=place) as upstream:
        exchange = Exchange(b"GET", b"/v1/models", [], RequestBody({"headers": []}, receive))
        answer = await upstream.send(exchange)
        return b"".join([piece async for piece in answer.pieces()]).decode()


def test_request_to_a_domain_goes_to_the_place_as_to_the_domain(tmp_path: Path) -> None:
    with tls_server(tmp_path, DOMAIN) as place:
        assert ask(place) == f"/v1/models {DOMAIN} Bearer it"
        assert asyncio.run(ask_proxy(place)) == f"/v1/models {DOMAIN} -"


def test_benchmark_s_requests_go_to_the_place_too(tmp_path: Path) -> None:
    with tls_server(tmp_path, DOMAIN) as place:
        at = f"{place.host}:{place.port}"
        target = Target(f"https://{DOMAIN}", "gemma", ca_file=place.authority, at=at)
        assert asker(target, dict)("/health").text == f"/health {DOMAIN} -"
        assert Route(target).addresses == [(AddressFamily.AF_INET, (place.host, place.port))]
        assert "not trusted: self-signed" in asker(replace(target, ca_file=""), dict)("/health").text
        refused = asker(replace(target, url="https://other.example"), dict)("/health")
        assert (refused.status, "not valid for" in refused.text) == (0, True)


def test_place_with_another_names_certificate_gets_no_request(tmp_path: Path) -> None:
    with tls_server(tmp_path, "other.example") as place:
        wrong = replace(place, domain=DOMAIN)
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            ask(wrong)
        with pytest.raises(RefusedError):
            asyncio.run(ask_proxy(wrong))
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            ask(replace(place, domain="other.example", authority=""), "other.example")
