"""Handlers of POST /v1/systemone and /v1/decisions: questions that a model answers by the probability of a label.

A body is validated as by the real server. No answer is made up: each call is refused as by a server whose model has no
such reading, which in 0.32.0 is every Gemma.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_simulated_vllm.api.bodies import Body
from bezel_simulated_vllm.api.errors import api_error

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.scheduling.engine import Engine


class SystemOneBody(Body):
    """POST /v1/systemone."""

    recorded = "system_one"


class DecisionBody(Body):
    """POST /v1/decisions."""

    recorded = "decisions"


async def answer_system_one(_: Engine, __: SystemOneBody, ___: Receive) -> Response:
    """Refuse the questions.

    Raises:
        ApiError: always.
    """
    raise api_error("no-system-one")


async def answer_decisions(_: Engine, __: DecisionBody, ___: Receive) -> Response:
    """Refuse the questions.

    Raises:
        ApiError: always.
    """
    raise api_error("no-decisions")
