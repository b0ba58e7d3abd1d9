"""The plan and the simulated server say of 300 generated settings what a real vLLM said of them, or it is explained."""

from __future__ import annotations

import json

import pytest

from tests.support.simulated_vllm.settings_compared import (
    EXPLAINED,
    TABLE,
    explanation,
    plan_verdict,
    simulated_verdict,
    table,
)
from tests.support.simulated_vllm.settings_compared import RECORDED as FILE

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
REPAIR = "python -m tools.vllm.compare_settings PYTHON MODEL --record, or a row of tools/vllm/settings_explained.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def verdicts(row, folder):
    return {"plan": plan_verdict(row), "simulated": simulated_verdict(row, folder)}


def test_300_settings_were_recorded_and_many_of_them_are_refused():
    assert len(RECORDED) == 300
    assert 75 <= sum(row["real"] is not None for row in RECORDED) <= 225
    assert sum(bool(row["variables"]) for row in RECORDED) >= 30


@pytest.mark.parametrize("who", ["plan", "simulated"])
def test_whoever_says_otherwise_than_the_real_one_is_explained(folder, who):
    said = [(row, verdicts(row, folder)[who]) for row in RECORDED]
    silent = [
        (row["vllm"], row["variables"], verdict, row["real"])
        for row, verdict in said
        if explanation(row, who, verdict, row["real"]) is None
    ]
    assert not silent, REPAIR


def test_the_table_of_the_documents_says_so(folder):
    written = json.loads(TABLE.read_text(encoding="utf-8"))
    assert table(RECORDED, folder, written["stamp"]) == written, REPAIR


def test_every_explanation_is_needed(folder):
    used = {
        explanation(row, who, verdict, row["real"])
        for row in RECORDED
        for who, verdict in verdicts(row, folder).items()
    }
    assert {row["reason"] for row in json.loads(EXPLAINED.read_text(encoding="utf-8"))} <= used


@pytest.mark.parametrize("real", [None, "ValidationError: ..."])
def test_a_difference_that_nobody_explained_is_reported(real):
    setting = {"vllm": {"max-num-seqs": 8}, "variables": {}}
    assert explanation(setting, "plan", None if real else "refused", real) is None
    assert explanation(setting, "plan", real, real) == ""
