"""An address under the real engine on localcloud, which refuses to delete what is in use: each change is one update."""

from __future__ import annotations

import json
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
def life(tmp_path: Path) -> Iterator[tuple[LocalEngine, control.Endpoint]]:
    with life_of(tmp_path, PROJECT, PROGRAM) as opened:
        yield opened


@pytest.mark.wide
def test_each_change_of_an_address_passes_in_one_update(
    life: tuple[LocalEngine, control.Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another domain, service and region at once, then one region; the IP stays, and nothing is left."""
    engine, cloud = life
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
