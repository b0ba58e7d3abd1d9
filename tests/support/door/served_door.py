"""A door from its archive, as a process of its own with the standard library alone, and a bucket with its keys."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bezel_base.loopback.listeners import bind, free_port
from bezel_door.archive import door_archive
from bezel_door.key_file import Key, create_key_text, hash_key, key_id, write_keys
from bezel_door.usage_file import KeyUsage, read_usage, sum_usage
from door_support.fake_google import FakeGoogle
from door_support.running import MADE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class ServedDoor:
    """A running door: its URL, its keys, and the lines of its log."""

    url: str
    google: FakeGoogle
    keys: dict[str, Key] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)

    def add_key(self, **limits: Any) -> str:
        """The text of a new key."""
        text = create_key_text()
        self.change_key(text, hash=hash_key(text), team="search", created=MADE, **limits)
        return text

    def change_key(self, text: str, **changes: Any) -> None:
        """Change a key in the bucket; the door reads it within 10 s."""
        name = key_id(text) or ""
        self.keys[name] = replace(self.keys[name], **changes) if name in self.keys else Key(**changes)
        self.google.put("keys.json", write_keys(self.keys))

    def usage(self, text: str) -> KeyUsage:
        """Use of a key, as the door has written it."""
        files = [content for name, (_, content) in list(self.google.objects.items()) if name.startswith("usage/")]
        return sum_usage(read_usage(content).keys for content in files).get(key_id(text) or "", KeyUsage())


@contextlib.contextmanager
def served_door(folder: Path, upstream: str) -> Iterator[ServedDoor]:
    """A door in front of a server; when it has ended, its counts are in the bucket."""
    archive = folder / "door.pyz"
    archive.write_bytes(door_archive())
    # Bound here too, it is drawn by nothing else before the door listens.
    with bind("127.0.0.1", free_port()) as drawn, _google() as google:
        port = drawn.getsockname()[1]
        door = ServedDoor(f"http://127.0.0.1:{port}", google)
        variables = {"PORT": str(port), "DOOR_ADDRESS": "127.0.0.1", "DOOR_UPSTREAM": upstream, **google.environment()}
        variables["DOOR_AUDIENCE"] = "https://llm.example"
        command = [sys.executable, "-I", "-S", str(archive)]
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert "listens" in first, first
            reader = threading.Thread(target=_read, args=(process.stdout, door.lines))
            reader.start()
            try:
                yield door
            finally:
                process.terminate()
                assert process.wait(60) == 0
                reader.join()


def _read(stream: Any, lines: list[dict[str, Any]]) -> None:
    lines.extend(map(json.loads, stream))


@contextlib.contextmanager
def _google() -> Iterator[FakeGoogle]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    google = FakeGoogle()
    try:
        asyncio.run_coroutine_threadsafe(google.__aenter__(), loop).result(60)
        yield google
    finally:
        asyncio.run_coroutine_threadsafe(google.__aexit__(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
