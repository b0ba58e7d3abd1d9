"""A real vLLM's own classes say of the cases what the plan and the simulated server say, or it is explained."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.start_relations.cases import seed_models
from tests.support.start_relations.real import ask, question, seed_real_models
from tests.support.start_relations.real_verdicts import (
    JUDGES,
    TABLE,
    all_cases,
    explanation,
    explanations,
    further_cases,
    judge_cases,
    recorded_verdicts,
    table,
)

REPAIR = "python -m tools.vllm.starts.compare PYTHON MODEL --record, or a row of tools/vllm/starts/explanations.toml"
RECORDED = tuple({case.id: case for case in all_cases() if case.id in recorded_verdicts()}.values())


@pytest.fixture(scope="module")
def verdicts_of_cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    seed_models(folder)
    return judge_cases(RECORDED, folder)


def test_thirty_further_relations_were_judged_by_the_real_classes():
    verdicts = {}
    for case in further_cases():
        verdicts.setdefault(case.relation, set()).add(recorded_verdicts()[case.id]["verdict"])
    assert sum("refused" in row for row in verdicts.values()) >= 30
    assert sum("accepted" in row for row in verdicts.values()) >= 30


def test_a_further_case_states_the_real_verdict():
    wrong = [
        case.id for case in further_cases() if case.refused != (recorded_verdicts()[case.id]["verdict"] == "refused")
    ]
    assert not wrong, REPAIR


@pytest.mark.slow
@pytest.mark.parametrize("who", JUDGES)
def test_whoever_differs_from_the_real_classes_is_explained(verdicts_of_cases, who):
    silent = [
        case.id
        for case in RECORDED
        if explanation(case, who, recorded_verdicts()[case.id], refuses=verdicts_of_cases[case.id][who]) is None
    ]
    assert not silent, REPAIR


@pytest.mark.slow
def test_every_explanation_of_a_start_is_needed(verdicts_of_cases):
    used = {
        explanation(case, who, recorded_verdicts()[case.id], refuses=verdicts_of_cases[case.id][who])
        for case in RECORDED
        for who in JUDGES
    }
    assert {row["reason"] for row in explanations()} <= used


@pytest.mark.slow
def test_the_documents_table_of_starts_has_every_recorded_case(verdicts_of_cases):
    written = json.loads(TABLE.read_text(encoding="utf-8"))
    made = table(RECORDED, verdicts_of_cases, written["stamp"])
    assert [row[:2] for row in made["rows"]] == [row[:2] for row in written["rows"]], REPAIR
    assert (made["about"], made["columns"]) == (written["about"], written["columns"]), REPAIR


def test_a_difference_from_the_real_classes_is_reported():
    case = further_cases()[0]
    for verdict, refuses in (("refused", False), ("accepted", True)):
        changed = {"verdict": verdict, "stage": "", "said": ""}
        assert explanation(case, "nobody", changed, refuses=refuses) is None
        assert explanation(case, "nobody", changed, refuses=not refuses) == ""


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_real_classes_say_what_was_recorded(tmp_path):
    installed = os.environ.get("BEZEL_REAL_VLLM")
    if installed is None:
        pytest.skip("BEZEL_REAL_VLLM names no folder with a real vLLM (see tools/vllm/contract.py)")
    seed_real_models(tmp_path, Path(installed) / "models" / "tiny-gemma4")
    verdicts = ask(f"{installed}/venv/bin/python", [question(case, tmp_path) for case in RECORDED])
    differ = [
        (case.id, recorded_verdicts()[case.id], verdict)
        for case, verdict in zip(RECORDED, verdicts, strict=True)
        if "not judged" not in (verdict["verdict"], recorded_verdicts()[case.id]["verdict"])
        and verdict["verdict"] != recorded_verdicts()[case.id]["verdict"]
    ]
    assert not differ
    assert sum(verdict["verdict"] != "not judged" for verdict in verdicts) >= len(RECORDED) // 2
