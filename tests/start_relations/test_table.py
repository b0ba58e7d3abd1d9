"""The table of relations: its rows are complete, and each has cases on both sides or is said to be not checked."""

from __future__ import annotations

import pytest

from bezel_catalog import vllm_options
from bezel_catalog.vllm.start_relations import start_relations
from tests.support.start_relations.cases import STACKS, cases

READS = {"model config", "processor", "tokenizer", "quantisation", "device", "host", "options"}
CHECKED = [row.id for row in start_relations().values() if not row.not_checked]
UNCHECKED = [row.id for row in start_relations().values() if row.not_checked]


def test_every_case_belongs_to_a_row_and_to_a_shipped_stack():
    assert {case.relation for case in cases()} <= set(start_relations())
    assert {case.stack for case in cases()} <= set(STACKS)
    names = [case.id for case in cases()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", start_relations())
def test_a_row_names_its_source_and_options_of_its_release(name):
    row = start_relations()[name]
    assert row.package in ("vllm", "tpu-inference")
    assert row.release == "0.32.0"
    file, _, function = row.place.partition(": ")
    assert file.endswith(".py")
    assert function
    assert row.rule
    assert set(row.reads) <= READS
    assert row.reads
    names = {option.name for option in vllm_options("0.32.0").options}
    assert set(row.options) <= names


@pytest.mark.parametrize("name", CHECKED)
def test_a_checked_row_has_a_refused_and_an_accepted_case(name):
    assert {case.refused for case in cases() if case.relation == name} == {True, False}


@pytest.mark.parametrize("name", UNCHECKED)
def test_an_unchecked_row_has_cases_and_refuses_none(name):
    assert start_relations()[name].options
    assert [case.refused for case in cases() if case.relation == name and case.options]
    assert not any(case.refused for case in cases() if case.relation == name)
