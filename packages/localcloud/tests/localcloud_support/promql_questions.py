"""Series and queries that Prometheus's own engine answered: with resets, gaps, short lives and histograms. Pure."""

import math
import random
from functools import cache
from itertools import product
from typing import Any

from bezel_localcloud.core.work import Work
from bezel_localcloud.routing.prometheus_samples import StoredSeries
from bezel_localcloud.services.monitoring.promql.evaluation import Evaluation
from bezel_localcloud.services.monitoring.promql.parser import parse
from bezel_localcloud.services.monitoring.promql.series import lines_of
from bezel_localcloud.services.monitoring.promql.syntax import QueryError
from bezel_localcloud.services.monitoring.promql.values import Element, Window

BEGIN = 1_800_000_000
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_TIMES = (600, 1799, 3600, 4205.5, 5400, 7200)  # seconds since BEGIN
_VECTORS = ["running", 'running{model!="b"}', 'running{model=~"a|c"}', 'running{model!~"a.*",instance="i1:8000"}']
_WINDOWS = ["1m", "5m", "17m", "1h"]
_COUNTERS = ["requests_total", 'requests_total{model="a"}', "latency_count", "latency_sum"]
_RATES = ["rate", "increase", "irate", "delta", "idelta", "resets", "changes"]
_OVER_TIME = ["avg", "min", "max", "sum", "count", "last", "present", "stddev", "stdvar"]
_GROUPED = ["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"]
_PAIRS = [
    "running + on(instance, model) waiting",
    "running / on(instance) group_left(zone) place",
    "place * on(instance) group_right running",
    "running > waiting",
    "running >= bool waiting",
    "running == ignoring(model) group_left place",
    "running and on(instance) place",
    "running or waiting",
    "running unless waiting > 2",
    "waiting % 3 - -running ^ 2",
    "2 ^ running > 4 < 60",
    "running != running",
    "1 - running",
    "3 < bool running",
    "10 > running",
    "2 + 3 * 4 ^ 2 % 5 - 7 / 2",
    "1 > bool 2",
    "-running{instance='i1:8000'} atan2 waiting",
]
_FUNCTIONS = [
    *(f"{name}(waiting - 3.5)" for name in ("abs", "ceil", "floor", "sqrt", "exp", "ln", "log2", "log10", "sgn")),
    *("round(running / 7, 0.25)", "round(running / 3)", "clamp(running, 2, 5)", "clamp_min(waiting, 3)"),
    *("clamp_max(waiting, 3)", "clamp(waiting, 5, 2)", "scalar(running{instance='i0:8000',model='a'})"),
    *("scalar(running)", "vector(time() / 2)", "timestamp(running)", "timestamp(-running)", "absent(running)"),
    *('absent(nothing{model="a",zone!="x"})', "absent(sum(nothing))", "absent_over_time(short_total[20m])"),
    *("absent_over_time(nothing{zone='x'}[5m])", "sum(nothing)", "running offset 10m", "running offset -90s"),
    *("rate(requests_total[5m] offset 7m)", "quantile_over_time(0.3, running[10m])", "2", "'a text'", "+running"),
    *("running[2m]", "max_over_time(running[20m:3m])", "avg_over_time(rate(requests_total[4m])[30m:])"),
    *("min_over_time(sum(running)[15m:90s] offset 4m)", "sum by (model) (running) / scalar(sum(running))"),
    *("increase(short_total[30m])", "rate(short_total[1h])", "sum(increase(short_total[2h]))", "short_total"),
    *("count(requests_total) by (instance) > 1", "vector(NaN) == bool vector(NaN)", "1 / 0", "0 / 0", "5m + 1"),
]
_HISTOGRAMS = [
    "histogram_quantile({q}, rate(latency_bucket[{w}]))",
    "histogram_quantile({q}, sum by (le) (rate(latency_bucket[{w}])))",
    "histogram_quantile({q}, sum without (instance, job) (increase(latency_bucket[{w}]))) * 1000",
]
_ERRORS = [
    "running + on(instance) waiting",
    "running + on(model) group_left place",
    "sum(rate(requests_total[5m])) / on(nothing) running",
    "rate({__name__='requests_total'}[5m]) or running + ignoring(instance) waiting",
]


@cache
def stored_series():
    """The series: every 30 seconds for two hours, less some."""
    dice = random.Random(47)  # noqa: S311 - no secret
    series = []
    for instance, model in product(range(3), "ab"):
        labels, resource = {"model": model}, _resource(f"i{instance}:8000")
        counter = StoredSeries("requests_total", "counter", labels, resource)
        running, waiting = (StoredSeries(name, "gauge", labels, resource) for name in ("running", "waiting"))
        histogram = StoredSeries("latency", "histogram", labels, resource, BOUNDS)
        _fill(counter, running, waiting, histogram, dice, instance)
        series += [counter, running, waiting, histogram]
    for instance in range(3):
        place = StoredSeries("place", "gauge", {"zone": f"z{instance}"}, _resource(f"i{instance}:8000"))
        for step in range(240):
            place.add(BEGIN + 30 * step, BEGIN + 30 * step, (instance + 1.0,))
        short = StoredSeries("short_total", "counter", {}, _resource(f"s{instance}:8000"))
        for step in range(instance + 1):  # lives of one, two and three samples
            time = BEGIN + 1500 + 700 * instance + 30 * step
            short.add(BEGIN + 1490 + 700 * instance, time, (4.0 + 3 * step,))
        series += [place, short]
    return series


def _resource(instance):
    return {"job": "run-gmp-sidecar", "instance": instance}


def _fill(counter, running, waiting, histogram, dice, instance):
    count, start, buckets, total = 0.0, BEGIN - 5.0, [0] * (len(BOUNDS) + 1), 0.0
    for step in range(instance * 20, 241):
        time = round(BEGIN + 30 * step + dice.choice([0.0, 0.0, 0.125, -1.5, 2.25]), 3)
        if dice.random() < 0.02:  # the instance began again
            count, start, buckets, total = 0.0, time - dice.choice([1.0, 12.5]), [0] * len(buckets), 0.0
        count += dice.choice([0, 0, 1, 5, 40])
        for _ in range(dice.choice([0, 1, 4])):
            seconds = dice.expovariate(2.0)
            total += seconds
            buckets = [number + (seconds <= bound) for number, bound in zip(buckets, (*BOUNDS, 1e9), strict=True)]
        if 90 <= step < 110 or dice.random() < 0.05:  # gaps
            continue
        counter.add(start, time, (count,))
        running.add(time, time, (float(dice.randrange(8)),))
        waiting.add(time, time, (dice.choice([0.0, 1.5, 7.25, 3.0]),))
        histogram.add(start, time, (*map(float, buckets), total))


@cache
def queries() -> list[tuple[str, float, float, float]]:
    """(Query, start, end, step) of each question, in seconds since BEGIN; the step is 0 for one moment."""
    dice = random.Random(7)  # noqa: S311 - no secret
    texts = [*_VECTORS, *_PAIRS, *_FUNCTIONS, *_ERRORS]
    texts += [f"{name}({counter}[{w}])" for name in _RATES for counter, w in zip(_COUNTERS, _WINDOWS, strict=True)]
    texts += [f"{name}_over_time(running[{w}])" for name in _OVER_TIME for w in dice.sample(_WINDOWS, 2)]
    for name in _GROUPED:
        texts += [
            f"{name} by (model) (waiting)",
            f"{name}(running) without (instance)",
            f"{name}(rate(latency_sum[9m]))",
        ]
    texts += ["topk(2, running + waiting)", "bottomk by (model) (1, waiting / 7)", "quantile(0.37, running)"]
    texts += ["sort_desc(waiting + running / 100)", "sort(latency_count - 1)", "topk(0, running)"]
    texts += [text.format(q=q, w=w) for text in _HISTOGRAMS for q in (0, 0.5, 0.95, 0.999, 1.5) for w in ("3m", "20m")]
    texts += ["sum(rate(latency_sum[5m])) / sum(rate(latency_count[5m]))", "histogram_quantile(0.9, running)"]
    texts += ['1 - sum(rate(latency_bucket{le="0.5"}[10m])) / sum(rate(latency_count[10m]))']
    questions = [(text, time, time, 0) for text in texts for time in [dice.choice(_TIMES)]]
    for text in [*dice.sample(texts, 50), "time()", "vector(1)", "scalar(vector(3)) + 2"]:
        if "[2m]" not in text and "'a text'" not in text:
            start = dice.choice([0, 900, 2650.5])
            questions.append((text, start, start + 1500, dice.choice([75, 300, 500])))
    return questions


def reference_questions() -> dict[str, Any]:
    """What the reference program reads."""
    series = [
        {
            "labels": dict(line.labels),
            "samples": [
                [round(time * 1000), repr(value), 0 if line.stored.kind == "gauge" else round(start * 1000)]
                for time, value, start in zip(
                    line.stored.times, line.stored.columns[line.column], line.stored.starts, strict=True
                )
            ],
        }
        for line in lines_of(stored_series())
    ]
    asked = [
        {"query": text, "start": _milliseconds(start), "end": _milliseconds(end), "step": round(step * 1000)}
        for text, start, end, step in queries()
    ]
    return {"series": series, "queries": asked}


def _milliseconds(since):
    return round((BEGIN + since) * 1000)


def answer(text, start, end, step):
    """As `reference_answer`, by localcloud: {labels: {milliseconds: value}}, or the text of its error."""
    points = {}
    moments = [start] if not step else [start + step * n for n in range(int((end - start) / step) + 1)]
    try:
        evaluation = Evaluation(parse(text), stored_series, Work(50_000_000))
        values = [(BEGIN + since, evaluation.value(BEGIN + since)) for since in moments]
    except QueryError as error:
        return str(error)
    for moment, value in values:
        for labels, time, number in _elements(value, moment):
            points.setdefault(labels, {})[round(time * 1000)] = number
    return _without_empty_quantiles(points, text)


def _without_empty_quantiles(points, text):
    """An answer without quantiles that are NaN: Google's service has none where there are no observations."""
    if "histogram_quantile" not in text:
        return points
    numbers = {
        labels: {time: value for time, value in of.items() if not math.isnan(value)} for labels, of in points.items()
    }
    return {labels: values for labels, values in numbers.items() if values}


def _elements(value, time):
    if not isinstance(value, list):
        yield (), time, value
        return
    for one in value:
        if isinstance(one, Element):
            yield one.labels, time, one.value
        elif isinstance(one, Window):
            for each, number in zip(one.times, one.values, strict=True):
                yield one.labels, each, number


def reference_answer(answered, text):
    """An answer of the reference in the same shape."""
    if "error" in answered:
        return answered["error"]
    points = {}
    for labels, numbers in answered.get("series") or []:
        values = {time: value if answered["type"] == "string" else float(value) for time, value in numbers}
        points[tuple(sorted(labels.items()))] = values
    return _without_empty_quantiles(points, text)


def differ(one, other):
    """Whether two answers differ by more than 1e-9 of a value."""
    if isinstance(one, str) or isinstance(other, str):
        return one != other
    if one.keys() != other.keys() or any(one[key].keys() != other[key].keys() for key in one):
        return True
    return any(not _same(value, other[key][time]) for key in one for time, value in one[key].items())


def _same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
