"""Check of an address: nothing is judged before clients can connect to it, and then the server has to answer there."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.diagnosis.address_reach import place_of
from bezel.rest.connect_to import ConnectTo
from bezel_smoke.address import AddressCheckProvider, judge_address
from bezel_smoke.base import SmokeError
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer
from tests.support.rest.fake_google import serving as serving_google
from tests.support.rest.tls_server import Respond, tls_server
from tests.support.smoke.fake_service import Project

DOMAIN = "llm.acme.example"
PROPS = {"url": f"https://{DOMAIN}", "served_model": "gemma", "deadline_seconds": 60, "revisions": ["a"]}


def serving(model: str = "gemma", *, refused: int = 401, allowed: int = 200) -> Respond:
    """A server of a model; `refused` is its status without a token, `allowed` with one."""
    body = f'{{"data": [{{"id": "{model}"}}]}}'
    return lambda _path, _host, token: (refused if token == "-" else allowed, body)


def judge(folder: Path, respond: Respond, **changes: Any) -> dict[str, Any]:
    with tls_server(folder, DOMAIN, respond) as place:
        return judge_address(PROPS | changes, place, "", lambda _line: None)


@pytest.fixture(autouse=True)
def _identity(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in project.environment(tmp_path).items():
        monkeypatch.setenv(name, value)


def test_server_at_the_address_is_asked_once_clients_can_connect(tmp_path: Path) -> None:
    verdict = judge(tmp_path, serving())
    assert verdict == {
        "ok": True,
        "judged": True,
        "detail": "gemma is served there, and a caller without a token is refused",
    }
    assert judge(tmp_path, serving(refused=200), public=True)["detail"] == "gemma is served there"


@pytest.mark.parametrize(
    ("respond", "what"),
    [
        (serving(allowed=403), r"models check fails: waited .* HTTP 403"),
        (serving("bert"), r"/v1/models lists \['bert'\], not 'gemma'"),
        (serving(refused=200), "anyone can use the address"),
    ],
)
def test_server_that_answers_otherwise_at_the_address_fails(tmp_path: Path, respond: Respond, what: str) -> None:
    for seconds in (0.1, 10):  # the second where a busy machine did not answer within the first
        with pytest.raises(SmokeError) as failure:
            judge(tmp_path, respond, deadline_seconds=seconds)
        if "no response" not in str(failure.value):
            break
    assert re.search(f"(?s)address {DOMAIN}.*{what}.*bezel endpoint", str(failure.value))


def test_address_without_a_name_or_a_certificate_is_not_judged(tmp_path: Path) -> None:
    with tls_server(tmp_path, "other.example") as place:
        verdict = judge_address(PROPS, replace(place, domain=DOMAIN), "", lambda _line: None)
    assert (verdict["ok"], verdict["judged"]) == (True, False)
    assert "CERTIFICATE_VERIFY_FAILED" in verdict["detail"]
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        accepted = pool.submit(listener.accept)
        accepted.add_done_callback(lambda done: done.result()[0].close())
        unissued = judge_address(PROPS, ConnectTo(DOMAIN, *listener.getsockname()), "", lambda _line: None)
    assert unissued["detail"] == "no connection with TLS: it is closed before a certificate is shown"
    unnamed = judge_address(PROPS, place, "the DNS has no address", lambda _line: None)
    assert unnamed == {"ok": True, "judged": False, "detail": "the DNS has no address"}


def test_address_of_the_loopback_needs_no_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEZEL_BALANCERS", raising=False)
    place, why = place_of(DOMAIN, "127.250.0.1")
    assert (place.host, place.port, why) == ("127.250.0.1", 443, "")


@pytest.mark.parametrize("domain", [DOMAIN, "other.example"])
def test_balancer_of_the_embedded_cloud_is_asked_for(monkeypatch: pytest.MonkeyPatch, domain: str) -> None:
    listener = {"domains": [DOMAIN], "scheme": "https", "at": "127.250.0.1:8443"}
    with serving_google() as server:
        server.routes[:] = [lambda _call: Answer(json={"authority": "/ca.pem", "balancers": [listener]})]
        monkeypatch.setenv("BEZEL_BALANCERS", f"{server.url}/balancers")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", ACCESS_TOKEN)
        place, why = place_of(domain, "127.250.0.1")
    if domain == DOMAIN:
        assert (place, why) == (ConnectTo(DOMAIN, "127.250.0.1", 8443, "/ca.pem"), "")
    else:
        assert why == "no load balancer of this machine listens for other.example"


def test_check_follows_the_revisions_and_needs_an_address() -> None:
    provider = AddressCheckProvider()
    assert provider.diff("id", PROPS, PROPS).changes is False
    assert provider.diff("id", PROPS, PROPS | {"revisions": ["b"]}).changes is True
    failures = provider.check({}, {"url": "http://llm.acme.example"}).failures
    assert {each.property for each in failures} == {"url", "served_model"}
