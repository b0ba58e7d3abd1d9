"""Fixtures that tests of the stand-ins share: a fake Google, and a stand-in provider that asks it."""

from collections.abc import Iterator

import pytest

from pulumi_offline_support.client import Provider, ServedProvider
from pulumi_offline_support.google import FakeGoogle


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as started:
        yield started


@pytest.fixture
def gcp(google: FakeGoogle) -> Iterator[Provider]:
    # Late: a table that cannot be imported then fails tests by name, and not the folder.
    from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin

    provider = ServedProvider(GooglePlugin(google.environment()))
    yield provider
    provider.close()
