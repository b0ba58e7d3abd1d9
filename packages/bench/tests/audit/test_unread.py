"""Statements of a file that the audit does not read are named, at every level of every format."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench_support.audit_clean import clean_case
from bench_support.writers.formats import FORMATS, steps_of, with_change
from bench_support.writers.requests import closed_load
from bezel_bench.audit import checks
from bezel_bench.audit.readers.claims import read_claims
from bezel_bench.audit.readers.detect import read
from bezel_bench.audit.runner import Audit, audit_files, judged_relations
from bezel_bench.commands.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES: dict[str, Any] = {
    "number": 12.5,
    "text": "a text",
    "list": [1, 2],
    "list of mappings": [{"x": 1}],
    "mapping": {"x": {"y": 2}},
    "truth": False,
}
CLAIM = {"id": "c", "metric": "throughput", "value": 1.5, "unit": "req/s", "users": 8}


def levels(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all mappings of a document."""
    if isinstance(value, dict):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from levels(part, (*path, name))


def with_surprise(mapping: dict[str, Any], value: Any) -> dict[str, Any]:
    return {**mapping, "surprise": value}


def without(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in mapping.items() if key != name}


def unread(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "file").write_text(text, encoding="utf-8")
    return read(folder / "file", "file").unread


@pytest.mark.slow
@pytest.mark.wide_cases("* detailed", "* yaml", "text-*", "list-*", "list of mappings-*", "truth-*")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("type_", VALUES)
def test_unknown_field_is_named_at_each_level_of_each_format(tmp_path: Path, type_: str, name: str) -> None:
    kind, value = FORMATS[name], VALUES[type_]
    document = kind.write(closed_load(3))
    before = unread(tmp_path, kind.text(document))
    for path in levels(document):
        changed = with_change(document, path, partial(with_surprise, value=value))
        fields = unread(tmp_path, kind.text(changed))
        settings = [each.removesuffix(" (settings)") for each in fields if each.endswith(" (settings)")]
        dotted = ".".join(step for step in path if isinstance(step, str)).removeprefix("benchmarks.")
        inside = any(dotted == each or dotted.startswith(f"{each}.") for each in settings)
        assert inside or [each for each in fields if "surprise" in each and each not in before], path


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_known_field_that_is_left_out_is_named_as_lacking(tmp_path: Path, name: str) -> None:
    """Without a core figure each relation that needs it is named, or another figure of the file stands for it."""
    kind = FORMATS[name]
    document = kind.write(closed_load(3))
    whole = audit(tmp_path, kind.text(document))
    judged = set(judged_relations(whole.sources[0]))
    for path in (path for paths in kind.places.values() for path in paths):
        *before, last = steps_of(path)
        changed = with_change(document, before, partial(without, name=last))
        result = audit(tmp_path, kind.text(changed))
        if not result.sources:
            assert "has no known format" in result.unreadable[0], path
            continue
        questions = " ".join(one.text for one in result.questions)
        left = judged - set(judged_relations(result.sources[0]))
        optional = (
            "sent/s x",
            "tokens x time per token",
            "requests/s x e2e = requests",
            "stated figures",
            "two counts",
            "duration > 0 s",  # without one there is none to be 0
        )
        assert all(relation in questions or relation.startswith(optional) for relation in left), (path, left)
        assert not result.findings


def audit(folder: Path, text: str) -> Audit:
    (folder / "file").write_text(text, encoding="utf-8")
    return audit_files([folder / "file"])


def test_fields_of_claims_are_named_where_nothing_reads_them(tmp_path: Path) -> None:
    read_fields = {
        **CLAIM,
        "kv_gib": 3,
        "kv_tokens": 10,
        "runs": [1.5],
        "measured_on": "L4",
        "same_file_as": "x",
        "e2e": 1.0,
    }
    document: dict[str, Any] = {"claims": [{**read_fields, "a": {"hardware": "l4", "users": 3}}]}
    assert not unread(tmp_path, json.dumps(document))
    side = {"hardware": "l4", "colour": "red"}
    document = {"about": "a note", "claims": [{**read_fields, "seed": "004", "a": side, "b": side}]}
    assert unread(tmp_path, json.dumps(document)) == ("about", "seed", "a.colour", "b.colour")
    assert unread(tmp_path, json.dumps([{**CLAIM, "colour": "red"}])) == ("colour",)


def test_each_field_that_a_check_reads_of_a_claim_is_known() -> None:
    """Every name in `fields.get(NAME)` of a check: an unknown one would be called not read."""
    sources = [file.read_text("utf-8") for file in Path(checks.__path__[0]).rglob("*.py")]
    names = {name for text in sources for name in re.findall(r"fields\.get\(\"(\w+)\"", text)}
    assert len(names) >= 8
    claim = {**CLAIM, **{name: CLAIM.get(name, 1) for name in names}}
    assert not read_claims([claim], "file", "").unread


def test_columns_of_a_table_are_named_where_nothing_reads_them(tmp_path: Path) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["users", "value", "unit", "colour", "p42_ms"], [8, 3.5, "req/s", "red", 7]])
    assert unread(tmp_path, out.getvalue()) == ("colour", "p42_ms")


def test_own_result_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    document = clean_case(3, "result").files[0].document
    document["surprise"] = 1
    path = tmp_path / "file"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert "surprise" in audit_files([path]).unreadable[0]


@pytest.mark.parametrize(
    "document",
    [
        # llama-bench -o json; trtllm-bench --report_json
        [{"build_commit": "b1", "model_type": "llama 8B Q4_0", "n_prompt": 512, "n_gen": 0, "avg_ts": 7100.0}],
        {"engine": {"model": "m"}, "request_info": {"num_requests": 8}, "performance": {"request_latency_ms": 3.0}},
    ],
)
def test_file_of_a_client_that_is_not_read_is_refused(tmp_path: Path, document: Any) -> None:
    (text,) = audit(tmp_path, json.dumps(document)).unreadable
    assert "the JSON has no known format" in text
    assert "vllm bench serve" in text


def test_what_is_not_read_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "claims.json"
    path.write_text(json.dumps([{**CLAIM, "colour": "red"}]), encoding="utf-8")
    assert main(["audit", str(path)]) == 0
    assert "not read of it: colour." in capsys.readouterr().out
    path.write_text(json.dumps([CLAIM]), encoding="utf-8")
    assert main(["audit", str(path)]) == 0
    assert "not read" not in capsys.readouterr().out
