"""The collector beside a server: it starts after it, reads a file that it takes, and has the rights that it needs."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from bezel_catalog.vllm.kept_series import KEPT_SERIES
from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.cloud_run_gpu_service import CloudRunGpuService, CloudRunGpuServiceArgs
from bezel_components.metrics.configuration import CollectorConfiguration, CollectorConfigurationArgs
from bezel_components.metrics.run_monitoring import run_monitoring
from bezel_components.metrics.sidecar import MetricsSidecar
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from bezel_components.vllm_container import Probe, VllmContainer
from tests.support.components.fake_cloud_run import running
from tests.support.components.fake_engine import Declarations, declare

SECRET = "bezel-stack-chat-collector"
IMAGE = "us-docker.pkg.dev/google/cloud-run-gmp-sidecar@sha256:" + "0" * 64
EMAIL = "vllm-chat@acme-llm.iam.gserviceaccount.com"
# What Google's collector takes (`confgenerator/config.go` of GoogleCloudPlatform/run-gmp-sidecar, read 2026-11-29):
# any other field ends it, and so does a rule that changes a label of the target.
FIELDS: dict[str, set[str]] = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "spec": {"endpoints", "targetLabels", "limits"},
    "endpoint": {"port", "scheme", "path", "params", "proxyUrl", "interval", "timeout", "metricRelabeling"},
    "rule": {"sourceLabels", "separator", "targetLabel", "regex", "modulus", "replacement", "action"},
}


@pytest.fixture(autouse=True)
def _cloud_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with running(monkeypatch):
        yield


def test_the_configuration_is_one_that_google_s_collector_takes() -> None:
    text = run_monitoring(port=8080, interval_seconds=30)
    read = yaml.safe_load(text)
    ((endpoint,), (rule,)) = read["spec"]["endpoints"], read["spec"]["endpoints"][0]["metricRelabeling"]
    for name, part in (("", read), ("spec", read["spec"]), ("endpoint", endpoint), ("rule", rule)):
        assert part.keys() <= FIELDS[name]
    assert (read["apiVersion"], read["kind"]) == ("monitoring.googleapis.com/v1beta", "RunMonitoring")
    assert (endpoint["port"], endpoint["interval"], endpoint["path"]) == ("8080", "30s", "/metrics")
    assert (rule["action"], rule["sourceLabels"]) == ("keep", ["__name__"])
    # The collector's own configuration is a template: a dollar sign would name a variable.
    assert not re.search(r"[$']", rule["regex"])
    names = {f"{each.name}{end}" for each in KEPT_SERIES for end in ENDS[each.kind]}
    assert all(re.fullmatch(rule["regex"], name) for name in names)
    assert not any(re.fullmatch(rule["regex"], f"{name}{end}") for name in names for end in ("x", "_created"))


ENDS = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def template(**more: Any) -> dict[str, Any]:
    probe = Probe(period_seconds=30, timeout_seconds=5, failure_threshold=50)
    args = CloudRunGpuServiceArgs(
        project="acme-llm", location="us-east4", service="chat", accelerator="nvidia-l4", max_instances=1,
        container=VllmContainer(arguments=("m",), cpu=4, memory_gib=16, startup_probe=probe), request_concurrency=4,
        image="us-east4-docker.pkg.dev/acme-llm/hub/vllm/vllm-openai@sha256:" + "1" * 64, service_account=EMAIL, **more,
    )  # fmt: skip
    declared = declare(lambda: CloudRunGpuService("service", args))
    return dict(declared.one("cloudrunv2/service:Service").inputs["template"])


def test_the_collector_starts_after_the_server_and_reads_its_file() -> None:
    made = template(sidecar=MetricsSidecar(image=IMAGE, secret=SECRET, cpu=0.5, memory_mib=256))
    server, collector = made["containers"]
    assert (collector["image"], collector["dependsOns"]) == (IMAGE, [server["name"]])
    assert collector["resources"] == {"limits": {"cpu": "0.5", "memory": "256Mi"}, "cpuIdle": False}
    assert "ports" not in collector  # only one container of an instance may have some
    (mount,), (volume,) = collector["volumeMounts"], made["volumes"]
    assert (mount["mountPath"], mount["name"]) == ("/etc/rungmp", volume["name"])
    item = {"path": "config.yaml", "version": "latest"}
    assert volume["secret"] == {"secret": SECRET, "defaultMode": 0o444, "items": [item]}


def test_without_a_collector_the_server_is_alone() -> None:
    made = template()
    assert [each["name"] for each in made["containers"]] == ["vllm"]
    assert not made.get("volumes")
    with pytest.raises(ArgumentsError, match="image"):
        MetricsSidecar(image="us-docker.pkg.dev/google/cloud-run-gmp-sidecar:1.9.2", secret=SECRET)


def configuration(text: str = "a: b") -> Declarations:
    args = CollectorConfigurationArgs(
        project="acme-llm", secret_id=SECRET, text=text, reader=EMAIL, labels={"stack": "chat"}
    )
    return declare(lambda: CollectorConfiguration("collector", args))


def test_the_configuration_is_a_secret_that_the_server_s_account_reads() -> None:
    made = configuration()
    secret, version, grant = (made.one(f":{kind}") for kind in ("Secret", "SecretVersion", "SecretIamMember"))
    assert secret.inputs["secretId"] == SECRET
    assert (secret.inputs["replication"], secret.inputs["labels"]) == ({"auto": {}}, {"stack": "chat"})
    assert (grant.inputs["role"], grant.inputs["member"]) == (
        "roles/secretmanager.secretAccessor",
        f"serviceAccount:{EMAIL}",
    )
    assert made.waits_for(grant, version)
    assert made.waits_for(version, secret)
    assert not version.deleted_first  # a collector that starts in between finds one


def roles(**more: bool) -> list[str]:
    args = RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat", **more)
    made = declare(lambda: RuntimeIdentity("runtime", args))
    return [one.inputs["role"] for one in made.of("projects/iAMMember:IAMMember")]


def test_an_account_has_the_right_to_write_series_only_for_a_collector() -> None:
    log_writer, metric_writer = "roles/logging.logWriter", "roles/monitoring.metricWriter"
    assert roles() == []
    assert roles(writes_logs=True) == [log_writer]
    assert roles(writes_metrics=True) == roles(writes_metrics=True, writes_logs=True) == [log_writer, metric_writer]
