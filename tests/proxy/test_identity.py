"""Identity token of the proxy: renewed before its end, after the machine slept and after a 401; never twice at once."""

import asyncio
import base64

import pytest

from bezel.proxy.identity import IdentityToken
from bezel.rest import CredentialsError
from bezel.rest.token_end import end_of
from tests.support.proxy.running import Exchange, Proxy, Tokens, jwt, running_proxy

pytestmark = pytest.mark.slow

AUDIENCE = "https://llm.example"
HOUR = 3600.0


async def respond(exchange: Exchange) -> None:
    await exchange.body()
    await exchange.answer(200, b"{}")


def sent_tokens(proxy: Proxy) -> list[str]:
    return [exchange.headers["authorization"].removeprefix("Bearer ") for exchange in proxy.received]


def test_over_hours_every_request_has_a_valid_token():
    """Over hours every request has a token that is valid and each is used for its hour."""

    async def run() -> None:
        async with running_proxy(respond) as proxy:
            for _ in range(36):
                await proxy.post()
                assert proxy.tokens.now < (end_of(sent_tokens(proxy)[-1]) or 0)
                proxy.tokens.now += 600
                await asyncio.sleep(0)
        # Six hours: a token an hour, less the five minutes before its end.
        assert 6 <= len(proxy.tokens.made) <= 8
        assert [status.split()[2] for status in proxy.lines] == ["200"] * 36

    asyncio.run(run())


@pytest.mark.parametrize("jump", [10 * HOUR, -10 * HOUR])
def test_after_a_sleep_or_a_change_of_the_clock_a_new_token_is_sent(jump):
    """After a sleep of the machine or a change of its clock a new token is sent."""

    async def run() -> None:
        async with running_proxy(respond) as proxy:
            await proxy.post()
            proxy.tokens.now += jump
            await proxy.post()
        assert sent_tokens(proxy) == proxy.tokens.made
        assert len(proxy.tokens.made) == 2

    asyncio.run(run())


def test_a_refused_token_is_replaced_once_and_the_request_sent_again():
    async def run() -> None:
        async def refuse_the_first(exchange: Exchange) -> None:
            assert await exchange.body() == b"the body"
            if exchange.headers["authorization"].endswith(proxy.tokens.made[0]):
                await exchange.answer(401, b"<h1>Unauthorized</h1>", b"content-type: text/html\r\n")
            else:
                await exchange.answer(200, b"{}")

        async with running_proxy(refuse_the_first) as proxy:
            answers = await asyncio.gather(*(proxy.post(b"the body") for _ in range(8)))
            assert (await proxy.post(b"the body")).status_code == 200
        assert [answer.status_code for answer in answers] == [200] * 8
        assert (len(proxy.tokens.made), proxy.tokens.forgotten) == (2, 1)

    asyncio.run(run())


def test_a_service_that_refuses_every_token_is_reported_after_one_repeat():
    """A service that refuses every token is reported after one repetition."""

    async def run() -> None:
        async def refuse(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.answer(401, b"<h1>Unauthorized</h1>", b"content-type: text/html\r\n")

        async with running_proxy(refuse) as proxy:
            answer = await proxy.post()
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "identity")
        assert len(proxy.received) == 2

    asyncio.run(run())


def test_a_renewal_that_fails_leaves_the_valid_token_in_use_until_its_end():
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            await proxy.post()
            proxy.tokens.error = CredentialsError("the token server returned no token")
            proxy.tokens.now += HOUR - 200
            assert (await proxy.post()).status_code == 200
            proxy.tokens.now += 190
            answer = await proxy.post()
            assert (answer.status_code, answer.json()["error"]["code"]) == (502, "no_identity_token")
            assert "the token server returned no token" in answer.json()["error"]["message"]
            proxy.tokens.error = None
            assert (await proxy.post()).status_code == 200

    asyncio.run(run())


def test_requests_that_start_together_share_one_new_token():
    async def run() -> None:
        tokens = Tokens()
        token = IdentityToken(tokens, AUDIENCE, clock=tokens.clock)
        assert set(await asyncio.gather(*(token.current() for _ in range(20)))) == set(tokens.made)
        assert len(tokens.made) == 1

    asyncio.run(run())


def test_a_request_that_is_cancelled_does_not_cancel_the_renewal_of_others():
    async def run() -> None:
        tokens = Tokens()
        token = IdentityToken(tokens, AUDIENCE, clock=tokens.clock)
        first, second = asyncio.create_task(token.current()), asyncio.create_task(token.current())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == tokens.made[0]

    asyncio.run(run())


def token_of(claims: str) -> str:
    return f"e30.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.x"


@pytest.mark.parametrize(
    ("token", "end"),
    [
        (jwt(12.5), 12.5),
        (token_of('{"exp": 1800000000}'), 1_800_000_000),
        *((token, None) for token in ("opaque", "a.b.c", "")),
        *(
            (token_of(f'{{"exp": {value}}}'), None)
            for value in (
                *("NaN", "Infinity", "-Infinity", "1e400", "-5", "0", "true", "null", '"1800000000"', "[1]", "{}"),
                *("1e300", "9" * 400, "9" * 5000, "[" * 100_000),
            )
        ),
    ],
)
def test_the_end_of_a_token_is_read_from_it_where_it_states_one(token, end):
    assert end_of(token) == end
