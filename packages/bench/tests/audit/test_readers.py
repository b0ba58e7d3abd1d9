"""Files of other people: recognised by what is in them, refused with a reason, never half read."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_support.audit_clean import clean_case
from bezel_bench.audit import labels
from bezel_bench.audit.figure import figure, whole
from bezel_bench.audit.findings import SPECULATION, SUMS
from bezel_bench.audit.readers import detect
from bezel_bench.audit.runner import audit_files
from bezel_bench.audit.units import rate_of
from bezel_bench.commands.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FIXTURES = Path(__file__).parents[1] / "fixtures"
GRID = "context_tokens,users,value,unit,success_pct,status\n16,1,3.5,req/s,100,ok\n"
CLAIM = {"id": "c", "metric": "throughput", "value": 1.5, "unit": "req/s"}


def run(*arguments: object) -> int:
    return main(["audit", *map(str, arguments)])


@pytest.mark.parametrize(
    "kind",
    ["grid", "claims", "vllm", "vllm detailed", "vllm appended", "guidellm", "aiperf", "inference-perf", "result"],
)
def test_a_format_is_recognised_by_its_content_whatever_the_file_is_called(tmp_path: Path, kind: str) -> None:
    case = clean_case(3, kind)
    path = tmp_path / "measured.txt"
    path.write_text(case.files[0].text(), encoding="utf-8")
    source = detect.read(path, "measured.txt")
    first = {"grid": "CSV", "result": "bezel"}.get(kind, kind.split(maxsplit=1)[0])
    assert source.format.startswith(first)
    assert source.rows or source.claims


def test_what_a_real_vllm_wrote_is_read(tmp_path: Path) -> None:
    path = FIXTURES / "vllm" / "bench-serve-mtp-result-t1.json"
    (row,) = detect.read(path, path.name).rows
    assert (row.users, row.completed, row.generated_tokens, row.drafts) == (8, 60, 960, 900)
    assert not audit_files([path]).findings
    run_ = json.loads(path.read_text())
    (tmp_path / "sum.json").write_text(
        json.dumps(run_ | {"mean_tpot_ms": 15 * run_["mean_tpot_ms"], "mean_e2el_ms": 180})
    )
    assert SUMS in {one.kind for one in audit_files([tmp_path / "sum.json"]).findings}


def test_what_a_real_aiperf_wrote_is_read(tmp_path: Path) -> None:
    path = FIXTURES / "clients" / "aiperf-0.13.0.json"
    (row,) = detect.read(path, path.name).rows
    assert (row.users, row.completed, row.prompt_tokens, row.generated_tokens, row.planned) == (4, 20, 541, 320, 20)
    assert row.figures["ttft"].value == pytest.approx(0.020715, rel=1e-4), "milliseconds become seconds"
    assert not audit_files([path]).findings
    run_ = json.loads(path.read_text())
    (tmp_path / "sum.json").write_text(json.dumps(run_ | {"inter_token_latency": {"unit": "ms", "avg": 60.0}}))
    assert {one.kind for one in audit_files([tmp_path / "sum.json"]).findings} == {SUMS}


@pytest.mark.parametrize(("strategy", "users"), [({"type_": "synchronous"}, 1), ({"streams": 4}, 4), ({}, None)])
def test_guidellm_sends_one_request_at_a_time_where_it_says_synchronous(
    tmp_path: Path, strategy: dict[str, Any], users: int | None
) -> None:
    document = clean_case(3, "guidellm").files[0].document
    document["benchmarks"][0]["config"]["strategy"] = strategy
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert detect.read(tmp_path / "report.json", "report.json").rows[0].users == users


def test_a_stage_at_a_rate_has_its_rate_and_no_users(tmp_path: Path) -> None:
    document = clean_case(3, "inference-perf").files[0].document
    document["load_summary"] = {"count": 9, "requested_rate": 6.0, "achieved_rate": 6.1}
    (tmp_path / "stage_1_lifecycle_metrics.json").write_text(json.dumps(document))
    (row,) = detect.read(tmp_path / "stage_1_lifecycle_metrics.json", "stage").rows
    assert (row.users, row.rate, row.planned) == (None, 6.0, 9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ('{"claims": [', "the JSON is broken at line 1"),
        ('{"a": 1}', "the JSON has no known format"),
        ("[1, 2]", "the JSON has no known format"),
        ('{"claims": []}', "the JSON has no known format"),
        (json.dumps({"claims": [CLAIM, CLAIM]}), "several claims have the id c"),
        ('{"schema": "bezel.bench/99", "cells": []}', "bezel.bench/99"),
        ('{"schema": "bezel.bench/1"}', "manifest"),
        ("just a sentence", "has no column of users"),
        ("users,colour\n1,red\n", "has no column with a measured rate"),
        (GRID + "16,8,3.5\n", "line 3 has 3 fields, the header 6"),
        (GRID + "16,many,3.5,req/s,100,ok\n", "expected an integer as users, got 'many'"),
        (GRID.splitlines()[0], "the file has a header and no row"),
        (GRID + '16,"8,3.5,req/s,100,ok\n', "the CSV is invalid"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path: Path, text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad"
    path.write_text(text, encoding="utf-8")
    assert run(path) == 2
    captured = capsys.readouterr()
    assert reason in captured.err
    assert "Traceback" not in captured.err


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "binary").write_bytes(b"\x93NUMPY\xff\xfe")
    assert run(tmp_path / "binary", tmp_path / "missing", tmp_path) == 2
    captured = capsys.readouterr().err
    assert "it is not a text in UTF-8" in captured
    assert "No such file" in captured
    assert "Is a directory" in captured


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(detect.LARGEST_BYTES + 1)
    assert run(tmp_path / "huge.json") == 2
    assert "the limit is 134,217,728" in capsys.readouterr().err


def test_one_bad_file_does_not_keep_the_others_from_being_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "claims.json").write_text(json.dumps([{**CLAIM, "speculation": "mtp 3", "output_tokens": 1}]))
    assert run("--json", tmp_path / "bad.json", tmp_path / "claims.json") == 2
    report = json.loads(capsys.readouterr().out)
    assert [one["fault"] for one in report["findings"]] == [SPECULATION]
    assert "the JSON is broken" in report["unreadable"][0]


def test_strict_fails_where_something_is_found_and_only_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(GRID)
    bad.write_text(GRID.replace("3.5,req/s,100", "0.0,req/s,0"))
    assert [run("--strict", good), run(bad), run("--strict", bad)] == [0, 0, 1]
    output = capsys.readouterr().out
    assert "no findings" in output
    assert "failed cells dropped or reported as good (finding 16)" in output
    assert "Repair: " in output


def test_what_a_file_does_not_say_can_be_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("context_tokens,users,value,unit\n8192,64,9.5,req/s\n")
    assert run("--strict", path) == 0
    assert "no machine and no model of the catalogue" in " ".join(capsys.readouterr().out.split())
    assert run("--strict", "--machine", "L4", "--model", "12B fp8", path) == 1
    assert "on one nvidia-l4 with 242.0 TFLOP/s at most" in " ".join(capsys.readouterr().out.split())
    named = path.rename(tmp_path / "v6e8-e2b.csv")
    assert run("--strict", "--machine", "L4", "--model", "12B fp8", named) == 0, "what a file says itself wins"


@pytest.mark.parametrize("option", ["--machine", "--model"])
def test_a_machine_or_model_that_nobody_knows_is_refused(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(GRID)
    assert run(option, "h100", tmp_path / "a.csv") == 1
    assert f"{option} = h100\n   it is not in the catalogue" in capsys.readouterr().err


JUNK = (None, "", 0, -1, 1e308, "abc", [], {}, True, [1], "1-3", 10**30, "NaN", [[None]])


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:20]) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*before, key)
        yield from _places(part, (*before, key))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["claims", "vllm", "guidellm", "aiperf", "inference-perf", "result", "rich"])
def test_a_field_that_holds_anything_else_ends_in_no_traceback(tmp_path: Path, kind: str) -> None:
    for seed in range(5):
        dice = random.Random(seed)  # noqa: S311 - no secret
        case = clean_case(seed, kind)
        place = dice.choice(list(_places(case.files[0].document or case.files[0].rows)))
        around: Any = case.files[0].document or case.files[0].rows
        for key in place[:-1]:
            around = around[key]
        around[place[-1]] = dice.choice(JUNK) if case.files[0].document else str(dice.choice(JUNK))
        if not case.files[0].document and len(place) == 1:
            continue  # a row of a table has columns
        result = audit_files(case.write(tmp_path))
        assert result.sources or result.unreadable


def test_a_file_named_twice_is_no_copy_of_itself(tmp_path: Path) -> None:
    case = clean_case(5, "systems")
    paths = case.write(tmp_path)
    (tmp_path / "folder").mkdir()
    assert not audit_files([*paths, *paths, tmp_path / "folder" / ".." / paths[0].name]).findings
    shutil.copy(paths[0], tmp_path / "folder" / paths[1].name)
    assert audit_files([paths[0], tmp_path / "folder" / paths[1].name]).findings


@pytest.mark.parametrize(
    ("label", "machine"),
    [
        ("l4-12b-fp8_cloud-run", "nvidia-l4"),
        ("8 x L4", "8 x nvidia-l4"),
        ("l4x8", "8 x nvidia-l4"),
        ("RTX PRO 6000", "nvidia-rtx-pro-6000"),
        ("rtx6000-12b", "nvidia-rtx-pro-6000"),
        ("g2-standard-96", "g2-standard-96"),
        ("v6e1-12b_run1", "v6e-1"),
        ("TPU v6e-4", "v6e-4"),
        ("RTX 6000 Ada", None),
        ("v6e", None),
        ("H100", None),
        ("level4", None),
    ],
)
def test_a_label_names_the_catalogue_s_machine_or_none(label: str, machine: str | None) -> None:
    match = labels.machine_in(label)
    assert (match.id if match else None) == machine


@pytest.mark.parametrize(
    ("label", "shape"),
    [
        ("google/gemma-4-12B-it", "gemma-4-12b"),
        ("26B-A4B on L4", "gemma-4-26b-a4b"),
        ("gemma-4-E4B", "gemma-4-e4b"),
        ("mistral-nemo-12b", None),
        ("gemma-3-12b", None),
        ("12b and 31b", None),
        ("112b", None),
    ],
)
def test_a_label_names_the_catalogue_s_model_or_none(label: str, shape: str | None) -> None:
    match = labels.shape_in(label)
    assert (match.id if match else None) == shape


@pytest.mark.parametrize(
    ("unit", "rate"),
    [
        ("req/s", "requests_per_second"),
        ("generated tok/s", "output_tokens_per_second"),
        ("prompt tokens per second", "input_tokens_per_second"),
        ("tok/s", "tokens_per_second"),
        ("total tokens/s", "total_tokens_per_second"),
        ("ms", None),
    ],
)
def test_a_unit_names_its_rate(unit: str, rate: str | None) -> None:
    assert rate_of(unit) == rate


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 4))
def test_a_printed_figure_is_known_to_half_its_last_digit(number: int, digits: int) -> None:
    value = number / 10**digits
    parsed = figure(f"{value:.{digits}f}")
    assert parsed is not None
    assert parsed.low <= value <= parsed.high
    assert parsed.half == pytest.approx(0.5 * 10**-digits)


@pytest.mark.parametrize("value", ["", "n/a", "NaN", "inf", None, True, "-"])
def test_what_is_no_number_is_no_figure(value: object) -> None:
    assert figure(value) is None


def test_a_span_of_instances_is_its_upper_end() -> None:
    assert [whole("1-3"), whole("3"), whole("2.5"), whole(None)] == [3, 3, None, None]


def test_own_table_is_read_with_its_units_and_computed_prompt_tokens(tmp_path: Path) -> None:
    header: Sequence[str] = (
        "nature", "context_tokens", "users", "output_tokens", "prompts", "state", "requests_per_second [requests/s]",
        "input_tokens_per_second [tokens/s]", "prompt_tokens_per_second [tokens/s]", "ttft_mean [ms]",
    )  # fmt: skip
    path = tmp_path / "own.csv"
    path.write_text(f"{','.join(header)}\nsimulated,128,8,64,shared_prefix,ok,4.5,57.6,576.0,120.5\n")
    (row,) = detect.read(path, "own.csv").rows
    assert row.figures["input_tokens_per_second"].value == 57.6
    assert row.figures["ttft"].value == pytest.approx(0.1205)
    assert row.system.cache_study
    assert row.system.simulated
