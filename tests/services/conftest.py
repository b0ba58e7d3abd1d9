"""Cloud Run as each service finds it in previews: reachable, with no service yet, and with room for two revisions."""

from collections.abc import Iterator

import pytest

from tests.support.components.fake_cloud_run import FakeRun, running


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        fake.quota = 4
        yield fake
