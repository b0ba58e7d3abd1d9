"""The plan and the simulated server say of 300 generated settings what a real vLLM said of them, or it is explained."""

from __future__ import annotations

import json

import pytest

from tests.support.simulated_vllm.settings_compared import RECORDED as FILE
from tests.support.simulated_vllm.settings_compared import (
    TABLE,
    explanation,
    explanations,
    table,
    verdicts,
)

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))
REPAIR = (
    "python -m tools.vllm.settings.compare PYTHON MODEL --record, or a row of tools/vllm/settings/explanations.json"
)


@pytest.fixture(scope="module")
def verdicts_of_settings(tmp_path_factory):
    return verdicts(RECORDED, tmp_path_factory.mktemp("models"))


def test_300_settings_were_recorded_and_many_of_them_are_refused():
    assert len(RECORDED) == 300
    assert 75 <= sum(row["real"] is not None for row in RECORDED) <= 225
    assert sum(bool(row["variables"]) for row in RECORDED) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("who", ["plan", "simulated"])
def test_whoever_says_otherwise_than_the_real_one_is_explained(verdicts_of_settings, who):
    silent = [
        (row["vllm"], row["variables"], verdict, row["real"])
        for row, verdict in zip(RECORDED, verdicts_of_settings[who], strict=True)
        if explanation(row, who, verdict, row["real"]) is None
    ]
    assert not silent, REPAIR


@pytest.mark.slow
def test_the_table_of_the_documents_says_so(verdicts_of_settings):
    written = json.loads(TABLE.read_text(encoding="utf-8"))
    assert table(RECORDED, verdicts_of_settings, written["stamp"]) == written, REPAIR


@pytest.mark.slow
def test_every_explanation_is_needed(verdicts_of_settings):
    used = {
        explanation(row, who, verdict, row["real"])
        for who, verdicts_of_judge in verdicts_of_settings.items()
        for row, verdict in zip(RECORDED, verdicts_of_judge, strict=True)
    }
    assert {row["reason"] for row in explanations()} <= used


@pytest.mark.parametrize("real", [None, "ValidationError: ..."])
def test_a_difference_that_nobody_explained_is_reported(real):
    setting = {"vllm": {"max-num-seqs": 8}, "variables": {}}
    assert explanation(setting, "plan", None if real else "refused", real) is None
    assert explanation(setting, "plan", real, real) == ""
