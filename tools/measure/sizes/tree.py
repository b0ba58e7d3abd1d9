"""Sizes of commits in lines of Python, by package and by part: `tree.py [COMMIT ...]` prints them side by side.

    .venv/bin/python tools/measure/sizes/tree.py 0f0f162f HEAD

Files come from git's objects, so no commit is checked out. A part is product, tests, support (a file of tests whose
name does not begin with `test_`) or tools. Of each there are the lines of code, without blank ones, comments and
docstrings, and all lines. A folder of a commit before the packages counts for the package that it became.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import PurePosixPath
from typing import NamedTuple

SECONDS = 120
BASE = "atomic_write cron console credential_names ending_signals errors front json_documents loopback text"
BECAME = {
    **{f"bezel/{name}": "base" for name in BASE.split()},
    **{f"bezel/{name}": name for name in ("bench", "catalog", "localcloud")},
    "bezel/localcloud/processes/process_status": "base",
    **{f"bezel/planner/{name}": "catalog" for name in ("base/option_values", "base/quantities", "sizing")},
    "bezel/simulated_vllm": "simulated-vllm",
    "bezel/standin_providers": "pulumi-offline",
}
"""Folder or module of commits before the packages -> the package that it became."""
PLACES = ("bootstrap", "components", "policies", "services", "smoke", "stacks")  # packages whose folders are at the top
PARTS = ("product", "tests", "support", "tools")
_ALL = "together"
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Lines(NamedTuple):
    """Lines of code, and all lines."""

    code: int
    all: int


def main() -> None:
    """Print the sizes of each commit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", default=["HEAD"], metavar="COMMIT")
    commits = parser.parse_args().commits
    try:
        sizes = [sizes_of(commit) for commit in commits]
    except subprocess.CalledProcessError:  # git has said why
        parser.exit(2, f"expected commits of this repository, got {' '.join(commits)}\n")
    print(f"{'':<24}", *(f"{commit[:16]:>16}" for commit in commits))
    print(f"{'part':<8} {'package':<15}", *(f"{'code':>8}{'all':>8}" for _ in commits))
    for part in PARTS:
        for package in [_ALL, *sorted({row[0] for size in sizes for row in size if row[1] == part})]:
            chosen = [[size[row] for row in size if row[1] == part and package in {row[0], _ALL}] for size in sizes]
            cells = (f"{sum(one.code for one in each):>8}{sum(one.all for one in each):>8}" for each in chosen)
            print(f"{part:<8} {package:<15}", *cells)


def sizes_of(commit: str, repository: str = ".") -> dict[tuple[str, str], Lines]:
    """(Package, part) -> lines of a commit's Python files.

    Raises:
        subprocess.CalledProcessError: There is no such commit.
    """
    listed = _git(repository, "ls-tree", "-r", "-z", commit, "--").decode().rstrip("\0").split("\0")
    entries = [line.partition("\t")[::2] for line in listed if line.endswith(".py") and not line.startswith("120000")]
    wanted = "".join(f"{about.split()[2]}\n" for about, _ in entries)
    content = io.BytesIO(_git(repository, "cat-file", "--batch", content=wanted.encode()))
    code, lines = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for _, path in entries:
        text = content.read(int(content.readline().split()[2]) + 1)[:-1].decode()
        code[place_of(path)] += code_lines(text)
        lines[place_of(path)] += len(text.splitlines())
    return {row: Lines(code[row], lines[row]) for row in lines}


def _git(repository: str, *arguments: str, content: bytes = b"") -> bytes:
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True, timeout=SECONDS).stdout


def place_of(path: str) -> tuple[str, str]:
    """Package and part of a Python file."""
    parts = PurePosixPath(path).with_suffix("").parts
    if parts[0] in {"tools", "research"}:
        return parts[0], "tools"
    if "tests" not in parts[:3] and parts != ("conftest",):
        return package_of(parts), "product"
    names = [name.removeprefix("test_") for name in parts[1:] if name != "support"]
    area = ("bezel", *names) if parts[0] == "tests" else parts
    return package_of(area), "tests" if parts[-1].startswith("test_") else "support"


def package_of(parts: tuple[str, ...]) -> str:
    """The package that holds a file or folder, or that it became; `bezel` for the program."""
    if parts[0] == "packages":
        return parts[1]
    packages = [BECAME[name] for end in range(len(parts), 1, -1) if (name := "/".join(parts[:end])) in BECAME]
    at_top = next((name for name in parts[:2] if name in PLACES), "bezel")
    return packages[0] if packages else at_top


def code_lines(text: str) -> int:
    """The lines of a module that hold code: not blank, no comment, no docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


if __name__ == "__main__":
    main()
