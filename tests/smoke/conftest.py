from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.fake_google import serving
from tests.smoke.fake_service import Project
from tests.smoke.plugin import Plugin, plugin_running


@pytest.fixture
def project() -> Iterator[Project]:
    with serving() as google, serving() as vllm:
        yield Project(google, vllm)


@pytest.fixture
def plugin(project: Project, tmp_path: Path) -> Iterator[Plugin]:
    with plugin_running(project.environment(tmp_path)) as running:
        yield running
