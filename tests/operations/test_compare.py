"""`bezel compare`: every machine, each figure with its kind, in a fixed order, readable, and never a made-up price."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel.planner.assemble.compare import families
from bezel_catalog import accelerators, compared_machines, models, tpus

DOCUMENT = Path(__file__).parents[2] / "docs" / "compare.md"
FAMILIES = sorted({checkpoint.architecture.id for checkpoint in models().values()})


@functools.cache
def run_compare(*arguments):
    """Exit code, standard output and standard error of the command."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main(["compare", *arguments])
    return code, out.getvalue(), error.getvalue()


def rows_of(*arguments):
    code, out, _ = run_compare(*arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_the_document_shows_what_the_command_prints(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = re.search(r"<!-- output of (.*?) -->\n```text\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    command = shown[1].split()
    assert command[:2] == ["bezel", "compare"]
    _, out, _ = run_compare(*command[2:])
    assert shown[2] == out, f"put what `.venv/bin/{shown[1]}` prints into docs/compare.md"


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_checkpoint_has_a_row_for_every_machine_in_a_fixed_order(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run_compare("--model", name)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    machines = [*sorted(accelerators()), *tpus(), *sorted(compared_machines())]
    rows = rows_of("--model", name)["rows"]
    wanted = [checkpoint.id for checkpoint in models().values() if checkpoint.architecture.id == name]
    assert [(row["model"], row["machine"]) for row in rows] == [(one, other) for one in wanted for other in machines]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_figure_has_a_kind_and_what_is_not_known_has_no_value(name):
    for row in rows_of("--model", name)["rows"]:
        figures = {key: value for key, value in row.items() if isinstance(value, dict)}
        assert {value["kind"] for value in figures.values()} <= {"list price", "derived", "estimate", "unknown"}
        price, tokens = row["usd_per_hour"], row["usd_per_million_output_tokens"]
        if price["kind"] == "unknown":
            assert price["value"] == "unknown"
            assert price["reason"]
            assert tokens == {"value": None, "kind": "unknown"}
        else:
            assert price["value"] > 0
            assert price["source"]
        assert row["fits"]["value"] is (row["fits"]["because"] is None)
        assert (row["tokens_per_second_alone"]["value"] is None) is not row["fits"]["value"]
        assert 0 not in (price["value"], *(tokens["value"] or []))


def test_known_answers_come_out():
    rows = {(row["model"], row["machine"]): row for row in rows_of("--model", "gemma-4-12b")["rows"]}
    qat, bf16 = "gemma-4-12b-it-qat-w4a16", "gemma-4-12b-it"
    assert rows[qat, "nvidia-l4"]["usd_per_hour"]["value"] == 1.0465
    assert rows[qat, "nvidia-l4"]["usd_per_hour"]["kind"] == "derived"
    assert rows[bf16, "v6e-4"]["usd_per_hour"]["value"] == 5.4
    assert rows[bf16, "nvidia-l4"]["fits"]["because"] == "weights"
    assert "tpu-inference" in rows[qat, "v6e-1"]["fits"]["because"]
    assert rows[bf16, "v6e-1"]["longest_context"]["value"] == 8192
    assert {row["machine"] for row in rows.values() if not row["deployable"]} == set(compared_machines())


def test_measured_figures_stand_apart_with_their_own_load():
    measured = rows_of("--model", "gemma-4-12b")["measured"]
    assert {row["kind"] for row in measured} == {"measured"}
    assert any("990 tokens/s (64 users" in row["text"] for row in measured)
    assert not any("458240" in row["text"] for row in rows_of("--model", "gemma-4-26b-a4b")["measured"])
    assert "Measured" not in run_compare("--model", "gemma-4-31b")[1]


@pytest.mark.slow
def test_the_simulated_server_is_asked_only_on_request_for_known_machines():
    asked = rows_of("--model", "gemma-4-31b-it", "--simulate")["simulated"]
    assert [(row["machine"], row["kind"]) for row in asked] == [("nvidia-rtx-pro-6000", "simulated")]
    assert "(within the estimate)" in asked[0]["text"]
    assert rows_of("--model", "gemma-4-31b-it")["simulated"] == []
    assert "Simulated" not in run_compare("--model", "gemma-4-31b-it")[1]


def test_a_longer_context_fits_no_more_often():
    def count(context):
        rows = rows_of("--model", "gemma-4-12b-it", "--context", str(context))["rows"]
        return [row["sequences_at_a_time"]["value"] for row in rows]

    assert all(longer <= shorter for longer, shorter in zip(count(65_536), count(4096), strict=True))
    assert count(8192)[2] == 1
    assert count(16_384)[2] == 0


@pytest.mark.parametrize(
    ("arguments", "consequence", "repair"),
    [
        (("--model", "gemma-4-12"), "neither a model family nor a checkpoint", "did you mean gemma-4-12b?"),
        (("--model", "llama"), "neither a model family nor a checkpoint", "choose one of gemma-4-e2b"),
        (("--model", "gemma-4-12b-it-gguf"), "llama.cpp", "choose one of "),
        (("--model", "gemma-4-e2b", "--context", "131073"), "made for 131072 tokens", "choose 1024 to 131072"),
        (("--model", "gemma-4-e2b", "--context", "1023"), "the compared load needs 1024", "choose 1024 to 131072"),
    ],
)
def test_a_wrong_question_is_answered_with_its_repair(arguments, consequence, repair):
    code, out, error = run_compare(*arguments)
    assert (code, out) == (1, "")
    assert consequence in error
    assert repair in error


@pytest.mark.slow
@pytest.mark.parametrize("context", [1024, 1279, 1280, 262_144])
def test_any_context_is_compared(context):
    assert rows_of("--model", "gemma-4-12b", "--context", str(context))["context"] == context


def test_a_family_is_found_by_each_of_its_names():
    assert set(families()) == {*FAMILIES, *models()}
