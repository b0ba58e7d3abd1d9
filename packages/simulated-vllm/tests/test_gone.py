"""A client that goes away ends its request; an answer that is done leaves nothing that waits for it."""

from __future__ import annotations

import asyncio

import pytest

from bezel_simulated_vllm.api.streams import stopping_when_gone


class Call:
    """What is watched."""

    def __init__(self):
        self.aborted = 0

    def abort(self):
        self.aborted += 1


async def stays():
    await asyncio.Event().wait()


async def leaves():
    return {"type": "http.disconnect"}


def test_an_answer_that_is_done_leaves_no_task_that_waits_for_its_client():
    call = Call()

    async def answer():
        async with stopping_when_gone(call, stays):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(answer()) == set()
    assert call.aborted == 1


def test_a_client_that_goes_away_ends_the_answer_quietly():
    call = Call()

    async def answer():
        async with stopping_when_gone(call, leaves):
            await asyncio.Event().wait()
        return "ended"

    assert asyncio.run(asyncio.wait_for(answer(), 60)) == "ended"
    assert call.aborted == 1


def test_a_handler_that_is_cancelled_for_another_reason_stays_cancelled():
    call = Call()

    async def answer():
        async with stopping_when_gone(call, stays):
            await asyncio.Event().wait()

    async def cancel():
        handler = asyncio.create_task(answer())
        await asyncio.sleep(0)
        handler.cancel()
        await handler

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert call.aborted == 1
