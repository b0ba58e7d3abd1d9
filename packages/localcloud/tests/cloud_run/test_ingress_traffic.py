"""The revision that answers: shares of traffic, tags with addresses of their own, and instances divided by shares."""

import random

import httpx
import pytest

from bezel_localcloud.services.cloud_run.traffic import bounds, divide, pick, shares
from localcloud_support.client import SERVICES, plain, until

pytestmark = pytest.mark.slow  # revisions start and end behind it

LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
PINNED = "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"


def service_with(*traffic, **scaling):
    targets = [{"type": LATEST if revision is None else PINNED, "percent": percent, "tag": tag}
               | ({"revision": revision} if revision else {}) for revision, percent, tag in traffic]  # fmt: skip
    return {"name": "s", "traffic": targets, "latestReadyRevision": "s/revisions/new", "scaling": scaling}


@pytest.mark.parametrize("percents", [(90, 10), (50, 50), (1, 99), (34, 33, 33)])
def test_shares_of_requests_are_the_percentages_and_repeat_with_a_seed(percents):
    """Shares of many requests are the percentages and repeat with the seed."""
    parts = {f"r{number}": percent for number, percent in enumerate(percents)}
    draws = 20_000

    def choices(seed):
        chances = random.Random(seed)  # noqa: S311 - shares of traffic
        return [pick(parts, chances.random()) for _ in range(draws)]

    first = choices(7)
    expected = [draws * percent / 100 for percent in percents]
    distance = sum((first.count(r) - e) ** 2 / e for r, e in zip(parts, expected, strict=True))
    assert distance < 13.8  # chi-squared, two degrees of freedom, one in a thousand
    assert first == choices(7) != choices(8)


def test_a_revision_without_a_share_is_never_chosen():
    parts = shares(service_with(("old", 100, ""), (None, 0, "next")))
    assert {pick(parts, chance / 1000) for chance in range(1000)} == {"s/revisions/old"}
    assert pick({}, 0.5) is None
    assert [pick({"a": 50, "b": 50}, chance) for chance in (0.0, 0.4999, 0.5, 0.9999)] == ["a", "a", "b", "b"]


def test_two_targets_of_one_revision_add_up():
    assert shares(service_with(("new", 30, "a"), (None, 20, ""), ("old", 50, ""))) == {
        "s/revisions/new": 50,
        "s/revisions/old": 50,
    }


@pytest.mark.parametrize(
    ("count", "percents", "divided"),
    [
        (10, (50, 50), [5, 5]),
        (3, (90, 10), [3, 0]),
        (1, (50, 50), [1, 0]),
        (0, (100,), [0]),
        (7, (34, 33, 33), [3, 2, 2]),
    ],
)
def test_instances_are_divided_by_shares_and_none_is_lost(count, percents, divided):
    parts = {str(number): percent for number, percent in enumerate(percents)}
    assert list(divide(count, parts).values()) == divided
    assert sum(divided) == count


@pytest.mark.parametrize(
    ("scaling", "bounds_of_tag", "expected"),
    [
        ({}, {}, {"new": (0, 100), "old": (0, 100), "tagged": (0, 100)}),
        ({"minInstanceCount": 4}, {}, {"new": (3, 100), "old": (1, 100), "tagged": (0, 100)}),
        ({"maxInstanceCount": 8}, {"minInstanceCount": 1}, {"new": (1, 6), "old": (1, 2), "tagged": (1, 100)}),
        ({"maxInstanceCount": 1}, {}, {"new": (0, 1), "old": (0, 1), "tagged": (0, 100)}),
        (
            {"scalingMode": "MANUAL", "manualInstanceCount": 4},
            {"minInstanceCount": 2, "maxInstanceCount": 2},
            {"new": (3, 3), "old": (1, 1), "tagged": (2, 2)},
        ),
        ({"scalingMode": "MANUAL", "manualInstanceCount": 1}, {}, {"new": (1, 1), "old": (0, 0), "tagged": (0, 1)}),
    ],
)
def test_bounds_of_the_service_are_divided_and_those_of_a_tag_are_its_own(scaling, bounds_of_tag, expected):
    service = service_with((None, 75, ""), ("old", 25, ""), ("tagged", 0, "t"), **scaling)
    revisions = {name: {"name": f"s/revisions/{name}", "scaling": bounds_of_tag} for name in expected}
    assert {name: bounds(service, revision) for name, revision in revisions.items()} == expected


@pytest.fixture
def service(cloud):
    """A service with two revisions; the older one has all the traffic, the newer one only a tag."""
    cloud.create("tagged", cloud.template("--a=1"))
    old = cloud.service("tagged")["latestReadyRevision"].rpartition("/")[2]
    traffic = [{"type": PINNED, "revision": old, "percent": 100}, {"type": LATEST, "tag": "next"}]
    cloud.update("tagged", cloud.template("--a=2"), traffic=traffic)
    yield cloud.service("tagged")
    cloud.remove("tagged")


def tag_uris(service):
    return {status["tag"]: status["uri"] for status in service["trafficStatuses"] if "tag" in status}


def arguments(uri, token):
    return plain.get(uri, headers={"Authorization": f"Bearer {token}"}).json()["arguments"]


def test_a_tag_has_an_address_of_its_own_that_only_its_revision_answers(cloud, service):
    token, uri = cloud.identity(service["uri"]), tag_uris(service)["next"]
    assert uri != service["uri"]
    assert [arguments(uri, token) for _ in range(3)] == [["--a=2"]] * 3
    assert [arguments(service["uri"], token) for _ in range(3)] == [["--a=1"]] * 3
    # The audience is the service, whichever address is called.
    wrong = plain.get(uri, headers={"Authorization": f"Bearer {cloud.identity(uri)}"})
    assert (wrong.status_code, plain.get(uri).status_code) == (401, 403)


def test_an_instance_of_a_tag_outlives_another_change(cloud, service):
    """An instance that only a tag reaches outlives a change of something else."""
    token, uri = cloud.identity(service["uri"]), tag_uris(service)["next"]
    before = plain.get(uri, headers={"Authorization": f"Bearer {token}"}).json()["pid"]
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/tagged", {"labels": {"x": "y"}}, updateMask="labels"))
    assert plain.get(uri, headers={"Authorization": f"Bearer {token}"}).json()["pid"] == before


def test_a_tag_that_is_taken_away_takes_its_address_along(cloud, service):
    token, uri = cloud.identity(service["uri"]), tag_uris(service)["next"]
    moved = [{"type": LATEST, "percent": 100}, {"type": LATEST, "tag": "other"}]
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/tagged", {"traffic": moved}, updateMask="traffic"))
    assert arguments(tag_uris(cloud.service("tagged"))["other"], token) == ["--a=2"]
    assert arguments(service["uri"], token) == ["--a=2"]

    def is_gone():
        try:
            plain.get(uri)
        except httpx.TransportError:
            return True
        return False

    until(is_gone)


def test_the_old_revision_answers_until_the_new_one_is_healthy(cloud, service):
    """The old revision answers while the new one is not healthy and after it gave up."""
    token = cloud.identity(service["uri"])
    body = {"template": cloud.template("--silent"), "traffic": [{"type": LATEST, "percent": 100}]}
    begun = cloud.patch(f"{SERVICES}/tagged", body)
    newest = cloud.service("tagged")["latestCreatedRevision"].rpartition("/")[2]
    until(lambda: cloud.log("tagged", f'AND textPayload:"begins" AND resource.labels.revision_name="{newest}"'))
    assert arguments(service["uri"], token) == ["--a=2"]  # the latest that is ready
    assert cloud.finish("run/v2", begun)["error"]["code"] == 9
    assert arguments(service["uri"], token) == ["--a=2"]


def test_an_unready_service_has_no_traffic_and_no_address_for_a_tag(cloud):
    """A service that was never ready has no traffic and no address for a tag."""
    traffic = [{"type": LATEST, "percent": 100, "tag": "now"}]
    assert cloud.create("unready", cloud.template("--exit=1"), traffic=traffic)["error"]["code"] == 9
    cloud.patch(f"{SERVICES}/unready", {"labels": {"x": "y"}}, updateMask="labels")
    unready = cloud.service("unready")
    assert (unready["labels"], "trafficStatuses" in unready) == ({"x": "y"}, False)
    assert cloud.front("unready").get("/").status_code == 404
    cloud.remove("unready")


def test_a_new_revision_that_fails_never_gets_behind_the_tag_of_the_latest(cloud, service):
    token = cloud.identity(service["uri"])
    failed = cloud.update("tagged", cloud.template("--exit=1"), traffic=service["traffic"])
    assert failed["error"]["code"] == 9
    after = cloud.service("tagged")
    assert tag_uris(after) == tag_uris(service)
    assert arguments(tag_uris(after)["next"], token) == ["--a=2"]
