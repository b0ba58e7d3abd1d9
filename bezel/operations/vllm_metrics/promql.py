"""Queries of Managed Service for Prometheus: series of a time, or over time, by PromQL.

Owns the requests and the form of the answers. Leaves out what is asked. Source: Google's reference of
`projects.location.prometheus.api.v1`, and Prometheus' documentation of its HTTP API, November 2026: a query names one
metric exactly, and a value is a text beside its Unix time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bezel.operations.context import Context
from bezel.operations.vllm_metrics.time_range import TimeRange
from bezel.rest import RestError
from bezel_base.errors import Problem, UserError

_MOST_VALUES = 2_000_000


class SeriesError(UserError):
    """Series cannot be read."""


@dataclass(frozen=True)
class Series:
    """A series with its values.

    Attributes:
        labels: Its labels, without the metric's name.
        points: Unix seconds and value of each sample, the oldest first; what is no number is left out.
    """

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class PromQl:
    """The series of a project.

    Args:
        context: The context of the operation.
        project: Google Cloud project.
    """

    def __init__(self, context: Context, project: str) -> None:
        self._google = context.google
        self._url = f"{context.address('MONITORING')}v1/projects/{project}/location/global/prometheus/api/v1"

    def over(self, query: str, when: TimeRange, of_short: str) -> list[Series]:
        """The values of a query at the begin of the first window and at the end of each.

        Args:
            query: The query, of windows of `when.step` seconds.
            when: The windows.
            of_short: The query for the end of the last window where that is a short one: a sample of the window before
                is none of it.

        Raises:
            RestError: Cloud Monitoring refused, or did not answer.
            SeriesError: The answer is none, or too long.
        """
        params = {"query": query, "start": f"{when.start:.3f}", "end": f"{when.end:.3f}", "step": f"{when.step}s"}
        series = self._ask("query_range", params)
        if (when.end - when.start) % when.step == 0:
            return series
        last = {frozenset(each.labels.items()): each for each in self.at(of_short, when.end)}
        joined = [
            Series(each.labels, each.points + (rest.points if rest else ()))
            for each in series
            for rest in [last.pop(frozenset(each.labels.items()), None)]
        ]
        return [*joined, *last.values()]

    def at(self, query: str, moment: float) -> list[Series]:
        """The values of a query at a moment; of a query for samples of some time, all of them.

        Raises:
            RestError: Cloud Monitoring refused, or did not answer.
            SeriesError: The answer is none, or too long.
        """
        return self._ask("query", {"query": query, "time": f"{moment:.3f}"})

    def _ask(self, method: str, params: Mapping[str, str]) -> list[Series]:
        try:
            answer = self._google.get(f"{self._url}/{method}", params=params)
            result = answer["data"]["result"]
            series = [Series(_labels(each), _points(each)) for each in result]
        except RestError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError):
            consequence = "Cloud Monitoring's answer to a query has another form than Prometheus' documentation says."
            raise SeriesError(Problem("query", params["query"], consequence, "try again.")) from None
        if sum(len(each.points) for each in series) > _MOST_VALUES:
            consequence = f"its answer has more than {_MOST_VALUES:,} values."
            raise SeriesError(Problem("query", params["query"], consequence, "ask for a shorter time: --since."))
        return series


def _labels(result: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in result["metric"].items() if name != "__name__"}


def _points(result: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    pairs = result["values"] if "values" in result else [result["value"]]
    points = ((float(at), float(value)) for at, value in pairs)
    return tuple((at, value) for at, value in points if math.isfinite(value))
