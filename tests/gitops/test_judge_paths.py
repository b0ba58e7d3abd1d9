"""Paths that judge: everything but what is known to be judged, and the owners of each in the example of CODEOWNERS."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.gitops.changed.import_closure import modules_of
from bezel.gitops.judge.paths import is_judge, is_loaded
from tests.support.gitops.working_copy import ROOT, tracked_files

JUDGING = [
    "policies/hardware_cost.prod.json",
    "policies/hardware_cost.qa.json",
    "policies/bezel_policies/hardware_cost/rules.py",
    "policies/security/PulumiPolicy.yaml",
    "policies/own_pack/__main__.py",
    "policies/own_pack/README.md",
    "policies/tests/__main__.py",
    "packages/catalog/bezel_catalog/data/prices.csv",
    "bezel/gitops/review/approval.py",
    "bezel/sitecustomize.py",
    "bootstrap/bezel_bootstrap/access.py",
    "uv.lock",
    "uv.toml",
    "pyproject.toml",
    "requirements.txt",
    ".python-version",
    "bezel.toml",
    "catalog.toml",
    "Pulumi.yaml",
    "Pulumi.yml",
    "Pulumi.dev.yml",
    "Makefile",
    "GNUmakefile",
    ".ci/run",
    ".ci/python",
    "tools/toolchain/environment.py",
    "tools/toolchain/pulumi/go.mod",
    "packages/pulumi-offline/bezel_pulumi_offline/language_host/runtime.py",
    "packages/pulumi-offline/bezel_pulumi_offline/plugins/pulumi-language-python",
    ".github/workflows/preview.yml",
    ".github/workflows/another.yml",
    ".github/actions/setup/action.yml",
    ".github/CODEOWNERS",
    ".gitea/workflows/preview.yml",
    ".gitattributes",
    ".gitmodules",
    ".gitignore",
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "evil.pth",
    ".venv",
    ".venv/bin/python",
    "pulumi/policy/__main__.py",
    "pulumi_policy.py",
    "argparse.py",
    "Policies/hardware_cost/rules.py",
    "Components/x.py",
    # Beside the packages of members, whose folders are on the path of every process.
    "components/sitecustomize.py",
    "components/json.py",
    "components/evil.pth",
    "components/evil-1.dist-info/entry_points.txt",
    "components/bezel_components.py",
    "components/bezel_catalog/__init__.py",
    "components/bezel_components/pyproject.toml",
    "stacks/bezel_stacks/deeper/pyproject.toml",
    "packages/base/bezel_catalog/__init__.py",
    "packages/new/pyproject.toml",
    "policies/sitecustomize.py",
    "smoke/usercustomize.py",
    "smoke/health/__init__.py",
    "components/bezel_components",
    "components/providers",
    # A link or a submodule in place of a folder of the program, and files in place of them.
    "components",
    "docs",
    "tools",
    # Outside of the project's folder.
    "/.github/workflows/deploy.yml",
    "/pyproject.toml",
    "/.gitattributes",
    "/sitecustomize.py",
]
JUDGED = [
    "Pulumi.l4-qat.yaml",
    "Pulumi.a.b.yaml",
    "__main__.py",
    "components/bezel_components/config/gateway.py",
    "components/providers/model_files.py",
    "components/tests/test_x.py",
    "components/README.md",
    "components/LICENSE",
    "policies/README.md",
    "policies/LICENSE",
    "packages/localcloud/tests/test_x.py",
    "packages/localcloud/docs/guide.md",
    "services/bezel_services/cloud_run.py",
    "smoke/bezel_smoke/checks.py",
    "docs/gitops.md",
    "docs/decisions/0028-pipelines.md",
    "tests/gitops/test_judge_paths.py",
    "tools/docs/bootstrap.py",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "/other/team/program.py",
    "/README.md",
]


@pytest.mark.parametrize("path", JUDGING)
def test_a_path_judges_unless_it_is_known_to_be_judged(path):
    assert is_judge(path)


@pytest.mark.parametrize("path", JUDGED)
def test_the_program_stack_files_documents_and_tests_judge_nothing(path):
    assert not is_judge(path)
    assert not is_loaded(path)


@pytest.mark.parametrize(
    ("path", "loaded"),
    [
        ("packages/catalog/bezel_catalog/data/prices.csv", True),
        ("bezel/foundation/permissions.py", True),
        ("sitecustomize.py", True),
        ("pulumi/policy/__main__.py", True),
        ("bezel.pth", True),
        ("grpc.so", True),
        (".venv", True),
        (".venv/bin/python", True),
        (".venvs/notes", False),
        ("uv.lock", True),
        ("pyproject.toml", True),
        ("components/json.py", True),
        ("components/evil.pth", True),
        ("components/evil-1.dist-info/entry_points.txt", True),
        ("evil-1.egg-info/entry_points.txt", True),
        ("components/pyproject.toml", True),
        ("components/bezel_components/pyproject.toml", True),
        ("policies/sitecustomize.py", True),
        ("policies/sitecustomize/__init__.py", True),
        ("policies/bezel_policies/hardware_cost/rules.py", False),
        ("policies/hardware_cost/__main__.py", False),
        ("policies/hardware_cost.prod.json", False),
        ("packages/pulumi-offline/bezel_pulumi_offline/language_host/runtime.py", True),
        ("tools/toolchain/cache.py", False),
        ("Pulumi.yaml", False),
        ("Makefile", False),
        (".github/workflows/preview.yml", False),
        ("preview.json", False),
        ("/sitecustomize.py", False),
    ],
)
def test_the_judging_process_loads_modules_data_and_its_environment(path, loaded):
    assert is_loaded(path) is loaded


def imported_modules(tree: Path, modules: dict[str, str], name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse((tree / modules[name]).read_bytes())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        for parts in (text.split(".") for text in names):
            yield from (part for end in range(1, len(parts) + 1) if (part := ".".join(parts[:end])) in modules)


@pytest.mark.slow
def test_every_module_that_the_judge_imports_is_part_of_it():
    modules = modules_of(ROOT)
    waiting = [name for name in modules if name.startswith(("bezel.cli.ci", "bezel.gitops.review", "policies"))]
    seen: set[str] = set()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += imported_modules(ROOT, modules, name)
    assert "bezel_catalog.prices" in seen
    assert [modules[name] for name in sorted(seen) if not is_judge(modules[name])] == []


def test_no_judging_file_of_this_tree_is_a_link():
    """A deploy of a tree with one is refused: nothing compares what it points to."""
    tracked = tracked_files()
    links = {path for path in tracked if (ROOT / path).is_symlink()}
    assert "policies/LICENSE" in links
    assert {path for path in links if is_judge(path)} == set()


def owners(path: str) -> str:
    """The owners of a path by GitHub's rules, as far as the example uses them: the last matching line counts."""
    last_owner = ""
    for line in (ROOT / ".github" / "CODEOWNERS.example").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, owner = line.split()
        body = re.escape(pattern.lstrip("/")).replace(r"\*", "[^/]*")
        is_folder = pattern.endswith("/")
        place = "" if pattern.startswith("/") else "(?:.*/)?"
        if re.fullmatch(f"{place}{body}" + (".*" if is_folder else "(?:/.*)?"), path):
            last_owner = owner
    return last_owner


@pytest.mark.slow
def test_the_example_of_code_owners_covers_every_judging_path():
    tracked = tracked_files()
    inside = [path for path in (*JUDGING, *tracked) if is_judge(path) and not path.startswith("/")]
    assert len(inside) > 1000
    # GitHub takes a link of that name for the folder.
    folders = {"components", "components/bezel_components", "components/providers", "docs", "tools"}
    assert [path for path in inside if owners(path) != "@acme/judges" and path not in folders] == []
    others = [path for path in (*JUDGED, *tracked) if not is_judge(path) and not path.startswith("/")]
    assert {owners(path) for path in others} == {"@acme/ml"}
