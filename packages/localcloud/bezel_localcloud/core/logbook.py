"""Entries of Cloud Logging: Cloud Run's container output, platform messages and requests, consoles, scheduled runs.

The labels of a job's entries are those of public log entries of `cloud_run_job`.
"""

import sqlite3
import uuid
from dataclasses import dataclass

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.store import Store, is_full


@dataclass(frozen=True)
class LogSource:
    """The revision (and instance, and named container) that an entry is about."""

    location: str
    service: str
    revision: str
    instance: str = ""
    container: str = ""

    def resource(self) -> Json:
        """The monitored resource of its entries."""
        labels = {
            "project_id": PROJECT,
            "location": self.location,
            "service_name": self.service,
            "configuration_name": self.service,
            "revision_name": self.revision,
        }
        return {"type": "cloud_run_revision", "labels": labels}

    def labels(self) -> Json:
        """Labels of its entries."""
        labels = {"instanceId": self.instance, "container_name": self.container}
        return {name: value for name, value in labels.items() if value}


@dataclass(frozen=True)
class TaskSource(LogSource):
    """An attempt of a job's task: `service` is the job's name, `revision` the execution's."""

    task: int = 0
    attempt: int = 0

    def resource(self) -> Json:
        """The monitored resource of its entries."""
        labels = {"project_id": PROJECT, "location": self.location, "job_name": self.service}
        return {"type": "cloud_run_job", "labels": labels}

    def labels(self) -> Json:
        """Labels of its entries."""
        task_labels = {"execution_name": self.revision, "task_index": str(self.task), "task_attempt": str(self.attempt)}
        return super().labels() | {f"run.googleapis.com/{name}": value for name, value in task_labels.items()}


class Logbook:
    """Writes entries to the store; a container's log is shown nowhere else."""

    def __init__(self, store: Store, pace: PlatformClock) -> None:
        self._store = store
        self._pace = pace

    def output(self, source: LogSource, stream: str, lines: list[str]) -> None:
        """Log lines that a container printed to "stdout" or "stderr"; a JSON object becomes a structured entry."""
        now = self._pace.now()
        entries = [(now, self._entry(source, f"run.googleapis.com%2F{stream}", now) | _payload(line)) for line in lines]
        self._keep(entries)

    def platform(self, source: LogSource, severity: str, text: str) -> None:
        """Log a message of the platform about an instance, such as how it ended."""
        now = self._pace.now()
        entry = self._entry(source, "run.googleapis.com%2Fvarlog%2Fsystem", now)
        self._keep([(now, entry | {"severity": severity, "textPayload": text})])

    def request(self, source: LogSource, request: Json, message: str = "", *, trace: tuple[str, str]) -> None:
        """Log one request that an ingress answered: a google.logging.type.HttpRequest, with (trace, span) in hex."""
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

    def console(self, machine: str, line: str) -> None:
        """Log a console line of a machine (`projects/P/locations/Z/nodes/N` or `projects/P/zones/Z/instances/N`)."""
        now = self._pace.now()
        _, _, _, zone, kind, name = machine.split("/")
        machine_labels = {"node_id": name, "worker_id": "0"} if kind == "nodes" else {"instance_id": name}
        labels = {"project_id": PROJECT, "zone": zone} | machine_labels
        resource = {"type": "tpu_worker" if kind == "nodes" else "gce_instance", "labels": labels}
        entry = _new_entry(resource, "serialconsole.googleapis.com%2Fserial_port_1_output", now)
        self._keep([(now, entry | {"textPayload": line})])

    def scheduler_attempt(self, job: str, severity: str, payload: Json, request: Json) -> None:
        """Log an attempt of a job of Cloud Scheduler (`projects/P/locations/L/jobs/J`)."""
        now = self._pace.now()
        _, _, _, location, _, name = job.split("/")
        resource = {
            "type": "cloud_scheduler_job",
            "labels": {"project_id": PROJECT, "location": location, "job_id": name},
        }
        entry = _new_entry(resource, "cloudscheduler.googleapis.com%2Fexecutions", now)
        self._keep([(now, entry | {"severity": severity, "jsonPayload": payload} | _request(request))])

    def _keep(self, entries: list[tuple[float, Json]]) -> None:
        """Store the entries; on a full disk drop them, so that the caller continues."""
        try:
            self._store.add_log(entries)
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise

    def _entry(self, source: LogSource, log: str, now: float) -> Json:
        labels = source.labels()
        return _new_entry(source.resource(), log, now) | ({"labels": labels} if labels else {})


def _new_entry(resource: Json, log: str, now: float) -> Json:
    return {
        "insertId": uuid.uuid4().hex[:20],
        "logName": f"projects/{PROJECT}/logs/{log}",
        "resource": resource,
        "timestamp": timestamp(now),
        "receiveTimestamp": timestamp(now),
    }


def _request(request: Json) -> Json:
    return {"httpRequest": request} if request else {}


def _payload(line: str) -> Json:
    if line.startswith("{"):
        try:
            body = read_encodable_json(line)
        except ValueError:
            return {"textPayload": line}
        if isinstance(body, dict):
            severity = body.pop("severity", None)
            return {"jsonPayload": body} | ({"severity": str(severity).upper()} if severity else {})
    return {"textPayload": line}
