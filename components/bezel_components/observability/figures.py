"""Figures of a server that a collector writes: what its alerts and its dashboard read. A value, no resource."""

from typing import Any

from pydantic import Field

from bezel_components.base.arguments import ComponentArgs
from bezel_components.observability.alerts import Alert
from bezel_components.observability.figure_alerts import Objectives, figure_alerts
from bezel_components.observability.figure_charts import figure_charts


class ServerFigures(ComponentArgs):
    """The series of a server, or of the servers behind one gateway."""

    matchers: str
    """Matchers of its series in PromQL."""
    max_ttft_seconds: float | None = Field(None, gt=0)
    """Time to the first token that 95 % of requests shall stay below; None for no alert."""
    max_tpot_seconds: float | None = Field(None, gt=0)
    """Time for each further token, likewise."""
    drafts: bool = False
    """Whether the server has speculative decoding."""

    def alerts(self, watched: str, max_error_share: float) -> tuple[Alert, ...]:
        """The alerts on its figures; `watched` is what their names call it."""
        objectives = Objectives(self.max_ttft_seconds, self.max_tpot_seconds)
        return figure_alerts(
            watched, self.matchers, objectives=objectives, max_error_share=max_error_share, drafts=self.drafts
        )

    def charts(self) -> list[dict[str, Any]]:
        """The charts of its figures."""
        return figure_charts(self.matchers, drafts=self.drafts)
