"""One deployed stack on which faults are rehearsed: what the user is told, what is left, what the next run makes of it.

Goldens lie in `goldens/faults`, one a kind; `BEZEL_RECORD=1` writes them, and the rows of `tests/results/faults.json`.
"""

import contextlib
import difflib
import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.faults.kinds import KINDS
from tests.support.e2e.kill_points import KillHarness
from tests.support.e2e.rehearsal import SECONDS, Rehearsal, Run, add_version, make_secret

GOLDENS = Path(__file__).parents[2] / "e2e" / "goldens" / "faults"
RESULTS = Path(__file__).parents[2] / "results" / "faults.json"
SERVICE = "projects/bezel-local/locations/us-east4/services/bezel-l4-qat"
UNCHANGED = ("--", "--expect-no-changes")
TABLE: dict[str, Any] = {
    "title": "Faults",
    "document": "reliability",
    "provider": "the stand-in, with the retries, failures and error texts of the published one; leases are requested "
    "over REST",
    "order": 10,
    "about": "Each fault of `bezel local fault list`, put on a deployed stack: what the deploy says, what is left, "
    "and what the next run makes of it once the fault is mended as the message says. Kinds that are mended in the same "
    "way follow one another in pairs, on one stack, before the one deploy that mends.",
    "command": ".venv/bin/pytest tests/e2e/test_faults.py tests/e2e/test_faults_of_requests.py "
    "tests/e2e/test_faults_of_leases.py tests/e2e/test_faults_of_prices.py tests/e2e/test_faults_of_regions.py",
    "checked": "make test test-wide test-long",
    "stamp": None,
    "columns": ["fault", "caused by", "what the user sees", "state after it", "the next run"],
    "rows": [],
    "notes": [],
}
# What differs from run to run, and what of it is left.
_VARIES = (
    (r"\b\d{5}-[a-z]{3}\b", "00000-xxx"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"sha256:[0-9a-f]{64}", "sha256:DIGEST"),
    (r"/\S*/(checkout\d*|cloud\d*)(?=[ /:])", r"DIR/\1"),
    (r"pid=\d+", "pid=0"),
    (r"\d\d-\d\d \d\d:\d\d:\d\d", "MM-DD hh:mm:ss"),
    (r"waited \d+ s", "waited N s"),
    # Which check meets a container that comes and goes is a matter of time.
    (r"the \w+ check fails: waited N s for (GET|POST) .+, the last state was: .+", "the ... check fails: waited N s"),
    (r"\(\d+(\.\d+)?s\)", "(N s)"),
    # A busy machine probes a container once more before it sees that it has ended.
    (r"probe failed \d+ times?", "probe failed N times"),
    # Where a long line is cut depends on how many digits what is masked above it had.
    (r"(?m)^(\s+\| .{,250}).* \[\.\.\.\]$", r"\1 [...]"),
    (r"Failed core proc\(s\): \{.*\}", "Failed core proc(s): ..."),
)
# Of a container's lines those that tell how it ended; the others are part of every start.
_TELLING = re.compile(r"[Ee]rror|ERROR|exit\(|probe failed|bucket|secret|\.\.\.$")


@dataclass
class FaultHarness:
    """A stack in service, and the faults put on its cloud."""

    rehearsal: Rehearsal
    file: str
    seats: int = 8
    deployed: str = ""
    """The stack file of the last run, if that was green."""

    @classmethod
    @contextlib.contextmanager
    def set_up(
        cls,
        grounds: KillHarness,
        folder: Path,
        name: str = "staged",
        prepare: Callable[[Rehearsal], None] | None = None,
    ) -> Iterator["FaultHarness"]:
        """A stack in service, with a short benchmark; its cloud is stopped in the end.

        Args:
            grounds: Where it is deployed once for all workers.
            folder: Where its copy lies.
            name: Of what is deployed there.
            prepare: Deploys it; by default one that asks for a secret is deployed.
        """
        made = grounds.copy_with_cloud(name, prepare or _prepare, folder)
        try:
            stage = cls(made, (made.folder / "Pulumi.l4-qat.yaml").read_text())
            stage.deployed = stage.file
            # With an instance, as after a deploy: a cloud that was started anew has none.
            url = stage.service().json()["uri"]
            token = made.token(url)
            assert httpx.get(f"{url}/health", headers={"Authorization": f"Bearer {token}"}, timeout=60).is_success
            yield stage
        finally:
            made.stop_cloud()

    def add(self, kind: str, **parameters: object) -> str:
        """Put a fault on, as `bezel local fault add` does; the command, as the table tells it."""
        answer = self._ask("POST", "/localcloud/faults", {"kind": kind, "parameters": parameters})
        assert answer.status_code == 200, answer.text
        return " ".join(["bezel local fault add", kind, *(f"{name}={value}" for name, value in parameters.items())])

    def clear(self) -> None:
        """Take every fault off."""
        assert self._ask("DELETE", "/localcloud/faults").status_code == 200

    def reset(self) -> None:
        """The stack file as it was in the beginning, and no fault, whatever a test has left."""
        self.clear()
        (self.rehearsal.folder / "Pulumi.l4-qat.yaml").write_text(self.file)
        self.rehearsal.set("vllm.max-num-seqs", self.seats)

    def keep(self) -> None:
        """Go on from the stack file as it is now."""
        self.file = self._text()

    def need_a_revision(self) -> None:
        """Change the stack so that the next deploy makes a new revision."""
        self.seats = 15 if self.seats == 8 else self.seats - 1
        self.rehearsal.set("vllm.max-num-seqs", self.seats)

    def up(self, *options: str) -> Run:
        """Deploy, without the preview: what this one says is in the texts of those that stop there."""
        run = self.rehearsal.local("up", "l4-qat", *without_preview(options))
        self.deployed = "" if run.code else self._text()
        return run

    def pulumi_up(self, *options: str) -> Run:
        """Deploy with the engine alone, as on a cloud of one's own: nothing of `bezel local up` around it."""
        self.deployed = ""
        ended = subprocess.run(
            [Path(sys.executable).parent / "pulumi", "up", "--yes", "--skip-preview", "--stack", "l4-qat", *options],
            cwd=self.rehearsal.folder,
            env=os.environ | self.rehearsal.variables(),
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Run(ended.returncode, ended.stdout + ended.stderr)

    def in_service(self, *options: str) -> None:
        """Deploy, which works now; then there is nothing left to do."""
        run = self.up(*options)
        assert run.code == 0, run.text
        self.nothing_left()

    def settle(self) -> None:
        """Deploy the stack file as it is, where an earlier repair has changed what runs."""
        if self.deployed != self._text():
            run = self.up()
            assert run.code == 0, run.text

    def nothing_left(self) -> None:
        """Another deploy would change nothing."""
        again = self.rehearsal.local("preview", "l4-qat", *UNCHANGED)
        assert again.code == 0, again.text

    def state(self) -> str:
        """What the engine's state and the cloud hold, in words."""
        file = self.rehearsal.cloud / "state" / ".pulumi" / "stacks" / "bezel" / "l4-qat.json"
        latest = json.loads(file.read_text())["checkpoint"]["latest"]
        types = [one["type"] for one in latest["resources"]]
        kept = "the service is in the state" if "gcp:cloudrunv2/service:Service" in types else "no service in the state"
        pending = len(latest.get("pending_operations") or [])
        return f"{kept}, {pending or 'nothing'} pending; in the cloud {self._serving()}"

    def endpoint(self) -> Endpoint:
        """The running cloud."""
        status = control.status(self.rehearsal.cloud)
        assert status is not None
        return status

    def service(self) -> httpx.Response:
        """The service as the API has it."""
        return self._ask("GET", f"/run/v2/{SERVICE}")

    def _text(self) -> str:
        return (self.rehearsal.folder / "Pulumi.l4-qat.yaml").read_text()

    def _serving(self) -> str:
        response = self.service()
        if response.status_code == 404:
            return "no service"
        body = response.json()
        if body["latestCreatedRevision"] == body.get("latestReadyRevision"):
            return "the newest revision serves"
        return "the newest revision failed, the one before serves"

    def _ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        endpoint = self.endpoint()
        headers = {"Authorization": f"Bearer {control.own_token(endpoint)}"}
        return httpx.request(method, f"{endpoint.base}{path}", headers=headers, json=body, timeout=30, verify=NO_TLS)


def _prepare(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set("secrets", {"HF_TOKEN": "hf-token"})
    rehearsal.set("cost.max_hourly_usd", 2)
    rehearsal.start_cloud()
    with rehearsal.api() as api:
        make_secret(api, "hf-token")
        add_version(api, "hf-token", "a value")
    run = rehearsal.local("up", "l4-qat", *without_preview())
    assert run.code == 0, run.text


def without_preview(options: Sequence[str] = ()) -> list[str]:
    """Options of `up` with which the program runs once: what is going to be changed is not worked out before."""
    return [*options, *([] if "--" in options else ["--"]), "--skip-preview"]


def error_text(run: Run, *, of: str = "", lines: bool = True) -> str:
    """What a failed run says of the failure: its diagnostics without the stack's own row, in order of resources.

    Args:
        run: How it ended.
        of: Only rows of resources whose type this pattern finds, where many fail alike.
        lines: Keeps the container's that tell something; which these are is a matter of time once it serves.
    """
    assert run.code != 0, run.text
    assert "Traceback" not in re.sub(r"\n    +\|.*", "", run.text), run.text
    match = re.search(r"\nDiagnostics:\n(.*?)\n(?:Resources|Duration|Outputs):", run.text, re.DOTALL)
    assert match, run.text
    # The engine adds this line where a call of the program is still open (docs/cursed-knowledge.md).
    shown = re.sub(r"\n +error: Resource monitor has terminated, shutting down$", "", match[1], flags=re.MULTILINE)
    blocks = re.split(r"\n(?=  \S)", shown)
    rows = [block.strip("\n") for block in blocks]
    kept = [
        row for row in rows if row.partition("\n")[2].strip() not in {"error: update failed", "error: preview failed"}
    ]
    text = normalize("\n".join(sorted(row for row in kept if re.search(of, row.partition("\n")[0]))))
    return text if lines else re.sub(r"\n +\| .*", "", text)


def normalize(text: str) -> str:
    """A text without what differs from run to run, and without the container's lines that tell nothing."""
    # When a use can be read depends on the moment, as at Google.
    text = re.sub(r"^ *quotas and their use:\n(?:.* needed\b.*\n)+", "", text, flags=re.MULTILINE)
    for pattern, kept in _VARIES:
        text = re.sub(pattern, kept, text)
    lines = [line.rstrip() for line in text.splitlines()]
    lines = [line for line in lines if line.strip() and (not line.lstrip().startswith("| ") or _TELLING.search(line))]
    return "\n".join(lines) + "\n"


def check_golden(kind: str, command: str, text: str, state: str, following: str) -> None:
    """Hold a kind's text to its golden, and its row to the table."""
    golden = GOLDENS / f"{kind}.txt"
    first = _first(text)
    row = [kind, f"`{command}`", first, state, following]
    again = f"look at why, then: BEZEL_RECORD=1 {TABLE['command']}"
    if os.environ.get("BEZEL_RECORD") == "1":
        GOLDENS.mkdir(parents=True, exist_ok=True)
        golden.write_text(text)
        _record(row)
    assert golden.exists(), again
    differing = "\n".join(difflib.unified_diff(golden.read_text().splitlines(), text.splitlines(), lineterm=""))
    assert not differing, f"{golden.name} says something else; {again}\n{differing}"
    assert row in json.loads(RESULTS.read_text())["rows"], f"{row} is not what {RESULTS.name} says; {again}"


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    cause = next((line for line in lines if line.startswith("cause: ")), None)
    listed = next((line.removeprefix("* ") for line in lines if line.startswith("* ")), None)
    zone = next((line for line in lines if re.match(r"[a-z]+-[a-z]+\d-[a-z]: ", line)), None)
    resource = re.compile(r"error: (smoke: )?service \S+|.*\):")
    told_first = next(line.removeprefix("error: ") for line in lines if line and not resource.fullmatch(line))
    numbered = next((line.removeprefix("1. ") for line in lines if line.startswith("1. ")), None)
    return cause or listed or zone or numbered or told_first


def _record(row: list[str]) -> None:
    with (GOLDENS.parent / ".recording").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
        row_of_kind = {one[0]: one for one in rows if one[0] in KINDS} | {row[0]: row}
        table = TABLE | {"rows": [row_of_kind[kind] for kind in KINDS if kind in row_of_kind]}
        RESULTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    (GOLDENS.parent / ".recording").unlink(missing_ok=True)
