"""Sizes of commits: what counts as code, and for which package and part a file counts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.measure.sizes.tree import Lines, code_lines, place_of, sizes_of

MODULE = '''"""Docstring
of two lines."""

# A comment.
VALUE = """a text

that is a value"""
"""Docstring of the value."""


def double(number):  # the comment beside code does not count
    """Docstring."""
    return (
        number
        * 2
    )
'''


def test_code_is_neither_blank_nor_comment_nor_docstring() -> None:
    assert code_lines(MODULE) == 3 + 1 + 4


def test_a_module_of_a_docstring_has_no_code() -> None:
    assert code_lines('"""Docstring."""\n\n# comment\n') == 0


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("packages/bench/bezel_bench/load/plan.py", ("bench", "product")),
        ("bezel/bench/load/plan.py", ("bench", "product")),
        ("bezel/planner/sizing/memory.py", ("catalog", "product")),
        ("bezel/planner/base/parse.py", ("bezel", "product")),
        ("bezel/localcloud/processes/process_status.py", ("base", "product")),
        ("bezel/standin_providers/plugin/server.py", ("pulumi-offline", "product")),
        ("smoke/bezel_smoke/health.py", ("smoke", "product")),
        ("smoke/health.py", ("smoke", "product")),
        ("__main__.py", ("bezel", "product")),
        ("packages/base/tests/test_cron.py", ("base", "tests")),
        ("packages/base/tests/made_up_secrets.py", ("base", "support")),
        ("tests/test_cron.py", ("base", "tests")),
        ("components/tests/test_node.py", ("components", "tests")),
        ("tests/simulated_vllm/test_memory.py", ("simulated-vllm", "tests")),
        ("tests/support/components/fake_cloud_run.py", ("components", "support")),
        ("tests/gitops/conftest.py", ("bezel", "support")),
        ("conftest.py", ("bezel", "support")),
        ("tools/bench/truth/plot.py", ("tools", "tools")),
    ],
)
def test_a_file_counts_for_its_package_and_part(path: str, place: tuple[str, str]) -> None:
    assert place_of(path) == place


@pytest.mark.slow
def test_each_commit_has_the_sizes_of_its_own_files(tmp_path: Path) -> None:
    write(tmp_path, "bezel/errors.py", MODULE)
    write(tmp_path, "bezel/words.txt", "no Python\n")
    commit(tmp_path)
    (tmp_path / "bezel" / "errors.py").unlink()
    write(tmp_path, "packages/base/bezel_base/errors.py", f"{MODULE}LAST = 1\n")
    write(tmp_path, "tests/test_errors.py", "assert True\n")
    commit(tmp_path)
    assert sizes_of("HEAD~1", str(tmp_path)) == {("base", "product"): Lines(8, 16)}
    assert sizes_of("HEAD", str(tmp_path)) == {("base", "product"): Lines(9, 17), ("base", "tests"): Lines(1, 1)}


@pytest.mark.slow
def test_an_unknown_commit_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "A = 1\n")
    commit(tmp_path)
    script = Path(__file__).parents[2] / "tools" / "measure" / "sizes" / "tree.py"
    ended = subprocess.run(
        [sys.executable, script, "v9"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2
    assert "v9" in ended.stderr
    assert "Traceback" not in ended.stderr


def write(folder: Path, name: str, text: str) -> None:
    """Write a file below the folder."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def commit(folder: Path) -> None:
    """Commit everything in the folder."""
    user = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "-A"), (*user, "commit", "-q", "-m", "Change")):
        subprocess.run(["git", *command], cwd=folder, check=True, timeout=60)
