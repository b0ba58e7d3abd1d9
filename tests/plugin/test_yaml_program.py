"""A program in YAML deploys a model as one resource of the package on localcloud."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plugin.life import live
from tests.support.plugin.program import Program, go_program
from tests.support.plugin.yaml_program import SERVICE


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program.make(tmp_path, {"Pulumi.yaml": SERVICE}, go_program("pulumi-language-yaml"))
    yield made
    made.stop()


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_a_yaml_program_lives_with_the_package(program: Program) -> None:
    # Service, health check and benchmark.
    shorter = "vllm: {max-model-len: 2048}\n      without: [reasoning-parser]"
    changed = live(program, "Pulumi.yaml", "vllm: {max-model-len: 4096}", shorter, updated=3)
    assert "--max-model-len=2048" in changed["arguments"]
    assert not any(word.startswith("--reasoning-parser") for word in changed["arguments"])
