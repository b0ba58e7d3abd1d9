"""A program in YAML deploys a model as one resource of the package on localcloud."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plugin.life import live
from tests.support.plugin.program import Program, go_program
from tests.support.plugin.yaml_program import SERVICE

# On the platform's fast clock a year passes in hours: neither is due while this runs.
SCHEDULE = """scaling:
        maxInstances: 1
        schedule:
          - {cron: "0 8 1 2 *", timeZone: Europe/Berlin, minInstances: 1}
          - {cron: "0 18 2 1 *", timeZone: Europe/Berlin, minInstances: 0}
      cost: {maxHourlyUsd: 2, maxIdleHourlyUsd: 2}"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program.make(tmp_path, {"Pulumi.yaml": SERVICE}, go_program("pulumi-language-yaml"))
    yield made
    made.stop()


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_a_yaml_program_lives_with_the_package(program: Program) -> None:
    program.change("Pulumi.yaml", "scaling: {maxInstances: 1}", SCHEDULE)
    # Service, health check, benchmark, and the minimum of the present time.
    shorter = "vllm: {max-model-len: 2048}\n      without: [reasoning-parser]"
    changed = live(program, "Pulumi.yaml", "vllm: {max-model-len: 4096}", shorter, updated=4)
    assert "--max-model-len=2048" in changed["arguments"]
    assert not any(word.startswith("--reasoning-parser") for word in changed["arguments"])


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_yaml_program_adds_a_region_and_an_address(program: Program) -> None:
    """The package reads the state of the program's stack: the service of the first deploy stays, behind another."""
    made = program.run("up", "--yes", "--skip-preview")
    assert made.code == 0, made.text
    (only,) = program.inventory()["services"]
    address = "regions: [europe-west4, us-east4]\n      address: {domain: llm.acme.example}"
    program.change("Pulumi.yaml", "region: us-east4", address)
    grown = program.run("up", "--yes", "--skip-preview")
    assert grown.code == 0, grown.text
    assert "replaced" not in grown.text
    services = program.inventory()["services"]
    assert only in services
    assert len(services) == 2
    (service,) = (each for each in program.state() if each["type"] == "bezel:services:VllmService")
    assert service["outputs"]["url"] == "https://llm.acme.example"
    assert service["outputs"]["regions"] == ["europe-west4", "us-east4"]
    assert {each["type"] for each in service["outputs"]["address"]["records"]} == {"A", "CNAME"}
    ended = program.run("destroy", "--yes", "--skip-preview")
    assert ended.code == 0, ended.text
    assert not {"services", "globalAddresses"} & program.inventory().keys()
