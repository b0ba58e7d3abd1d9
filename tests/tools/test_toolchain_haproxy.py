"""`python3 tools/toolchain dev`: the gateway's proxy from PATH or from a package without root: no lack stops it."""

import subprocess
from pathlib import Path

import pytest

from tests.support.tools.toolchain_clone import Clone

pytestmark = pytest.mark.slow


def start(clone: Clone) -> "subprocess.CompletedProcess[str]":
    """What `.venv/bin/haproxy -x` prints, as a gateway's container starts it: without HOME."""
    script = clone.folder / ".venv" / "bin" / "haproxy"
    env = clone.variables | {"PATH": f"{script.parent}:{clone.bin}:/usr/bin:/bin"}
    return subprocess.run([script, "-x"], env=env, capture_output=True, text=True, timeout=60, check=False)


def fetched_urls(clone: Clone) -> list[str]:
    log = Path(clone.variables["FAKE_FETCHED"])
    return log.read_text().splitlines() if log.exists() else []


def set_offline(clone: Clone) -> None:
    Path(clone.variables["FAKE_OFFLINE"]).touch()


def test_a_proxy_on_path_is_used_and_none_is_fetched(debian: Clone) -> None:
    debian.tool("haproxy", '#!/bin/sh\necho "installed $*"\n')
    assert debian.run("dev")[0] == 0
    assert start(debian).stdout == "installed -x\n"
    assert fetched_urls(debian) == []


def test_a_package_is_unpacked_with_the_libraries_that_are_missing(debian: Clone) -> None:
    code, text = debian.run("dev")
    assert code == 0, text
    assert [line.split()[-2:] for line in fetched_urls(debian)] == [["haproxy", "liblua"]]
    (folder,) = (debian.cache / name for name in debian.made_programs() if name.startswith("haproxy-"))
    assert start(debian).stdout == f"haproxy -x with {folder}/usr/lib/x\n"
    assert {entry.name for entry in folder.iterdir()} == {"usr"}


def test_the_second_time_is_silent_and_needs_no_network(debian: Clone) -> None:
    assert debian.run("dev")[0] == 0
    set_offline(debian)
    (debian.folder / ".venv" / "bin" / "haproxy").unlink()
    assert debian.run("dev") == (0, "")
    assert start(debian).returncode == 0
    assert len(fetched_urls(debian)) == 1


def test_without_a_proxy_the_set_up_ends_well_and_says_so_once(debian: Clone) -> None:
    """Without a proxy the set-up ends well and says once what is missing."""
    set_offline(debian)
    code, text = debian.run("dev")
    assert code == 0
    assert "Unable to locate package haproxy" in text
    assert "Repair: install it so that it is on PATH (brew install haproxy; as root: apt-get update" in text
    assert "Traceback" not in text
    assert [name for name in debian.made_programs() if name.startswith("haproxy-")] == []
    run = start(debian)
    assert run.returncode == 127
    assert "the gateway of a TPU stack cannot start on localcloud" in run.stderr
    assert debian.run("dev") == (0, "")


def test_a_proxy_that_is_installed_later_is_found(debian: Clone) -> None:
    set_offline(debian)
    debian.run("dev")
    debian.tool("haproxy", "#!/bin/sh\necho installed\n")
    assert debian.run("dev") == (0, "")
    assert start(debian).stdout == "installed\n"


def test_a_package_that_does_not_run_is_not_kept(debian: Clone) -> None:
    debian.tool(
        "dpkg-deb", '#!/bin/sh\nmkdir -p "$3/usr/sbin"; printf "#!/bin/sh\\nexit 1\\n" > "$3/usr/sbin/haproxy"\n'
    )
    code, text = debian.run("dev")
    assert code == 0
    assert "haproxy -v`" in text
    assert [name for name in debian.made_programs() if name.startswith("haproxy-")] == []


def test_plain_setup_fetches_the_proxy_at_its_first_start(debian: Clone) -> None:
    assert debian.run()[0] == 0
    assert fetched_urls(debian) == []
    first = start(debian)
    (folder,) = (debian.cache / name for name in debian.made_programs() if name.startswith("haproxy-"))
    assert first.stdout == f"haproxy -x with {folder}/usr/lib/x\n"
    assert "fetching haproxy (4 MB), once: done after" in first.stderr
    again = start(debian)
    assert (again.stdout, again.stderr) == (first.stdout, "")
    assert len(fetched_urls(debian)) == 1


def test_first_start_without_network_fails_and_the_next_one_tries_again(debian: Clone) -> None:
    assert debian.run()[0] == 0
    set_offline(debian)
    run = start(debian)
    assert run.returncode == 127
    assert "Repair: install it so that it is on PATH" in run.stderr
    Path(debian.variables["FAKE_OFFLINE"]).unlink()
    assert start(debian).returncode == 0


def test_plain_setup_uses_a_proxy_that_is_there(debian: Clone) -> None:
    debian.tool("haproxy", '#!/bin/sh\necho "installed $*"\n')
    assert debian.run()[0] == 0
    assert start(debian).stdout == "installed -x\n"
    assert fetched_urls(debian) == []
