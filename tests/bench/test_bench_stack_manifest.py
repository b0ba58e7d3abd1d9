"""What a result says of a stack's server: by its plan, by what it told, and never more than somebody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bezel.bench.asking import Answer, Ask
from bezel.bench.plan import Target
from bezel.ops.bench_manifest import view
from bezel.ops.bench_target import Reached
from bezel.ops.cli import parse
from bezel.ops.project import Project
from tests.docs.markdown import ROOT
from tests.rest.fake_google import ACCESS_TOKEN, serving
from tests.rest.fake_google import Answer as Told

if TYPE_CHECKING:
    from pathlib import Path

    from bezel.bench.result import Manifest

REVISION = "projects/p/locations/us-east4/services/bezel-l4-qat/revisions/bezel-l4-qat-00001-abc"


def said_by_server(path: str, _: Any = None) -> Answer:
    bodies = {
        "/version": b'{"version": "0.32.0"}',
        "/v1/models": b'{"data": [{"id": "m", "max_model_len": 4096}]}',
        "/metrics": b'vllm:cache_config_info{cache_dtype="auto",kv_cache_size_tokens="70000"} 1.0\n',
    }
    return Answer(200, bodies[path])


def nothing_said(_: str, __: Any = None) -> Answer:
    return Answer(0, b"refused")


def manifest(
    *arguments: str, outputs: dict[str, Any] | None = None, ask: Ask = said_by_server, folder: Path = ROOT
) -> Manifest:
    options = parse(["bench", "run", *arguments])
    reached = Reached(Target("http://127.0.0.1:1", "m"), dict, ask, False, outputs or {})
    return view(Project(folder), options, reached, title="t").manifest


@pytest.fixture(autouse=True)
def cloud(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Cloud Run that knows one revision."""
    image = {"image": "us-east4-docker.pkg.dev/p/r/vllm/vllm-openai@sha256:abc"}
    with serving() as google:
        google.routes.append(lambda call: Told(json={"containers": [image]}) if call.path == f"/{REVISION}" else None)
        monkeypatch.setenv("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT", google.url)
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", ACCESS_TOKEN)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
        yield google


def test_a_service_s_plan_names_model_machine_price_and_arguments() -> None:
    found = manifest("--stack", "l4-qat", outputs={"revision": REVISION})
    assert (found.checkpoint, found.title) == ("gemma-4-12b-it-qat-w4a16", "t")
    platform = found.platform
    assert (platform.accelerator, platform.chips, platform.instances) == ("nvidia-l4", 1, 1)
    assert (platform.region, platform.revision, platform.concurrency) == ("us-east4", "bezel-l4-qat-00001-abc", 16)
    assert found.price.usd_per_hour == pytest.approx(1.04652)
    assert found.price.as_of
    served = found.served_by
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
        found = manifest("--stack", "l4-qat", folder=tmp_path)
        assert (found.platform.instances, found.price.usd_per_hour is not None) == (3, priced)
        assert found.served_by.digest is None


def test_leases_are_priced_where_they_lie_and_nowhere_else() -> None:
    one = {"zone": "europe-west4-a", "state": "running"}
    found = manifest("--stack", "v6e4-moe", outputs={"leases": {"a": one}})
    assert (found.platform.accelerator, found.platform.chips, found.platform.region) == ("v6e-4", 4, "europe-west4-a")
    assert found.price.usd_per_hour == pytest.approx(5.40)
    assert found.platform.lease
    unknown = manifest("--stack", "v6e4-moe", outputs={})
    assert (unknown.price.usd_per_hour, unknown.platform.region) == (None, None)


def test_without_a_stack_only_what_was_said_is_known() -> None:
    bare = manifest("--url", "http://127.0.0.1:1", ask=nothing_said)
    assert bare.platform.model_dump(exclude_none=True) == {}
    assert bare.served_by.model_dump(exclude_none=True) == {}
    assert (bare.checkpoint, bare.price.usd_per_hour) == (None, None)
    given = ("--accelerator", "nvidia-l4", "--instances", "2", "--usd-per-hour", "3", "--title", "mine")
    told = manifest("--url", "http://127.0.0.1:1", *given)
    assert (told.platform.accelerator, told.platform.instances, told.title) == ("nvidia-l4", 2, "mine")
    assert (told.price.usd_per_hour, told.price.source) == (3.0, "--usd-per-hour")


def test_an_option_wins_over_the_plan() -> None:
    found = manifest("--stack", "l4-qat", "--instances", "4", "--usd-per-hour", "9", outputs={})
    assert (found.platform.instances, found.platform.region, found.price.usd_per_hour) == (4, "us-east4", 9.0)
