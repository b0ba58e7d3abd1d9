"""`python3 tools/toolchain dev`: the tests' browser from PATH or from a package without root: no lack stops it."""

import subprocess
from pathlib import Path

import pytest

from tests.support.tools.toolchain_clone import Clone

pytestmark = pytest.mark.slow
NAMES = ("chromium", "chromium-headless-shell", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture
def bare(debian: Clone) -> Clone:
    """A machine with packages, a proxy, and only browsers that do not start."""
    debian.tool("haproxy", "#!/bin/sh\n")
    for name in NAMES:
        debian.tool(name, "#!/bin/sh\nexit 1\n")
    return debian


def start(clone: Clone) -> "subprocess.CompletedProcess[str]":
    script = clone.folder / ".venv" / "bin" / "chromium"
    return subprocess.run([script, "-x"], capture_output=True, text=True, timeout=60, check=False)


def fetched_urls(clone: Clone) -> list[str]:
    log = Path(clone.variables["FAKE_FETCHED"])
    return log.read_text().splitlines() if log.exists() else []


def test_a_browser_on_path_is_used_and_none_is_fetched(bare: Clone) -> None:
    bare.tool("google-chrome", '#!/bin/sh\necho "installed $*"\n')
    assert bare.run("dev")[0] == 0
    assert start(bare).stdout == "installed -x\n"
    assert fetched_urls(bare) == []


def test_browsers_that_do_not_start_are_passed_over(bare: Clone) -> None:
    """Browsers that do not start are passed over for the package and its libraries."""
    code, text = bare.run("dev")
    assert code == 0, text
    assert [line.split()[-3:] for line in fetched_urls(bare)] == [
        ["chromium-headless-shell", "chromium-common", "liblua"]
    ]
    (folder,) = (bare.cache / name for name in bare.made_programs() if name.startswith("chromium-"))
    assert start(bare).stdout == f"chromium -x with {folder}/usr/lib/x\n"
    assert {entry.name for entry in folder.iterdir()} == {"usr"}
    assert bare.run("dev") == (0, "")


def test_outdated_package_lists_are_fetched_beside_the_machine_s(bare: Clone) -> None:
    """Lists of packages that are too old are fetched anew beside those of the machine."""
    Path(bare.variables["FAKE_OLD_LISTS"]).touch()
    code, text = bare.run("dev")
    assert code == 0, text
    assert "fetching lists of packages: done" in text
    assert start(bare).returncode == 0


def test_without_a_browser_the_set_up_ends_well_and_says_so_once(bare: Clone) -> None:
    """Without a browser the set-up ends well and says once what is missing."""
    Path(bare.variables["FAKE_OFFLINE"]).touch()
    code, text = bare.run("dev")
    assert code == 0
    assert "Repair: install it so that it is on PATH" in text
    assert "Traceback" not in text
    run = start(bare)
    assert run.returncode == 127
    assert "the tests that look at reports in a browser are skipped" in run.stderr
    assert [name for name in bare.made_programs() if name.startswith("chromium-")] == []
    assert bare.run("dev") == (0, "")


def test_plain_setup_fetches_no_browser(bare: Clone) -> None:
    code, text = bare.run()
    assert code == 0, text
    assert fetched_urls(bare) == []
    assert not (bare.folder / ".venv" / "bin" / "chromium").exists()
