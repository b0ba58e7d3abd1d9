"""Policy packs from wheels judge a program of somebody else, in an environment that holds nothing of this clone."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.fresh_environment import FreshEnvironment, without_this_clone

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
SECONDS = 240
PROGRAM = """
import pulumi_gcp as gcp

gcp.cloudrunv2.Service(
    "search",
    location="us-east4",
    name="search",
    template={
        "node_selector": {"accelerator": "nvidia-l4"},
        "gpu_zonal_redundancy_disabled": True,
        "scaling": {"max_instance_count": 1},
        "containers": [{
            "image": "us-docker.pkg.dev/cloudrun/container/hello",
            "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
        }],
    },
)
"""


@dataclass(frozen=True)
class Shop:
    """The program, and the environment of wheels that it runs in."""

    folder: Path
    environment: FreshEnvironment

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the program's folder, with the environment's programs first."""
        variables = without_this_clone(os.environ) | {
            "HOME": str(self.folder),
            "PATH": f"{self.environment.folder / 'bin'}:{self.environment.plugins}:/usr/local/bin:/usr/bin:/bin",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "none",
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'state'}",
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_CONFIG_PASSPHRASE": "not a secret",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        }
        return subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def pack(self, name: str) -> str:
        """The folder that `bezel policies path` prints."""
        output = self.run("bezel", "policies", "path", name)
        assert output.returncode == 0, output.stderr
        return output.stdout.removesuffix("\n")

    def preview(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Preview the program."""
        return self.run("pulumi", "preview", "--stack", "dev", "--non-interactive", *options)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Shop:
    top = tmp_path_factory.mktemp("shop")
    environment = FreshEnvironment.make(top / "environment", wheels, "bezel-policies", "bezel-components")
    environment.add_pulumi()
    folder = top / "program"
    (folder / "state").mkdir(parents=True)
    (folder / "__main__.py").write_text(PROGRAM)
    runtime = {"name": "python", "options": {"virtualenv": str(environment.folder)}}
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "shop", "runtime": runtime}))
    (folder / "Pulumi.dev.yaml").write_text(json.dumps({"config": {"gcp:project": "shop"}}))
    made = Shop(folder, environment)
    started = made.run("pulumi", "stack", "init", "dev")
    assert started.returncode == 0, started.stderr
    return made


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_an_installed_pack_allows_what_its_shipped_limits_do(shop: Shop) -> None:
    pack = shop.pack("hardware_cost")
    assert pack.startswith(str(shop.environment.packages))
    done = shop.preview("--policy-pack", pack, "--policy-pack-config", f"{pack}.dev.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hardware-cost@v0.1.0" in done.stdout
    priced = shop.preview("--policy-pack", shop.pack("price"))
    assert priced.returncode == 0, priced.stdout + priced.stderr
    assert "USD/h" in priced.stdout


@pytest.mark.timeout(900)
def test_an_installed_pack_refuses_by_lower_limits_and_no_other_is_found(shop: Shop) -> None:
    pack = shop.pack("hardware_cost")
    with open(f"{pack}.dev.json") as shipped:  # noqa: PTH123 - as the engine is told it
        limits = json.load(shipped)
    own_limits = shop.folder / "limits.json"
    own_limits.write_text(json.dumps(limits | {"hourly-ceiling": {"limits": {"dev": 0.1}}}))
    done = shop.preview("--policy-pack", pack, "--policy-pack-config", str(own_limits))
    assert done.returncode != 0
    assert "[mandatory]  hourly-ceiling" in done.stdout, done.stdout + done.stderr
    unknown = shop.run("bezel", "policies", "path", "cost")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "there are hardware_cost, price, security" in unknown.stderr
