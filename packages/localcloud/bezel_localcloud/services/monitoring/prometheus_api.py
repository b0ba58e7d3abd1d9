"""Monitoring v1: Prometheus's HTTP API of a project, with queries in PromQL over what is written and sampled.

Owns the parameters, as a query, a form or JSON, and the shape of answers and of errors about a query, which is
Prometheus's; other errors have Google's. Leaves out the language (`promql`) and the store (`prometheus_series`).
Exemplars are not served. Source of the methods: the discovery document of Monitoring v1, and
cloud.google.com/stackdriver/docs/managed-prometheus/query-api-ui (November 2026), which has them by GET too.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, Response

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import NOT_SERVED, invalid, unserved_error
from bezel_localcloud.core.work import TooMuchWorkError, Work
from bezel_localcloud.http.messages import checked_message, json_object
from bezel_localcloud.routing.prometheus_samples import StoredSeries
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.promql.answers import RangeAnswer, instant_answer
from bezel_localcloud.services.monitoring.promql.evaluation import Evaluation
from bezel_localcloud.services.monitoring.promql.parser import parse, parse_selector
from bezel_localcloud.services.monitoring.promql.series import HALF_MOMENT, Line, lines_of, selected_lines
from bezel_localcloud.services.monitoring.promql.signatures import selectors_of, type_of
from bezel_localcloud.services.monitoring.promql.syntax import QueryError, UnservedPartError
from bezel_localcloud.services.monitoring.promql.tokens import seconds_of_duration
from bezel_localcloud.services.monitoring.written_metrics.queried_series import check_name, queried_series

api = Api("monitoring.googleapis.com", "Cloud Monitoring API", locations=frozenset({"global"}))
_ROOT = "/monitoring/v1/projects/{project:id}/location/{location:id}/prometheus/api/v1"
_SERIES, _DESCRIPTORS = "monitoring.timeSeries.list", "monitoring.metricDescriptors.list"
_LONGEST_BODY = 64 << 10  # bytes
_MOST_STEPS = 11_000  # of a range: Prometheus's own bound
_MOST_WORK, _MOST_WORK_OF_RANGE, _AT_A_TIME = 2_000_000, 8_000_000, 20_000
Arguments = Mapping[str, list[str]]


class _ParameterError(ValueError):
    """A parameter that is wrong; the text says which and why."""


async def _answer(call: Call, read: Callable[[Arguments], Any], message: str = "") -> Response:
    """The response to a request.

    Args:
        call: The request.
        read: What its handler reads from the arguments.
        message: Google's message of a body in JSON.
    """
    try:
        arguments = await _arguments(call, message)
        await call.cloud.log_counts.count()
        data = read(arguments)
        data = await data if asyncio.iscoroutine(data) else data
    except UnservedPartError as error:
        return _error(400, NOT_SERVED, unserved_error(f"{error} in PromQL", "query it otherwise").message)
    except _ParameterError as error:
        return _error(400, "bad_data", str(error))
    except QueryError as error:
        return _error(422, "execution", str(error))
    except TooMuchWorkError as error:
        text = f"query processing would load too many samples into memory in query execution ({error})"
        return _error(422, "execution", text)
    return JSONResponse({"status": "success", "data": data})


def _error(status: int, kind: str, text: str) -> Response:
    return JSONResponse({"status": "error", "errorType": kind, "error": text}, status)


@api.route("POST", f"{_ROOT}/query", needs=_SERIES, reads_body=True)
@api.route("GET", f"{_ROOT}/query", needs=_SERIES)
async def query(call: Call) -> Response:
    """Evaluate a query at one moment."""

    def read(arguments: Arguments) -> Any:
        time = _time(arguments, "time", call.cloud.pace.now())
        evaluation = _evaluation(call, arguments, _MOST_WORK)
        return instant_answer(evaluation.value(time), time)

    return await _answer(call, read, "dashboards.QueryInstantRequest")


@api.route("POST", f"{_ROOT}/query_range", needs=_SERIES, reads_body=True)
@api.route("GET", f"{_ROOT}/query_range", needs=_SERIES)
async def query_range(call: Call) -> Response:
    """Evaluate a query at each step of a range; other requests are served between the steps."""

    async def read(arguments: Arguments) -> Any:
        start, end = _time(arguments, "start", None), _time(arguments, "end", None)
        if end < start:
            raise _ParameterError('invalid parameter "end": end timestamp must not be before start time')
        step = _step(arguments)
        if (end - start) / step > _MOST_STEPS:
            text = "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution"
            raise _ParameterError(f"{text} (?step=XX)")
        evaluation = _evaluation(call, arguments, _MOST_WORK_OF_RANGE)
        if (kind := type_of(evaluation.tree)) not in {"scalar", "instant vector"}:
            text = f'invalid expression type "{kind}" for range query, must be Scalar or instant Vector'
            raise _ParameterError(f'invalid parameter "query": {text}')
        answer, paused = RangeAnswer(), 0
        for number in range(math.floor((end - start + HALF_MOMENT) / step) + 1):
            answer.add(start + number * step, evaluation.value(start + number * step))
            if evaluation.work.spent - paused > _AT_A_TIME:
                paused = evaluation.work.spent
                await asyncio.sleep(0)
        return answer.data()

    return await _answer(call, read, "dashboards.QueryRangeRequest")


@api.route("POST", f"{_ROOT}/series", needs=_SERIES, reads_body=True)
@api.route("GET", f"{_ROOT}/series", needs=_SERIES)
async def series(call: Call) -> Response:
    """The labels of the series that selectors select."""

    def read(arguments: Arguments) -> Any:
        if not _matches(arguments):
            raise _ParameterError("no match[] parameter provided")
        return [dict(line.labels) for line in _lines(call, arguments)]

    return await _answer(call, read, "dashboards.QuerySeriesRequest")


@api.route("POST", f"{_ROOT}/labels", needs=_DESCRIPTORS, reads_body=True)
@api.route("GET", f"{_ROOT}/labels", needs=_DESCRIPTORS)
async def labels(call: Call) -> Response:
    """Names of labels."""

    def read(arguments: Arguments) -> Any:
        return sorted({name for line in _lines(call, arguments) for name, _ in line.labels})

    return await _answer(call, read, "dashboards.QueryLabelsRequest")


@api.route("GET", f"{_ROOT}/label/{{label:id}}/values", needs=_DESCRIPTORS, query="match start end")
async def label_values(call: Call) -> Response:
    """Values of a label; those of `__name__` are the names of the series."""

    def read(arguments: Arguments) -> Any:
        return sorted({value for line in _lines(call, arguments) for name, value in line.labels if name == wanted})

    wanted = call.param("label")
    return await _answer(call, read)


@api.route("GET", f"{_ROOT}/metadata", needs=_DESCRIPTORS, query="metric limit")
async def metadata(call: Call) -> Response:
    """Kinds of the metrics by their names."""

    def read(arguments: Arguments) -> Any:
        wanted = _one(arguments, "metric")
        kinds = {one.family: one.kind for one in queried_series(call.cloud) if wanted in {"", one.family}}
        limit = decimal(_one(arguments, "limit") or str(len(kinds)))
        if limit is None:
            raise _ParameterError("limit must be a number")
        return {name: [{"type": kinds[name], "help": "", "unit": ""}] for name in sorted(kinds)[:limit]}

    return await _answer(call, read)


async def _arguments(call: Call, message: str) -> Arguments:
    """The values of each parameter, from the query and a body.

    Raises:
        ApiError: INVALID_ARGUMENT for a body that is too long or is no JSON object.
    """
    pairs = call.request.query_params.multi_items()
    content = await call.request.body() if call.request.method == "POST" else b""
    if len(content) > _LONGEST_BODY:
        raise invalid(f"The body has more than {_LONGEST_BODY} bytes.")
    form = call.request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    if form and not content.lstrip().startswith(b"{"):
        pairs += parse_qsl(content.decode(errors="replace"), keep_blank_values=True)
    else:
        sent = {name.removesuffix("[]"): value for name, value in json_object(content).items()}
        for name, value in checked_message(sent, message, "").items() if message else ():
            pairs += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
    arguments: dict[str, list[str]] = {}
    for name, value in pairs:
        arguments.setdefault(name.removesuffix("[]"), []).append(value)
    return arguments


def _one(arguments: Arguments, name: str) -> str:
    return arguments.get(name, [""])[0]


def _matches(arguments: Arguments) -> list[str]:
    return [text for text in arguments.get("match", []) if text]


def _evaluation(call: Call, arguments: Arguments, most_work: int) -> Evaluation:
    text = _one(arguments, "query")
    try:
        tree = parse(text)
    except QueryError as error:
        raise _ParameterError(f'invalid parameter "query": {error}') from None
    for selector in selectors_of(tree):
        check_name(selector.name)
    return Evaluation(tree, partial(queried_series, call.cloud), Work(most_work))


def _lines(call: Call, arguments: Arguments) -> list[Line]:
    """The lines that the selectors select, or all, with samples in the interval."""
    since = _time(arguments, "start", 0.0)
    until = _time(arguments, "end", math.inf)

    def within() -> list[StoredSeries]:
        return [one for one in queried_series(call.cloud) if one.times[0] <= until and one.times[-1] >= since]

    texts, work = _matches(arguments), Work(_MOST_WORK)
    if not texts:
        return list(lines_of(within()))
    lines: dict[Any, Line] = {}
    for text in texts:
        try:
            selector = parse_selector(text)
        except QueryError as error:
            raise _ParameterError(f'invalid parameter "match[]": {error}') from None
        lines |= {line.labels: line for line in selected_lines(within(), selector, work)}
    return [lines[key] for key in sorted(lines)]


def _time(arguments: Arguments, name: str, default: float | None) -> float:
    """A time in Unix seconds, with milliseconds."""
    text = _one(arguments, name)
    if not text and default is not None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = datetime.fromisoformat(text.upper()).timestamp()
        except (ValueError, OverflowError):
            seconds = math.nan
    if not abs(seconds) < 1e12:
        reason = f'cannot parse "{text[:50]}" to a valid timestamp'
        raise _ParameterError(f'invalid parameter "{name}": {reason}')
    return round(seconds, 3)


def _step(arguments: Arguments) -> float:
    """Seconds of a step."""
    text = _one(arguments, "step")
    try:
        step = round(seconds_of_duration(text), 3)
    except QueryError:
        reason = f'cannot parse "{text[:50]}" to a valid duration'
        raise _ParameterError(f'invalid parameter "step": {reason}') from None
    if step <= 0:
        reason = "zero or negative query resolution step widths are not accepted. Try a positive integer"
        raise _ParameterError(f'invalid parameter "step": {reason}')
    return step
