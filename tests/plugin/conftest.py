"""What outputs need outside of an engine's run."""

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture
def event_loop() -> Iterator[None]:
    """An event loop of the main thread: an earlier test may have taken the last one away."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
