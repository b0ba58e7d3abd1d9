"""`python3 tools/toolchain`: the pinned CLI from the first place that has it, whole or not at all."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tools.toolchain_clone import FAKE_GO, Clone

pytestmark = pytest.mark.slow


def builds(clone: Clone) -> int:
    count = Path(clone.variables["FAKE_COUNT"])
    return len(count.read_text().splitlines()) if count.exists() else 0


def test_takes_the_official_release_where_it_can_be_reached(go: Clone, release: Callable[..., str]) -> None:
    go.variables["BEZEL_PULUMI_RELEASES"] = release()
    code, text = go.run()
    assert code == 0, text
    assert go.made_programs() == ["pulumi-3.274.1-release"]
    assert builds(go) == 0


def test_never_uses_a_release_that_does_not_match_its_checksum(clone: Clone, release: Callable[..., str]) -> None:
    clone.variables["BEZEL_PULUMI_RELEASES"] = release(good_checksum=False)
    code, text = clone.run()
    assert code == 1
    assert "does not match its published checksum: not used" in text
    assert clone.made_programs() == []


def test_builds_with_go_where_no_release_can_be_reached(go: Clone) -> None:
    code, text = go.run()
    assert code == 0, text
    (built,) = go.made_programs()
    assert built.startswith("pulumi-3.274.1-built-")
    files = {file.name for file in (go.cache / built).iterdir()}
    assert files == {"pulumi", "pulumi-language-python", "pulumi-language-python-exec", "pulumi-resource-pulumi-python"}


def test_the_built_source_lacks_what_is_left_out(go: Clone, gate: Path) -> None:
    process = go.start()
    with gate.open("w") as opened:  # opens when the build has come to the gate
        (part,) = (go.cache / name for name in go.made_programs())
        source = part / "source" / "pkg"
        assert "s3blob" not in (source / "backend" / "diy" / "backend.go").read_text()
        assert "leftout.Error" in (source / "backend" / "diy" / "left_out.go").read_text()
        assert [file.name for file in (source / "cmd" / "pulumi" / "neo").iterdir()] == ["neo.go"]
        assert f'replace github.com/pulumi/pulumi/pkg/v3 => "{source}"' in (part / "source" / "go.mod").read_text()
        checks = part / "source" / "zxcvbn-go"
        assert "func init()" not in (checks / "matching" / "matching.go").read_text()
        assert "func Lists(" in (checks / "frequency" / "frequency.go").read_text()
        opened.write("go on\n")
    assert process.wait(timeout=60) == 0


def test_a_module_without_what_is_left_out_is_not_built(go: Clone) -> None:
    module = Path(go.variables["FAKE_PUBLISHED"]) / "pkg"
    (module / "backend" / "diy" / "bucket.go").write_text("package diy\n")
    (module / "cmd" / "pulumi" / "cloud" / "api.go").unlink()
    code, text = go.run()
    assert code == 1
    assert "cmd/pulumi/cloud/api.go" in text
    assert "backend/diy/bucket.go: func fixupS3CopySource(" in text
    assert "backend/diy/backend.go" not in text
    assert builds(go) == 0
    assert go.made_programs() == []


def test_says_what_to_install_where_there_is_no_way(clone: Clone) -> None:
    code, text = clone.run()
    assert code == 1
    assert "Go is not installed" in text
    assert "get.pulumi.com" in text
    assert "go.dev/dl" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("version", "accepted"), [("go1.25.11", False), ("go1.26.0", True), ("go1.27.1", True), ("go2.0", True)]
)
def test_builds_only_with_a_go_that_is_new_enough(clone: Clone, version: str, accepted: bool) -> None:
    clone.tool("go", FAKE_GO.format(version=version))
    code, text = clone.run()
    assert (code == 0) is accepted
    assert ("too old" in text) is not accepted


def test_a_second_run_makes_nothing_again(go: Clone) -> None:
    assert go.run()[0] == 0
    code, text = go.run()
    assert (code, text) == (0, "")
    assert builds(go) == 1


def test_a_failed_build_leaves_nothing_and_shows_why(go: Clone) -> None:
    go.variables["FAKE_BUILD_FAILS"] = "1"
    code, text = go.run()
    assert code == 1
    assert "no space left on device" in text
    assert go.made_programs() == []


def test_the_environment_is_made_while_the_cli_is_built(go: Clone) -> None:
    os.mkfifo(go.variables["FAKE_UV_GATE"])  # uv waits at it until Go writes into it
    code, text = go.run()
    assert code == 0, text
    assert (go.folder / ".venv" / "bin" / "bezel").exists()


def test_a_failed_build_ends_the_making_of_the_environment(go: Clone) -> None:
    os.mkfifo(go.variables["FAKE_UV_GATE"])
    go.variables["FAKE_BUILD_FAILS"] = "1"
    assert go.run()[0] == 1
    with pytest.raises(OSError, match="No such device or address"):  # no process waits at it
        os.close(os.open(go.variables["FAKE_UV_GATE"], os.O_WRONLY | os.O_NONBLOCK))
    assert not (go.folder / ".venv" / "bin" / "bezel").exists()


def test_a_killed_build_is_cleaned_up_by_the_next_one(go: Clone, gate: Path) -> None:
    process = go.start()
    with gate.open("w"):  # opens when the build has come to the gate
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    assert any(".part-" in name for name in go.made_programs())
    go.variables["FAKE_GATE"] = ""
    code, text = go.run()
    assert code == 0, text
    assert [name for name in go.made_programs() if ".part-" in name] == []


def test_two_at_once_build_once(go: Clone, gate: Path) -> None:
    first = go.start()
    with gate.open("w") as opened:
        second = go.start()
        # The second one says that it waits before the first may go on.
        assert second.stdout is not None
        assert "waiting for it" in second.stdout.readline()
        opened.write("go on\n")
    assert first.wait(timeout=60) == 0
    assert second.wait(timeout=60) == 0
    assert builds(go) == 1


def test_a_cli_of_the_pinned_version_on_path_is_used(clone: Clone) -> None:
    clone.tool("pulumi", "#!/bin/sh\necho v3.274.1\n")
    clone.tool("pulumi-language-python", "#!/bin/sh\n")
    code, text = clone.run()
    assert code == 0, text
    assert str(clone.bin) in (clone.folder / ".venv" / "bin" / "pulumi").read_text()


def test_a_cli_of_another_version_on_path_is_not_used(clone: Clone) -> None:
    clone.tool("pulumi", "#!/bin/sh\necho v3.100.0\n")
    clone.tool("pulumi-language-python", "#!/bin/sh\n")
    code, text = clone.run()
    assert code == 1
    assert "Pulumi 3.274.1 could not be set up" in text


@pytest.mark.parametrize("named", ["", "/opt/other/bin/python"])
def test_the_started_cli_is_told_the_language_host_and_its_python(clone: Clone, named: str) -> None:
    echo = 'echo "$BEZEL_LANGUAGE_HOST $BEZEL_PYTHON"'
    clone.tool("pulumi", f'#!/bin/sh\nif [ "$1" = version ]; then echo v3.274.1; else {echo}; fi\n')
    clone.tool("pulumi-language-python", "#!/bin/sh\n")
    assert clone.run()[0] == 0
    started = clone.folder / ".venv" / "bin" / "pulumi"
    printed = subprocess.run(
        [started, "up"], env={"BEZEL_PYTHON": named}, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    host = "packages/pulumi-offline/bezel_pulumi_offline/plugins/pulumi-language-python"
    assert printed == [str(clone.folder / host), named or str(clone.folder / ".venv" / "bin" / "python")]
    assert (Path(__file__).parents[2] / host).stat().st_mode & 0o111 == 0o111


def test_plain_setup_leaves_out_what_only_developers_need(go: Clone) -> None:
    assert go.run()[0] == 0
    made = go.folder / ".venv"
    assert (made / "bin" / "bezel").exists()
    assert not (made / "bin" / "mypy").exists()
    assert not (made / "imports").exists()


def test_the_generator_of_the_site_is_installed_alone_and_once(go: Clone) -> None:
    code, text = go.run("site")
    assert (code, "making .venv/site from uv.lock" in text) == (0, True)
    assert (go.folder / ".venv" / "site" / "bin" / "zensical").exists()
    assert not (go.folder / ".venv" / "bin").exists()
    assert go.run("site") == (0, "")


def test_plain_setup_keeps_what_a_developer_has(go: Clone) -> None:
    assert go.run("dev")[0] == 0
    made = go.folder / ".venv"
    assert (made / "imports" / "bin" / "lint-imports").exists()
    assert go.run() == (0, "")
    assert (made / "bin" / "mypy").exists()
