"""A hub on loopback with a tiny model, and the reading of a model from it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bezel.model_sources.cached import describe
from bezel.model_sources.description import Description
from bezel.rest import Backoff
from tests.support.model_sources.tiny import llama
from tests.support.weights.fake_hub import FakeHub, serving

MODEL = "acme/Tiny-Llama"
Read = Callable[..., Description]


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A hub that has a tiny Llama."""
    with serving() as served:
        served.models[MODEL] = llama()
        yield served


@pytest.fixture
def read(hub: FakeHub, tmp_path: Path) -> Read:
    """Read a model's description, from the hub where it is no folder."""

    def reading(source: str = MODEL, revision: str = "", token: str = "") -> Description:
        environ = {"HF_ENDPOINT": hub.base, "XDG_STATE_HOME": str(tmp_path / "state")}
        quick = Backoff(first=0.001, longest=0.002)
        return describe(source, revision, environ=environ, token=lambda: token, show=lambda _: None, backoff=quick)

    return reading
