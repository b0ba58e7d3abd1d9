"""A program in TypeScript deploys a model as one resource of the package on localcloud."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel_plugin.schema.file import FILE
from tests.support.plugin.life import live
from tests.support.plugin.program import Program
from tests.support.plugin.typescript_program import FILES, HOSTS, SDK, compile_sdk, install


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    folder = tmp_path / "program"
    compile_sdk(folder / SDK, FILE)
    install(folder)
    made = Program.make(tmp_path, FILES, HOSTS)
    yield made
    made.stop()


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_a_typescript_program_lives_with_the_package(program: Program) -> None:
    # Service, health check, benchmark, and the traffic that moves after them.
    changed = live(program, "index.ts", '"max-model-len": 4096', '"reasoning-parser": null', updated=4)
    # A null takes a default away.
    assert not any(word.startswith("--reasoning-parser") for word in changed["arguments"])
