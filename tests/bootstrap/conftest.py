"""The project that the foundation is declared for: reachable, and empty."""

from collections.abc import Iterator

import pytest

from tests.support.bootstrap.project import FakeProject, running


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProject]:
    with running(monkeypatch) as fake:
        yield fake
