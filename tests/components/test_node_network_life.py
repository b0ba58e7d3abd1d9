"""The nodes' network under the real engine on localcloud: made, unchanged, another region, gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel_localcloud import control
from tests.support.components.component_life import life_of, names

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.engine.local.engine import LocalEngine


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
def life(tmp_path: Path) -> Iterator[tuple[LocalEngine, control.Endpoint]]:
    with life_of(tmp_path, PROJECT, PROGRAM) as opened:
        yield opened


@pytest.mark.wide
def test_a_network_lives_on_when_its_regions_change_and_leaves_nothing(
    life: tuple[LocalEngine, control.Endpoint], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    engine, cloud = life
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
