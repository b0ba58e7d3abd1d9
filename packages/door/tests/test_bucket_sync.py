"""Keys and counts in step with the bucket: when they are read, what holds while they cannot be, what others know."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from bezel_door.accounts.bucket_sync import BucketSync, KeysUnavailableError
from bezel_door.accounts.ledger import Ledger, LimitPassed
from bezel_door.calls.token_use import Tokens
from bezel_door.google.metadata import GoogleError
from bezel_door.key_file import Key, write_keys
from bezel_door.usage_file import read_usage

ID = "abcdefgh"
KEY = Key("0" * 64, "", datetime(2026, 11, 29, tzinfo=UTC), tokens_per_day=100)
NOW = datetime(2026, 11, 29, 8, 15, tzinfo=UTC).timestamp()


class Objects:
    """A bucket in memory, which several instances share."""

    def __init__(self):
        self.contents, self.calls, self.is_down, self.number = {}, [], False, 0

    def put(self, name, content):
        self.number += 1
        self.contents[name] = (str(self.number), content)

    def _call(self, *call):
        self.calls.append(call)
        if self.is_down:
            raise GoogleError("down")

    def read(self, name, generation=""):
        self._call("read", name)
        present, content = self.contents.get(name, ("0", b""))
        return None if generation == present else (present, content)

    def generations(self, prefix):
        self._call("list", prefix)
        return {name: generation for name, (generation, _) in self.contents.items() if name.startswith(prefix)}

    def write(self, name, content):
        self._call("write", name)
        self.put(name, content)

    def generations_fail(self):
        raise GoogleError("denied")

    def close(self):
        pass


class Instance:
    """One instance of the door, with a clock that the test sets."""

    def __init__(self, objects, name="one"):
        self.now, self.ledger, self.reports = NOW, Ledger(), []
        self.sync = BucketSync(objects, objects, self.ledger, name, self.reports.append, lambda: self.now)

    async def after(self, seconds):
        self.now += seconds
        await self.sync.refresh()
        if self.sync._exchange:
            await self.sync._exchange

    def use(self, tokens):
        charge = self.ledger.begin(ID, KEY, 0, self.now)
        self.ledger.end(charge, Tokens(tokens), self.now, has_failed=False)


def bucket(**keys):
    objects = Objects()
    objects.put("keys.json", write_keys({ID: KEY} | keys))
    return objects


def test_keys_are_read_again_when_they_are_old_and_not_before():
    async def steps():
        objects, ages = bucket(), []
        one = Instance(objects)
        await one.after(0)
        for seconds in (4, 2, 4, 10):
            before = len(objects.calls)
            await one.after(seconds)
            ages.append(len(objects.calls) > before)
        return ages, one.sync.keys

    assert asyncio.run(steps()) == ([False, True, False, True], {ID: KEY})


def test_an_old_state_is_read_before_the_request_is_admitted():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.sync.refresh()
        objects.put("keys.json", write_keys({}))
        one.now += 6
        await one.sync.refresh()
        beside = dict(one.sync.keys)
        await one.sync._exchange
        objects.put("keys.json", write_keys({ID: KEY}))
        one.now += 10
        await one.sync.refresh()
        return beside, one.sync.keys

    assert asyncio.run(steps()) == ({ID: KEY}, {ID: KEY})


def test_the_last_keys_hold_for_a_while_without_the_bucket():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        objects.is_down = True
        await one.after(200)
        kept = dict(one.sync.keys)
        with pytest.raises(KeysUnavailableError):
            await one.after(101)
        objects.is_down = False
        await one.after(3)
        return kept, len(one.reports) >= 2

    assert asyncio.run(steps()) == ({ID: KEY}, True)


def test_nothing_is_admitted_before_the_keys_were_read_once():
    async def steps():
        objects = bucket()
        objects.is_down = True
        one = Instance(objects)
        with pytest.raises(KeysUnavailableError):
            await one.after(0)
        objects.is_down = False
        objects.put("keys.json", b"{}")
        with pytest.raises(KeysUnavailableError):
            await one.after(3)
        del objects.contents["keys.json"]
        await one.after(3)
        return one.sync.keys

    assert asyncio.run(steps()) == {}


def test_an_instance_knows_what_another_and_its_predecessor_used():
    async def steps():
        objects = bucket()
        one, two = Instance(objects, "one"), Instance(objects, "two")
        await one.after(0)
        one.use(60)
        await one.sync.publish()
        await two.after(6)
        two.use(40)
        await two.sync.publish()
        await one.after(12)
        after_restart = Instance(objects, "three")
        await after_restart.after(12)
        return [each.ledger.begin(ID, KEY, 0, each.now) for each in (one, two, after_restart)]

    passed = asyncio.run(steps())
    assert all(isinstance(each, LimitPassed) and each.limit == "tokens_per_day" for each in passed)


def test_counts_are_not_read_where_no_key_has_a_limit():
    async def steps():
        objects = bucket(**{ID: Key("0" * 64, "", KEY.created)})
        one = Instance(objects)
        await one.after(0)
        one.use(5)
        await one.after(6)
        return [call for call, _ in objects.calls]

    assert asyncio.run(steps()) == ["read", "read", "write"]


def test_a_file_of_use_that_cannot_be_read_is_left_out():
    async def steps():
        objects = bucket()
        objects.put("usage/2026-11-29/other.json", b"{}")
        one = Instance(objects)
        await one.after(0)
        return one.reports, one.sync.keys

    reports, keys = asyncio.run(steps())
    assert "other.json is left out" in reports[0]
    assert keys == {ID: KEY}


def test_an_exchange_that_stood_still_is_made_again_at_once():
    """The CPU stops between requests: a call that was under way has failed when it runs again."""

    async def steps():
        objects, may_fail = bucket(), threading.Event()
        one = Instance(objects)
        await one.after(0)
        read = objects.read

        def read_late(*_):
            may_fail.wait(60)
            objects.read = read
            raise GoogleError("down")

        objects.read = read_late
        one.now += 6
        one.sync.keep_up()
        for _ in range(2):  # the exchange begins, then its reading
            await asyncio.sleep(0)
        one.now += 100
        objects.put("keys.json", write_keys({}))
        may_fail.set()
        await one.sync.refresh()
        return one.sync.keys

    assert asyncio.run(steps()) == {}


def test_requests_do_not_wait_for_counts_that_take_long():
    async def steps():
        objects, is_listed, may_list = bucket(), threading.Event(), threading.Event()
        one = Instance(objects)
        await one.after(0)
        generations = objects.generations

        def generations_late(prefix):
            is_listed.set()
            may_list.wait(60)
            return generations(prefix)

        objects.generations = generations_late
        one.now += 6
        await one.sync.refresh()
        await asyncio.to_thread(is_listed.wait, 30)
        objects.put("keys.json", write_keys({}))
        one.now += 10
        await one.sync.refresh()
        is_counting = one.sync._exchange is not None
        may_list.set()
        await one.sync._exchange
        return is_counting, one.sync.keys, one.reports

    assert asyncio.run(steps()) == (True, {}, [])


def test_counts_of_an_instance_that_ends_are_written_without_the_keys():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        objects.put("keys.json", b"{")
        one.use(5)
        await one.sync.publish()
        return "usage/2026-11-29/one.json" in objects.contents

    assert asyncio.run(steps())


def test_requests_do_not_wait_for_a_bucket_that_failed_just_now():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        objects.is_down = True
        await one.after(20)
        calls = len(objects.calls)
        one.now += 1
        await one.sync.refresh()
        return len(objects.calls) - calls, one.sync.keys

    assert asyncio.run(steps()) == (0, {ID: KEY})


def test_a_reader_of_counts_gets_those_of_the_last_seconds_at_once():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        await one.sync.settle()
        before = [call for call, _ in objects.calls]
        one.use(5)
        one.now += 2
        await one.sync.settle()
        return before, read_usage(objects.contents["usage/2026-11-29/one.json"][1]).keys[ID].prompt_tokens

    assert asyncio.run(steps()) == (["read", "list"], 5)


def test_a_reader_of_counts_does_not_wait_for_a_bucket_that_failed():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        one.use(5)
        objects.is_down = True
        await one.after(6)
        one.now += 1
        calls = len(objects.calls)
        await one.sync.settle()
        return len(objects.calls) - calls

    assert asyncio.run(steps()) == 0


def test_a_long_request_does_not_ask_a_failed_bucket_at_each_event():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        objects.is_down = True
        one.now += 6
        for _ in range(50):
            one.sync.keep_up()
            await (one.sync._exchange or asyncio.sleep(0))
        failed = len(one.reports)
        objects.is_down = False
        one.now += 3
        one.sync.keep_up()
        await one.sync._exchange
        return failed, len(one.reports)

    assert asyncio.run(steps()) == (1, 1)


def test_keys_stay_fresh_where_only_the_counts_cannot_be_written():
    async def steps():
        objects = bucket()
        one = Instance(objects)
        await one.after(0)
        write, objects.write = objects.write, lambda *_: objects.generations_fail()
        one.use(5)
        for _ in range(60):
            await one.after(6)
        objects.write = write
        await one.after(6)
        return one.sync.keys, "usage/2026-11-29/one.json" in objects.contents, "counts cannot" in one.reports[0]

    assert asyncio.run(steps()) == ({ID: KEY}, True, True)
