"""The pack `price` shows what a program's accelerators cost, of any program, and never refuses or fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulumi_policy import EnforcementLevel, PolicyResource, ResourceValidationArgs, StackValidationArgs
from pulumi_policy.proxy import unknown_checking_proxy

from bezel.engine.local.place import PLUGINS
from bezel_policies.adapter import advice
from bezel_policies.price.pack import POLICIES
from tests.support.policies.harness import LEASE, ROOT, SERVICE, UNKNOWN, instance, request, service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_policy import Policy

MOST = "template.scaling.maxInstanceCount"
LINE = "1.05 USD/h, 763.96 USD/month at most, idle 0.00 USD/h"
PROVIDER: Any = object()


def show(
    *resources: tuple[str, Mapping[str, Any]],
    policies: list[Policy] = POLICIES,
    provider: object = PROVIDER,
    outputs: Mapping[str, Any] | None = None,
) -> list[str]:
    """What the pack says of a program's resources; `outputs` are added to what the stack's policy sees of each."""
    remember, advise = policies
    lines: list[str] = []
    planned = []
    for number, (token, inputs) in enumerate(resources):
        urn = f"urn:pulumi:dev::shop::{token}::it{number}"
        args = ResourceValidationArgs(token, unknown_checking_proxy(dict(inputs)), urn, "it", None, None, {})  # type: ignore[arg-type]
        remember.validate(args, lambda message, _urn=None: lines.append(message))  # type: ignore[attr-defined]
        seen = unknown_checking_proxy({**inputs, **(outputs or {})})
        planned.append(PolicyResource(token, seen, urn, f"it{number}", None, provider, None, [], {}))  # type: ignore[arg-type]
    advise.validate(StackValidationArgs(planned, {}), lambda message, _urn=None: lines.append(message))  # type: ignore[attr-defined]
    return lines


def test_it_advises_only() -> None:
    assert {policy.enforcement_level for policy in POLICIES} == {EnforcementLevel.ADVISORY}


def test_the_line_is_the_sum_over_the_program() -> None:
    assert show((SERVICE, service())) == [LINE]
    assert show((SERVICE, service()), (SERVICE, service({MOST: 2.0})))[0].startswith("3.14 USD/h")
    assert show((LEASE, request("queued_resource")), (LEASE, request("queued_resource")))[0].startswith("5.40 USD/h")


def test_without_accelerators_it_says_nothing() -> None:
    assert show() == []
    assert show(("gcp:storage/bucket:Bucket", {"location": "US"})) == []


def test_an_output_that_the_cloud_sets_is_no_accelerator() -> None:
    plain = instance({"machineType": "e2-small", "scheduling": None})
    assert show(("gcp:compute/instance:Instance", plain), outputs={"guestAccelerators": UNKNOWN}) == []


def test_without_a_price_it_says_unknown_and_names_the_row() -> None:
    (line,) = show((SERVICE, service({"location": "asia-southeast1"})), (SERVICE, service()))
    assert line.startswith("unknown USD/h, unknown USD/month at most, idle unknown USD/h; unknown: ")
    assert "cloud-run, gpu nvidia-l4 no zonal redundancy, asia-southeast1" in line
    (line,) = show(("gcp:container/nodePool:NodePool", {"nodeConfig": {"guestAccelerators": [{"type": "x"}]}}))
    assert "unknown USD/h" in line
    assert "an accelerator on a resource of type gcp:container/nodePool:NodePool" in line


@pytest.mark.parametrize("path", [MOST, "template", "location"])
def test_an_unknown_input_is_said_to_be_unknown(path: str) -> None:
    (line,) = show((SERVICE, service({path: UNKNOWN})))
    assert "unknown USD/h" in line
    assert f"{path} = (not known before the deploy) of it0" in line


def test_a_component_costs_nothing() -> None:
    assert show(("team:index:Server", {"accelerator": "nvidia-l4"}), provider=None) == []


def test_a_failure_of_its_own_is_said_and_stops_nothing() -> None:
    def price_line(_resources: object) -> str:
        """Fail."""
        raise ValueError("planted")

    (line,) = show((SERVICE, service()), policies=advice(price_line))
    assert line == "unknown: this policy failed (ValueError); the deployment is not affected."


PROGRAM = """
import pulumi
import pulumi_gcp as gcp

kind = pulumi.Config().get("kind")
bucket = gcp.storage.Bucket("files", location="US", force_destroy=True)


class Shop(pulumi.ComponentResource):
    def __init__(self):
        super().__init__("shop:index:Shop", "shop", {"accelerator": "nvidia-l4"})


if kind:
    Shop()
    gcp.cloudrunv2.Service(
        "search",
        location="us-east4",
        template={
            "node_selector": {"accelerator": "nvidia-l4"},
            "gpu_zonal_redundancy_disabled": True,
            "scaling": {"max_instance_count": bucket.url.apply(len) if kind == "unknown" else 1},
            "containers": [{
                "image": "us-docker.pkg.dev/cloudrun/container/hello",
                "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
            }],
        },
    )
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is not ours, with a state of its own."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "__main__.py").write_text(PROGRAM)
    runtime = {"name": "python", "options": {"virtualenv": str(ROOT / ".venv")}}
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "shop", "runtime": runtime}))
    (folder / "state").mkdir()
    return folder


@pytest.mark.wide_except("priced-*")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("", []),
        ("priced", [LINE, "[advisory]"]),
        ("unknown", ["unknown USD/h", f"{MOST} = (not known before the deploy) of search"]),
    ],
)
def test_the_engine_shows_it_for_a_program_that_is_not_ours(shop: Path, kind: str, message: list[str]) -> None:
    (shop / "Pulumi.dev.yaml").write_text(json.dumps({"config": {"shop:kind": kind, "gcp:project": "shop"}}))
    environment = {
        "HOME": str(shop),
        "PATH": f"{Path(sys.executable).parent}:{PLUGINS}:/usr/local/bin:/usr/bin:/bin",
        "BEZEL_PYTHON": sys.executable,
        "GOOGLE_OAUTH_ACCESS_TOKEN": "none",
        "PULUMI_BACKEND_URL": f"file://{shop / 'state'}",
        "PULUMI_HOME": str(shop / "home"),
        "PULUMI_CONFIG_PASSPHRASE": "not a secret",
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        **{name: value for name, value in os.environ.items() if name == "TMPDIR"},
    }
    if not list((shop / "state").rglob("dev.json")):
        subprocess.run(["pulumi", "stack", "init", "dev"], cwd=shop, env=environment, check=True, timeout=60)
    pack = ROOT / "policies" / "price"
    command = ["pulumi", "preview", "--stack", "dev", "--non-interactive", "--policy-pack", str(pack)]
    done = subprocess.run(command, cwd=shop, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "price@v0.1.0" in done.stdout
    for word in message:
        assert word in done.stdout, done.stdout
    assert ("price-line" in done.stdout) == bool(message)
