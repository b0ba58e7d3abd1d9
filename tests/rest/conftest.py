from collections.abc import Iterator

import pytest

from tests.support.rest.fake_google import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started
