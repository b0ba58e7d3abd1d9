"""A rollback that is killed at any of its requests leaves the old traffic or the new, and the next one ends it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bezel.outside_changes.rollback import ANNOTATION
from tests.support.gitops.fake_bucket import FakeBucket, fake_bucket
from tests.support.operations.rolled_stack import DIRECT, STACK, RolledStack, pinned_target, rolled_stack
from tests.support.rest.fake_google import Answer, Call

pytestmark = [pytest.mark.slow, pytest.mark.long]
SECONDS = 120.0
PROGRAM = """
import os, sys
from pathlib import Path
from bezel.operations.context import Context
from bezel.operations.rollback.rollback import RollbackArguments, apply_rollback, plan_rollback
with Context(Path(sys.argv[1]), os.environ) as context:
    plan = plan_rollback(context, RollbackArguments(stack=sys.argv[2], wait="20s"))
with Context(Path(sys.argv[1]), os.environ) as context:
    print(apply_rollback(context, plan).verdict)
"""
Strike = Callable[[], bool]
"""Called at each request; whether the caller was killed at it."""


class Grounds:
    """A stack whose states are in a bucket, and processes that roll it back."""

    def __init__(self, stack: RolledStack, bucket: FakeBucket) -> None:
        self.stack, self.bucket = stack, bucket
        state = stack.cloud.folder / f"state/.pulumi/stacks/bezel/{STACK}.json"
        self.state = (state.read_bytes(), 1)
        self.before: Strike = lambda: False
        self.after: Strike = lambda: False
        stack.cloud.server.routes.insert(0, self._serve)
        bucket.gate = lambda _call: Answer(reset=True) if self.before() else None
        bucket.after = lambda _call: self.after()
        self.reset()

    def reset(self) -> None:
        """Begin again: the newest revision serves, and no lock is held."""
        self.stack.revise(3)
        self.stack.bodies.clear()
        self.bucket.objects.clear()
        self.bucket.objects[f".pulumi/stacks/bezel/{STACK}.json"] = self.state

    def start(self) -> "subprocess.Popen[str]":
        """A process that plans a rollback and carries it out."""
        variables = {"PULUMI_BACKEND_URL": "gs://states", "STORAGE_EMULATOR_HOST": self.bucket.server.url}
        variables["GOOGLE_STORAGE_CUSTOM_ENDPOINT"] = f"{self.bucket.server.url}/storage/v1/"
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.stack.cloud.folder), STACK],
            env={"PATH": os.environ["PATH"], **self.stack.cloud.context.environ, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def _serve(self, call: Call) -> Answer | None:
        if self.before():
            return Answer(reset=True)
        answer = self.stack.answer(call) or self.stack.cloud.answer(call)
        return Answer(reset=True) if self.after() else answer


@pytest.mark.timeout(900)
def test_a_kill_at_any_request_leaves_one_of_both(tmp_path: Path) -> None:
    with rolled_stack(tmp_path) as stack, fake_bucket() as bucket:
        grounds = Grounds(stack, bucket)
        asked = []
        grounds.before = lambda: bool(asked.append(1))
        output, _ = grounds.start().communicate(timeout=SECONDS)
        assert output.endswith("done\n"), output
        assert len(asked) > 10
        for number in range(2 * len(asked)):
            grounds.reset()
            at, is_served = divmod(number, 2)
            process, left = grounds.start(), [at]

            def strike(process: "subprocess.Popen[str]" = process, left: list[int] = left) -> bool:
                left[0] -= 1
                if left[0] != -1:
                    return False
                process.send_signal(signal.SIGKILL)
                process.wait()
                return True

            grounds.before, grounds.after = (lambda: False, strike) if is_served else (strike, lambda: False)
            process.communicate(timeout=SECONDS)
            grounds.before = grounds.after = lambda: False
            assert process.returncode == -signal.SIGKILL, f"not killed at request {at}"
            recorded = ANNOTATION in (stack.service.get("annotations") or {})
            assert stack.service["traffic"] == ([pinned_target(2)] if recorded else DIRECT), at
            # The lock of the one that was killed is taken over, and the traffic is moved once in all.
            output, _ = grounds.start().communicate(timeout=SECONDS)
            assert output.endswith("unchanged\n" if recorded else "done\n"), (at, output)
            assert stack.service["traffic"] == [pinned_target(2)]
            assert len(stack.bodies) == 1
            assert [name for name in bucket.objects if name.startswith("locks/")] == []
