"""Faults that may be ordered, and the requests that they strike: by count and by pattern, never by chance."""

import json
from pathlib import Path

import pytest

from bezel_localcloud.faults.kinds import KINDS, FaultError, parse_pairs, parse_parameters, table
from bezel_localcloud.faults.registry import Faults


def test_every_kind_can_be_put_on_with_its_defaults(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    for kind in KINDS:
        assert faults.add(kind, {}).values == parse_parameters(kind, {})
    assert [fault.kind for fault in faults.all()] == list(KINDS)
    assert [row["kind"] for row in table()] == list(KINDS)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("quota", {}, "fault = quota\n   is not a kind of fault, so nothing was changed."),
        ("quota", {}, "quota-exceeded"),
        (
            "server-errors",
            {"status": "200"},
            "status = 200\n   is not an integer of at least 400 and at most 599",
        ),
        ("server-errors", {"status": "x"}, "status = x\n   is not an integer"),
        ("server-errors", {"at": "front"}, "at = front\n   is not one of api, service, token, so nothing was changed."),
        (
            "server-errors",
            {"nonsense": "1"},
            "Repair: choose one of its parameters: status, at, method",
        ),
        (
            "never-healthy",
            {"seconds": "1"},
            "is not a parameter of never-healthy, so nothing was changed.",
        ),
        (
            "slow-start",
            {"factor": "nan"},
            "Repair: use a finite number of at least 1, e.g. factor=20.0.",
        ),
        ("slow-start", ["factor"], "is not an object, so nothing was changed."),
        ("server-errors", {"status": "200", "at": "front"}, "2 problems."),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(tmp_path: Path, kind: str, parameters: object, message: str) -> None:
    faults = Faults(tmp_path)
    with pytest.raises(FaultError) as caught:
        faults.add(kind, parameters)
    assert message in str(caught.value)
    assert faults.all() == []


def test_words_without_a_value_are_no_parameters() -> None:
    assert parse_pairs(["path=/a=b", "count=3"]) == {"path": "/a=b", "count": "3"}
    with pytest.raises(FaultError, match=r"(?s)1. count\n.*write count=VALUE.*2. after\n"):
        parse_pairs(["count", "at=api", "after"])


def test_the_next_requests_that_match_are_struck_and_no_others(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    faults.add("server-errors", {"path": "/run/*", "method": "GET", "after": 1, "count": 2})

    def strikes(method: str, path: str, at: str = "api") -> bool:
        return bool(faults.strike(at, method, path))

    assert not strikes("GET", "/run/a")  # the one that passes before
    assert not strikes("POST", "/run/a")
    assert not strikes("GET", "/storage/a")
    assert not strikes("GET", "/run/a", "service")
    assert [strikes("GET", "/run/b") for _ in range(3)] == [True, True, False]
    assert faults.all() == []


def test_a_fault_without_a_count_lasts_until_it_is_cleared(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    faults.add("rate-limited", {"count": 0})
    assert all(faults.strike("api", "GET", "/x") for _ in range(5))
    assert faults.clear("rate-limited") == ["rate-limited"]
    assert not faults.strike("api", "GET", "/x")
    with pytest.raises(FaultError, match="is not active, so there is nothing to clear"):
        faults.clear("rate-limited")
    assert faults.clear() == []


def test_what_is_on_outlives_a_restart_with_its_count(tmp_path: Path) -> None:
    first = Faults(tmp_path)
    first.add("server-errors", {"count": 2})
    first.add("never-healthy", {})
    assert first.strike("api", "GET", "/x")
    second = Faults(tmp_path)
    assert second.all() == first.all()
    assert [bool(second.strike("api", "GET", "/x")) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("content", ["", "{}", "[1]", '[{"kind": "of another version", "parameters": {}}]'])
def test_a_file_that_says_nothing_known_puts_nothing_on(tmp_path: Path, content: str) -> None:
    (tmp_path / "faults.json").write_text(content)
    assert Faults(tmp_path).all() == []


def test_containers_get_the_faults_that_are_theirs_and_no_others(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    assert json.loads(faults.container_file.read_text()) == []
    faults.add("crash-loop", {"after_seconds": "0.5"})
    written = faults.container_file.stat().st_mtime_ns
    faults.add("server-errors", {})
    assert json.loads(faults.container_file.read_text()) == [{"kind": "crash-loop", "after_seconds": 0.5}]
    assert faults.container_file.stat().st_mtime_ns == written
    faults.clear()
    assert json.loads(faults.container_file.read_text()) == []


def test_operations_that_are_struck_stay_so_until_the_fault_is_cleared(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    faults.add("operation-never-ends", {"after": 1})
    kinds = [faults.strike_operation(api) for api in ("artifactregistry", "run", "run", "run")]
    assert kinds == ["", "", "operation-never-ends", ""]
    assert faults.find("operation-never-ends") is not None
