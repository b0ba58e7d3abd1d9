"""Proxies of the environment: one that cannot be used is named at a request to the internet, and never shown whole."""

import pytest

from bezel.proxy.upstream import Upstream
from bezel.rest.transport import http_proxy, new_client
from bezel_base.errors import UserError
from tests.support.rest.fake_google import Answer, serving

UNUSABLE = ["socks5://127.0.0.1:9", "ftp://127.0.0.1:9", "http://[::1"]


@pytest.mark.parametrize("value", UNUSABLE)
def test_a_request_by_a_proxy_that_is_none_of_http_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with new_client(5.0) as client, pytest.raises(UserError, match=r"ALL_PROXY = [\s\S]*http://[\s\S]*unset"):
        client.get("https://nobody.invalid/")


@pytest.mark.parametrize("value", ["", *UNUSABLE, "http://127.0.0.1:9"])
def test_a_server_of_this_machine_needs_no_proxy(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with serving() as server, new_client(5.0) as client:
        server.routes.append(lambda _: Answer(json={"kind": "direct"}))
        assert client.get(f"{server.url}/x").json() == {"kind": "direct"}


@pytest.mark.parametrize("value", ["127.0.0.1:9", "http://127.0.0.1:9", "HTTPS://proxy.example"])
def test_a_proxy_of_http_has_a_url(value: str) -> None:
    assert http_proxy("https", value) == (value if "://" in value else f"http://{value}")


def test_a_refused_proxy_shows_no_password() -> None:
    with pytest.raises(UserError) as caught:
        http_proxy("all", "socks5h://ann:Pa55word-of-ann@proxy.example:1080")
    assert "Pa55word" not in str(caught.value)
    assert "set ALL_PROXY to such a proxy, or unset it." in str(caught.value)


@pytest.mark.parametrize("scheme", ["http", "all"])
def test_the_local_proxy_refuses_what_is_no_proxy_of_http(scheme: str) -> None:
    def connect(value: str) -> Upstream:
        return Upstream("http://model.example", None, wait_seconds=0.0, environ_proxies=lambda: {scheme: value})

    connect("127.0.0.1:9")
    with pytest.raises(UserError, match=f"{scheme.upper()}_PROXY = socks5"):
        connect("socks5://127.0.0.1:9")
