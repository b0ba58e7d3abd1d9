"""The document of a benchmark: what it refuses to hold, and that nothing is lost on the way through a file."""

import json
import math
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from bezel_bench.result.document import Cell, Result, ResultError, load, save
from bezel_bench.result.records import Client, Distribution, Histogram, Machine, Manifest, Metric

NOW = datetime(2026, 11, 22, 12, 0, 0, 123456, tzinfo=UTC)


def cell(name: str = "c16-u8", **fields: object) -> Cell:
    defaults = {
        "context_tokens": 16,
        "users": 8,
        "output_tokens": 4,
        "pattern": "closed",
        "prompts": "unique",
        "state": "ok",
    }
    return Cell.model_validate({"id": name, **defaults, **fields})


def result(*cells: Cell, **fields: object) -> Result:
    machine = Machine(cores=2, cpu="test", memory_bytes=None, kernel="6.1")
    client = Client(bezel="0.1.0", python="3.11", machine=machine, workers=1, tls=False)
    manifest = Manifest(title="t", url="http://127.0.0.1:1", model="m", client=client, started_at=NOW, seed=1)
    return Result.model_validate({"kind": "run", "nature": "measured", "manifest": manifest, "cells": cells, **fields})


def test_a_result_comes_out_of_a_file_as_it_went_in(tmp_path):
    figure = Metric(value=0.1 + 0.2, unit="ms", low=0.1, high=1 / 3, n=3, confidence=0.95, how="t over 3 repeats")
    spread = Distribution(
        unit="ms", n=3, mean=2.0, min=1.0, max=3.0, p50=2.0, p90=None, p95=None, p99=None, p999=None,
        histogram=Histogram(edges=[1.0, 2.0, 3.0], counts=[1, 2]),
    )  # fmt: skip
    whole = result(cell(metrics={"ttft_p50": figure}, distributions={"ttft": spread}, started_at=NOW, requests=3))

    save(whole, tmp_path / "r.json")

    assert load(tmp_path / "r.json") == whole
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "bezel.bench/1"
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_figure_is_a_number_or_null(number):
    with pytest.raises(ValidationError, match="finite"):
        Metric(value=number, unit="ms")


@pytest.mark.parametrize("fields", [{"value": None}, {"value": 1.0, "why": "no usage"}])
def test_a_figure_that_is_null_says_why_and_no_other_does(fields):
    with pytest.raises(ValidationError, match="needs a value, or the reason"):
        Metric(unit="ms", **fields)
    assert Metric(value=None, unit="ms", why="no usage").value is None


@pytest.mark.parametrize("fields", [{"state": "failed"}, {"state": "ok", "reason": "because"}])
def test_a_cell_that_is_not_ok_says_why(fields):
    with pytest.raises(ValidationError, match="needs a reason"):
        cell(**fields)
    assert cell(state="infeasible", reason="2048 tokens > max_model_len 1024").metrics == {}


def test_two_cells_of_one_id_are_refused():
    with pytest.raises(ValidationError, match="cells with one id: c16-u8"):
        result(cell(), cell())
    assert len(result(cell(), cell("c16-u8-r1")).cells) == 2


def test_a_variant_is_described():
    with pytest.raises(ValidationError, match="not described: spec_tokens=3"):
        result(cell(variant="spec_tokens=3"))
    assert result(cell(variant="spec_tokens=3"), variants={"spec_tokens=3": {}}).cells[0].variant == "spec_tokens=3"


def test_another_version_is_named_with_the_repair(tmp_path):
    text = result(cell()).as_json().replace("bezel.bench/1", "bezel.bench/9")
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ResultError, match=r"(?s)schema of .* = bezel.bench/9.*reads .*measure again"):
        load(tmp_path / "r.json")


def test_what_is_no_result_is_reported_with_every_fault(tmp_path):
    (tmp_path / "r.json").write_text(result(cell()).as_json().replace('"users": 8', '"users": -8, "uzers": 8'))
    with pytest.raises(ResultError, match=r"(?s)cells.0.users: .*cells.0.uzers: "):
        load(tmp_path / "r.json")
    with pytest.raises(ResultError, match="No such file"):
        load(tmp_path / "absent.json")
