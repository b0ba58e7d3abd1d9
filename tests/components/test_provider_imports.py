"""The provider's modules are loaded when the program is, before any thread could see one half loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # whole processes

ROOT = Path(__file__).parent.parent.parent
USED = {"artifactregistry", "cloudrunv2", "projects", "serviceaccount", "storage"}
LOADED = """
import importlib, sys, types
importlib.import_module(sys.argv[1])
own = [name for name in sys.modules if name.count(".") == 1 and name.startswith("pulumi_gcp.")]
print(*[name.partition(".")[2] for name in own if type(sys.modules[name]) is types.ModuleType])
"""


def loaded_by(module: str) -> set[str]:
    command = [sys.executable, "-c", LOADED, module]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_what_every_stack_uses_is_loaded_with_the_program() -> None:
    assert loaded_by("bezel_services.cloud_run") >= USED


def test_a_package_whose_arguments_were_read_has_its_classes() -> None:
    program = (
        "from pulumi_offline_support.sdk import arguments_of; arguments_of('gcp:storage/bucket:Bucket');"
        "from pulumi_gcp.storage import Bucket; print(Bucket.__name__)"
    )
    command = [sys.executable, "-c", program]
    helpers = ROOT / "packages" / "pulumi-offline" / "tests"
    done = subprocess.run(command, cwd=helpers, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("Bucket\n", "")


def test_a_module_that_is_only_named_is_not_loaded() -> None:
    assert not USED & loaded_by("pulumi_gcp")
