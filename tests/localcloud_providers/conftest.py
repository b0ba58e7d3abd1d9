from collections.abc import Iterator

import pytest
from provider_client import Provider, ServedProvider
from provider_google import FakeGoogle

from bezel.localcloud.providers.google_plugin import GooglePlugin


@pytest.fixture
def google() -> Iterator[FakeGoogle]:
    with FakeGoogle() as started:
        yield started


@pytest.fixture
def gcp(google: FakeGoogle) -> Iterator[Provider]:
    provider = ServedProvider(GooglePlugin(google.environment()))
    yield provider
    provider.close()
