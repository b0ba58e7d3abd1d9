"""Choice of a region: nearness, ejection by the documented rules, the gradual way back, URL masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_localcloud.core.regions import regions
from bezel_localcloud.services.balancer.nearness import AREAS, PLACES, is_place, nearest_first
from bezel_localcloud.services.balancer.outliers import Outliers, OutlierSettings
from bezel_localcloud.services.balancer.region_choice import RETURN_SECONDS, HealthRecord, choose
from bezel_localcloud.services.balancer.targets import target
from bezel_localcloud.services.load_balancing.routes import Region

REGION = st.sampled_from(sorted(regions()))


@given(st.sets(REGION, min_size=1, max_size=6), st.sampled_from([*sorted(PLACES), *AREAS]))
def test_regions_are_ordered_once_each_and_the_own_first(names, place):
    order = nearest_first(names, place)
    assert sorted(order) == sorted(names)
    assert place not in names or order[0] == place
    assert nearest_first(order[::-1], place) == order


def test_every_region_has_a_place_and_near_ones_come_first():
    assert PLACES.keys() == regions()
    assert regions() >= {*AREAS.values()}
    assert not is_place("mars")
    order = ["europe-west4", "us-east4", "us-west1", "asia-southeast1"]
    assert nearest_first(order, "europe") == order
    assert nearest_first(order, "us-west2")[0] == "us-west1"


def detector(**row):
    settings = OutlierSettings.of({"outlierDetection": row})
    return Outliers(settings, chance=lambda: 0.5)


@pytest.mark.parametrize(
    ("row", "statuses", "is_ejected"),
    [
        ({"interval": {"seconds": 1}}, [502, 503, 504], True),
        ({"interval": {"seconds": 1}}, [502, 503, 200, 504], False),
        ({"interval": {"seconds": 1}}, [500] * 9, False),  # 5xx alone eject nothing by default
        ({"enforcingConsecutiveErrors": 100}, [500] * 5, True),
        ({"enforcingConsecutiveErrors": 100}, [500] * 4 + [404], False),
        ({"enforcingConsecutiveErrors": 50}, [500] * 5, False),
        ({"enforcingConsecutiveGatewayFailure": 0}, [502] * 9, False),
        ({"consecutiveGatewayFailure": 1}, [503], True),
        ({"maxEjectionPercent": 49}, [502] * 9, False),  # one of two regions is more
        ({"interval": {"seconds": 1}}, [429] * 9, False),
    ],
)
def test_a_region_is_ejected_by_failures_in_a_row(row, statuses, is_ejected):
    outliers = detector(**row)
    reports = [outliers.report("a", status, 100.0, 2) for status in statuses]
    assert any(reports) == is_ejected
    assert outliers.ejected_regions(100.0) == (frozenset("a") if is_ejected else frozenset())


def test_a_region_is_out_longer_each_time_and_returns_at_a_sweep():
    outliers = detector(consecutiveGatewayFailure=1, interval={"seconds": "7"}, baseEjectionTime={"seconds": 20})
    assert outliers.report("a", 502, 0.0, 2)
    assert not outliers.report("a", 502, 1.0, 2), "an answer to a request of before"
    assert not outliers.report("b", 502, 1.0, 2), "half of two regions is out already"
    assert [outliers.ejected_regions(now) for now in (20.9, 21.0)] == [frozenset("a"), frozenset()]
    assert outliers.report("a", 502, 21.0, 2)
    assert [outliers.ejected_regions(now) for now in (62.9, 63.0)] == [frozenset("a"), frozenset()]


def test_without_settings_nothing_is_ejected():
    assert OutlierSettings.of({}) is None
    assert OutlierSettings.of({"outlierDetection": {"consecutiveErrors": 9}}).consecutive_errors == 9


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([200, 429, 500, 502]), st.floats(0, 50)), max_size=60),
    st.integers(0, 100),
)
def test_never_more_regions_are_out_than_the_settings_allow(answers, percent):
    outliers, now = detector(maxEjectionPercent=percent, consecutiveGatewayFailure=1), 0.0
    for region, status, seconds in answers:
        now += seconds
        outliers.report(region, status, now, 3)
        assert len(outliers.ejected_regions(now)) * 100 <= percent * 3


def test_a_regions_traffic_returns_gradually_with_its_health():
    health = HealthRecord()
    assert health.observe(None, 0.0) == health.observe(0.6, 1.0) == 1
    assert health.observe(0.59, 10.0) == 0
    shares = [health.observe(1.0, 20.0 + part * RETURN_SECONDS) for part in (0, 0.5, 1, 2)]
    assert shares == [0.01, 0.5, 1, 1]


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.0, 0.3, 1.0]), min_size=1), st.floats(0, 0.999))
def test_a_request_goes_to_a_region_in_use_if_there_is_one(shares, chance):
    order = sorted(shares)
    chosen = choose(order, shares, lambda: chance)
    assert (chosen == "") == (not any(shares.values()))
    if chosen:
        assert shares[chosen] > 0
        assert all(shares[nearer] < 1 for nearer in order[: order.index(chosen)])


@pytest.mark.parametrize(
    ("mask", "host", "path", "expected"),
    [
        ("<service>.acme.example", "llm.acme.example", "/v1/models", ("llm", "")),
        ("<tag>.acme.example/<service>", "next.acme.example", "/llm/v1", ("llm", "next")),
        ("/<service>", "any.example", "/llm", ("llm", "")),
        ("<service>.acme.example", "other.example", "/", ("", "")),
        ("<service>.acme.example", "a.b.acme.example", "/", ("", "")),
    ],
)
def test_a_url_mask_names_the_service(mask, host, path, expected):
    assert target(Region("us-east4", "", "", mask, 1.0), host, path) == expected
    assert target(Region("us-east4", "fixed", "t", mask, 1.0), host, path) == ("fixed", "t")
