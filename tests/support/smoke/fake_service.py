"""A fake Google project with one Cloud Run service and a fake vLLM behind its door, on real sockets.

The server's answers are those recorded from a real vLLM 0.32.0 (tests/fixtures/smoke, and
those of the benchmark's tests).
"""

import base64
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_support.recorded import recorded_body, recorded_stream
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, Server, key_file, token_route

SERVICE = "projects/demo/locations/europe-west4/services/llm"
MODEL = "tiny-gemma4"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "smoke"


def condition(state: str, *, kind: str = "Ready", reason: str = "", message: str = "") -> dict[str, str]:
    fields = {"type": kind, "state": f"CONDITION_{state}"}
    if reason:
        fields["revisionReason"] = reason
    if message:
        fields["message"] = message
    return fields


@dataclass
class Project:
    """What the fakes answer; tests change it."""

    google: Server
    vllm: Server
    serves: dict[str, Any] = field(default_factory=dict)
    generation: int = 1
    observed: int = 1
    created: str = "llm-00001-abc"
    ready: str = "llm-00001-abc"
    terminal: dict[str, str] = field(default_factory=lambda: condition("SUCCEEDED"))
    reconciling: bool = False
    ingress: str = "INGRESS_TRAFFIC_ALL"
    revision_conditions: list[dict[str, str]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    open_paths: set[str] = field(default_factory=set)
    granted: bool = True
    health: list[int] = field(default_factory=lambda: [200])
    completion: dict[str, Any] = field(default_factory=lambda: json.loads(recorded_body("completions.txt", FIXTURES)))
    pooled: dict[str, dict[str, Any]] = field(default_factory=dict)
    metrics: list[str] = field(default_factory=lambda: [""])
    stream: list[tuple[float, bytes]] = field(default_factory=lambda: recorded_stream("chat-stream-usage.txt"))
    chat_status: list[int] = field(default_factory=lambda: [200])

    def __post_init__(self) -> None:
        self.google.routes[:] = [token_route(), self._run, self._logging]
        self.vllm.routes[:] = [self._door, self._vllm]
        self.google.calls.clear()
        self.vllm.calls.clear()

    def environment(self, directory: Path) -> dict[str, str]:
        return {
            "GOOGLE_APPLICATION_CREDENTIALS": str(key_file(directory, self.google)),
            "GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT": f"{self.google.url}/run/v2/",
            "GOOGLE_LOGGING_CUSTOM_ENDPOINT": f"{self.google.url}/logging/v2/",
            "GOOGLE_IAM_CREDENTIALS_CUSTOM_ENDPOINT": f"{self.google.url}/iamcredentials/v1/",
        }

    def _run(self, call: Call) -> Answer | None:
        if not call.path.startswith("/run/v2/"):
            return None
        if call.headers.get("authorization") != f"Bearer {ACCESS_TOKEN}":
            return Answer(401, {"error": {"code": 401, "message": "who?", "status": "UNAUTHENTICATED"}})
        if call.path == f"/run/v2/{SERVICE}":
            return Answer(json=self._service())
        if call.path == f"/run/v2/{SERVICE}/revisions/{self.created}":
            return Answer(json={"name": f"{SERVICE}/revisions/{self.created}", "conditions": self.revision_conditions})
        return Answer(404, {"error": {"code": 404, "message": "no such service", "status": "NOT_FOUND"}})

    def _service(self) -> dict[str, Any]:
        return self.serves | {
            "name": SERVICE,
            "generation": str(self.generation),
            "observedGeneration": str(self.observed),
            "latestCreatedRevision": f"{SERVICE}/revisions/{self.created}",
            "latestReadyRevision": f"{SERVICE}/revisions/{self.ready}",
            "terminalCondition": self.terminal,
            "conditions": [],
            "reconciling": self.reconciling,
            "ingress": self.ingress,
        }

    def _logging(self, call: Call) -> Answer | None:
        if call.path != "/logging/v2/entries:list":
            return None
        wanted = (
            'resource.type="cloud_run_revision" AND resource.labels.service_name="llm" AND '
            'resource.labels.location="europe-west4" AND '
            f'resource.labels.revision_name="{self.created}"'
        )
        if call.json["filter"] != wanted or call.json["resourceNames"] != ["projects/demo"]:
            return Answer(400, {"error": {"code": 400, "message": "unexpected filter", "status": "INVALID_ARGUMENT"}})
        newest_first = [{"textPayload": line} for line in reversed(self.log)]
        return Answer(json={"entries": [{"httpRequest": {"status": 200}, "textPayload": "GET /"}, *newest_first]})

    def _door(self, call: Call) -> Answer | None:
        """Cloud Run's front: 401 for a bad token, 403 without one or without the role."""
        if call.path in self.open_paths:
            return None
        scheme, _, token = call.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer":
            return Answer(403, text="<html>Forbidden</html>")
        try:
            claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==="))
        except (IndexError, ValueError):
            return Answer(401, text="<html>Unauthorized</html>")
        if claims.get("aud") != self.vllm.url or claims["exp"] < time.time():
            return Answer(401, text="<html>Unauthorized</html>")
        return None if self.granted else Answer(403, text="<html>Forbidden</html>")

    def _vllm(self, call: Call) -> Answer | None:
        match (call.method, call.path):
            case ("GET", "/health"):
                return Answer(_next(self.health))
            case ("GET", "/v1/models"):
                return Answer(json=json.loads(recorded_body("models.txt")))
            case ("POST", "/v1/completions"):
                if call.json["model"] != MODEL:
                    return Answer(404, json.loads(recorded_body("err-unknown-model-completions.txt", FIXTURES)))
                return Answer(json=self.completion)
            case ("POST", path) if path in self.pooled:
                return Answer(json=self.pooled[path])
            case ("POST", "/invocations"):
                return Answer(json={"choices": []})
            case ("GET", "/metrics"):
                return Answer(text=_next(self.metrics))
            case ("POST", "/v1/chat/completions"):
                status = _next(self.chat_status)
                if status != 200:
                    return Answer(status, {"error": {"message": "busy", "type": "x", "param": None, "code": status}})
                return Answer(chunks=[piece for _, piece in self.stream])
        return None


_TAKING = threading.Lock()


def _next(values: list[Any]) -> Any:
    """The first of the values, and for ever the last; each for one of the threads that answer."""
    with _TAKING:
        return values.pop(0) if len(values) > 1 else values[0]
