"""Use by key as metrics of the log that a door writes, with the charts of a dashboard that show it. Pure.

Owns the metrics' names, what they count and the charts. Leaves out the door's log (`bezel_door.request_log`) and the
resources (`door_observability`).

A metric counts by team and not by key: a team's name says something in a chart, and a metric's series stay few. Tokens
are distributions, since a counter of the log counts entries and no values; their sums are what the charts show.
"""

from dataclasses import dataclass
from typing import Any

from bezel_components.base.arguments import ComponentArgs
from bezel_components.observability.figure_charts import chart

# Bounds from 1 to 4 million tokens, each 4 times the one before: the charts need the sums alone.
GROWTH, BUCKETS = 4, 11
_EACH = "${__interval}"


@dataclass(frozen=True)
class LogMetric:
    """A metric of a door's log.

    Attributes:
        id: What it counts, and the end of its name.
        description: The same in words.
        labels: Its labels: the fields of a line that it counts by.
        value: Field whose values it records; "" where it counts lines.
    """

    id: str
    description: str
    labels: tuple[str, ...]
    value: str = ""


REQUESTS, PROMPTS, ANSWERS = METRICS = (
    LogMetric("requests", "Requests with a key that were sent to the server", ("team", "status")),
    LogMetric("prompt-tokens", "Tokens of the prompts of requests with a key", ("team",), "prompt_tokens"),
    LogMetric("completion-tokens", "Tokens of the answers to requests with a key", ("team",), "completion_tokens"),
)


class DoorFigures(ComponentArgs):
    """The use of keys that a door logs."""

    service: str
    """Name of the door's service."""
    location: str

    @property
    def filter(self) -> str:
        """A filter of the lines of requests; those of refused ones have no tokens."""
        place = f'resource.labels.service_name="{self.service}" AND resource.labels.location="{self.location}"'
        return f'resource.type="cloud_run_revision" AND {place} AND jsonPayload.completion_tokens>=0'

    def name_of(self, metric: LogMetric) -> str:
        """The name of a metric, which is unique in the project as the service's is."""
        return f"{self.service}-{metric.id}"

    def charts(self) -> list[dict[str, Any]]:
        """The charts of requests, failures and tokens by team."""
        queries = {
            "Requests by key per second, by team": self._rate(REQUESTS),
            "Failures by key per second, by team": self._rate(REQUESTS, matchers=',status=~"4..|5.."'),
            "Tokens of prompts by key per second, by team": self._rate(PROMPTS, "_sum"),
            "Tokens of answers by key per second, by team": self._rate(ANSWERS, "_sum"),
        }
        return [chart(title, {"": query}) for title, query in queries.items()]

    def _rate(self, metric: LogMetric, part: str = "", matchers: str = "") -> str:
        """The rate of a metric by team in PromQL, in which other signs than letters and digits are underscores."""
        name = f"logging_googleapis_com:user_{self.name_of(metric).replace('-', '_')}{part}"
        place = f'monitored_resource="cloud_run_revision",service_name="{self.service}",location="{self.location}"'
        return f"sum by (team) (rate({name}{{{place}{matchers}}}[{_EACH}]))"
