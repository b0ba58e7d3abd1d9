"""What several tests of commands share: an embedded cloud for `bezel tpu`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli.tpu_cloud import Cloud, running


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cloud]:
    with running(tmp_path, monkeypatch, capsys) as running_cloud:
        yield running_cloud
