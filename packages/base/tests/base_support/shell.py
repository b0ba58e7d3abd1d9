"""Values that would run code in a shell, and the words that a real shell makes of a command."""

import subprocess
from pathlib import Path

HOSTILE = (
    "x'; touch hacked; '", 'x"; touch hacked; "', "$(touch hacked)", "`touch hacked`", "x; touch hacked",
    "x && touch hacked", "x | touch hacked", "x > hacked", "x\ntouch hacked", "x`'; touch hacked; `'", "a b", "*",
    "~", "$HOME", "\\", "'", '"', "!x", "#x", "-n", "é", "{a,b}", "x' `touch hacked` '", "",
    "feature/'$(touch hacked)'", "x\x1b[2J", "\ud800x", "$$x",
)  # fmt: skip


def words_of(command: str, folder: Path) -> list[str]:
    """The words that a real shell makes of a command's arguments."""
    printed = subprocess.run(
        ["sh", "-c", f"printf '%s\\0' {command}"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert not (folder / "hacked").exists(), command
    return printed.stdout.decode().split("\0")[:-1]


def one_line(value: str) -> str:
    """A value as a message of one line can show it."""
    return value.replace("\x1b[2J", "").replace("\ud800", "\ufffd").replace("\n", " ")
