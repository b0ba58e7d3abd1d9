"""The collector of a leased machine: the script starts it once the server answers, and no failure of it ends a boot."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_catalog.vllm.kept_series import keep_expression
from bezel_components.metrics.node_collector import IMAGE, node_configuration
from bezel_components.metrics.run_monitoring import run_monitoring
from tests.support.components.fake_node import Node

TEXT = node_configuration(project="p", namespace="moe-gateway", lease="bezel-moe", port=8000, interval_seconds=30)


def test_the_series_of_a_machine_have_the_labels_of_its_lease() -> None:
    read = yaml.safe_load(TEXT)
    assert read["global"]["external_labels"] == {"project_id": "p", "location": "{zone}", "cluster": "__lease__"}
    (job,) = read["scrape_configs"]
    (target,), (rule,) = job["static_configs"], job["metric_relabel_configs"]
    assert (job["job_name"], target["targets"]) == ("vllm", ["127.0.0.1:8000"])
    assert target["labels"] == {"namespace": "moe-gateway", "instance": "bezel-moe:8000"}
    assert rule == {"action": "keep", "source_labels": ["__name__"], "regex": keep_expression()}
    assert re.fullmatch(r"gke\.gcr\.io/[\w/:.-]+@sha256:[0-9a-f]{64}", IMAGE)


@pytest.mark.slow
@settings(max_examples=20)
@given(
    names=st.tuples(*[st.from_regex(r"[a-z][a-z0-9-]{0,48}", fullmatch=True) | st.sampled_from(["no", "null"])] * 2),
    port=st.integers(1, 65535),
    seconds=st.integers(5, 300),
)
def test_every_name_and_number_is_read_as_it_was_written(names: tuple[str, str], port: int, seconds: int) -> None:
    gateway, lease = names
    text = node_configuration(project="p", namespace=gateway, lease=lease, port=port, interval_seconds=seconds)
    read = yaml.safe_load(text)
    (target,) = read["scrape_configs"][0]["static_configs"]
    assert target["labels"] == {"namespace": gateway, "instance": f"{lease}:{port}"}
    assert read["global"]["scrape_interval"] == f"{seconds}s"
    (endpoint,) = yaml.safe_load(run_monitoring(port=port, interval_seconds=seconds))["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["interval"]) == (str(port), f"{seconds}s")


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    node.attributes |= {"bezel-collector-image": IMAGE, "bezel-collector-configuration": TEXT}
    yield node
    node.close()


@pytest.mark.slow
def test_the_collector_is_started_after_the_server_with_the_zone_it_got(node):
    assert node.boot().returncode == 0
    calls = node.calls("docker")
    (run,) = node.calls("docker", "run", "--detach", "--name", "collector")
    earlier = calls[: calls.index(run)]
    assert node.calls("docker", "run", "--detach", "--name", "vllm")[0] in earlier
    assert ["docker", "pull", "--quiet", IMAGE] in earlier
    assert run[run.index(IMAGE) + 1 :][0] == "--config.file=/etc/collector/collector.yaml"
    folder = run[run.index("--volume") + 1].split(":")[0]
    written = (node.root / "var/lib/bezel/collector/collector.yaml").read_text()
    assert folder == f"{node.root}/var/lib/bezel/collector"
    assert yaml.safe_load(written)["global"]["external_labels"]["location"] == "us-east5-a"
    assert yaml.safe_load(written)["scrape_configs"] == yaml.safe_load(TEXT)["scrape_configs"]


@pytest.mark.slow
def test_a_collector_that_cannot_be_started_leaves_the_server_serving(node):
    node.fails("docker-run-collector", says="no space left on device")
    booted = node.boot()
    assert (booted.returncode, node.states()["healthy"]) == (0, "done")
    assert "the collector cannot be started (no space left on device): the server serves" in booted.stdout


@pytest.mark.slow
def test_a_machine_without_a_collector_starts_none(node):
    del node.attributes["bezel-collector-image"]
    assert node.boot().returncode == 0
    assert [call for call in node.calls("docker") if "collector" in call] == []
