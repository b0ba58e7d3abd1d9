"""OpenAI's and Anthropic's libraries by key, unmodified, through a door to a vLLM; its counts are the server's."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from bezel_door.key_file import create_key_text
from simulated_vllm_support.process import NAME, simulated_vllm
from tests.support.clients import environment, programs
from tests.support.door.served_door import ServedDoor, served_door
from tests.support.real_vllm import TIMEOUT, real_vllm

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(TIMEOUT)]

TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser=gemma4")
UNSENT = 32
COUNTERS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")


@dataclass
class Served:
    """A door, its server, and a key."""

    door: ServedDoor
    server: str
    key: str
    model: str

    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "OPENAI_BASE_URL": f"{self.door.url}/v1",
            "OPENAI_API_KEY": self.key,
            "ANTHROPIC_BASE_URL": self.door.url,
            "ANTHROPIC_API_KEY": self.key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else litellm fetches its list of prices at each start
        }

    def counters(self) -> list[int]:
        text = httpx.get(f"{self.server}/metrics", trust_env=False, timeout=30).text
        return [
            int(sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name}{{")))
            for name in COUNTERS
        ]

    def run(self, command: list[str | Path], **more: str) -> list[programs.ClientCall]:
        return programs.run([*command, self.model], self.variables() | more)


@contextmanager
def serve(folder: Path, *, is_real: bool = False) -> Iterator[Served]:
    with ExitStack() as stack:
        if is_real:
            server, model = stack.enter_context(real_vllm(folder, *TOOLS))[0], "tiny-gemma4"
        else:
            server, model = stack.enter_context(simulated_vllm(folder, *TOOLS, serving_speed=100)), NAME
        door = stack.enter_context(served_door(folder, server))
        yield Served(door, server, door.add_key(), model)


def run_all(each: Served) -> list[programs.ClientCall]:
    python, npm = environment.python, environment.npm
    calls = each.run([python("openai"), programs.PROGRAMS / "openai_python.py"])
    calls += each.run([python("anthropic"), programs.PROGRAMS / "anthropic_python.py"])
    for package in ("openai", "anthropic"):
        program = programs.PROGRAMS / f"{package}_node.cjs"
        calls += each.run(["node", program], NODE_PATH=str(npm(package) / "node_modules"))
    return calls


@pytest.mark.wide
def test_official_libraries_work_unmodified_by_key(tmp_path: Path) -> None:
    with serve(tmp_path) as each:
        programs.assert_served(run_all(each), not_served=["models retrieve"])
        prompts, answers = each.counters()
    usage = each.door.usage(each.key)
    # The server counts a prompt again for each further answer to it (`n`), and for the four streams that a program
    # leaves what it had computed but not sent.
    assert answers - 4 * UNSENT <= usage.completion_tokens <= answers
    assert usage.prompt_tokens <= prompts
    assert usage.requests > 40


def test_curl_streams_by_key_and_its_tokens_are_the_servers(tmp_path: Path) -> None:
    body = f'{{"model":"{NAME}","messages":[{{"role":"user","content":"hi"}}],"max_tokens":8,"stream":true}}'
    with serve(tmp_path) as each:
        for header in (f"Authorization: Bearer {each.key}", f"x-api-key: {each.key}", f"api-key: {each.key}"):
            command = ["curl", "-sN", f"{each.door.url}/v1/chat/completions", "-H", header, "-d", body]
            ended = subprocess.run([*command, "-H", "content-type: application/json"], capture_output=True, check=True)
            assert ended.stdout.endswith(b"data: [DONE]\n\n")
            assert b'"usage"' not in ended.stdout
        counted = each.counters()
    usage = each.door.usage(each.key)
    assert [usage.prompt_tokens, usage.completion_tokens] == counted
    assert (usage.completion_tokens, usage.estimated_requests) == (24, 0)


@pytest.mark.wide
def test_keys_and_limits_are_refused_as_the_library_reports_them(tmp_path: Path) -> None:
    with serve(tmp_path) as each:
        past = next(iter(each.door.keys.values())).created
        keys = {
            "KEY": {},
            "EXPIRED_KEY": {"expires": past},
            "REVOKED_KEY": {"revoked": past + timedelta(hours=1)},
            "MODEL_KEY": {"models": (each.model,)},
            "REQUESTS_KEY": {"requests_per_minute": 2},
            "TOKENS_KEY": {"tokens_per_minute": 4},
            "DAY_KEY": {"tokens_per_day": 4},
            "STREAM_KEY": {"tokens_per_day": 40},
        }
        variables = {name: each.door.add_key(**limits) for name, limits in keys.items()}
        calls = each.run(
            [environment.python("openai"), programs.PROGRAMS / "openai_keys.py"],
            WRONG_KEY=create_key_text(),
            **variables,
        )
    programs.assert_served(calls)
    usages = {name: each.door.usage(text) for name, text in variables.items()}
    assert {name: usage.refused for name, usage in usages.items() if usage.refused} == {
        "MODEL_KEY": 1,
        "REQUESTS_KEY": 1,
        "TOKENS_KEY": 1,
        "DAY_KEY": 1,
        "STREAM_KEY": 1,
    }


@pytest.mark.long
@pytest.mark.parametrize("package", ["litellm", "langchain"])
def test_packages_on_top_of_openai_work_by_key(tmp_path: Path, package: str) -> None:
    with serve(tmp_path) as each:
        calls = each.run([environment.python("openai"), programs.PROGRAMS / f"{package}_calls.py"])
    programs.assert_served(calls)


@pytest.mark.long
def test_tokens_of_a_real_server_are_those_of_its_counters(tmp_path: Path) -> None:
    # A tiny model of random weights calls no tool, and writes no colour.
    by_chance = {
        "chat create with tools",
        "chat stream with tools",
        "messages with tools",
        "responses parse",
        "chat parse",
    }
    with serve(tmp_path, is_real=True) as each:
        calls = run_all(each)
        failed = {call.name for call in calls if call.outcome == "failed"}
        answers = each.counters()[1]
    assert failed <= by_chance
    assert answers - 4 * UNSENT <= each.door.usage(each.key).completion_tokens <= answers
