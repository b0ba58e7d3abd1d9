"""The documents of figures and checks say what the code does; the schema is the one that results keep to."""

import json
import shlex
from datetime import UTC, datetime
from typing import get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError

from bezel_bench.commands.like.translate import show_like
from bezel_bench.metrics import saturation
from bezel_bench.result import cell_status, failures
from bezel_bench.result.document import Cell, Result, State
from bezel_bench.result.records import Client, Machine, Manifest, Metric
from bezel_bench.validity import load_checks, server_checks
from tests.support.docs.markdown import ROOT, between, blocks
from tools.docs.benchmark import client_tables, schema, tables

METRICS = ROOT / "docs" / "metrics.md"
SCHEMA = json.loads((ROOT / "docs" / "bench-result.schema.json").read_text(encoding="utf-8"))
REPAIR = "run `python -m tools.docs.benchmark --write`"


def test_the_tables_of_figures_are_their_definitions() -> None:
    assert between(METRICS, "made by: .venv/bin/python -m tools.docs.benchmark") == tables(), REPAIR


def test_options_of_other_clients_are_those_of_the_table() -> None:
    document = ROOT / "docs" / "other-clients.md"
    assert between(document, "made by: .venv/bin/python -m tools.docs.benchmark") == client_tables(), REPAIR
    lines = [line for text in blocks(document, "sh") for line in text.splitlines()]
    assert len(lines) == 3
    for line in lines:
        *_, option, shown = shlex.split(line)
        assert option == "--like"
        assert "unknown" not in show_like("bezel bench run", shown)


@pytest.mark.slow
def test_the_schema_is_the_results() -> None:
    assert json.loads(schema()) == SCHEMA, REPAIR
    Draft202012Validator.check_schema(SCHEMA)


def a_result() -> dict[str, object]:
    machine = Machine(cores=2, cpu="test", memory_bytes=None, kernel="6.1")
    client = Client(bezel="0.1.0", python="3.11", machine=machine, workers=1, tls=False)
    now = datetime(2026, 11, 22, tzinfo=UTC)
    manifest = Manifest(title="t", url="http://127.0.0.1:1", model="m", client=client, started_at=now, seed=1)
    unknown = Metric(value=None, unit="ms", why="answers of one token have no time between tokens")
    cell = Cell(
        id="c", context_tokens=1, users=1, output_tokens=1, pattern="closed", prompts="unique", state="failed",
        reason="no request succeeded", metrics={"tpot_p50": unknown},
    )  # fmt: skip
    return json.loads(Result(kind="run", nature="simulated", manifest=manifest, cells=[cell]).as_json())


def test_a_written_result_keeps_to_the_schema() -> None:
    Draft202012Validator(SCHEMA).validate(a_result())


@pytest.mark.parametrize(
    "wrong", [{"schema": "bezel.bench/2"}, {"nature": "guessed"}, {"figures": []}, {"cells": None}]
)
def test_another_document_does_not(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Draft202012Validator(SCHEMA).validate(a_result() | wrong)


def test_every_check_and_state_is_explained_with_its_limits() -> None:
    text = METRICS.read_text(encoding="utf-8")
    names = (
        *("unique_prompts", "output_length", "conservation", "counters", "roofline", "drained", "steady_state"),
        *("manifest", "failures_apart"),
    )
    assert all(f"| `{name}` |" in text for name in names)
    assert all(f"| `{state}` |" in text for state in get_args(State))
    limits = {
        f"{load_checks.CACHED_SHARE:.0%}".replace("%", " %"): "of their tokens came from a cache",
        f"{server_checks.DISAGREEMENT:.0%}".replace("%", " %"): "on requests, prompt or output tokens",
        f"{server_checks.SUSPECT_FLOPS:.0%}".replace("%", " %"): "of the arithmetic",
        f"{server_checks.SUSPECT_BANDWIDTH:.0%}".replace("%", " %"): "of the bandwidth",
        f"{load_checks.ROUNDS} x users": "fewer responses than",
        f"{load_checks.DRIFT_SHARE:.0%}".replace("%", " %"): "e2e drifts by more than",
        f"{failures.FAILED_SHARE:.0%}".replace("%", " %"): "of the requests failed",
        f"{load_checks.SHORT_FOR_DRAFTS} tokens": "drafts judged by responses of fewer than",
        f"{saturation.COMPLETED_SHARE:.0%}".replace("%", " %"): "is completed in the time in which it is offered",
        f"{cell_status.ACHIEVED_SHARE:.0%}".replace("%", " %"): "of the planned rate",
        f"{cell_status.LATE_MS:.0f} ms": "of the event loop's lag above",
        f"{cell_status.LATE_SHARE:.0%}".replace("%", " %"): "of the median `ttft`",
        f"{cell_status.CPU_SHARE:.0%}".replace("%", " %"): "of a core",
    }
    for limit, where in limits.items():
        assert f"{limit} {where}" in text or f"{where} {limit}" in text, f"{limit}: {where}"
