"""An environment with a distribution's wheel, and what its metadata asks for, has all that its modules import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.tools.fresh_environment import FreshEnvironment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
# Distribution -> at least so many modules, and whether it needs Pulumi.
DISTRIBUTIONS = {
    "bezel-base[grpc,web]": (20, False),
    "bezel-bench": (120, False),
    "bezel-bootstrap": (8, True),
    "bezel-catalog": (30, False),
    "bezel-components": (40, True),
    "bezel-door": (25, False),
    "bezel-localcloud": (200, False),
    "bezel-policies": (12, True),
    "bezel-pulumi-offline": (30, True),
    "bezel-simulated-vllm": (60, False),
    "bezel-services": (12, True),
    "bezel-smoke": (8, True),
    "bezel-stacks": (4, True),
    "bezel": (450, True),
}
SERVES = {"starlette", "uvicorn"}


@pytest.mark.wide_except("bezel")
@pytest.mark.parametrize("requirement", DISTRIBUTIONS)
def test_every_module_of_a_wheel_imports(wheels: Path, tmp_path: Path, requirement: str) -> None:
    least, needs_pulumi = DISTRIBUTIONS[requirement]
    environment = FreshEnvironment.make(tmp_path / "environment", wheels, requirement)
    package = requirement.partition("[")[0].replace("-", "_")
    assert len(environment.imports(package)) >= least
    assert ("pulumi" in environment.installed) is needs_pulumi


def test_what_is_not_asked_for_is_missing(wheels: Path, tmp_path: Path) -> None:
    plain = FreshEnvironment.make(tmp_path / "environment", wheels, "bezel-base")
    assert plain.installed == {"bezel-base"}
    with pytest.raises(AssertionError, match=r"No module named '(starlette|grpc)'"):
        plain.imports("bezel_base")


def test_a_load_client_installs_no_server(wheels: Path, tmp_path: Path) -> None:
    client = FreshEnvironment.make(tmp_path / "client", wheels, "bezel-bench")
    assert not client.installed & {*SERVES, "cryptography", "grpcio", "google-auth", "httpx", "mcp"}
    cloud = FreshEnvironment.make(tmp_path / "cloud", wheels, "bezel-localcloud")
    assert cloud.installed >= SERVES
    assert not cloud.installed & {"grpcio", "google-auth", "mcp", "numpy", "pulumi", "pulumi-gcp"}
