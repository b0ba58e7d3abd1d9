"""The user's state folder follows the XDG specification."""

from pathlib import Path

import pytest

from bezel_base.state_folder import state_folder


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_STATE_HOME": "/var/state"}, Path("/var/state/bezel/x")),
        ({}, Path.home() / ".local/state/bezel/x"),
        ({"XDG_STATE_HOME": ""}, Path.home() / ".local/state/bezel/x"),
        ({"XDG_STATE_HOME": "relative/path"}, Path.home() / ".local/state/bezel/x"),
    ],
)
def test_the_folder_is_below_the_variables_and_a_relative_one_is_ignored(
    environment: dict[str, str], folder: Path
) -> None:
    assert state_folder("x", environment) == folder
