"""How `bezel` ends where the machine fails it: in a sentence, or silently where nobody reads; with no traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel_base.command_line import exits

ROOT = Path(__file__).parent.parent.parent
BEZEL = str(Path(sys.executable).parent / "bezel")
LONG = "a" * 300
GRID = "context_tokens,users,value,unit,success_pct,status\n16,1,3.5,req/s,100,ok\n"


@pytest.mark.slow
@pytest.mark.parametrize("command_line", ["local fault list", "catalog show models", "plan l4-qat", "--help"])
def test_a_command_whose_reader_has_gone_ends_silently(command_line: str) -> None:
    """It ends with 141, as any other program does whose pipe is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        ran = subprocess.run(
            [BEZEL, *command_line.split()], cwd=ROOT, stdout=out, stderr=subprocess.PIPE, check=False, timeout=60,
            env={"GOOGLE_PROJECT": "acme-llm"},
        )  # fmt: skip
    assert (ran.returncode, ran.stderr.decode()) == (141, "")


@pytest.mark.slow
def test_output_that_finds_no_room_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [BEZEL, "catalog", "show", "models"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60, env={}
        )
    assert ran.returncode == 1
    assert ran.stderr.decode().startswith(
        "bezel: the disk\n   the system reports: No space left on device.\n   Repair: free"
    )


def test_a_connection_that_breaks_is_no_reader_that_has_gone() -> None:
    assert not exits.reader_gone()
    assert exits.user_error(BrokenPipeError(errno.EPIPE, "Broken pipe")) is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the disk\n   the system reports: No space left on device.\n   Repair: free some space",
        ),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "/x" * 200),
            "(400 bytes)\n   the system reports: File name too long.\n   Repair: choose a shorter name",
        ),
        (
            OSError(errno.EACCES, "Permission denied", b"/etc/shadow"),
            "/etc/shadow\n   the system reports: Permission denied.\n   Repair: choose a path",
        ),
        (
            OSError(errno.EISDIR, "Is a directory", Path("/")),
            "/\n   the system reports: Is a directory.\n   Repair: choose a file",
        ),
        (
            OSError(errno.EACCES, "Permission denied", 3),
            "3\n   the system reports: Permission denied.\n   Repair: choose a path",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", ""),
            "the disk\n   the system reports: No space left on device.\n   Repair: free some space",
        ),
        (OSError(errno.EACCES, "Permission denied"), None),
        (OSError(errno.EACCES, "Permission denied", ""), None),
        (OSError(errno.ECONNRESET, "Connection reset by peer"), None),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x"), None),
        (OSError("no number"), None),
    ],
)
def test_a_file_system_failure_is_reported_with_its_place_and_repair(error: OSError, text: str | None) -> None:
    problem = exits.user_error(error)
    assert (text in str(problem)) if text else problem is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("local", "status", "--dir", f"/dev/{LONG}"),
        ("local", "start", "--dir", f"/dev/{LONG}"),
        ("local", "fault", "show", "--dir", f"/dev/{LONG}"),
        ("local", "start", "--dir", "/dev/null"),
        ("bench", "audit", f"/dev/{LONG}"),
        ("bench", "report", LONG, "--out", "r.html"),
        ("bench", "export", LONG),
        ("bench", "run", "--url", "https://127.0.0.1:9", "--public", "--ca-file", LONG),
        ("bench", "run", "--url", "http://127.0.0.1:9", "--public", "--model", "m", "--trace", LONG),
        ("bench", "run", "--url", "http://127.0.0.1:9", "--public", "--model", "m", "--file", LONG),
    ],
)
def test_a_path_that_cannot_be_one_is_reported(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(arguments) in (1, 2)
    error = capsys.readouterr().err
    assert "File name too long" in error or "Not a directory" in error or "File exists" in error


@pytest.mark.parametrize("arguments", [("plan",), ("recover",), ("weights", "list"), ("local", "preview")])
@pytest.mark.parametrize("stack", [LONG, "../l4-qat", "/l4-qat"])
def test_a_name_that_no_stack_can_have_is_reported_with_the_rule(
    arguments: tuple[str, ...], stack: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main((*arguments, stack)) == 2
    error = capsys.readouterr().err
    assert "a stack's name has at most 100 letters" in error
    assert "or write" not in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("bench", "audit", "grid.csv"), 0),
        (("bench", "report", "none.json", "--out", "r.html"), 1),
        (("bench", "export", "none.json"), 1),
        (("bench", "run", "--url", "http://127.0.0.1:9", "--public"), 1),
        (("bench", "sweep", "--url", "http://127.0.0.1:9", "--public", "--out", "r.json"), 1),
        (("bench", "goodput", "--url", "http://127.0.0.1:9", "--public", "--slo", "ttft_p50=1s"), 1),
        (("compare", "--model", "gemma-4-e2b"), 0),
        (("catalog", "show", "machines"), 0),
        (("local", "status"), 1),
        (("local", "stop"), 0),
        (("local", "fault", "list"), 0),
    ],
)
def test_a_command_that_reads_no_stack_needs_no_project(
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "grid.csv").write_text(GRID, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert main(arguments) == code
    assert "Pulumi" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--port", "65536"), "expected a port, from 0 to 65535, got '65536'"),
        (("--port", "http"), "expected an integer, got 'http'"),
        (("--speed", "0"), "expected a finite number above 0, got '0'"),
        (("--prot", "1"), "unrecognized argument: --prot 1; did you mean --port?"),
        (("--temporary", "--dir", "x"), "not allowed with argument"),
        (("--server", "vllm"), "a real vLLM has no model to serve"),
        (("--model", "folder"), "the simulated server answers for the stack's model"),
        (("--dir", "/proc/cloud"), "cannot be created there"),
        (("--dir", "/dev/null"), "a folder is needed there"),
        (("--dir", "full"), "the folder is not empty and not localcloud's"),
        (("--enable", "run,pubsub"), "--enable = pubsub"),
    ],
)
def test_a_wrong_option_of_serve_is_refused_and_starts_nothing(
    tmp_path: Path,
    options: tuple[str, ...],
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch(mode=0o644)
    monkeypatch.chdir(tmp_path)
    assert main(("local", "serve", *options)) in {1, 2}
    assert text in capsys.readouterr().err
    assert (tmp_path / "full" / "thesis.tex").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("plan", "l4-qat"), 1),
        (("bench", "run", "--stack", "l4-qat"), 1),
        (("bench", "ab", "--arm", "a=l4-qat", "--arm", "b=http://127.0.0.1:9"), 2),  # an arm may be an address
        (("local", "preview", "l4-qat"), 1),
    ],
)
def test_a_command_that_reads_one_says_that_there_is_none(
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    assert "Pulumi" in capsys.readouterr().err
