"""Container of a leased machine, as requests and reports of the machine's startup script name it. Pure.

A request is the metadata attribute `bezel-container`; the report is the guest attribute `bezel/container`, which the
machine writes when anything in it changes, a minute later at most. Leaves out the boot, which has phases of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bezel.leases.state.observation import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ATTRIBUTE = "bezel-container"
Action = Literal["start", "stop", "restart"]
_REPORT = "container"


@dataclass(frozen=True)
class ContainerReport:
    """How a machine's container is, and what became of the last request.

    Attributes:
        state: Docker's word: running, restarting, exited, ...; unknown where docker does not answer.
        exit_code: Exit code of its last process, 0 while it runs.
        restarts: How often it was restarted after a failure, since its last start.
        is_healthy: Whether its server answers.
        request: Id of the last request, "" before the first.
        result: running, done or failed, "" before the first.
        detail: The machine's text about the request.
    """

    state: str
    exit_code: int
    restarts: int
    is_healthy: bool
    request: str = ""
    result: str = ""
    detail: str = ""

    @property
    def runs(self) -> bool:
        """Whether it runs, or docker starts it again."""
        return self.state in {"running", "restarting"}

    @property
    def line(self) -> str:
        """The container in a few words."""
        if self.state == "running":
            return "running, serves" if self.is_healthy else "running, does not serve yet"
        return f"{self.state}, exit code {self.exit_code}"


def request_text(id_: str, action: Action) -> str:
    """The value of the attribute that requests an action; each id is done once."""
    return json.dumps({"id": id_, "verb": action})


def report_of(entries: Iterable[Mapping[str, Any]]) -> ContainerReport | None:
    """The report among guest attributes ({namespace, key, value}); None before the first."""
    texts = [
        str(entry.get("value"))
        for entry in entries
        if (entry.get("namespace"), entry.get("key")) == (NAMESPACE, _REPORT)
    ]
    try:
        values = json.loads(texts[-1])
        return ContainerReport(
            state=str(values["state"]),
            exit_code=int(values["exit"]),
            restarts=int(values["restarts"]),
            is_healthy=values["healthy"] is True,
            request=str(values.get("id") or ""),
            result=str(values.get("result") or ""),
            detail=str(values.get("detail") or ""),
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None
