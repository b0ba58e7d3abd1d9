"""Scrapes of the collector: the text format, relabelling, samples as Google counts them, and labels."""

import asyncio
import json
import math
from pathlib import Path

import pytest

from bezel_localcloud.routing.prometheus_samples import Buckets
from bezel_localcloud.services.monitoring.collector.exposition import ExpositionError, labels_of, parse_exposition
from bezel_localcloud.services.monitoring.collector.relabeling import relabel, relabel_rule
from bezel_localcloud.services.monitoring.collector.run_monitoring import Limits, ScrapeEndpoint
from bezel_localcloud.services.monitoring.collector.scraper import ScrapeError, Scraper
from bezel_localcloud.services.monitoring.collector.written_samples import samples_counted, written_samples
from localcloud_support.scrape_questions import relabelings, texts

TEXT = r"""
# HELP llm:requests_total Requests.
# TYPE llm:requests_total counter
llm:requests_total{engine="0",reason="a \"b\", c} d\\\n"} 3.0
llm:requests_total{engine="1",reason="stop"} 4 1700000000000
# TYPE llm:wait_seconds histogram
llm:wait_seconds_bucket{engine="0",le="0.1"} 1.0
llm:wait_seconds_bucket{engine="0",le="1.0"} 1.0
llm:wait_seconds_bucket{engine="0",le="+Inf"} 3.0
llm:wait_seconds_sum{engine="0"} 7.5
llm:wait_seconds_count{engine="0"} 3.0
# TYPE llm:running gauge
llm:running 2
# TYPE plain counter
plain_total 5
# TYPE size summary
size_sum 1
size_count 1
unknown 1
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09
# TYPE nothing gauge
nothing NaN
"""


def rule(**body):
    return relabel_rule({key.rstrip("_"): value for key, value in body.items()})


def test_the_text_format_is_read_with_its_escapes():
    exposition = parse_exposition(TEXT)
    assert exposition.kinds["llm:wait_seconds"] == "histogram"
    assert exposition.series[1][1] == 4.0
    assert labels_of(exposition.series[0][0]) == {
        "__name__": "llm:requests_total",
        "engine": "0",
        "reason": 'a "b", c} d\\\n',
    }
    assert labels_of("a{}") == labels_of("a") == {"__name__": "a"}
    assert math.isnan(dict(exposition.series)["nothing"])


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a{",
        "a{b=c} 1",
        'a{b="c"} x',
        "1a 1",
        "<html>",
        '{"a": 1}',
        'a{b="c" d="e"} 1',
        "a 1 2 3",
        "a 1_0",
        "a 1 # x",
        "# TYPE a foo",
    ],
)
def test_a_line_that_is_none_of_the_format_fails_the_scrape(line):
    with pytest.raises(ExpositionError):
        [labels_of(series) for series, _ in parse_exposition(line).series]


def test_a_histogram_is_one_sample_and_other_kinds_are_left_out():
    exposition = parse_exposition(TEXT)
    series = [(labels_of(text), value) for text, value in exposition.series]
    samples = {(sample.family, *sample.labels.values()): sample for sample in written_samples(series, exposition.kinds)}
    names = {key[0] for key in samples}
    assert names == {
        "llm:requests_total",
        "llm:wait_seconds",
        "llm:running",
        "plain_total",
        "process_start_time_seconds",
        "nothing",
    }
    assert samples["llm:requests_total", "1", "stop"].kind == samples["plain_total",].kind == "counter"
    histogram = samples["llm:wait_seconds", "0"]
    assert (histogram.labels, histogram.value) == ({"engine": "0"}, Buckets((0.1, 1.0), (1.0, 1.0, 3.0), 7.5))
    # Two buckets of three hold something; a bucket that repeats the one below is empty.
    assert samples_counted([histogram]) == 4
    assert samples_counted(samples.values()) == 4 + 6


def test_a_histogram_without_its_count_is_no_sample():
    series = [({"__name__": "a_bucket", "le": "1"}, 1.0), ({"__name__": "a_sum"}, 1.0)]
    assert written_samples(series, {"a": "histogram"}) == []
    assert [
        sample.value for sample in written_samples([*series, ({"__name__": "a_count"}, 2.0)], {"a": "histogram"})
    ] == [Buckets((1.0,), (1.0, 2.0), 1.0)]


ANSWERS = json.loads((Path(__file__).parent / "answers.json").read_text())
"""Of Prometheus's own code, see `tools.traffic.scrape_answers`."""


def test_rules_change_series_as_those_of_prometheus_do():
    questions = relabelings()
    changed = [relabel(case["labels"], [relabel_rule(rule) for rule in case["rules"]]) for case in questions]
    assert changed == ANSWERS["relabelings"]
    assert None in changed


def test_texts_are_read_and_refused_as_prometheus_does():
    outcomes = []
    for text, answer in zip(texts(), ANSWERS["texts"], strict=True):
        try:
            exposition = parse_exposition(text)
            series = [[labels_of(part), value] for part, value in exposition.series]
            outcomes.append((text, "", str(series), exposition.kinds))
        except ExpositionError:
            outcomes.append((text, "refused", "", {}))
        expected = str([[labels, float(value)] for labels, value in answer["series"]])
        if answer["error"]:
            assert outcomes[-1][1] == "refused", text
        else:
            assert outcomes[-1] == (text, "", expected, answer["types"])
    assert {outcome[1] for outcome in outcomes} == {"", "refused"}


def test_labels_that_a_rule_keeps_are_the_protected_and_the_named_ones():
    kept = rule(action="labelkeep", regex="__.*|a|location|cluster|namespace|job|instance|instanceId")
    assert relabel({"__name__": "x", "a": "1", "b": "2", "job": "3"}, [kept]) == {"__name__": "x", "a": "1", "job": "3"}


def scraper(text, *rules, limits=None, **labels):
    texts = [text] if isinstance(text, str | ScrapeError) else list(text)

    async def fetch(_path, _seconds):
        text = texts.pop(0)
        if isinstance(text, ScrapeError):
            raise text
        return text

    resource = {
        "project_id": "p",
        "location": "l",
        "cluster": "__run__",
        "namespace": "s",
        "job": "j",
        "instance": "i:1",
    }
    return Scraper(
        ScrapeEndpoint("1", rules=rules), limits or Limits(), fetch, resource, labels or {"service_name": "s"}
    )


def result_of(made):
    result = asyncio.run(made.scrape())
    return {sample.family: sample for sample in result.samples}, result


def test_series_get_the_targets_labels_and_those_about_the_scrape():
    kept = rule(action="keep", sourceLabels=["__name__"], regex="llm:.*")
    made = scraper([TEXT, TEXT.replace("running 2", "running 3")], kept)
    samples, result = result_of(made)
    assert (result.failure, result.since) == ("", None)
    assert samples["llm:running"].labels == {"service_name": "s"}
    assert samples["llm:wait_seconds"].labels == {"engine": "0", "service_name": "s"}
    about = {name: sample.value for name, sample in samples.items() if name == "up" or name.startswith("scrape_s")}
    assert about == {
        "up": 1.0,
        "scrape_samples_scraped": 14.0,
        "scrape_samples_post_metric_relabeling": 8.0,
        "scrape_series_added": 8.0,
    }
    samples, _ = result_of(made)
    assert (samples["llm:running"].value, samples["scrape_series_added"].value) == (3.0, 0.0)
    assert result_of(scraper(TEXT))[1].since == 1.7e9


def test_a_label_of_the_target_is_not_overwritten_by_the_server():
    samples, _ = result_of(scraper('# TYPE a gauge\na{job="x",service_name="y",instance="z"} 1\n'))
    assert samples["a"].labels == {
        "service_name": "s",
        "exported_job": "x",
        "exported_service_name": "y",
        "exported_instance": "z",
    }


@pytest.mark.parametrize(
    ("text", "limits", "failure"),
    [
        (ScrapeError("connection refused"), Limits(), "connection refused"),
        ("no exposition", Limits(), "line 1 has no value"),
        (TEXT, Limits(samples=13), "sample limit exceeded"),
        (TEXT, Limits(labels=2), "label_limit exceeded"),
        (TEXT, Limits(name_length=5), "label_name_length_limit exceeded"),
        (TEXT, Limits(value_length=5), "label_value_length_limit exceeded"),
    ],
)
def test_a_scrape_that_fails_writes_that_the_target_is_not_up(text, limits, failure):
    samples, result = result_of(scraper(text, limits=limits))
    assert failure in result.failure
    assert samples["up"].value == 0.0
    assert {name for name in samples if name != "up"} == {name for name in samples if name.startswith("scrape_")}
