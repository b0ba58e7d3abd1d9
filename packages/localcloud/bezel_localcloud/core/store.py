"""Durable state: one SQLite file, readable by its owner only, changed in transactions and consistent after SIGKILL.

Owns tables and transactions. Leaves out the meaning of the rows: names and bodies are Google's, stored as JSON.
"""

import asyncio
import errno
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json

_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS resources (
  kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS policies (name TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS payloads (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS operations (name TEXT PRIMARY KEY, body TEXT NOT NULL, ends REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, time REAL NOT NULL, entry TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS log_time ON log (time);
CREATE TABLE IF NOT EXISTS scrapes (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, time REAL NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS scrapes_target ON scrapes (target, time);
CREATE INDEX IF NOT EXISTS log_insert_id ON log (
  time, CASE WHEN json_valid(entry) THEN json_extract(entry, '$.insertId') END);
"""
_MOST_PAGES = 4294967294  # SQLite's own default
# Rows that are kept in memory, and the longest of them in characters: a request reads the same few several times.
_MOST_KEPT, _LONGEST_KEPT = 1024, 16384
_POLICY = ""  # in the place of a kind of resource


class Store:
    """Rows by kind and name. One thread uses it, so a transaction is never interleaved with another."""

    def __init__(self, path: Path) -> None:
        # Created before SQLite does, whose mode follows the umask; SQLite's side files get the mode of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # WAL with synchronous=NORMAL: a killed process loses nothing committed; only a power cut could lose it.
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)
        self._depth = 0
        # By kind and name; None where there is no row.
        self._kept: dict[tuple[str, str], str | None] = {}
        self._watchers: dict[str, Callable[[], None]] = {}

    def watch(self, kinds: Iterable[str], changed: Callable[[], None]) -> None:
        """Call a function at each change of a resource of some kinds, within the transaction, which may yet fail."""
        self._watchers |= dict.fromkeys(kinds, changed)

    def close(self) -> None:
        """Close the file; the store is not usable afterwards."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes inside together or not at all; may be nested, and the outermost one commits."""
        if self._depth:
            yield
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
        except BaseException:
            self._kept.clear()
            # A full disk may have made SQLite roll back already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        else:
            self._connection.execute("COMMIT")
        finally:
            self._depth = 0

    def clear(self, keep: Iterable[str] = ()) -> None:
        """Delete everything but some settings, in one transaction.

        Args:
            keep: Keys of the settings that stay.
        """
        with self.transaction():
            self._kept.clear()
            kept = {key: self.setting(key) for key in keep}
            for table in ("settings", "resources", "policies", "payloads", "operations", "log", "scrapes"):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
            for key, value in kept.items():
                self.set_setting(key, value)

    def limit(self, *, full: bool) -> None:
        """Stop the file from growing, as on a full disk, or allow it again."""
        if full:
            self._connection.execute("VACUUM")  # so that no free page is left to write to
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0] if full else _MOST_PAGES
        self._connection.execute(f"PRAGMA max_page_count = {pages}")

    def _value(self, query: str, *values: str) -> Any:
        """The first column of the row that a query finds, None where there is none."""
        row = self._connection.execute(query, values).fetchone()
        return row[0] if row else None

    def _body(self, kind: str, name: str) -> str | None:
        """The text of a resource or, of the kind `_POLICY`, of a policy; None where there is none."""
        try:
            return self._kept[kind, name]
        except KeyError:
            if kind == _POLICY:
                text = self._value("SELECT body FROM policies WHERE name = ?", name)
            else:
                text = self._value("SELECT body FROM resources WHERE kind = ? AND name = ?", kind, name)
            return self._keep(kind, name, text)

    def _keep(self, kind: str, name: str, text: str | None) -> str | None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        if text is None or len(text) <= _LONGEST_KEPT:
            self._kept[kind, name] = text
        else:
            self._kept.pop((kind, name), None)
        return text

    def setting(self, key: str) -> str | None:
        """The value of a setting, such as a port."""
        return cast("str | None", self._value("SELECT value FROM settings WHERE key = ?", key))

    def set_setting(self, key: str, value: str | None) -> None:
        """Store the value of a setting, or delete it with None."""
        if value is None:
            self._connection.execute("DELETE FROM settings WHERE key = ?", (key,))
        else:
            self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    def next_number(self, key: str) -> int:
        """Return 1, 2, 3, ... for each key."""
        with self.transaction():
            number = int(self.setting(key) or 0) + 1
            self.set_setting(key, str(number))
        return number

    def get(self, kind: str, name: str) -> Json | None:
        """The body of a resource."""
        body = self._body(kind, name)
        return json.loads(body) if body else None

    def has(self, kind: str, name: str) -> bool:
        """Whether there is a resource of a name."""
        return self._body(kind, name) is not None

    def put(self, kind: str, name: str, body: Json) -> None:
        """Create or replace a resource."""
        text = json.dumps(body)
        self._connection.execute("INSERT OR REPLACE INTO resources VALUES (?, ?, ?)", (kind, name, text))
        self._keep(kind, name, text)
        self._tell(kind)

    def delete(self, kind: str, name: str) -> None:
        """Remove a resource. The policy of its name stays: another kind may have that name (`delete_policy`)."""
        self._connection.execute("DELETE FROM resources WHERE kind = ? AND name = ?", (kind, name))
        self._keep(kind, name, None)
        self._tell(kind)

    def _tell(self, kind: str) -> None:
        if kind in self._watchers:
            self._watchers[kind]()

    def rows(self, kind: str, prefix: str = "", after: str = "", limit: int = -1) -> list[tuple[str, Json]]:
        """(name, body) of a kind in order of names, limited to those with `prefix` and after `after`."""
        # The names with a prefix stand together: those from the prefix on and before its successor.
        rows = self._connection.execute(
            "SELECT name, body FROM resources WHERE kind = ? AND name > ? AND name >= ? AND name < ? "
            "ORDER BY name LIMIT ?",
            (kind, after, prefix, _successor(prefix), limit),
        )
        return [(name, json.loads(body)) for name, body in rows]

    def policy(self, name: str) -> Json | None:
        """The IAM policy set on a resource."""
        body = self.policy_text(name)
        return json.loads(body) if body else None

    def policy_text(self, name: str) -> str:
        """The IAM policy set on a resource as it is stored, "" for none."""
        return self._body(_POLICY, name) or ""

    def put_policy(self, name: str, body: Json) -> None:
        """Set the IAM policy of a resource."""
        text = json.dumps(body)
        self._connection.execute("INSERT OR REPLACE INTO policies VALUES (?, ?)", (name, text))
        self._keep(_POLICY, name, text)

    def delete_policy(self, name: str) -> None:
        """Delete the IAM policy of a resource."""
        self._connection.execute("DELETE FROM policies WHERE name = ?", (name,))
        self._keep(_POLICY, name, None)

    def policies(self) -> list[tuple[str, Json]]:
        """Every policy set."""
        rows = self._connection.execute("SELECT name, body FROM policies ORDER BY name")
        return [(name, json.loads(body)) for name, body in rows]

    def payload(self, name: str) -> bytes | None:
        """A secret's bytes."""
        return cast("bytes | None", self._value("SELECT data FROM payloads WHERE name = ?", name))

    def put_payload(self, name: str, data: bytes | None) -> None:
        """Store a secret's bytes, or delete them with None."""
        if data is None:
            self._connection.execute("DELETE FROM payloads WHERE name = ?", (name,))
        else:
            self._connection.execute("INSERT OR REPLACE INTO payloads VALUES (?, ?)", (name, data))

    def operation(self, name: str) -> tuple[Json, float | None] | None:
        """(body, its end in Unix seconds or None while it is open) of an operation."""
        row = self._connection.execute("SELECT body, ends FROM operations WHERE name = ?", (name,)).fetchone()
        return (json.loads(row[0]), row[1]) if row else None

    def put_operation(self, name: str, body: Json, ends: float | None) -> None:
        """Create or replace an operation."""
        self._connection.execute("INSERT OR REPLACE INTO operations VALUES (?, ?, ?)", (name, json.dumps(body), ends))

    def operations(self, prefix: str) -> list[str]:
        """Names of the operations that begin with a prefix, in order."""
        query = "SELECT name FROM operations WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name"
        return [row[0] for row in self._connection.execute(query, (prefix,))]

    def delete_operation(self, name: str) -> None:
        """Forget an operation."""
        self._connection.execute("DELETE FROM operations WHERE name = ?", (name,))

    def prune_operations(self, *, before: float, keep: int) -> None:
        """Delete the operations that ended before a time (Unix seconds), and all ended ones but the last `keep`."""
        self._connection.execute(
            "DELETE FROM operations WHERE ends < ? OR name IN "
            "(SELECT name FROM operations WHERE ends IS NOT NULL ORDER BY ends DESC LIMIT -1 OFFSET ?)",
            (before, keep),
        )

    def add_log(self, entries: list[tuple[float, Json]], keep: int = 50_000) -> None:
        """Append log entries (Unix seconds, entry); only the last `keep` are stored."""
        with self.transaction():
            rows = [(time, json.dumps(entry)) for time, entry in entries]
            self._connection.executemany("INSERT INTO log (time, entry) VALUES (?, ?)", rows)
            self._connection.execute("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?", (keep,))

    def has_log(self, time: float, insert_id: str) -> bool:
        """Whether the log has an entry of a time (Unix seconds) with an id."""
        query = (
            "SELECT 1 FROM log WHERE time = ? "
            "AND CASE WHEN json_valid(entry) THEN json_extract(entry, '$.insertId') END = ?"
        )
        return self._connection.execute(query, (time, insert_id)).fetchone() is not None

    def add_scrape(self, target: str, time: float, body: bytes) -> None:
        """Append a scrape of a target at a time (Unix seconds)."""
        self._connection.execute("INSERT INTO scrapes (target, time, body) VALUES (?, ?, ?)", (target, time, body))

    def scrapes(self) -> Iterator[tuple[float, bytes]]:
        """(Unix seconds, body) of every scrape in the order in which they were added."""
        yield from self._connection.execute("SELECT time, body FROM scrapes ORDER BY id")

    def delete_scrapes(self, target: str, times: Iterable[float]) -> None:
        """Delete the scrapes of a target at some times."""
        with self.transaction():
            rows = [(target, time) for time in times]
            self._connection.executemany("DELETE FROM scrapes WHERE target = ? AND time = ?", rows)

    def log_slice(
        self,
        *,
        newest_first: bool,
        after: tuple[float, int] | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 500,
    ) -> list[tuple[tuple[float, int], Json]]:
        """Entries of the log in order of time, at most `limit` of them.

        Args:
            newest_first: The order.
            after: (Unix seconds, id) of the entry before the first one.
            since: Earliest time of an entry in Unix seconds.
            until: Latest time of an entry in Unix seconds.
            limit: Number of entries at most.

        Returns:
            ((Unix seconds, id), entry) each.
        """
        order, beyond = ("DESC", "<") if newest_first else ("ASC", ">")
        terms = {
            f"(time, id) {beyond} (?, ?)": after or (),
            "time >= ?": _parameters(since),
            "time <= ?": _parameters(until),
        }
        where = " AND ".join(["1", *(term for term, values in terms.items() if values)])
        values = [value for parameters in terms.values() for value in parameters]
        rows = self._connection.execute(
            f"SELECT time, id, entry FROM log WHERE {where} ORDER BY time {order}, id {order} LIMIT ?",  # noqa: S608 - words from above
            (*values, limit),
        )
        return [((time, identifier), json.loads(entry)) for time, identifier, entry in rows]


def _successor(prefix: str) -> str | bytes:
    """The first text after all that begin with a prefix; if there is none bytes, which SQLite sorts after all texts."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return b""
    last = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if last == 0xD800 else last)  # UTF-8 has no surrogates


def _parameters(value: float | None) -> tuple[float, ...]:
    return () if value is None else (value,)


log = logging.getLogger(__name__)
_ROOM_SECONDS = 1.0  # between two attempts while the disk is full
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Not every file system reports "full" to SQLite: some only fail the write.
_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk has no room or accepts no more of this file."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE
    return isinstance(error, OSError) and error.errno in _FULL


def storage_full(root: Path) -> ApiError:
    """500: no part of the request was carried out.

    Args:
        root: The folder that cannot grow.
    """
    text = (
        f"localcloud's disk is full: {root} takes no more data, so nothing of this request was done. Free some space "
        "there, then send it again."
    )
    return ApiError("INTERNAL", text)


async def write_when_room(change: Callable[[], None]) -> None:
    """Make a change of the store as soon as the disk has room for it: the end of an operation must not be lost."""
    while True:
        try:
            change()
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            log.warning("a change waits for room on the disk")
            await asyncio.sleep(_ROOM_SECONDS)
        else:
            return
