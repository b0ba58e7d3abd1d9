"""Cloud Logging at the wire: entries filtered by localcloud's own parser of the query language, in pages."""

from dataclasses import dataclass, field
from typing import Any

from bezel_localcloud.services.logging.filters import parse_filter
from tests.support.operations.deployed import Deployed
from tests.support.rest.fake_google import Answer, Call

SYSTEM = "projects/acme/logs/run.googleapis.com%2Fvarlog%2Fsystem"
STDOUT = "projects/acme/logs/run.googleapis.com%2Fstdout"
REQUESTS = "projects/acme/logs/run.googleapis.com%2Frequests"
REVISION = "llm-00002-abc"


@dataclass
class LogServer:
    """Entries, oldest first; `page` is the size of a page."""

    cloud: Deployed
    entries: list[dict[str, Any]] = field(default_factory=list)
    page: int = 1000
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        environ: Any = self.cloud.context.environ
        environ["GOOGLE_LOGGING_CUSTOM_ENDPOINT"] = f"{self.cloud.server.url}/logging/v2/"
        self.cloud.server.routes.insert(0, self.answer)

    def answer(self, call: Call) -> Answer | None:
        if call.path != "/logging/v2/entries:list":
            return None
        self.calls.append(call)
        holds = parse_filter(call.json["filter"]).holds
        entries = [entry for entry in self.entries if holds(entry)]
        if call.json["orderBy"] == "timestamp desc":
            entries.reverse()
        start = int(call.json.get("pageToken") or 0)
        end = start + min(self.page, call.json["pageSize"])
        return Answer(
            json={"entries": entries[start:end]} | ({"nextPageToken": str(end)} if end < len(entries) else {})
        )

    def add(
        self,
        text: str,
        second: int = 0,
        *,
        log: str = STDOUT,
        revision: str = "llm-00002-abc",
        region: str = "us-east4",
        **more: Any,
    ) -> None:
        """A line of the service, `second` seconds after 14:00:00 (the test's present is 14:13:20)."""
        labels = {"service_name": "llm", "location": region, "revision_name": revision}
        self.entries.append(
            {
                "insertId": f"id{len(self.entries)}",
                "logName": log,
                "resource": {"type": "cloud_run_revision", "labels": labels},
                "timestamp": f"2026-09-21T14:{second // 60:02}:{second % 60:02}.000000Z",
                "textPayload": text,
                **more,
            }
        )
