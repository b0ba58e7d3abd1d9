"""The nodes' network under the real engine on localcloud: made, unchanged, another region, gone."""

from __future__ import annotations

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
PROJECT = "name: network\nruntime:\n  name: python\n  options:\n    virtualenv: .venv\n"
PROGRAM = """
import os
import pulumi
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs
from bezel_components.node_network import NodeNetwork, NodeNetworkArgs

where = os.environ["GOOGLE_CLOUD_PROJECT"]
apis = EnabledApis("apis", EnabledApisArgs(project=where, services=("compute.googleapis.com",)))
regions = tuple(os.environ["NODE_REGIONS"].split())
args = NodeNetworkArgs(project=where, network="probe", regions=regions, gateway_region="us-east5", nat=True)
NodeNetwork("nodes", args, opts=pulumi.ResourceOptions(depends_on=[apis]))
"""


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
def test_a_network_lives_on_when_its_regions_change_and_leaves_nothing(
    engine: LocalEngine, cloud: control.Endpoint, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NODE_REGIONS", "us-east5 europe-west4")
    assert engine.run("up", "one", ("--yes", "--skip-preview")).end.code == 0
    inventory = control.inventory(cloud)
    assert names(inventory, "subnetworks") == {"probe-us-east5", "probe-europe-west4", "probe-gateway"}
    assert names(inventory, "firewalls") == {"probe-gateway"}
    assert names(inventory, "routers") == {"probe-us-east5", "probe-europe-west4"}
    assert engine.run("preview", "one", ("--expect-no-changes",)).end.code == 0

    monkeypatch.setenv("NODE_REGIONS", "asia-northeast1 us-east5")
    capfd.readouterr()
    assert engine.run("up", "one", ("--yes", "--skip-preview")).end.code == 0
    assert "+ 3 created" in (output := capfd.readouterr().out), "subnetwork, router and NAT of the new region"
    assert "10 unchanged" in output, "nothing else moves"
    assert engine.run("refresh", "one", ("--preview-only", "--expect-no-changes")).end.code == 0

    monkeypatch.setenv("NODE_REGIONS", "europe-west4")
    assert engine.run("preview", "one", ("--expect-no-changes",)).end.code != 0, "and a change would be told"
    assert engine.run("destroy", "one", ("--yes", "--skip-preview")).end.code == 0
    assert control.inventory(cloud) == {}
