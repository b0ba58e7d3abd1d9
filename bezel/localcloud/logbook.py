"""Cloud Logging's entries for Cloud Run: container output, the platform's own words, and requests."""

from __future__ import annotations

import json
import sqlite3
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.localcloud.disk import is_full
from bezel.localcloud.layout import PROJECT
from bezel.localcloud.shapes import timestamp

if TYPE_CHECKING:
    from bezel.localcloud.pace import Pace
    from bezel.localcloud.shapes import Json
    from bezel.localcloud.store import Store


@dataclass(frozen=True)
class Source:
    """The revision (and instance) that an entry is about."""

    location: str
    service: str
    revision: str
    instance: str = ""


class Logbook:
    """Writes entries to the store; the log of a container is never shown anywhere else."""

    def __init__(self, store: Store, pace: Pace) -> None:
        self._store = store
        self._pace = pace

    def output(self, source: Source, stream: str, lines: list[str]) -> None:
        """Lines that a container printed to "stdout" or "stderr"; a JSON object becomes a structured entry."""
        now = self._pace.now()
        entries = [(now, self._entry(source, f"run.googleapis.com%2F{stream}", now) | _payload(line)) for line in lines]
        self._keep(entries)

    def platform(self, source: Source, severity: str, text: str) -> None:
        """What the platform says about an instance, such as how it ended."""
        now = self._pace.now()
        entry = self._entry(source, "run.googleapis.com%2Fvarlog%2Fsystem", now)
        self._keep([(now, entry | {"severity": severity, "textPayload": text})])

    def request(self, source: Source, request: Json, message: str = "", *, trace: tuple[str, str]) -> None:
        """One request that the front answered: a google.logging.type.HttpRequest, with its (trace, span) in hex."""
        now, status = self._pace.now(), int(request["status"])
        severity = "ERROR" if status >= 500 else "WARNING" if status >= 400 else "INFO"
        entry = self._entry(source, "run.googleapis.com%2Frequests", now) | {
            "severity": severity,
            "httpRequest": request,
            "trace": f"projects/{PROJECT}/traces/{trace[0]}",
            "spanId": trace[1],
            "traceSampled": True,
        }
        self._keep([(now, entry | ({"textPayload": message} if message else {}))])

    def _keep(self, entries: list[tuple[float, Json]]) -> None:
        """The log is what a full disk costs first: whoever writes to it goes on."""
        try:
            self._store.add_log(entries)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise

    def _entry(self, source: Source, log: str, now: float) -> Json:
        entry: Json = {
            "insertId": uuid.uuid4().hex[:20],
            "logName": f"projects/{PROJECT}/logs/{log}",
            "resource": {
                "type": "cloud_run_revision",
                "labels": {
                    "project_id": PROJECT,
                    "location": source.location,
                    "service_name": source.service,
                    "configuration_name": source.service,
                    "revision_name": source.revision,
                },
            },
            "timestamp": timestamp(now),
            "receiveTimestamp": timestamp(now),
        }
        return entry | ({"labels": {"instanceId": source.instance}} if source.instance else {})


def _payload(line: str) -> Json:
    if line.startswith("{"):
        try:
            body = json.loads(line)
        except ValueError:
            return {"textPayload": line}
        if isinstance(body, dict):
            severity = body.pop("severity", None)
            return {"jsonPayload": body} | ({"severity": str(severity).upper()} if severity else {})
    return {"textPayload": line}
