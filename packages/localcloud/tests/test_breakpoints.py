"""A call is stopped exactly at its boundary: before any effect, or after all of it with the answer not sent."""

import threading
from collections.abc import Iterator

import httpx
import pytest

from localcloud_support.client import PARENT, Client, plain

HOLD = "/localcloud/hold"
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"


@pytest.fixture
def hold_cloud(cloud: Client) -> Iterator[Client]:
    yield cloud
    cloud.http.delete(HOLD)
    cloud.http.delete(f"{SECRETS}/held")


def begin(client: Client, answers: list[httpx.Response]) -> threading.Thread:
    """Make the secret `held` in a thread of its own."""
    body = {"replication": {"automatic": {}}}

    def make() -> None:
        # Not the client's own way: what a dropped call gets instead of an answer is nothing that Google would say.
        url, headers = f"{client.endpoint.base}{SECRETS}", {"Authorization": client.http.headers["Authorization"]}
        answers.append(plain.post(url, params={"secretId": "held"}, json=body, headers=headers))

    thread = threading.Thread(target=make)
    thread.start()
    return thread


def place(client: Client, **others: object) -> httpx.Response:
    body = {"method": "POST", "path": "/secretmanager/*/secrets", "when": "before"} | others
    return client.http.put(HOLD, json=body)


def exists(client: Client) -> bool:
    return client.http.get(f"{SECRETS}/held").status_code == 200


@pytest.mark.parametrize(("when", "done"), [("before", False), ("after", True)])
def test_a_held_call_has_no_effect_before_and_all_of_it_after(hold_cloud: Client, when: str, done: bool) -> None:
    answers: list[httpx.Response] = []
    assert place(hold_cloud, when=when).status_code == 200
    thread = begin(hold_cloud, answers)
    assert hold_cloud.http.get(HOLD, params={"seconds": 30}).json() == {"reached": True}
    assert exists(hold_cloud) is done
    assert answers == []
    hold_cloud.http.delete(HOLD)
    thread.join(60)
    assert answers[0].status_code == 200
    assert exists(hold_cloud)


def test_a_dropped_call_never_happens(hold_cloud: Client) -> None:
    answers: list[httpx.Response] = []
    place(hold_cloud)
    thread = begin(hold_cloud, answers)
    assert hold_cloud.http.get(HOLD, params={"seconds": 30}).json() == {"reached": True}
    hold_cloud.http.delete(HOLD, params={"drop": 1})
    thread.join(60)
    assert answers[0].status_code == 500
    assert not exists(hold_cloud)


@pytest.mark.parametrize("others", [{"method": "GET"}, {"path": "/run/*"}, {"nth": 2}])
def test_other_calls_pass(hold_cloud: Client, others: dict[str, object]) -> None:
    answers: list[httpx.Response] = []
    place(hold_cloud, **others)
    begin(hold_cloud, answers).join(60)
    assert answers[0].status_code == 200
    assert hold_cloud.http.get(HOLD, params={"seconds": 0}).json() == {"reached": False}


@pytest.mark.parametrize("others", [{"when": "later"}, {"nth": 0}, {"path": None}])
def test_a_hold_that_says_nothing_clear_is_refused(hold_cloud: Client, others: dict[str, object]) -> None:
    assert place(hold_cloud, **others).status_code == 400
    assert hold_cloud.http.get(HOLD).status_code == 400
