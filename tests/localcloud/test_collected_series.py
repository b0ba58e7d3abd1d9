"""What a stack's collectors keep of a real vLLM's metrics, by localcloud's reading of their configurations."""

import asyncio
from pathlib import Path

import pytest

from bezel.planner.team.metrics_plan import COLLECTOR_IMAGE
from bezel_catalog.vllm.kept_series import KEPT_SERIES
from bezel_components.metrics import node_collector
from bezel_components.metrics.run_monitoring import run_monitoring as written
from bezel_localcloud.services.artifact_registry.images import collector_of, parse_reference, published_manifest
from bezel_localcloud.services.monitoring.collector.prometheus_configuration import scrape_targets
from bezel_localcloud.services.monitoring.collector.run_monitoring import Limits, run_monitoring
from bezel_localcloud.services.monitoring.collector.scraper import Scraper

REAL = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm/metrics-mtp.txt"  # of a real 0.32.0


def of_service():
    text = written(port=8000, interval_seconds=30)
    (endpoint,) = run_monitoring(text).endpoints
    return endpoint


def of_machine():
    text = node_collector.node_configuration(project="p", namespace="n", lease="l", port=8000, interval_seconds=30)
    (target,) = scrape_targets(text)
    return target.endpoint


@pytest.mark.parametrize("endpoint_of", [of_service, of_machine])
def test_both_collectors_keep_the_named_series_of_a_real_server(endpoint_of):
    async def fetch(_path, _seconds):
        return REAL.read_text()

    resource = dict.fromkeys(("project_id", "location", "cluster", "namespace", "job", "instance"), "x")
    scraper = Scraper(endpoint_of(), Limits(), fetch, resource, {})
    assert (scraper.endpoint.port, scraper.endpoint.interval) == ("8000", 30.0)
    result = asyncio.run(scraper.scrape())
    assert result.failure == ""
    kinds = {sample.family: sample.kind for sample in result.samples if not sample.family.startswith(("up", "scrape_"))}
    text = REAL.read_text()
    recorded = {each.name: each.kind for each in KEPT_SERIES if f"\n{each.name}" in text}
    assert kinds == recorded
    assert len(recorded) > len(KEPT_SERIES) / 2


def test_both_collectors_images_are_known_by_published_digests():
    images = {
        f"{COLLECTOR_IMAGE.registry}/{COLLECTOR_IMAGE.repository}@{COLLECTOR_IMAGE.digest}": "sidecar",
        node_collector.IMAGE: "machine",
    }
    for image, kind in images.items():
        reference = parse_reference(image)
        assert collector_of(image) == kind
        assert published_manifest(reference.registry, reference.repository, reference.digest) is not None
        assert published_manifest(reference.registry, reference.repository, "") is None
