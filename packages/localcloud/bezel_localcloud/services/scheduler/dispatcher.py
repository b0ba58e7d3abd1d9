"""Runs of Cloud Scheduler's jobs: waits for the next one that is due, and sends its request.

A job runs at least once: a run that a killed daemon had begun is repeated, and runs that were missed while no daemon
ran become one. Jobs that are due when a daemon starts run one after another, in the order of their times.

Requests go to this machine only: to a Google API that localcloud serves, under its public address too, and to other
addresses of the loopback. A job with another target fails, with the reason in its status.
"""

import asyncio
import base64
import contextlib
import logging
from typing import Any
from urllib.parse import urlsplit

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud.access.credentials.issuer_keys import is_loopback
from bezel_localcloud.core.background import BackgroundTasks
from bezel_localcloud.core.errors import ERRORS
from bezel_localcloud.core.json_types import Json, seconds_of, timestamp
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.scheduler import jobs
from bezel_localcloud.services.scheduler.jobs import KIND

log = logging.getLogger(__name__)
_LONGEST_WAIT, _AFTER_FAILURE = 3600.0, 1.0
_CODES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED"}
_CODES |= {429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE"}
_CODES |= {504: "DEADLINE_EXCEEDED"}
# Paths below localcloud's address whose names differ from the first label of Google's host.
_PREFIXES = {"cloudresourcemanager": "crm", "storage": "", "compute": ""}


class JobDispatcher:
    """The waiting and running jobs of one cloud."""

    def __init__(self, cloud: Context) -> None:
        self._cloud = cloud
        self._tasks = BackgroundTasks()
        self._running: set[str] = set()
        self._changed = asyncio.Event()

    def resume(self) -> None:
        """Start to wait for jobs."""
        self._tasks.keep(asyncio.create_task(self._keep_running()))

    async def close(self) -> None:
        """Stop; a run under way is repeated by the next daemon."""
        await self._tasks.end()

    def wake(self) -> None:
        """Look at all jobs again, since one of them has changed."""
        self._changed.set()

    def run_now(self, name: str) -> None:
        """Run a job in the background, whatever its state."""
        self._tasks.keep(asyncio.create_task(self._attempt(name, None)))

    async def run_due(self) -> None:
        """Run the jobs that are due, one after another, in the order of their times."""
        for name, row in self._due():
            await self._attempt(name, row["next"])

    async def _keep_running(self) -> None:
        await self.run_due()
        while True:
            try:
                self._changed.clear()
                for name, row in self._due():
                    self._running.add(name)
                    self._tasks.keep(asyncio.create_task(self._attempt(name, row["next"])))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), self._wait())
            except Exception:
                log.exception("due jobs could not be started")
                await asyncio.sleep(_AFTER_FAILURE)

    def _enabled_jobs(self) -> list[tuple[float, str, Json]]:
        rows = [(name, row) for name, row in self._cloud.store.rows(KIND) if row["job"]["state"] == "ENABLED"]
        waiting = [(jobs.due(row, self._cloud.pace), name, row) for name, row in rows if name not in self._running]
        return sorted(waiting, key=lambda job: job[:2])

    def _due(self) -> list[tuple[str, Json]]:
        now = self._cloud.pace.now()
        return [(name, row) for time, name, row in self._enabled_jobs() if time <= now]

    def _wait(self) -> float:
        soonest = min((time for time, _, _ in self._enabled_jobs()), default=float("inf"))
        return max(0.0, min(soonest - self._cloud.pace.now(), _LONGEST_WAIT))

    async def _attempt(self, name: str, scheduled: float | None) -> None:
        """Send a job's request and store the outcome; `scheduled` is None for a run out of turn."""
        try:
            await self._send(name, scheduled)
        except Exception:
            log.exception("job %s could not run", name)
            await asyncio.sleep(_AFTER_FAILURE)  # its row may be as it was, and the job due again at once
        finally:
            self._running.discard(name)
            self.wake()

    async def _send(self, name: str, scheduled: float | None) -> None:
        store, pace = self._cloud.store, self._cloud.pace
        row = store.get(KIND, name)
        if row is None:
            return
        started = jobs.clock_of(row, pace)
        store.put(KIND, name, row | {"job": row["job"] | {"lastAttemptTime": timestamp(pace.now())}})
        job = row["job"]
        self._log(job, "INFO", "AttemptStarted", {"scheduledTime": timestamp(scheduled or pace.now())})
        code, reason, http = await self._outcome(job, scheduled or started)
        more = {"status": code} | ({"debugInfo": reason} if reason else {})
        self._log(job, "INFO" if code == "OK" else "ERROR", "AttemptFinished", more, http)
        status = {"code": ERRORS["codes"][code][0], "message": reason} if code != "OK" else {}
        with store.transaction():
            now = store.get(KIND, name)
            if now is None:  # deleted meanwhile
                return
            now = now | {"job": now["job"] | {"status": status}}
            if scheduled is not None and now["next"] == row["next"]:  # else it has another schedule by now
                now = jobs.row_after(now, scheduled, started, pace, succeeded=code == "OK")
            store.put(KIND, name, now)

    async def _outcome(self, job: Json, scheduled: float) -> tuple[str, str, int]:
        """Send the request; return (code, reason, HTTP status or 0)."""
        # Imported late: most clouds have no job.
        import httpx

        target = job["httpTarget"]
        url = self._address(target["uri"])
        if url is None:
            return "UNAVAILABLE", "localcloud sends requests to this machine only", 0
        try:
            headers = target["headers"] | self._own_headers(job, scheduled)
            content = base64.b64decode(target.get("body", ""))
            deadline = seconds_of(job["attemptDeadline"], 0.0)
            options: dict[str, Any] = {"trust_env": False, "verify": NO_TLS, "timeout": None}
            async with asyncio.timeout(deadline), httpx.AsyncClient(**options) as client:
                request = client.build_request(target["httpMethod"], url, headers=headers, content=content)
                # The body of a response means nothing to a job, so it is not read.
                response = await client.send(request, stream=True)
                await response.aclose()
        except TimeoutError:
            return "DEADLINE_EXCEEDED", "URL_UNREACHABLE-UNREACHABLE_TIMEOUT", 0
        except _NoAccountError as error:
            return "UNAUTHENTICATED", str(error), 0
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return "UNAVAILABLE", f"URL_UNREACHABLE-UNREACHABLE_CONNECTION ({type(error).__name__})", 0
        if response.is_success:
            return "OK", "", response.status_code
        kind = "URL_UNREACHABLE-UNREACHABLE_5xx" if response.status_code >= 500 else "URL_ERROR"
        reason = f"{kind}. Original HTTP response code number = {response.status_code}"
        return _CODES.get(response.status_code, "UNKNOWN"), reason, response.status_code

    def _own_headers(self, job: Json, scheduled: float) -> dict[str, str]:
        target, tokens = job["httpTarget"], self._cloud.tokens
        headers = {
            "X-CloudScheduler": "true",
            "X-CloudScheduler-JobName": job["name"].rpartition("/")[2],
            "X-CloudScheduler-ScheduleTime": timestamp(scheduled),
        }
        email = jobs.account_of(job)
        if not email:
            return headers
        account = self._cloud.store.get("account", email)
        if account is None or account.get("disabled"):
            raise _NoAccountError(f"service account {email} does not exist or is disabled")
        if oauth := target.get("oauthToken"):
            token, _ = tokens.access_token(email, oauth["scope"])
        else:
            token = tokens.identity_token(email, target["oidcToken"]["audience"])
        return headers | {"Authorization": f"Bearer {token}"}

    def _address(self, uri: str) -> str | None:
        """Where a request to an address goes: None where it would leave this machine."""
        parts = urlsplit(uri)
        service, dot, domain = (parts.hostname or "").partition(".")
        if dot and domain == "googleapis.com":
            path = _PREFIXES.get(service, service)
            return f"{self._cloud.base}{path and '/' + path}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        return uri if parts.scheme == "http" and is_loopback(uri) else None

    def _log(self, job: Json, severity: str, event: str, more: Json, http: int = 0) -> None:
        payload = {"@type": f"type.googleapis.com/google.cloud.scheduler.logging.{event}", "jobName": job["name"]}
        payload |= {"targetType": "HTTP", "url": job["httpTarget"]["uri"], **more}
        self._cloud.logbook.scheduler_attempt(job["name"], severity, payload, {"status": http} if http else {})


class _NoAccountError(Exception):
    """The account of a job's token cannot be used."""
