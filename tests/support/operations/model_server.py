"""A deployed server at the wire, with or without an instance, that answers paths as it is told."""

import json
from pathlib import Path
from typing import Any

from tests.support.operations.deployed import SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.rest.fake_google import Answer, Call, key_file, token_route


class ModelServer:
    """The server of the stack `dev`; `answers` holds what a path is answered with."""

    def __init__(self, cloud: Deployed, *, minimum: int = 1, simulated: bool = True) -> None:
        self.cloud, self.calls = cloud, list[Call]()
        self.answers: dict[str, Answer] = {}
        cloud.keep("dev", state_of(service_resource(), url=cloud.server.url, model="gemma", simulated=simulated))
        cloud.live[SERVICE] = live_service(scaling={"minInstanceCount": minimum, "maxInstanceCount": 1})
        environ: Any = cloud.context.environ
        environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(key_file(Path(cloud.folder), cloud.server))
        environ["GOOGLE_MONITORING_CUSTOM_ENDPOINT"] = f"{cloud.server.url}/monitoring/"
        environ.pop("GOOGLE_OAUTH_ACCESS_TOKEN", None)
        cloud.server.routes[:0] = [token_route(), self._answer]

    def _answer(self, call: Call) -> Answer | None:
        if call.path.endswith("/timeSeries"):
            return Answer(json={})
        if call.path not in self.answers:
            return None
        self.calls.append(call)
        return self.answers[call.path]

    def streams(self, *events: Any, done: bool = True) -> None:
        """Answer chat completions with these events."""
        lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
        chunks: list[bytes | float] = [f"data: {line}\n\n".encode() for line in [*lines, *(["[DONE]"] if done else [])]]
        self.answers["/v1/chat/completions"] = Answer(headers={"Content-Type": "text/event-stream"}, chunks=chunks)


def piece(text: str, **choice: Any) -> dict[str, Any]:
    """An event with a part of the answer."""
    return {"model": "gemma", "choices": [{"delta": {"content": text}, **choice}]}


def usage(prompt: int, output: int) -> dict[str, Any]:
    """The event with the count of tokens."""
    return {"model": "gemma", "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": output}}
