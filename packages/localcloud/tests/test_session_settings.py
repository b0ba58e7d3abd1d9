"""Settings of a session's localcloud, as ini options give them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bezel_base.errors import UserError
from bezel_localcloud.session import Settings

PLAIN: Mapping[str, Any] = {"enable": [], "seed": [], "speed": "1000", "server": "sim", "model": [], "project": ""}


def test_defaults_are_a_new_project_with_short_waits() -> None:
    assert Settings.read(**PLAIN) == Settings()


def test_apis_are_read_by_their_short_names() -> None:
    assert Settings.read(**{**PLAIN, "enable": ["run,secretmanager", "iam.googleapis.com"]}).apis == (
        "run.googleapis.com",
        "secretmanager.googleapis.com",
        "iam.googleapis.com",
    )


def test_a_project_is_read() -> None:
    assert Settings.read(**{**PLAIN, "project": "my-project"}).project == "my-project"


def test_a_folder_of_buckets_is_read(tmp_path: Path) -> None:
    assert Settings.read(**{**PLAIN, "seed": [tmp_path]}).buckets == tmp_path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"speed": "0"}, "localcloud_speed = 0"),
        ({"speed": "inf"}, "localcloud_speed = inf"),
        ({"speed": "nan"}, "localcloud_speed = nan"),
        ({"project": "P"}, "localcloud_project = P"),
        ({"project": "ends-with-"}, "localcloud_project = ends-with-"),
        ({"server": "VLLM"}, "localcloud_server = VLLM"),
        ({"enable": ["rnu", "iam"]}, "localcloud_enable = rnu"),
        ({"seed": [Path("/one"), Path("/two")]}, "expected one folder"),
        ({"seed": [Path("/nowhere/at/all")]}, "there is no such folder"),
        ({"model": [Path(__file__).parent]}, "add `localcloud_server = vllm`"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(settings: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        Settings.read(**{**PLAIN, **settings})
    assert message in str(raised.value)


def test_all_wrong_settings_are_told_at_once() -> None:
    nowhere = [Path("/nowhere")]
    with pytest.raises(UserError) as raised:
        Settings.read(enable=["rnu"], seed=nowhere, speed="x", server="y", model=nowhere, project="Z")
    assert len(raised.value.problems) == 6
