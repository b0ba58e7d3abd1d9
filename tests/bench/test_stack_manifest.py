"""What a result says of a stack's server: by its plan, by what it told, and never more than somebody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bezel.cli.bench.stack_targets import StackTargets
from bezel.cli.main import parse
from bezel.engine.project.project import Project
from bezel_bench.commands.measure.manifest import view
from bezel_bench.commands.measure.target import TargetConnection
from bezel_bench.load.plan import Target
from bezel_bench.server.http_probe import Ask, ProbeResponse
from bezel_bench.validity.server_checks import manifest_complete
from tests.support.docs.markdown import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from bezel_bench.result.records import Manifest

REVISION = "projects/p/locations/us-east4/services/bezel-l4-qat/revisions/bezel-l4-qat-00001-abc"

IMAGE = "us-east4-docker.pkg.dev/p/r/vllm/vllm-openai@sha256:abc"


def said_by_server(path: str, _: Any = None) -> ProbeResponse:
    bodies = {
        "/version": b'{"version": "0.32.0"}',
        "/v1/models": b'{"data": [{"id": "m", "max_model_len": 4096}]}',
        "/metrics": b'vllm:cache_config_info{cache_dtype="auto",kv_cache_size_tokens="70000"} 1.0\n',
    }
    return ProbeResponse(200, bodies[path])


def nothing_said(_: str, __: Any = None) -> ProbeResponse:
    return ProbeResponse(0, b"refused")


def manifest(
    *arguments: str, outputs: dict[str, Any] | None = None, ask: Ask = said_by_server, folder: Path = ROOT
) -> Manifest:
    options = parse(["bench", "run", *arguments])
    reached = TargetConnection(Target("http://127.0.0.1:1", "m"), dict, ask, False, outputs or {})
    return view(StackTargets(Project(folder)), options, reached, title="t").manifest


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")


def test_a_service_s_plan_names_model_machine_price_and_arguments() -> None:
    described = manifest("--stack", "l4-qat", outputs={"revision": REVISION, "image": IMAGE})
    assert (described.checkpoint, described.title) == ("gemma-4-12b-it-qat-w4a16", "t")
    platform = described.platform
    assert (platform.accelerator, platform.chips, platform.instances) == ("nvidia-l4", 1, 1)
    assert (platform.region, platform.revision, platform.concurrency) == ("us-east4", "bezel-l4-qat-00001-abc", 16)
    assert described.price.usd_per_hour == pytest.approx(1.04652)
    assert described.price.as_of
    served = described.served_by
    assert (served.max_num_seqs, served.kv_cache_dtype, served.digest) == (8, "fp8", "sha256:abc")
    assert (served.vllm_version, served.max_model_len) == ("0.32.0", 4096)
    assert "--max-num-seqs=8" in (served.arguments or [])


def test_a_service_between_a_least_and_a_most_has_no_price_of_its_own(tmp_path: Path) -> None:
    stack = yaml.safe_load((ROOT / "Pulumi.l4-qat.yaml").read_text())
    for least, priced in ((0, False), (3, True)):
        stack["config"]["bezel:cost"] = {"max_hourly_usd": 9, "max_idle_hourly_usd": 9}
        stack["config"]["bezel:scaling"] = {"min_instances": least, "max_instances": 3}
        (tmp_path / "Pulumi.l4-qat.yaml").write_text(yaml.safe_dump(stack))
        (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
        described = manifest("--stack", "l4-qat", folder=tmp_path)
        assert (described.platform.instances, described.price.usd_per_hour is not None) == (3, priced)
        assert described.served_by.digest is None


@pytest.mark.parametrize(
    ("url", "regions", "measured"),
    [
        ("https://llm.acme.example", ["us-east4", "europe-west4"], "us-east4, europe-west4"),
        ("https://llm.acme.example", ["us-east4"], "us-east4"),
        ("https://europe-west4.example", ["us-east4", "europe-west4"], "europe-west4"),
    ],
)
def test_address_is_measured_with_all_regions_behind_it(
    url: str, regions: list[str], measured: str, tmp_path: Path
) -> None:
    stack = yaml.safe_load((ROOT / "Pulumi.l4-qat.yaml").read_text())
    del stack["config"]["bezel:region"]
    stack["config"] |= {
        "bezel:cost": {"max_hourly_usd": 9},
        "bezel:regions": ["us-east4", "europe-west4"],
        "bezel:optional_regions": ["europe-west4"],
        "bezel:address": {"domain": "llm.acme.example"},
    }
    (tmp_path / "Pulumi.l4-qat.yaml").write_text(yaml.safe_dump(stack))
    (tmp_path / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    urls = {region: f"https://{region}.example" for region in regions}
    outputs = {"url": url, **({"urls": urls} if len(urls) > 1 else {})}
    described = manifest("--stack", "l4-qat", outputs=outputs, folder=tmp_path)
    count = measured.count(",") + 1
    assert (described.platform.region, described.platform.instances) == (measured, count)
    assert described.price.usd_per_hour == pytest.approx(1.04652 * count, abs=0.001)


def test_leases_are_priced_where_they_lie_and_nowhere_else() -> None:
    one = {"zone": "europe-west4-a", "state": "active"}
    described = manifest("--stack", "v6e4-moe", outputs={"leases": {"a": one}, "image": IMAGE})
    assert (described.platform.accelerator, described.platform.chips, described.platform.region) == (
        "v6e-4",
        4,
        "europe-west4-a",
    )
    assert described.price.usd_per_hour == pytest.approx(5.40)
    assert (described.platform.lease, described.served_by.digest) == ("a", "sha256:abc")
    unknown = manifest("--stack", "v6e4-moe", outputs={})
    assert (unknown.price.usd_per_hour, unknown.platform.region, unknown.platform.instances) == (None, None, None)


def test_a_fleet_is_what_of_it_stands_wherever_that_lies() -> None:
    lying = {"a": "us-east5-a", "b": "us-east5-b", "c": "us-east5-a"}
    leases = {name: {"zone": zone, "state": "active"} for name, zone in lying.items()}
    whole = manifest("--stack", "v6e1-fleet", outputs={"leases": leases})
    assert (whole.platform.instances, whole.platform.lease, whole.platform.region) == (
        3,
        "a, b, c",
        "us-east5-a, us-east5-b",
    )
    assert whole.price.as_of
    leases["b"]["state"] = "expired"
    rest = manifest("--stack", "v6e1-fleet", outputs={"leases": leases})
    assert (rest.platform.instances, rest.platform.lease, rest.platform.region) == (2, "a, c", "us-east5-a")
    assert rest.price.usd_per_hour == pytest.approx((whole.price.usd_per_hour or 0) * 2 / 3)


# Without a price of its own a plan is refused: of those machines nobody has published one.
UNPRICED = {"gce-l4x8"}
STACKS = sorted({file.stem.removeprefix("Pulumi.") for file in ROOT.glob("Pulumi.*.yaml")} - UNPRICED)


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_what_is_deployed_as_one_lacks_nothing(stack: str) -> None:
    """Every stack of this repository: what the check of the manifest wants is there, from the outputs that it has."""
    outputs: dict[str, Any] = {"image": IMAGE, "revision": REVISION}
    plan = Project(ROOT).configuration(stack)
    if lease := plan.get("lease"):
        assert isinstance(lease, dict)
        zone = lease["zones"][0]
        outputs["leases"] = {"a": {"zone": zone["zone"] if isinstance(zone, dict) else zone, "state": "active"}}
    described = manifest("--stack", stack, outputs=outputs)
    check = manifest_complete(described, described.served_by)
    assert check.state == "passed", check.text
    without = manifest_complete(described, manifest("--stack", stack, outputs={}).served_by)
    assert "image digest" in without.text


def test_without_a_stack_only_what_was_said_is_known() -> None:
    bare = manifest("--url", "http://127.0.0.1:1", ask=nothing_said)
    assert bare.platform.model_dump(exclude_none=True) == {}
    assert bare.served_by.model_dump(exclude_none=True) == {}
    assert (bare.checkpoint, bare.price.usd_per_hour) == (None, None)
    options = ("--accelerator", "nvidia-l4", "--instances", "2", "--usd-per-hour", "3", "--title", "mine")
    described = manifest("--url", "http://127.0.0.1:1", *options)
    assert (described.platform.accelerator, described.platform.instances, described.title) == ("nvidia-l4", 2, "mine")
    assert (described.price.usd_per_hour, described.price.source) == (3.0, "--usd-per-hour")


def test_an_option_wins_over_the_plan() -> None:
    described = manifest("--stack", "l4-qat", "--instances", "4", "--usd-per-hour", "9", outputs={})
    assert (described.platform.instances, described.platform.region, described.price.usd_per_hour) == (
        4,
        "us-east4",
        9.0,
    )
