"""Verdict of a deployed stack under faults: what callers get, whatever the platform says of the newest revision."""

import httpx
import pytest

from tests.support.e2e.fault_harness import FaultHarness

MODEL = "gemma-4-12b-it-qat-w4a16"


class Caller:
    """A caller of the stack, and an operator who asks for its status."""

    def __init__(self, stage: FaultHarness) -> None:
        self.stage = stage
        self.url = stage.service().json()["uri"]
        self.headers = {"Authorization": f"Bearer {stage.rehearsal.token(self.url)}"}
        self.variables = stage.rehearsal.variables()

    def statuses(self, number: int, path: str = "/v1/completions") -> set[int]:
        """Ask the model; the statuses of the answers."""
        body = {"model": MODEL, "prompt": "one two three", "max_tokens": 4}
        with httpx.Client(base_url=self.url, headers=self.headers, timeout=60) as client:
            return {client.post(path, json=body).status_code for _ in range(number)}

    def status(self) -> tuple[int, str]:
        """Exit code of `bezel status`, and its text with single spaces."""
        run = self.stage.rehearsal.bezel("status", "l4-qat", **self.variables)
        return run.code, "\n".join(" ".join(line.split()) for line in run.text.splitlines()) + "\n"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_status_says_what_callers_get(stage: FaultHarness) -> None:
    caller = Caller(stage)
    assert caller.statuses(5) == {200}
    code, text = caller.status()
    assert (code, "verdict ready (simulated server)\n" in text) == (0, True), text
    assert "newest" not in text.split("requests")[0]
    assert "not deployed" not in text

    # The file is changed and not deployed; somebody else changes the same setting in the cloud.
    stage.rehearsal.set("scaling.max_instances", 3)
    assert "not deployed scaling.max_instances: file 3, deployed 1, cloud 1\n" in caller.status()[1]
    stage.add("service-changed", max_instances=2)
    text = caller.status()[1]
    assert "not deployed scaling.max_instances: file 3, deployed 1, cloud 2\n" in text
    assert "scaling.maxInstanceCount: cloud 2, program 1 (costs money)" in text
    stage.reset()

    # The newest revision cannot start: the one before serves every request.
    stage.need_a_revision()
    stage.add("out-of-memory")
    assert stage.up("--", "--refresh").code == 1
    assert caller.statuses(5) == {200}
    code, text = caller.status()
    assert (code, "verdict ready" in text) == (0, True), text
    assert ", failed: " in text.partition("\nnewest ")[2].partition("\n")[0]
    stage.clear()

    # The platform refuses each request, and says that the service is ready.
    stage.add("rate-limited", at="service", path="/v1/*", count=0)
    assert caller.statuses(6) == {429}
    code, text = caller.status()
    assert (code, "verdict failing" in text) == (1, True), text
    assert "6 x 429" in text
    assert "because Cloud Run's words: The request was aborted because there was no available instance\n" in text
    assert "`bezel logs l4-qat --source requests`" in text
    stage.clear()
    # Mended: the failures are still of the last minutes.
    assert caller.statuses(12) == {200}
    code, text = caller.status()
    assert (code, "verdict degraded" in text) == (1, True), text

    # The server ends again and again: a stream that breaks off after its first bytes is a success in the request log.
    stage.add("crash-loop", after_seconds=0.5)
    while "instances ended by themselves in 10 minutes: answers that were under way broke off\n" not in text:
        caller.statuses(2)
        code, text = caller.status()
    assert (code, "verdict ready" in text) == (1, False), text
    stage.clear()

    # The operator may not read the request log: what Monitoring counts may be a failure, and is not enough for ready.
    stage.add("server-errors", at="api", path="*/v2/entries:list", status=403, count=0)
    code, text = caller.status()
    assert (code, "verdict not judged" in text or "verdict degraded" in text) == (1, True), text
    assert "logging.logEntries.list" in text
    stage.clear()

    stage.add("service-deleted")
    code, text = caller.status()
    assert (code, "verdict gone" in text) == (1, True), text
