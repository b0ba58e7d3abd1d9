"""OpenAI's package through `bezel proxy`: any key works, tokens and revisions change unnoticed, a kill is reported."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bezel_base.process_status import DIRECTORY_VARIABLE, processes_with_variable
from bezel_localcloud import control
from localcloud_support.client import Client
from tests.support.clients import environment, programs
from tests.support.clients.service import NAME, service
from tests.support.proxy.running import Exchange, running_proxy

pytestmark = [pytest.mark.slow, pytest.mark.clients]

BEZEL = "import sys; from bezel.cli.main import main; sys.exit(main())"
# Of a killed service: a stream that was under way, then a request.
ASK = """
import openai, sys
client = openai.OpenAI(max_retries=0, timeout=60)
ask = dict(model=sys.argv[1], messages=[{"role": "user", "content": "Name a colour."}])
try:
    # Past its own end, or the stream could be over before the kill: 4,000 tokens take 10 s.
    long = dict(stream=True, max_tokens=4000, extra_body={"ignore_eos": True})
    for number, chunk in enumerate(client.chat.completions.create(**ask, **long)):
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

# Callers that stream and that wait for whole answers, each request after the other, until a line comes.
LOAD = """
import json, openai, sys, threading
client = openai.OpenAI(max_retries=0, timeout=60)
ask = dict(model=sys.argv[1], messages=[{"role": "user", "content": "Name a colour."}])
stop, begun, done, failed = threading.Event(), threading.Semaphore(0), [], []
def call(streams):
    while not stop.is_set():
        try:
            if streams:
                chunks = list(client.chat.completions.create(**ask, stream=True, max_tokens=400))
                assert chunks[-1].choices[0].finish_reason, "no end"
            else:
                assert client.chat.completions.create(**ask, max_tokens=40).choices[0].finish_reason, "no end"
            done.append(1)
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")
        begun.release()
callers = [threading.Thread(target=call, args=(number % 2,)) for number in range(6)]
for caller in callers: caller.start()
for _ in callers: begun.acquire()
print("begun", flush=True)
sys.stdin.readline()
before = len(done)
while begun.acquire(blocking=False): pass
for _ in range(30): begun.acquire()
stop.set()
for caller in callers: caller.join()
print(json.dumps({"done": len(done), "after": len(done) - before, "failed": failed}))
"""
# A request for each line.
HOURS = """
import openai, sys
client = openai.OpenAI(max_retries=0, timeout=60)
for line in sys.stdin:
    answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": line}])
    print(answer.choices[0].message.content, flush=True)
"""


@contextmanager
def proxy(url: str, variables: dict[str, str], *options: str) -> Iterator[str]:
    """The base URL of a proxy in a process of its own, ended as by Ctrl-C."""
    command = [sys.executable, "-c", BEZEL, "proxy", "--url", url, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().removeprefix("export OPENAI_BASE_URL=")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


@contextmanager
def running_service(folder: Path, serving_speed: int = 100) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of a service, and the variables of a deployer."""
    with service(folder, serving_speed) as service_variables:
        own_variables = {"PATH": os.environ["PATH"], "HOME": service_variables["HOME"]}
        yield (
            service_variables["OPENAI_BASE_URL"].removesuffix("/v1"),
            own_variables | control.environment(control.start(folder / "cloud")),
        )


@pytest.mark.wide
def test_openai_for_python_works_unmodified_with_any_key(tmp_path: Path) -> None:
    command = [environment.python("openai"), programs.PROGRAMS / "openai_python.py", NAME]
    with running_service(tmp_path) as (url, variables), proxy(url, variables) as base:
        calls = programs.run(command, variables | {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-any"})
    failed = {call.name for call in calls if call.outcome == "failed"}
    # The proxy replaces the caller's key: the one call that expects the refusal of a wrong one gets an answer.
    assert failed == {"wrong key"}, [call for call in calls if call.outcome == "failed"]


@pytest.mark.wide
def test_a_killed_service_is_reported_in_the_stream_and_the_next_request(tmp_path: Path) -> None:
    with running_service(tmp_path, 1) as (url, variables), proxy(url, variables, "--wait", "1") as base:
        client = subprocess.Popen(
            [environment.python("openai"), "-c", ASK, NAME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables | {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-any"},
        )
        assert client.stdout is not None
        assert client.stdout.readline() == "first\n"
        for process in processes_with_variable(DIRECTORY_VARIABLE, str(tmp_path / "cloud")):
            os.kill(process, signal.SIGKILL)
        output, _ = client.communicate("go\n", timeout=60)
    stream, following = output.strip().split("\n", 1)
    assert stream.startswith("APIError The service's stream broke before its end")
    assert "answered" in following or "Repair:" in following


@pytest.mark.wide
def test_a_new_revision_takes_the_traffic_without_a_failed_request(tmp_path: Path) -> None:
    with running_service(tmp_path, 20) as (url, variables), proxy(url, variables) as base:
        cloud = Client(control.start(tmp_path / "cloud"))
        before = cloud.service(NAME)
        caller = subprocess.Popen(
            [environment.python("openai"), "-c", LOAD, NAME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables | {"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "sk-any"},
        )
        assert caller.stdout is not None
        assert caller.stdout.readline() == "begun\n"
        container = before["template"]["containers"][0]
        environ = [*container["env"], {"name": "CHANGED", "value": "1"}]
        template = before["template"] | {"containers": [container | {"env": environ}]}
        assert "error" not in cloud.update(NAME, template)
        after = cloud.service(NAME)
        output, _ = caller.communicate("enough\n", timeout=100)
        served = {entry["resource"]["labels"]["revision_name"] for entry in cloud.log(NAME, 'logName:"requests"')}
    counted = json.loads(output)
    assert counted["failed"] == []
    assert counted["after"] >= 24
    revisions = {state["latestReadyRevision"].rpartition("/")[2] for state in (before, after)}
    assert len(revisions) == 2
    assert served == revisions


def test_over_hours_a_caller_notices_no_renewal_of_tokens() -> None:
    async def respond(exchange: Exchange) -> None:
        await exchange.body()
        message = {"role": "assistant", "content": "fine"}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        await exchange.answer(200, json.dumps({**answer, "choices": choices}).encode())

    async def run() -> None:
        async with running_proxy(respond) as proxy:
            caller = await asyncio.create_subprocess_exec(
                *(str(environment.python("openai")), "-c", HOURS),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={"OPENAI_BASE_URL": f"http://127.0.0.1:{proxy.port}/v1", "OPENAI_API_KEY": "sk-any"},
            )
            assert caller.stdin is not None
            assert caller.stdout is not None
            for _ in range(18):
                caller.stdin.write(b"Are you there?\n")
                assert await asyncio.wait_for(caller.stdout.readline(), 60) == b"fine\n"
                proxy.tokens.now += 600
            caller.stdin.close()
            assert await asyncio.wait_for(caller.wait(), 60) == 0
            sent = [exchange.headers["authorization"].removeprefix("Bearer ") for exchange in proxy.received]
        # Three hours: a token an hour, replaced before its end, and none of the caller's own.
        assert 3 <= len(proxy.tokens.made) <= 5
        assert set(sent) <= set(proxy.tokens.made)

    asyncio.run(run())
