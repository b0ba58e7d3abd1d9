"""Google's APIs as one provider process uses them: endpoints, project, polling of operations, cancellation.

Configured by the provider's arguments and the environment, with the names that the published plugin understands.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bezel_pulumi_offline.google.errors import OperationError, ProviderError, RequestError, timeout_text
from bezel_pulumi_offline.google.rest import PlainClock, Rest
from bezel_pulumi_offline.google.tokens import Tokens

DEFAULT_TIMEOUT = 20 * 60.0  # seconds; the published provider's for nearly every resource
ATTRIBUTION = {"goog-pulumi-provisioned": "true"}
# Variables that set a setting which the configuration lacks, the first one that is set.
VARIABLES: Mapping[str, Sequence[str]] = {
    "project": ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    "region": ("GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION"),
    "zone": ("GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE"),
}
_UNSEEN = 20  # how often an operation may be missing while it is awaited
Poll = Callable[[str], Mapping[str, Any]]


class Deadline(float):
    """A moment on time.monotonic's clock, and the seconds that were given until it: the SDK's errors name those."""

    seconds: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Return the moment so many seconds from now."""
        made = cls(time.monotonic() + seconds)
        made.seconds = seconds
        return made


class Cloud:
    """The settings and calls that every operation on a resource needs."""

    def __init__(self, config: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Read the configuration.

        Args:
            config: The provider's arguments (project, region, accessToken, pollInterval, <api>CustomEndpoint, ...).
            environment: The process's environment, for settings that the configuration does not have.
        """
        self._config, self._environment = config, environment
        self.project: str | None = self._setting("project", *VARIABLES["project"])
        self.region: str | None = self._setting("region", *VARIABLES["region"])
        self.zone: str | None = self._setting("zone", *VARIABLES["zone"])
        labels = config.get("defaultLabels") or {}  # JSON text where it comes from the stack's configuration
        self.default_labels: dict[str, str] = dict(json.loads(labels) if isinstance(labels, str) else labels)
        self.attribution = {} if config.get("addPulumiAttributionLabel") in (False, "false") else ATTRIBUTION
        self._interval = _seconds(self._setting("pollInterval"))
        self._stopped = threading.Event()
        self._platform_speed = _speed(environment)
        clock = PlainClock(self.pause, self._platform_speed)
        self._rest = Rest(Tokens(environment, str(config.get("accessToken") or "")), clock)

    def _setting(self, name: str, *variables: str) -> str | None:
        values = [self._config.get(name), *(self._environment.get(variable) for variable in variables)]
        return next((str(value) for value in values if value), None)

    def stop(self) -> None:
        """End every wait: the engine has cancelled."""
        self._stopped.set()

    def pause(self, seconds: float) -> None:
        """Wait; raise ProviderError if the engine cancels meanwhile."""
        if self._stopped.wait(seconds):
            raise ProviderError("The run was cancelled during a wait for Google; what had begun may still complete.")

    def endpoint(self, api: str) -> str:
        """Return the base address of an API, with its version and a slash at the end.

        Args:
            api: The provider's name for it in capitals, e.g. CLOUD_RUN_V2.

        Raises:
            ProviderError: No setting names the endpoint.
        """
        first, *others = api.lower().split("_")
        name = first + "".join(part.capitalize() for part in others) + "CustomEndpoint"
        base = self._setting(name, f"GOOGLE_{api}_CUSTOM_ENDPOINT")
        if base is None:
            raise ProviderError(
                f"GOOGLE_{api}_CUSTOM_ENDPOINT is not set, and the stand-in provider never calls Google itself. "
                "`make up` sets it; with PROVIDER=real the published plugin is used instead."
            )
        return base if base.endswith("/") else base + "/"

    def call(
        self,
        method: str,
        api: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        *,
        until: float,
        version: str = "",
        limit: float | None = None,
    ) -> Any:
        """Call an API by its path below the endpoint (in another version, if one is named); see `Rest.call`."""
        url = self._base(api, version) + path
        return self._rest.call(method, url, query=query, body=body, until=until, limit=limit)

    def call_url(
        self, method: str, url: str, query: Mapping[str, str] | None = None, body: object = None, *, until: float
    ) -> Any:
        """Call an API by a whole address; see `Rest.call`."""
        return self._rest.call(method, url, query=query, body=body, until=until)

    def pause_in_platform_seconds(self, seconds: float) -> None:
        """Wait some of the platform's seconds, which on localcloud pass faster; see `pause`."""
        self.pause(seconds / self._platform_speed)

    def _base(self, api: str, version: str) -> str:
        base = self.endpoint(api)
        return re.sub(r"/v\d\w*/$", f"/{version}/", base) if version else base

    def upload(self, path: str, query: Mapping[str, str], data: bytes, content_type: str, *, until: float) -> Any:
        """Send bytes to Cloud Storage, whose upload paths begin with /upload/ at the host's root."""
        base = re.sub(r"/storage/v1/$", "/upload/storage/v1/", self.endpoint("STORAGE"))
        return self._rest.call("POST", base + path, query=query, data=data, content_type=content_type, until=until)

    def wait_for_operation(
        self,
        api: str,
        operation: Mapping[str, Any],
        activity: str,
        *,
        until: float,
        leave: bool = False,
        poll: Poll | None = None,
    ) -> Any:
        """Wait for a long-running operation and return its response.

        Args:
            api: The API that is polled.
            operation: The operation from the first response. A `failure` is its error as a text.
            activity: The provider's words for what is awaited, e.g. Creating Service.
            until: The deadline, on time.monotonic's clock.
            leave: Stop waiting when the engine cancels. Without it the wait continues to the end of the operation, so
                that the resource gets into the state.
            poll: Reads the operation by its name, for an API that differs from most.

        Raises:
            OperationError: It ended with an error, cannot be read, or did not end in time.
            ProviderError: The engine cancelled.
        """
        text = "" if operation.get("done") else f"Error waiting for {activity}: "
        pause, started, unseen = self._interval or 0.05, time.monotonic(), 0
        while not operation.get("done"):
            if time.monotonic() + pause > until:
                whole = until.seconds if isinstance(until, Deadline) else until - started
                raise OperationError(text + timeout_text("done: true", whole, "done: false"))
            if leave:
                self.pause(pause)
            else:
                time.sleep(pause)
            pause = self._interval or min(pause * 1.5, 0.5)
            name = str(operation["name"])
            try:
                operation = poll(name) if poll else self.call("GET", api, name, until=until)
            except RequestError as error:
                unseen += 1
                if error.code != 404 or unseen > _UNSEEN:
                    raise OperationError(f"{text}error while retrieving operation: {error}", error.advice) from None
        if failure := _failure(operation):
            raise OperationError(text + failure)
        return operation.get("response")


def _failure(operation: Mapping[str, Any]) -> str:
    """Return the error of an operation that is done; empty where it succeeded."""
    error = operation.get("error")
    if not error:
        return str(operation.get("failure") or "")
    return f"Error code {error.get('code', 2)}, message: {error.get('message', '')}"


def _speed(environment: Mapping[str, str]) -> float:
    """Return the platform's seconds in one second, in which retries are measured (decision 5)."""
    try:
        speed = float(environment.get("BEZEL_SPEED") or 1)
    except ValueError:
        return 1.0
    return speed if speed > 0 else 1.0


def _seconds(duration: str | None) -> float | None:
    """Return the seconds of a Go duration such as 200ms or 1m30s."""
    if duration is None:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|us|h|m|s)", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ProviderError(f"gcp:pollInterval={duration} is not a duration. Write it like 200ms or 2s.")
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(number) * scale[unit] for number, unit in parts)
