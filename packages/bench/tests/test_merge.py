"""Parts of several machines as one load: on one clock, whole, and refused where they are not."""

from dataclasses import replace

import pytest

from bench_support.runs import MS, SECOND, failed_sample, good_sample, measurement
from bezel_base.errors import UserError
from bezel_bench.distributed.merge import merge
from bezel_bench.distributed.protocol import ClockOffset, Part, Plan, code, pack, unpack
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target

WALL = 1_800_000_000 * SECOND
LOAD = Load(Target("http://127.0.0.1:1", "m"), Closed(4), Stop(requests=8), PromptPlan(), workers=2)


def part(task, *samples, monotonic=0, off=0, width=20 * MS, **clock):
    """A task whose CLOCK_MONOTONIC was `monotonic` at WALL, and whose wall clock is `off` ahead of the truth."""
    bounds = {"drift": 0, "low": -off - width // 2, "high": -off + width // 2} | clock
    clock = ClockOffset(WALL + off, monotonic, **bounds)
    return Part(task, replace(measurement(list(samples)), began=monotonic), clock, {"python": "3.12"})


def test_instants_of_machines_that_booted_at_other_times_meet_on_one_clock():
    one = part(0, good_sample(0, 7 * SECOND), monotonic=5 * SECOND)
    two = part(1, good_sample(1, 902 * SECOND), monotonic=900 * SECOND)
    whole = merge([two, one], 2, WALL, 50 * SECOND).measured
    assert [sample.sent for sample in whole.samples] == [52 * SECOND, 52 * SECOND]
    assert whole.began == 50 * SECOND
    assert whole.samples[1].chunks[0] == whole.samples[1].first == 52 * SECOND + 100 * MS
    assert whole.ended == max(sample.done for sample in whole.samples)


def test_what_was_not_reached_stays_not_reached():
    whole = merge([part(0, failed_sample(0, SECOND, "refused"))], 1, WALL, 50 * SECOND).measured
    assert (whole.samples[0].first, whole.samples[0].last) == (0, 0)
    assert whole.samples[0].done > 50 * SECOND


def test_the_start_and_what_the_clocks_allow_are_reported():
    late = good_sample(1, SECOND + 3 * MS, planned=SECOND)
    whole = merge([part(0, good_sample(0, SECOND)), part(1, late, off=10 * MS, drift=2 * MS)], 2, WALL, 0)
    assert whole.skew.first_sends == 3 * MS
    assert whole.skew.clocks == 30 * MS
    assert whole.skew.drift == 2 * MS
    assert "2 tasks sent this load: first requests 3.00 ms apart, clocks at most 30 ms apart" in whole.notes[0]


@pytest.mark.parametrize(("off", "taken"), [(90 * MS, True), (-90 * MS, True), (200 * MS, False), (-200 * MS, False)])
def test_only_a_clock_that_is_off_for_certain_is_refused(off, taken):
    """One that may be right, within what is known of it, is accepted."""

    def merge_parts():
        return merge([part(0, good_sample(0, SECOND)), part(1, good_sample(1, SECOND), off=off)], 2, WALL, 0)

    if taken:
        assert len(merge_parts().measured.samples) == 2
    else:
        with pytest.raises(UserError, match="clock of task 1 is at least 190 ms off"):
            merge_parts()


def test_a_part_that_is_missing_or_there_twice_is_no_load():
    one = part(0, good_sample(0, SECOND))
    with pytest.raises(UserError, match=r"of 2 tasks \[1\] have no part"):
        merge([one], 2, WALL, 0)
    with pytest.raises(UserError, match="several parts"):
        merge([one, part(0, good_sample(1, SECOND))], 1, WALL, 0)


def test_a_request_that_two_tasks_sent_is_no_load():
    with pytest.raises(UserError, match="request 0 was sent by two tasks"):
        merge([part(0, good_sample(0, SECOND)), part(1, good_sample(0, SECOND))], 2, WALL, 0)


def test_the_merged_client_is_all_of_them_and_as_late_as_the_worst():
    parts = [part(task, good_sample(task, SECOND)) for task in (0, 1)]
    parts[0].measured.client = replace(parts[0].measured.client, connections=3, loop_lag_p99_ms=1.0)
    parts[1].measured.client = replace(parts[1].measured.client, connections=4, loop_lag_p99_ms=9.0)
    client = merge(parts, 2, WALL, 0).measured.client
    assert (client.workers, client.connections, client.loop_lag_p99_ms) == (2, 7, 9.0)


def test_samples_come_out_of_the_bucket_as_they_went_in():
    samples = [
        good_sample(3, SECOND),
        failed_sample(4, 2 * SECOND, "http_429", detail="slow down"),
        good_sample(5, SECOND, tokens=1),
    ]
    assert unpack(pack(samples)) == samples
    assert unpack(pack([])) == []


def test_part_survives_the_bucket_and_another_versions_is_refused():
    sent = replace(part(1, good_sample(1, SECOND)), notes=("a note",))
    packed = pack(sent.measured.samples)
    assert Part.of(sent.document(), packed) == sent
    with pytest.raises(UserError, match="another version"):
        Part.of(sent.document() | {"client": {"hands": 2}}, packed)
    with pytest.raises(UserError, match="another version"):
        Part.of(sent.document(), b"no archive")
    with pytest.raises(UserError, match="another version"):
        Part.of(sent.document(), packed[:10] + b"\xff" + packed[11:])  # no block of deflate


def test_digest_of_the_code_covers_its_sources_and_no_other_file(tmp_path):
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "sender.py").write_text("1")
    before = code(tmp_path)
    (tmp_path / "client" / ".sender.py.swp").write_text("2")
    (tmp_path / "client" / "sender.py~").write_text("2")
    assert code(tmp_path) == before
    for name in ("words.txt", "other.py"):
        (tmp_path / "client" / name).write_text("2")
        assert code(tmp_path) != before
        before = code(tmp_path)


def test_plan_survives_the_bucket_and_another_versions_is_refused():
    plan = Plan(LOAD, 60.0, code())
    assert Plan.of(plan.document()) == plan
    with pytest.raises(UserError, match="another version"):
        Plan.of({"load": plan.document()["load"]})
