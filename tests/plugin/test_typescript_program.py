"""A program in TypeScript deploys the components and checks of the package on localcloud."""

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
    live(program, "index.ts", "maxInstances: 1", "maxInstances: 2")
