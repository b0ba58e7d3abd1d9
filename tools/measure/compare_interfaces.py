"""Comparison of two checkouts by what users and states see: `compare_interfaces.py BEFORE [AFTER]` prints what differs.

    git worktree add --detach ../before 2ffb9450 && make -C ../before setup
    .venv/bin/python tools/measure/compare_interfaces.py ../before

Each checkout answers with its own code and its own `.venv`: commands with their help texts, exit codes of errors,
operations with the schemas of their arguments and results, tools of the MCP server, schemas of stack files and of
benchmark results, and the resources that the program declares for a service, a lease and a gated service (URN, type
token, inputs). The questions stand in `interfaces.py`; `formats.py` writes reports, records, journals and results, and
tells their fields. Both run in the checkout's environment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS = 1800
QUESTIONS = {
    "interfaces": ("interfaces.py",),
    "formats": ("formats.py",),
    "records": ("formats.py", "records"),
}
"""Name of each set of questions -> its script with arguments; `records` are the formats that need no process."""
_SHOWN = 300
"""Characters of a value that are shown."""


def main() -> int:
    """Print what differs; exit status 1 if anything does, 2 where a checkout does not answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="checkout with its .venv")
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).resolve().parents[2])
    parser.add_argument("--only", choices=[*QUESTIONS], action="append", help="ask this alone; repeatable")
    chosen = parser.parse_args()
    names = chosen.only or ["interfaces", "formats"]
    before, after = (
        dict(leaf for name in names for leaf in leaves(answers(folder.resolve(), *QUESTIONS[name])))
        for folder in (chosen.before, chosen.after)
    )
    print(f"{len(before)} facts before, {len(after)} after")
    lines = list(differences(before, after))
    print("\n".join(lines) or "nothing differs")
    return 1 if lines else 0


def answers(checkout: Path, script: str, *arguments: str) -> dict[str, object]:
    """The answers of a checkout's own code.

    Raises:
        SystemExit: It has no environment, or its code failed.
    """
    python = checkout / ".venv" / "bin" / "python"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PULUMI", "GOOGLE", "BEZEL"))
    }
    environment |= {"PYTHONPATH": str(checkout), "COLUMNS": "120"}
    command = [str(python), str(Path(__file__).with_name(script)), *arguments]
    try:
        ended = subprocess.run(
            command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{checkout} did not answer: {error}\nRun `make setup` there, then compare again.", file=sys.stderr)
        raise SystemExit(2) from None
    output: dict[str, object] = json.loads(ended.stdout)
    return output


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Path -> value of each leaf of a JSON document; a text of a list by itself, so that a new one moves no other."""
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], f"{path} / {key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        yield from ((f"{path} / {each}", count) for each, count in Counter(value).items())
    elif isinstance(value, list) and value:
        for position, each in enumerate(value):
            yield from leaves(each, f"{path} / {position}")
    else:
        yield path, value


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """A line for each fact that differs, in the order of its path."""
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield f"- {path}: {format_value(before[path])}"
        elif path not in before:
            yield f"+ {path}: {format_value(after[path])}"
        elif before[path] != after[path]:
            yield f"! {path}: {format_value(before[path])} → {format_value(after[path])}"


def format_value(value: object) -> str:
    """A value in one line."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


if __name__ == "__main__":
    sys.exit(main())
