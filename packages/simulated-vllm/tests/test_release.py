"""The release that a simulated server is: chosen by an option or a variable, refused by its name if not recorded."""

from __future__ import annotations

import re
import sys

import pytest

from bezel_base.errors import UserError
from bezel_catalog.vllm.servers import recorded_server, recorded_servers
from bezel_simulated_vllm import command
from bezel_simulated_vllm.release import DEFAULT_RELEASE, VARIABLE, check_release, take_release


@pytest.mark.parametrize(
    ("arguments", "rest"),
    [
        (["--release", "0.32.0", "serve", "m"], ["serve", "m"]),
        (["serve", "m", "--release=v0.32.0"], ["serve", "m"]),
        (["serve", "m"], ["serve", "m"]),
    ],
)
def test_release_is_taken_out_of_the_arguments(arguments, rest):
    assert take_release(arguments, {}) == ("0.32.0", rest)


def test_option_overrides_the_variable():
    with pytest.raises(UserError, match=r"LOCALCLOUD_RELEASE = 0\.1\.0"):
        take_release(["m"], {VARIABLE: "0.1.0"})
    assert take_release(["m", "--release", "0.32.0"], {VARIABLE: "0.1.0"}) == ("0.32.0", ["m"])
    assert take_release(["m"], {VARIABLE: ""}) == (DEFAULT_RELEASE, ["m"])


@pytest.mark.parametrize("name", ["0.31.0", "v0.99.0", "0.32", "latest", "", "vision"])
def test_a_release_without_a_recording_is_refused_by_name(name):
    with pytest.raises(UserError, match=rf"(?s)--release = .*{re.escape(name)}.*not recorded.*0\.32\.0"):
        check_release(name, "--release")


@pytest.mark.parametrize("words", [["--release", "0.31.0", "--version"], ["serve", "m", "--release=0.31.0"]])
def test_command_ends_with_the_name_of_an_unknown_release(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["simulated-vllm", *words])
    assert command.main() == 2
    assert "0.31.0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("release", recorded_servers())
def test_server_tells_its_release(serve, release):
    with serve("/mnt/models/tiny", release=release) as client:
        assert client.get("/version").json() == {"version": release}
        assert client.get("/openapi.json").json()["info"] == recorded_server(release).document["info"]
