"""A deploy that fails says why, stays red until it is mended, and can be mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.e2e.rehearsal import Rehearsal, break_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.e2e.kill_points import KillHarness


@pytest.fixture
def previewed_stack(grounds: KillHarness, tmp_path: Path) -> Iterator[Rehearsal]:
    """A stack that was previewed, so that its bucket holds the weights."""
    made = grounds.copy("up", tmp_path / "previewed")
    yield made
    made.stop_cloud()


@pytest.mark.wide
def test_a_start_that_fails_is_explained_every_time_until_it_is_mended(previewed_stack: Rehearsal) -> None:
    break_model(previewed_stack)

    for _ in range(2):
        run = previewed_stack.local("up", "l4-qat")
        assert run.code == 1, run.text
        assert "HEALTH_CHECK_CONTAINER_ERROR" in run.text  # the platform's words
        assert "max_position_embeddings=4096" in run.text  # the container's
        assert "correct the arguments named there" in run.text  # what mends it
        assert "in service" not in run.text

    previewed_stack.set("vllm.max-model-len", 4096)
    previewed_stack.set("vllm.max-num-batched-tokens", 2496)
    mended = previewed_stack.local("up", "l4-qat")
    assert mended.code == 0, mended.text
    assert previewed_stack.outputs()["smoke"]["verdict"]["ok"] is True
