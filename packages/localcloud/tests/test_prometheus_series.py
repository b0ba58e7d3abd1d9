"""Prometheus series on localcloud: since when a count counts, what is kept beyond the bounds, and over a restart."""

import pytest

from bezel_localcloud.core.store import Store
from bezel_localcloud.services.monitoring.prometheus_series import Buckets, PrometheusSeries, ScrapedSample

TARGET = {"project_id": "bezel-local", "location": "us-east4", "cluster": "__run__", "namespace": "llm"}
TARGET |= {"job": "run-gmp-sidecar", "instance": "a1:8080"}
NOW = 1_800_000_000.0


@pytest.fixture
def store(tmp_path):
    new_store = Store(tmp_path / "state")
    yield new_store
    new_store.close()


def count(value, **labels):
    return ScrapedSample("vllm:tokens_total", "counter", labels, value)


def seconds(*counts, total=1.0):
    return ScrapedSample("vllm:seconds", "histogram", {}, Buckets((0.1, 1.0), counts, total))


def samples_of(series):
    """Start, time and first value of each sample of the only series, as seconds since NOW."""
    (one,) = series.series()
    numbers = zip(one.starts, one.times, one.columns[0], strict=True)
    return [(round(start - NOW, 3), time - NOW, value) for start, time, value in numbers]


def test_a_count_that_falls_counts_since_the_sample_before(store):
    series = PrometheusSeries(store)
    for time, value in ((0, 5), (30, 9), (60, 2), (90, 2)):
        assert series.write(NOW + time, TARGET, [count(value)], since=NOW - 10) == []
    assert samples_of(series) == [(-10, 0, 5), (-10, 30, 9), (30, 60, 2), (30, 90, 2)]


def test_a_target_that_started_again_counts_anew_without_a_fall(store):
    series = PrometheusSeries(store)
    series.write(NOW, TARGET, [seconds(1, 2, 2)], since=NOW - 10)
    series.write(NOW + 60, TARGET, [seconds(2, 3, 4)], since=NOW + 50)
    assert samples_of(series) == [(-10, 0, 1), (50, 60, 2)]


def test_a_new_series_of_a_known_target_counts_since_the_scrape_before(store):
    series = PrometheusSeries(store)
    series.write(NOW, TARGET, [ScrapedSample("up", "gauge", {}, 1.0)])
    series.write(NOW + 30, TARGET, [count(4)])
    gauge, counter = series.series()
    assert (list(gauge.starts), list(counter.starts)) == ([NOW], [NOW])
    other = PrometheusSeries(store)
    other.write(NOW, TARGET | {"instance": "b2:8080"}, [count(4)])  # nothing says since when this target counts
    assert [list(each.starts) for each in other.series() if each.resource["instance"] == "b2:8080"] == [[NOW - 0.001]]


def test_a_sample_that_is_not_newer_is_returned(store):
    series = PrometheusSeries(store)
    series.write(NOW, TARGET, [count(1)])
    assert series.write(NOW, TARGET, [count(2), count(3, reason="stop")]) == [count(2)]
    assert series.write(NOW - 1, TARGET, [count(3)]) == [count(3)]
    assert [list(each.columns[0]) for each in series.series()] == [[1.0], [3.0]]


def test_a_restarted_daemon_knows_every_sample(store):
    series = PrometheusSeries(store)
    for time in range(3):
        series.write(NOW + time, TARGET, [count(time, reason="stop"), seconds(time, time, time + 1)], since=NOW - 1)
    assert list(PrometheusSeries(store).series()) == list(series.series())
    assert len(list(series.series())) == 2


@pytest.mark.slow
def test_older_scrapes_become_fewer_and_no_increase_is_lost(store):
    series = PrometheusSeries(store)
    for time in range(2049):
        series.write(NOW + time, TARGET, [count(time % 7)])  # it begins again every seventh time
    kept = samples_of(series)
    assert 1024 < len(kept) < 2049
    assert kept[-1024:] == [(kept[-1024 + n][0], 1025 + n, (1025 + n) % 7) for n in range(1024)]
    assert [time for _, time, value in kept if value == 6] == list(range(6, 2049, 7))
    assert list(PrometheusSeries(store).series()) == list(series.series())


@pytest.mark.slow
def test_the_target_that_is_written_to_least_recently_goes_first(store):
    series = PrometheusSeries(store)
    for number in range(4097):
        series.write(NOW + number, {"instance": str(number)}, [count(1)])
        series.write(NOW + number + 0.5, {"instance": "kept"}, [count(1)]) if number % 2000 == 0 else None
    instances = {each.resource["instance"] for each in series.series()}
    assert "kept" in instances
    assert {"0", "1", "2", "3"}.isdisjoint(instances)
    assert "4" in instances
