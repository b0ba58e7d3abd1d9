"""Keys and counts in step with the door's bucket, as requests come: no timer runs between them.

An instance of Cloud Run has its CPU only while it has requests. So each request looks how old the keys are: above
`FRESH_SECONDS` they are read again beside it, above `OLDEST_SECONDS` before it is admitted. Behind the keys the same
exchange writes this instance's counts and reads the others', for which the first request alone waits: they are several
calls, and may take longer. Where the bucket cannot be read the last keys hold for `OUTAGE_SECONDS`, and then no request
is admitted.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

from bezel_door.accounts.ledger import Ledger
from bezel_door.google.metadata import GoogleError
from bezel_door.key_file import KEY_OBJECT, Key, KeyFileError, read_keys
from bezel_door.usage_file import UsageFile, UsageFileError, read_usage, usage_folder, usage_object, write_usage

FRESH_SECONDS: Final = 5.0
"""Age above which the keys are read again, beside the requests; also the least time between two exchanges."""
OLDEST_SECONDS: Final = 9.0
"""Age above which a request waits for the keys: a revocation holds within 10 s."""
OUTAGE_SECONDS: Final = 300.0
"""Age above which no key is admitted, while the bucket cannot be read."""
_RETRY_SECONDS: Final = 2.0
_SETTLED_SECONDS: Final = 1.0  # Cloud Storage's bound of writes to one object
_FIRST_DAY: Final = date(1970, 1, 1)
_LIMITS: Final = ("requests_per_minute", "tokens_per_minute", "tokens_per_day")


class KeysUnavailableError(Exception):
    """The keys could not be read for too long."""


class Objects(Protocol):
    """Objects of the door's bucket: `bezel_door.google.bucket.Bucket`."""

    def read(self, name: str, generation: str = "") -> tuple[str, bytes] | None:
        """Generation and content of an object; None where it has this generation."""

    def generations(self, prefix: str) -> dict[str, str]:
        """Generations by name."""

    def write(self, name: str, content: bytes) -> None:
        """Write an object."""

    def close(self) -> None:
        """Close the connection."""


class BucketSync:
    """The keys of the door, and the exchange of counts.

    Attributes:
        keys: The keys as they were last read.
    """

    def __init__(
        self,
        key_objects: Objects,
        count_objects: Objects,
        ledger: Ledger,
        instance: str,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read nothing yet.

        Args:
            key_objects: The bucket, for the keys.
            count_objects: The bucket by another connection, for the counts.
            ledger: Counts of this instance.
            instance: Name of this instance, of its object.
            report: Receives the reason of a failed exchange.
            clock: Seconds since 1970.
        """
        self.keys: Mapping[str, Key] = {}
        self._key_objects, self._count_objects = key_objects, count_objects
        self._ledger, self._instance = ledger, instance
        self._report, self._clock = report, clock
        self._generation = ""
        self._others: dict[str, tuple[str, UsageFile]] = {}
        self._read_at: float | None = None
        self._failed_at = self._failed_since = self._began_at = -math.inf
        self._has_counts = False
        self._reading: asyncio.Task[bool] | None = None
        self._exchange: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Make sure that the keys are those of the last 10 s.

        Raises:
            KeysUnavailableError: The bucket could not be read for `OUTAGE_SECONDS`, or never.
        """
        age, now = self._age(), self._clock()
        if age <= FRESH_SECONDS:
            return
        has_just_failed = self._has_just_failed(now)
        if age > OLDEST_SECONDS and not (has_just_failed if age > OUTAGE_SECONDS else self._is_failing()):
            # Twice: an exchange that stood still with the CPU may have failed since.
            for _ in range(2):
                # Shielded: a request that is cancelled must not cancel what others wait for.
                exchange = self._exchange or self._start()
                await asyncio.shield(self._reading or self._read() if self._has_counts else exchange)
                if self._age() <= OLDEST_SECONDS or self._is_failing():
                    break
        elif self._exchange is None and not has_just_failed:
            self._start()
        if self._age() > OUTAGE_SECONDS:
            raise KeysUnavailableError

    def keep_up(self) -> None:
        """Exchange counts beside a request that takes longer."""
        if self._exchange is None and self._age() > FRESH_SECONDS and not self._has_just_failed(self._clock()):
            self._start()

    async def settle(self) -> None:
        """Write what was counted since the last exchange, for a reader of the counts: at most once a second."""
        if self._exchange is not None:
            await asyncio.shield(self._exchange)
        if self._ledger.has_changes and not self._has_just_failed(self._clock()):
            await asyncio.sleep(min(_SETTLED_SECONDS, max(0.0, self._began_at + _SETTLED_SECONDS - self._clock())))
            await asyncio.shield(self._exchange or self._start(reads_keys=False))

    async def publish(self) -> None:
        """Write the counts of this instance now, at its end."""
        if self._exchange is not None:
            await asyncio.shield(self._exchange)
        await self._start(reads_keys=False)

    def _age(self) -> float:
        """Seconds since the keys were read; a clock that was set back makes them old."""
        if self._read_at is None:
            return OUTAGE_SECONDS + 1
        age = self._clock() - self._read_at
        return age if age >= 0 else OLDEST_SECONDS + 1

    def _has_just_failed(self, now: float) -> bool:
        return 0 <= now - self._failed_at < _RETRY_SECONDS

    def _is_failing(self) -> bool:
        """Whether the bucket could not be read just now: then requests do not wait for it."""
        return 0 <= self._clock() - self._failed_since <= OLDEST_SECONDS

    def _start(self, *, reads_keys: bool = True) -> asyncio.Task[None]:
        self._exchange = exchange = asyncio.create_task(self._run(reads_keys=reads_keys))
        exchange.add_done_callback(self._end)
        return exchange

    def _end(self, _: asyncio.Task[None]) -> None:
        self._exchange = None

    def _read(self) -> asyncio.Task[bool]:
        self._reading = reading = asyncio.create_task(self._run_reading())
        reading.add_done_callback(self._end_reading)
        return reading

    def _end_reading(self, _: asyncio.Task[bool]) -> None:
        self._reading = None

    async def _run_reading(self) -> bool:
        """Read the keys; False where they cannot be read."""
        began = self._clock()
        try:
            await asyncio.to_thread(self._read_keys)
        except (GoogleError, KeyFileError) as error:
            self._failed_at, self._failed_since = self._clock(), began
            self._report(f"the keys cannot be read: {error}")
            return False
        self._read_at, self._failed_since = began, -math.inf
        return True

    async def _run(self, *, reads_keys: bool) -> None:
        if reads_keys and not await asyncio.shield(self._reading or self._read()):
            return
        began = self._began_at = self._clock()
        files = self._ledger.take_changes()
        try:
            await asyncio.to_thread(self._exchange_counts, files, began)
        except GoogleError as error:
            self._ledger.keep_changes(day for day, _ in files)
            self._report(f"counts cannot be exchanged: {error}")
            return
        finally:
            self._has_counts = True
        self._ledger.set_others((_day_number(name), usage) for name, (_, usage) in self._others.items())

    def _read_keys(self) -> None:
        """Read the keys, in a thread.

        Raises:
            GoogleError: They cannot be read.
            KeyFileError: The object is no file of keys.
        """
        change = self._key_objects.read(KEY_OBJECT, self._generation)
        self._key_objects.close()
        if change is not None:
            generation, content = change
            keys = read_keys(content) if generation != "0" else {}
            self.keys, self._generation = keys, generation

    def _exchange_counts(self, files: list[tuple[int, UsageFile]], now: float) -> None:
        """Write these counts and read the others', in a thread.

        Raises:
            GoogleError: A call failed.
        """
        for day, usage in files:
            self._count_objects.write(usage_object(_date(day), self._instance), write_usage(usage))
        if any(getattr(key, limit) is not None for key in self.keys.values() for limit in _LIMITS):
            self._read_others(datetime.fromtimestamp(now, UTC).date())
        self._count_objects.close()

    def _read_others(self, today: date) -> None:
        this_object = usage_object(today, self._instance)
        listed = self._count_objects.generations(usage_folder(today))
        generations = {name: generation for name, generation in listed.items() if name != this_object}
        kept = {name: read for name, read in self._others.items() if generations.get(name) == read[0]}
        for name, generation in generations.items():
            if name in kept or not name.endswith(".json"):
                continue
            change = self._count_objects.read(name)
            try:
                kept[name] = (generation, read_usage(change[1] if change else b""))
            except UsageFileError as error:
                self._report(f"{name} is left out of the counts: {error}")
        self._others = kept


def _date(day: int) -> date:
    return _FIRST_DAY + timedelta(days=day)


def _day_number(name: str) -> int:
    return (date.fromisoformat(name.split("/")[1]) - _FIRST_DAY).days
