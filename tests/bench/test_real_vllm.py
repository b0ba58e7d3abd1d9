"""Loads on a real vLLM of this machine that has an API key: generated prompts, ShareGPT's form, a trace of Mooncake's.

BEZEL_REAL_VLLM names a folder with `venv/bin/vllm` and `models/tiny-gemma4`; without it these are skipped.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.cli.main import main
from tests.support.real_vllm import TIMEOUT, real_vllm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]
KEY = "sk-Pl4ntedKey0123456789"
VARIABLE = "BEZEL_TEST_VLLM_KEY"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_vllm(tmp_path_factory.mktemp("vllm"), f"--api-key={KEY}") as (address, _):
        yield address


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


def measure_command(url: str, out: Path, *arguments: object) -> dict[str, Any]:
    options = ["--url", f"{url}/v1", "--public", "--api-key-env", VARIABLE, "--out", str(out)]
    assert main(["bench", "run", *options, *map(str, arguments)]) == 0
    text = out.read_text()
    assert KEY not in text
    return json.loads(text)["cells"][0]


def test_a_server_with_an_api_key_is_measured(url: str, tmp_path: Path) -> None:
    options = ("--users", 2, "--seconds", 5, "--input-tokens", 64, "--output-tokens", 16)
    cell = measure_command(url, tmp_path / "r.json", *options)
    assert (cell["state"], cell["failures"]) == ("ok", {})
    assert cell["counters"]["gained"]["requests"] == cell["requests"]
    series = cell["server_series"]
    assert len(series["at_seconds"]) >= 2
    assert series["generated_tokens"][-1] > 0
    assert max(series["running"]) <= 2


def test_without_the_key_nothing_is_measured(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, "sk-another")
    assert main(["bench", "run", "--url", url, "--public", "--api-key-env", VARIABLE, "--requests", "2"]) != 0
    captured = capsys.readouterr()
    assert "401" in captured.err + captured.out
    assert "Traceback" not in captured.err


def test_a_file_in_sharegpts_form_is_sent(url: str, tmp_path: Path) -> None:
    asked = ["What is a TPU?", "Name three rivers of Africa and their lengths in kilometres."]
    entries = [{"conversations": [{"from": "human", "value": text}, {"from": "gpt", "value": "A."}]} for text in asked]
    (tmp_path / "sharegpt.json").write_text(json.dumps(entries))
    options = ("--file", tmp_path / "sharegpt.json", "--users", 1, "--requests", 6, "--output-tokens", 8)
    cell = measure_command(url, tmp_path / "r.json", *options)
    assert (cell["state"], cell["prompts"], cell["requests"]) == ("ok", "file", 6)


def test_a_trace_in_mooncakes_form_is_replayed_with_its_shared_prefixes(url: str, tmp_path: Path) -> None:
    lines = [
        {"timestamp": 150 * index, "input_length": 1100, "output_length": 4 + index, "hash_ids": [1, 2, 3 + index]}
        for index in range(6)
    ]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cell = measure_command(url, tmp_path / "r.json", "--trace", tmp_path / "trace.jsonl")
    assert (cell["requests"], cell["failures"]) == (6, {})
    assert cell["counters"]["gained"]["generated_tokens"] == sum(line["output_length"] for line in lines)
    assert cell["metrics"]["cached_share"]["value"] > 0.5, "five of six prompts share 1,024 of 1,100 tokens"
