"""One deployed stack of a leased machine on which faults are rehearsed; texts and rows as in `fault_stage`.

What is left is read from the cloud's inventory, what was asked for from the log of its wire, neither from the program.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.support.e2e.fault_harness import FaultHarness, without_preview
from tests.support.e2e.rehearsal import Rehearsal, Run

STACK = "v6e1-12b"
LEASES = ("queuedResources", "nodes", "instances")
REQUESTS = "/tpu/v2alpha1/projects/bezel-local/locations/"


class LeaseFaultHarness(FaultHarness):
    """A leased machine in service, and the faults put on its cloud."""

    @classmethod
    @contextlib.contextmanager
    def deploy(cls, folder: Path) -> Iterator["LeaseFaultHarness"]:
        """A leased machine in service, with a short benchmark; its cloud is stopped in the end."""
        made = Rehearsal.new(folder / "checkout", folder / "cloud")
        made.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, STACK)
        stage = cls(made, (made.folder / f"Pulumi.{STACK}.yaml").read_text(), seats=64)
        try:
            stage.deploy_one()
            yield stage
        finally:
            made.stop_cloud()

    def reset(self) -> None:
        """The stack file as it was in the beginning, but for what the machine is asked for; and no fault."""
        self.clear()
        (self.rehearsal.folder / f"Pulumi.{STACK}.yaml").write_text(self.file)
        self.rehearsal.set("vllm.max-num-seqs", self.seats, STACK)

    def need_a_lease(self) -> None:
        """Change the stack so that the next deploy asks for another machine."""
        self.seats -= 1
        self.rehearsal.set("vllm.max-num-seqs", self.seats, STACK)

    def up(self, *options: str) -> Run:
        """Deploy, without the preview."""
        return self.rehearsal.local("up", STACK, *without_preview(options))

    def deploy_one(self) -> Run:
        """Deploy, which works now; then one machine is there, no more."""
        run = self.up()
        assert run.code == 0, run.text
        assert self.one_lease(), self.rehearsal.exists()
        return run

    def one_lease(self) -> bool:
        """Whether there is one request with one machine, in whatever zone."""
        return [len(names) for names in self.leases().values()] == [1, 1, 0]

    def nothing_left(self) -> None:
        """Another deploy would change nothing."""
        again = self.rehearsal.local("preview", STACK, "--", "--expect-no-changes")
        assert again.code == 0, again.text

    def leases(self) -> dict[str, list[str]]:
        """Requests and machines that the cloud has, by kind."""
        exists = self.rehearsal.exists()
        return {kind: exists.get(kind, []) for kind in LEASES}

    def state(self) -> str:
        """What the engine's state and the cloud hold, in words."""
        file = self.rehearsal.cloud / "state" / ".pulumi" / "stacks" / "bezel" / f"{STACK}.json"
        latest = json.loads(file.read_text())["checkpoint"]["latest"]
        types = {one["type"].rpartition(":")[2] for one in latest["resources"] if not one.get("delete")}
        kept = [name for name in ("TpuRequest", "TpuNode") if name in types]
        pending = len(latest.get("pending_operations") or [])
        state_text = " and ".join(kept) or "no lease"
        return f"{state_text} in the state, {pending or 'nothing'} pending; in the cloud {self.there()}"

    def request_count(self) -> int:
        """How often the API for machines has been asked for one so far, from the log of the wire."""
        log = self.rehearsal.cloud / "logs" / "wire.jsonl"
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        return sum(
            one["method"] == "POST" and one["path"].startswith(REQUESTS) and one["path"].endswith("/queuedResources")
            for one in calls
        )

    def request(self) -> dict[str, Any]:
        """The one request as the API has it."""
        (name,) = self.leases()["queuedResources"]
        answer: dict[str, Any] = self._ask("GET", f"/tpu/v2alpha1/{name}").json()
        return answer

    def invoker(self) -> httpx.Client:
        """Somebody who may ask the gateway."""
        url = self.rehearsal.outputs(STACK)["url"]
        headers = {"Authorization": f"Bearer {self.rehearsal.token(url)}"}
        return httpx.Client(base_url=url, headers=headers, timeout=60)

    def there(self) -> str:
        """What the cloud has of leases, in words."""
        leases = self.leases()
        parts = []
        for kind, one in zip(LEASES, ("request", "machine", "instance"), strict=True):
            if leases[kind]:
                zones = ", ".join(sorted(name.split("/")[3] for name in leases[kind]))
                state = f", {self.request()['state']['state']}" if kind == "queuedResources" else ""
                parts.append(f"{len(leases[kind])} {one} ({zones}{state})")
        return " and ".join(parts) or "no request and no machine in any zone"
