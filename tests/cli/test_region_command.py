"""`bezel local region` as a user types it."""

import pytest

from bezel.cli.main import main
from bezel_localcloud import control
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow  # a whole process


def test_the_place_of_clients_is_shown_moved_and_kept(tmp_path, capsys) -> None:
    directory = tmp_path / "cloud"

    def region(*arguments: str) -> tuple[int, str]:
        code = main(["local", "region", "--dir", str(directory), *arguments])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    assert region()[0] != 0, "it does not run yet"
    warm_localcloud.start(directory)
    try:
        code, text = region()
        assert code == 0
        assert text.startswith("clients of load balancers are in us\nthere is no load balancer")
        assert region("europe")[1].startswith("clients of load balancers are in europe\n")
        code, text = region("mars")
        assert code != 0
        assert "neither a region nor a part of the world" in text
        assert region()[1].startswith("clients of load balancers are in europe\n")
    finally:
        control.stop(directory)
