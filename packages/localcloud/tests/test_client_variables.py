"""The variables of outside clients: each address is localcloud's, and a proxy of the user is left out for it."""

from pathlib import Path

import pytest

from bezel_localcloud import clients, control
from bezel_localcloud.core.paths import Endpoint

ENDPOINT = Endpoint(Path("/cloud"), 1, "http://127.0.0.1:8085", "sim", 60.0)


def test_they_hold_those_of_the_program_and_every_address_is_localclouds():
    variables = clients.environment(ENDPOINT, {})
    assert variables.items() >= control.environment(ENDPOINT).items()
    addresses = [value for value in variables.values() if value.startswith("http")]
    assert len(addresses) > 2 * len(clients.api_names())
    assert all(value.startswith(f"{ENDPOINT.base}/") or value == ENDPOINT.base for value in addresses)
    assert not set(variables) & set(clients.FOREIGN)


def test_the_emulators_variable_is_there_only_with_a_port_for_it():
    emulator = Endpoint(Path("/cloud"), 1, ENDPOINT.base, "sim", 60.0, emulator="http://127.0.0.1:8086")
    assert clients.environment(emulator, {})["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:8086"
    assert "STORAGE_EMULATOR_HOST" not in clients.environment(ENDPOINT, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environ", "excepted"),
    [
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "intern.example,127.0.0.1"}, "intern.example,127.0.0.1,localhost"),
        ({"http_proxy": "http://p:1"}, "127.0.0.1,localhost"),
        ({"all_proxy": "socks5://p:1", "NO_PROXY": "a"}, "a,127.0.0.1,localhost"),
    ],
)
def test_a_proxy_is_left_out_for_localcloud_and_kept_for_the_rest(environ, excepted):
    variables = clients.environment(ENDPOINT, environ)
    assert (variables["no_proxy"], variables["NO_PROXY"]) == (excepted, excepted)
    assert not set(variables) & (set(environ) - {"no_proxy", "NO_PROXY"})


@pytest.mark.parametrize("environ", [{}, {"no_proxy": "intern.example"}, {"HTTPS_PROXY": ""}])
def test_without_a_proxy_nothing_is_excepted(environ):
    assert not {"no_proxy", "NO_PROXY"} & set(clients.environment(ENDPOINT, environ))
