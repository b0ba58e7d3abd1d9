"""Logs of servers, real and simulated, as lines of one shape: stream, process, level, place in the source, and text.

A log is recorded with the stream in front of each line (`out`, `err`) and marks of the moments (`--- stop`). Values
that differ from run to run (numbers, paths, names) are no part of a shape.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOGS = Path(__file__).parents[1] / "fixtures" / "vllm" / "log"
_SECONDS = 600.0
_STATISTICS_AT, _LAST_REFUSED = "Avg prompt throughput: ", '"POST /v1/nothing HTTP/1.1" 404 '
_OWN = re.compile(
    r"^\((?P<process>\w+) pid=\d+\) (?P<level>[A-Z]+) \d\d-\d\d \d\d:\d\d:\d\d \[(?P<place>[^\]]+)\] ?(?P<text>.*)"
)
# Places of 0.32.0 and 0.33.0 of lines that say more than one thing.
_BANNERS, _ROUTES = ("api_utils.py:347", "startup.py:38"), ("launcher.py:195", "launcher.py:197")
_TO_THE_COLON = re.compile(r"^(non-default args:|.* with config:).*")
_VALUES = (
    (re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:/\S*|[^\"]*\.py)\"|`[^`]*`"), "'…'"),
    (re.compile(r"\{[^}]*\}"), "{…}"),
    (re.compile(r"https?://\S+"), "URL"),
    (re.compile(r"\d[\d.,:]*"), "N"),
    (re.compile(r"\b[CG]PU KV cache"), "KV cache"),
    (re.compile(r" \(compilation: N s\)"), ""),
)


def shape(line: str) -> str:
    """The shape of a recorded line."""
    stream, _, rest = line.partition(" ")
    front, text = "", rest
    if line_match := _OWN.match(rest):
        # On a CPU the engine's worker is a process of its own.
        process = "EngineCore" if line_match["process"] in {"Worker", "VllmWorker"} else line_match["process"]
        front, text = f"({process}) {line_match['level']} [{line_match['place']}] ", line_match["text"]
        if line_match["place"] in _BANNERS:
            text = "banner"
        if line_match["place"] in _ROUTES:
            text = "Route"
    text = _TO_THE_COLON.sub(r"\1", text)
    if access := re.match(r'^(INFO: +\S+ - "[A-Z]+ )\S+( HTTP/\S+ \d{3}.*)', text):
        text = access[1] + "PATH" + access[2]
    for pattern, replacement in _VALUES:
        text = pattern.sub(replacement, text)
    return f"{stream} {front}{text}".rstrip()


def lines_of(text: str, name: str = "") -> list[str]:
    """The recorded lines, without marks and without those that the simulated server leaves out."""
    return [
        line
        for line in text.splitlines()
        if line and not line.startswith("---") and not any(pattern.search(line) for pattern in _left_out(name))
    ]


@cache
def _left_out(name: str) -> tuple[re.Pattern[str], ...]:
    table = tomllib.loads((LOGS / "left_out.toml").read_text(encoding="utf-8"))["line"]
    return tuple(re.compile(row["pattern"]) for row in table if row.get("only") in {None, name})


def without_counterpart(real: str, simulated: str, name: str = "") -> list[str]:
    """Lines of a real log whose shape the simulated log has not, or not in the order of its stream.

    Args:
        real: The real log.
        simulated: The simulated one.
        name: Name of the record, for what is left out of it alone.
    """
    missing: list[str] = []
    for stream in ("out", "err"):
        has = [shape(line) for line in simulated.splitlines() if line.startswith(f"{stream} ")]
        at = 0
        seen: set[str] = set()
        for line in lines_of(real, name):
            wanted = shape(line)
            if not line.startswith(f"{stream} ") or wanted in seen:
                continue
            seen.add(wanted)
            if wanted in has[at:]:
                at = has.index(wanted, at)
            else:
                missing.append(line)
    return missing


class Recorder:
    """A server that is run, and its log.

    Args:
        command: Its command line.
        environ: Its environment.
        folder: Folder that it runs in.
        url: Its address.
    """

    def __init__(self, command: Sequence[str], environ: dict[str, str], folder: Path, url: str) -> None:
        self._rows: list[str] = []
        self._lock = threading.Lock()
        self.url = url
        self._process = subprocess.Popen(
            command, env=environ, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        pipes = (("out", self._process.stdout), ("err", self._process.stderr))
        self._pumps = [threading.Thread(target=self._pump, args=pair, daemon=True) for pair in pipes]
        for pump in self._pumps:
            pump.start()

    def _pump(self, stream: str, pipe: Any) -> None:
        for line in pipe:
            with self._lock:
                self._rows.append(f"{stream} {line.decode(errors='replace').rstrip()}")

    def run(self, script: Callable[[Recorder], None] | None = None) -> str:
        """Its log from start to end: of the script's requests where it becomes healthy, ended by SIGTERM then."""
        try:
            if script is None:
                self._process.wait(_SECONDS)
            else:
                self.wait_until(self._is_healthy)
                script(self)
                self._process.terminate()
                self._process.wait(60)
        finally:
            self._process.kill()
            self._process.wait()
            for pump in self._pumps:
                pump.join(60)
        return "\n".join(self._rows) + "\n"

    def has_after(self, text: str, earlier: str) -> bool:
        """Whether a line with a text has come after the last one with the earlier text."""
        with self._lock:
            rows = list(self._rows)
        places = [at for at, row in enumerate(rows) if earlier in row]
        return bool(places) and any(text in row for row in rows[places[-1] :])

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while the server lives; an AssertionError with the end of the log if it never holds."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            if condition():
                return
            time.sleep(0.2)
        raise AssertionError("\n".join(self._rows[-40:]))

    def _is_healthy(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        return False


def requests_of_the_record(recorder: Recorder, model: str, statistics_seconds: float = 10.0) -> None:
    """The requests of the recorded log: an answer, metrics, three refusals, and one that its client gives up.

    Args:
        recorder: The server.
        model: The name of its model.
        statistics_seconds: Seconds between two lines of statistics, one of which is waited for.
    """
    url = recorder.url
    chat = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
    httpx.post(f"{url}/v1/chat/completions", json=chat, timeout=60).raise_for_status()
    httpx.get(f"{url}/metrics", timeout=30).raise_for_status()
    unknown, wrong = {**chat, "model": "nothere"}, {**chat, "max_tokens": -1}
    for path, body in (("chat/completions", unknown), ("chat/completions", wrong), ("nothing", chat)):
        assert httpx.post(f"{url}/v1/{path}", json=body, timeout=30).status_code in {400, 404}
    with contextlib.suppress(httpx.ReadTimeout):
        long = {**chat, "max_tokens": 4000, "ignore_eos": True}
        httpx.post(f"{url}/v1/chat/completions", json=long, timeout=httpx.Timeout(60, read=0.3 * statistics_seconds))
    recorder.wait_until(lambda: recorder.has_after(_STATISTICS_AT, _LAST_REFUSED))


def hardware() -> str:
    """The simulated machine."""
    return json.dumps({"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 8, "memory_gib": 32})
