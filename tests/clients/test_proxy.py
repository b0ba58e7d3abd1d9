"""OpenAI's package through `bezel proxy`: any key works, and a service whose processes are killed is reported."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bezel.localcloud import control
from bezel.localcloud.processes.process_status import DIRECTORY_VARIABLE, marked
from tests.support.clients import environment, programs
from tests.support.clients.service import NAME, service

pytestmark = [pytest.mark.slow, pytest.mark.clients]

BEZEL = "import sys; from bezel.cli.main import main; sys.exit(main())"
# Of a killed service: a stream that was under way, then a request.
ASK = """
import openai, sys
client = openai.OpenAI(max_retries=0, timeout=60)
ask = dict(model=sys.argv[1], messages=[{"role": "user", "content": "Name a colour."}])
try:
    for number, chunk in enumerate(client.chat.completions.create(**ask, stream=True, max_tokens=4000)):
        if not number:
            print("first", flush=True)
            sys.stdin.readline()
    print("complete")
except openai.APIError as error:
    print(type(error).__name__, error)
try:
    client.chat.completions.create(**ask, max_tokens=4)
    print("answered")
except openai.APIError as error:
    print(type(error).__name__, error)
"""


@contextmanager
def proxy(url: str, variables: dict[str, str], *options: str) -> Iterator[str]:
    """The base URL of a proxy in a process of its own, ended as by Ctrl-C."""
    command = [sys.executable, "-c", BEZEL, "proxy", "--url", url, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().removeprefix("OPENAI_BASE_URL=")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


@contextmanager
def deployed(folder: Path, serving_speed: int = 100) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of a service, and the variables of a deployer."""
    with service(folder, serving_speed) as given:
        own = {"PATH": os.environ["PATH"], "HOME": given["HOME"]}
        yield given["OPENAI_BASE_URL"].removesuffix("/v1"), own | control.environment(control.start(folder / "cloud"))


def test_openai_for_python_works_unmodified_with_any_key(tmp_path: Path) -> None:
    command = [environment.python("openai"), programs.PROGRAMS / "openai_python.py", NAME]
    with deployed(tmp_path) as (url, variables), proxy(url, variables) as base:
        calls = programs.run(command, variables | {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-any"})
    failed = {call.name for call in calls if call.outcome == "failed"}
    # The proxy replaces the caller's key: the one call that expects the refusal of a wrong one gets an answer.
    assert failed == {"wrong key"}, [call for call in calls if call.outcome == "failed"]


def test_a_service_that_is_killed_is_reported_in_the_stream_and_by_the_next_request(tmp_path: Path) -> None:
    with deployed(tmp_path, 1) as (url, variables), proxy(url, variables, "--wait", "1") as base:
        client = subprocess.Popen(
            [environment.python("openai"), "-c", ASK, NAME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables | {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-any"},
        )
        assert client.stdout is not None
        assert client.stdout.readline() == "first\n"
        for process in marked(DIRECTORY_VARIABLE, str(tmp_path / "cloud")):
            os.kill(process, signal.SIGKILL)
        output, _ = client.communicate("go\n", timeout=60)
    stream, following = output.strip().split("\n", 1)
    assert stream.startswith("APIError The service's stream broke before its end")
    assert "answered" in following or "Repair:" in following
