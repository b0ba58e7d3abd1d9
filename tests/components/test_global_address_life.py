"""An address under the real engine on localcloud, which refuses to delete what is in use: each change is one update."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_localcloud.core.json_types import Json

ROOT = Path(__file__).parents[2]
PROJECT = "name: address\nruntime:\n  name: python\n  options:\n    virtualenv: .venv\n"
PROGRAM = """
import json
import os
import pulumi
from pulumi_gcp.dns import ManagedZone
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs
from bezel_components.global_address import APIS, GlobalAddress, GlobalAddressArgs

where = os.environ["GOOGLE_CLOUD_PROJECT"]
apis = EnabledApis("apis", EnabledApisArgs(project=where, services=APIS))
zone = ManagedZone(
    "zone", project=where, name="acme", dns_name="acme.example.", opts=pulumi.ResourceOptions(depends_on=[apis])
)
args = GlobalAddressArgs(project=where, zone="acme", **json.loads(os.environ["ADDRESS"]))
address = GlobalAddress("address", args, opts=pulumi.ResourceOptions(depends_on=[apis, zone]))
pulumi.export("records", address.records)
pulumi.export("address", address.address)
"""
BASE = {"domain": "llm.acme.example", "services": {"us-east4": "chat", "europe-west4": "chat"}}
OTHERS = {"domain": "chat.acme.example", "services": {"us-east4": "answers", "asia-southeast1": "answers"}}
ONE_REGION = {"domain": "chat.acme.example", "services": {"us-east4": "answers"}}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[control.Endpoint]:
    yield warm_localcloud.start(tmp_path / "cloud")
    control.stop(tmp_path / "cloud")


@pytest.fixture
def engine(tmp_path: Path, cloud: control.Endpoint) -> LocalEngine:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(PROJECT)
    (folder / "Pulumi.one.yaml").write_text("config: {}\n")
    (folder / "__main__.py").write_text(PROGRAM)
    for name in (".venv", "components", "bezel"):
        (folder / name).symlink_to(ROOT / name)
    made = LocalEngine(Project(folder), tmp_path / "engine", control.environment(cloud))
    made.prepare("one")
    return made


def names(inventory: Json, kind: str) -> set[str]:
    return {name.rpartition("/")[2] for name in inventory.get(kind, [])}


@pytest.mark.wide
def test_each_change_of_an_address_passes_in_one_update(
    engine: LocalEngine, cloud: control.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another domain, service and region at once, then one region; the IP stays, and nothing is left."""
    ways = []
    for arguments in (BASE, OTHERS, ONE_REGION):
        monkeypatch.setenv("ADDRESS", json.dumps(arguments))
        assert engine.run("up", "one", ("--yes", "--skip-preview")).end.code == 0
        inventory = control.inventory(cloud)
        regions = {name.removeprefix("address-")[:-8] for name in names(inventory, "regionNetworkEndpointGroups")}
        assert regions == set(arguments["services"])
        ways.append(
            [names(inventory, kind) for kind in ("globalAddresses", "globalForwardingRules", "backendServices")]
        )
    assert ways[0] == ways[1] == ways[2], "callers keep their way to the services"
    assert engine.run("refresh", "one", ("--preview-only", "--expect-no-changes")).end.code == 0
    assert engine.run("destroy", "one", ("--yes", "--skip-preview")).end.code == 0
    assert set(control.inventory(cloud)) <= {"enabledApis"}
