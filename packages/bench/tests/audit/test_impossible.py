"""Numbers that cannot be ones, in every numeric field of every format: said as not read, and never a figure or a 0."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from bench_support.writers.formats import FORMATS, steps_of, with_change
from bench_support.writers.requests import closed_load
from bezel_bench.audit.figure import why_no_figure
from bezel_bench.audit.runner import Audit, audit_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMPOSSIBLE: tuple[Any, ...] = (-1.5, 1e30, math.nan, math.inf, "a text", True, [1.0])
# Formats of which every field gets every value: one of each reader. How a value is read is the same for all formats.
WHOLE = ("vllm", "llm-d 0.2")


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all numbers of a document; of a list of numbers the first one's."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from numbers(part, (*path, name))
    elif isinstance(value, list):
        for place, part in enumerate(value[:1]):
            yield from numbers(part, (*path, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    return with_change(document, path, lambda _: value)


def audit(folder: Path, text: str) -> Audit:
    (folder / "file").write_text(text, encoding="utf-8")
    return audit_files([folder / "file"])


def values_of(name: str, place: int) -> tuple[Any, ...]:
    """What the field at this place gets: all values in some formats, in the others one of them in turn."""
    if FORMATS[name].yaml:
        return IMPOSSIBLE[:1]  # YAML is slow to parse, and read like JSON
    if name in WHOLE:
        return IMPOSSIBLE
    return (IMPOSSIBLE[place % len(IMPOSSIBLE)],)


@pytest.mark.wide_except(*WHOLE)
@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_impossible_number_is_no_figure_in_any_field(tmp_path: Path, name: str) -> None:
    """A clean load of which one number is unknown has no finding, and the number is named."""
    kind = FORMATS[name]
    document = kind.write(closed_load(3))
    before = audit(tmp_path, kind.text(document))
    assert before.findings == ()
    assert not before.sources[0].doubts
    tried = 0
    for place, path in enumerate(numbers(document)):
        for value in values_of(name, place):
            tried += 1
            result = audit(tmp_path, kind.text(with_value(document, path, value)))
            if not result.sources:
                assert result.unreadable, (path, value)
                continue
            (source,) = result.sources
            assert result.findings == (), (path, value)
            # A field that nothing reads is named as such, whatever its value.
            unread = set(before.sources[0].unread)
            assert source.doubts or unread or set(source.unread) - unread, (path, value)
    assert tried >= 28 * len(values_of(name, 0))


@pytest.mark.slow
@pytest.mark.wide_except(*(f"*-{name}" for name in WHOLE))
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [0, None])
def test_zero_or_nothing_in_any_field_is_not_an_error(tmp_path: Path, name: str, value: int | None) -> None:
    kind = FORMATS[name]
    document = kind.write(closed_load(3))
    # Of a format that is not of the whole ones each field gets one of both values.
    begin, step = (0, 5) if kind.yaml else (0, 1) if name in WHOLE else (int(value is None), 2)
    for path in list(numbers(document))[begin::step]:
        result = audit(tmp_path, kind.text(with_value(document, path, value)))
        assert result.sources or result.unreadable, path
        if value is None and result.sources:
            assert not [one for one in result.findings if " 0 " in one.arithmetic], path


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kind in FORMATS.items() if "duration" in kind.places])
def test_completed_requests_in_no_time_are_a_contradiction(tmp_path: Path, name: str) -> None:
    kind = FORMATS[name]
    document = kind.write(closed_load(3))
    path = steps_of(kind.places["duration"][0])
    path = next(one for one in numbers(document) if one[: len(path)] == path)
    result = audit(tmp_path, kind.text(with_value(document, path, 0)))
    assert any("completed requests in 0 s" in one.arithmetic for one in result.findings)
    assert not audit(tmp_path, kind.text(document)).findings


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("completed", 1e30, "completed was not read: 1e+30 is beyond any count"),
        ("completed", -3, "completed was not read: -3 is below 0"),
        ("completed", 191.5, "completed was not read: expected a whole number, got 191.5"),
        ("duration", "soon", "duration was not read: expected a number, got soon"),
        ("duration", True, "duration was not read: expected a number, got True"),
        ("request_throughput", math.nan, "request_throughput was not read: expected a number, got nan"),
        ("mean_ttft_ms", -7.0, "mean_ttft_ms was not read: -7 is below 0"),
        ("total_output_tokens", [1], "total_output_tokens was not read: expected a number, got a value of 1 parts"),
    ],
)
def test_file_of_vllm_says_what_it_could_not_read(tmp_path: Path, field: str, value: Any, text: str) -> None:
    document = FORMATS["vllm"].write(closed_load(3))
    result = audit(tmp_path, json.dumps(with_value(document, (field,), value)))
    assert text in [one.text for one in result.questions]
    assert "0 succeeded" not in str(result.findings)
    assert not result.findings


@pytest.mark.parametrize("value", [0, 0.0, 12, 3.5, "66.4 req/s", "1,024", None, ""])
def test_number_that_can_be_one_is_no_doubt(value: Any) -> None:
    assert why_no_figure(value) is None
