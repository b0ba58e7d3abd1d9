"""A door for callers by key under the real engine: on, used, changed and off, with a server behind it as before."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from bezel_door.key_file import KEY_OBJECT, Key, create_key_text, hash_key, key_id, write_keys
from bezel_localcloud import control_client
from localcloud_support.client import until
from tests.support.e2e.regions import DOMAIN, ZONE, A, B, RegionsStack
from tests.support.e2e.rehearsal import BOTH_PACKS, Rehearsal
from tests.support.localcloud.gateway_harness import missing_proxy

LEASED = "v6e1-12b"
DOOR_BUCKET = "bezel-local-bezel-l4-qat-door"


def up(rehearsal: Rehearsal, *arguments: str, stack: str = "l4-qat") -> str:
    run = rehearsal.local("up", stack, *arguments)
    assert run.code == 0, run.text
    return run.text


def put_key(rehearsal: Rehearsal) -> str:
    """Write a file with one key into the door's bucket; returns the key."""
    (text,) = put_keys(rehearsal, DOOR_BUCKET, "search")
    return text


def put_keys(rehearsal: Rehearsal, bucket: str, *teams: str) -> list[str]:
    """Write a file with a key for each team into a door's bucket; returns the keys."""
    texts, now = [create_key_text() for _ in teams], datetime.now(UTC)
    keys = {str(key_id(text)): Key(hash_key(text), team, now) for text, team in zip(texts, teams, strict=True)}
    with rehearsal.api() as api:
        params = {"uploadType": "media", "name": KEY_OBJECT}
        answer = api.post(f"/upload/storage/v1/b/{bucket}/o", params=params, content=write_keys(keys))
        assert answer.is_success, answer.text
    return texts


def cost_by_team(rehearsal: Rehearsal, stack: str) -> dict[str, Any]:
    """What `bezel cost` says of each team's share."""
    text = rehearsal.bezel("cost", stack, "--json", **rehearsal.variables()).text
    document: dict[str, Any] = json.loads(text[text.index("{") :])
    return dict(document["by_team"])


def chat(url: str, model: str, headers: Mapping[str, str]) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers=dict(headers), timeout=60)


def by_key(outputs: Mapping[str, Any], key: str) -> httpx.Response:
    return chat(str(outputs["door"]), str(outputs["model"]), {"Authorization": f"Bearer {key}"})


def names_of_door(rehearsal: Rehearsal) -> list[str]:
    """What exists of doors."""
    kinds = rehearsal.exists().values()
    return [str(name) for names in kinds if isinstance(names, list) for name in names if "-door" in str(name)]


def requests_by_team(rehearsal: Rehearsal) -> dict[tuple[str, str], int]:
    """(Team, status) -> requests by key, by the metric of the dashboard, as far as the door has logged them."""
    query = "sum by (team, status) (max_over_time(logging_googleapis_com:user_bezel_l4_qat_door_requests[1h]))"
    path = "/monitoring/v1/projects/bezel-local/location/global/prometheus/api/v1/query"
    # A count is at the end of its minute.
    time = (datetime.now(UTC) + timedelta(minutes=10)).isoformat()
    with rehearsal.api() as api:
        answer = api.post(path, json={"query": query, "time": time})
        assert answer.is_success, answer.text
    result = answer.json()["data"]["result"]
    return {(each["metric"]["team"], each["metric"]["status"]): int(each["value"][1]) for each in result}


@pytest.mark.wide
def test_keys_are_on_changed_and_off(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32})
    rehearsal.set("cost.max_hourly_usd", 2)
    rehearsal.set("access", {"keys": True})
    rehearsal.set("observability", {"dashboard": True})
    up(rehearsal, "--", *BOTH_PACKS)
    key, url = put_key(rehearsal), str(rehearsal.outputs()["url"])
    assert chat(url, "m", {"Authorization": f"Bearer {key}"}).status_code in {401, 403}

    # A new revision reads the keys that there are.
    rehearsal.set("scaling.request_timeout_seconds", 600)
    up(rehearsal)
    answer = by_key(rehearsal.outputs(), key)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"]
    assert by_key(rehearsal.outputs(), create_key_text()).status_code == 401
    assert until(lambda: requests_by_team(rehearsal)) == {("search", "200"): 1}
    assert names_of_door(rehearsal)

    rehearsal.set("access", None)
    up(rehearsal)
    assert "door" not in rehearsal.outputs()
    assert names_of_door(rehearsal) == []


@pytest.mark.wide
@pytest.mark.skipif(bool(missing_proxy()), reason=missing_proxy())
def test_door_of_a_lease_calls_the_gateway_and_leaves_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, LEASED)
    rehearsal.set("cost", None, LEASED)
    rehearsal.set("lease", {"zones": [{"zone": "us-east5-a"}]}, LEASED)
    rehearsal.set("access", {"keys": True}, LEASED)
    rehearsal.set("observability", {"metrics": True}, LEASED)
    up(rehearsal, "--", *BOTH_PACKS, stack=LEASED)
    key, other = put_keys(rehearsal, f"bezel-local-bezel-{LEASED}-door", "search", "billing")
    rehearsal.set("scaling.request_timeout_seconds", 600, LEASED)  # a new revision reads the keys that there are
    up(rehearsal, "--", *BOTH_PACKS, stack=LEASED)
    outputs = rehearsal.outputs(LEASED)
    answer = by_key(outputs, key)
    assert answer.status_code == 200, answer.text
    assert by_key(outputs, create_key_text()).status_code == 401
    # The machine has the collector's configuration with its metadata: the door's program is the only secret.
    (secret,) = rehearsal.exists()["secrets"]
    assert str(secret).endswith(f"bezel-stack-bezel-{LEASED}-door-program")
    assert outputs["plan"]["metrics"]["samples_per_server_hour"] == 195 * 120

    def shares() -> dict[str, Any]:
        """Each team's share, once the door has written the use of both keys."""
        assert (by_key(outputs, key).status_code, by_key(outputs, other).status_code) == (200, 200)
        bill = cost_by_team(rehearsal, LEASED)
        return bill if sum(each["kind"] == "team" for each in bill["parts"]) == 2 else {}

    bill = until(shares)
    parts = bill["parts"]
    assert {each["name"] for each in parts if each["kind"] == "team"} == {"search", "billing"}
    assert sum(Decimal(each["percent"]) for each in parts) == 100
    whole = Decimal(bill["usd"])
    assert sum(Decimal(each["usd"]) for each in parts) == round(whole, 2 if whole >= 1 else 4) > 0
    assert any("idle time of" in note for note in bill["notes"])
    gone = rehearsal.local("down", LEASED)
    assert gone.code == 0, gone.text
    rehearsal.start_cloud()
    assert names_of_door(rehearsal) == []


def take_away_calls(rehearsal: Rehearsal) -> None:
    """Take the door's right to call away in each region, as somebody may outside of the program."""
    with rehearsal.api() as api:
        for region in (A, B):
            service = f"/run/v2/projects/bezel-local/locations/{region}/services/bezel-l4-qat"
            policy = api.get(f"{service}:getIamPolicy").json()
            for binding in policy["bindings"]:
                binding["members"] = [member for member in binding["members"] if "-door@" not in member]
            assert api.post(f"{service}:setIamPolicy", json={"policy": policy}).is_success


def shown_status(rehearsal: Rehearsal) -> str:
    """What `bezel status` shows, its lines joined."""
    return " ".join(rehearsal.bezel("status", "l4-qat", **rehearsal.variables()).text.split())


@pytest.mark.wide
def test_door_calls_the_address_and_outlives_a_dead_region(rehearsal: Rehearsal) -> None:
    stack = RegionsStack(rehearsal)
    stack.prepare(region=None, regions=[A, B], address={"domain": DOMAIN, "zone": ZONE}, access={"keys": True})
    run = stack.up()
    assert run.code == 0, run.text
    outputs = rehearsal.outputs()
    assert outputs["url"] == f"https://{DOMAIN}"
    with rehearsal.api() as api:
        shown = api.get(f"/run/v2/projects/bezel-local/locations/{A}/services/bezel-l4-qat-door").json()
    variables = {each["name"]: each["value"] for each in shown["template"]["containers"][0]["env"]}
    assert variables["DOOR_UPSTREAM"] == variables["DOOR_AUDIENCE"] == outputs["url"]
    key = put_key(rehearsal)
    control_client.move_clients(rehearsal._endpoint(), B)  # the address leads to the second region
    # Faster, a region that is left out would be asked again before a busy machine sends the next request.
    stack.slow_down(20)
    stack.client()  # its certificate is active
    until(lambda: by_key(outputs, key).status_code == 200)  # the door reads its keys again
    stack.fault("region-down", region=B)
    statuses: list[int] = []
    until(lambda: statuses.append(by_key(outputs, key).status_code) or statuses[-1] == 200, 60)
    assert statuses[0] == 502, "the dead region may have run it"
    assert set(statuses) <= {200, 502}, "the other region serves once it is known"

    stack.mend()
    assert "refuses it" not in shown_status(rehearsal)
    take_away_calls(rehearsal)
    assert by_key(outputs, key).status_code == 502
    failing = "the door for callers by key is failing: the server refuses it: callers get 502"
    until(lambda: failing in shown_status(rehearsal))  # its log is read after the answer


@pytest.mark.wide
def test_keys_and_figures_over_time_are_on_together_and_off(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32})
    rehearsal.set("cost", {"max_hourly_usd": 2})
    rehearsal.set("observability", {"metrics": True})
    rehearsal.set("access", {"keys": True})
    up(rehearsal, "--", *BOTH_PACKS)
    secrets = [str(name).rpartition("/")[2] for name in rehearsal.exists()["secrets"]]
    assert sorted(secrets) == ["bezel-stack-bezel-l4-qat-collector", "bezel-stack-bezel-l4-qat-door-program"]
    up(rehearsal, "--", "--expect-no-changes")
    rehearsal.set("observability", None)
    rehearsal.set("access", None)
    up(rehearsal)
    assert not rehearsal.exists().get("secrets")
    assert len(rehearsal.exists()["services"]) == 1
