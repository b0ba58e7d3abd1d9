"""Verdicts on constraints beside those of the real server's libraries, for every kind of constraint.

The record was made by tools/vllm/recorders/grammar_verdicts.py, with xgrammar 0.2.8 and llguidance 1.7.6.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.grammars import xgrammar
from bezel_simulated_vllm.grammars.constraint import constraint_of, request_error
from bezel_simulated_vllm.grammars.judge import Judge, Verdict
from bezel_simulated_vllm.grammars.rules import ebnf, lark, schemas
from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError, Work

RECORD = json.loads(gzip.decompress((Path(__file__).parent / "fixtures/vllm/grammars.json.gz").read_bytes()))
ROWS: list[dict[str, Any]] = RECORD["rows"]
# The library of each is an extra, and the rules for it are none of this project's.
WITHOUT_RULES = {"outlines": "json", "lm-format-enforcer": "regex"}


def outputs_of(row: dict[str, Any]) -> dict[str, Any]:
    return {row["kind"]: row["value"]}


def verdict_of(row: dict[str, Any], backend: str) -> Verdict:
    if error := request_error(outputs_of(row)):
        return Verdict(backend, refusal=str(api_error(error[0], **error[1])))
    return Judge(backend).judge(outputs_of(row))


def wrong_verdicts(backend: str, *, with_text: bool) -> list[tuple[str, object, object, object]]:
    """The rows of which the simulated server says another thing than the real one did."""
    wrong = []
    for row in ROWS:
        real, verdict = row[backend], verdict_of(row, backend)
        text = verdict.refusal or verdict.failure
        alike = real.get("error", "") == text if with_text else ("error" in real) == bool(text)
        if not alike and not (verdict.unknown and row["kind"] == WITHOUT_RULES.get(backend)):
            wrong.append((row["kind"], row["value"], real, verdict))
    return wrong


def test_the_record_has_every_kind_taken_and_refused():
    outcomes = Counter((row["kind"], "error" in row["auto"]) for row in ROWS)
    assert RECORD["vllm"].startswith("vllm 0.32.0")
    assert len(ROWS) > 700
    for kind in ("json", "regex", "grammar", "structural_tag", "choice"):
        assert outcomes[kind, True] >= 1 <= outcomes[kind, False], kind
    assert not any(row.get("ended") for row in ROWS)


@pytest.mark.parametrize("backend", ["auto", pytest.param("guidance", marks=pytest.mark.slow)])
def test_verdicts_have_the_texts_of_the_real_server(backend):
    assert wrong_verdicts(backend, with_text=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["xgrammar", "outlines", "lm-format-enforcer"])
def test_verdicts_of_one_library_are_those_of_the_real_server(backend):
    assert wrong_verdicts(backend, with_text=False) == []


@pytest.mark.slow
def test_refusals_of_xgrammar_have_its_texts_but_for_places():
    """The columns of an EBNF that the library makes of an expression are not counted."""
    refused = [row for row in ROWS if "error" in row["xgrammar"]]
    others = [row for row in refused if verdict_of(row, "xgrammar").refusal.strip() != row["xgrammar"]["error"].strip()]
    assert len(refused) > 250
    assert len(others) <= 11
    assert all(re.search("column|near:|position", row["xgrammar"]["error"]) for row in others)


@pytest.mark.slow
def test_another_verdict_is_noticed():
    row = next(row for row in ROWS if "error" in row["auto"])
    changed = {**row, "auto": {"backend": "xgrammar"}}
    ROWS.append(changed)
    try:
        assert [wrong[1] for wrong in wrong_verdicts("auto", with_text=False)] == [row["value"]]
    finally:
        ROWS.remove(changed)


@pytest.mark.slow
def test_the_library_that_takes_a_constraint_is_that_of_the_real_server():
    """It decides what the engine compiles with."""
    taken = [row for row in ROWS if "error" not in row["auto"]]
    assert {row["auto"]["backend"] for row in taken} >= {"xgrammar", "guidance"}
    assert [row for row in taken if verdict_of(row, "auto").backend != row["auto"]["backend"]] == []


@pytest.mark.slow
def test_the_engine_compiles_what_the_real_one_compiles():
    wrong = []
    for row in ROWS:
        if "error" in row["auto"] or row["kind"] == "choice":  # vLLM makes a grammar of choices before
            continue
        for engine, compiled in row["compiled"].items():
            judge = Judge()
            assert judge.compiles({"json_object": True}, engine)
            circle = "$ref" in str(row["value"]) and engine == "xgrammar"  # it fails at the first token
            if judge.compiles(outputs_of(row), row["auto"]["backend"]) != compiled and not circle:
                wrong.append((engine, row["kind"], row["value"]))
    assert wrong == []


@pytest.mark.slow
def test_few_constraints_are_not_judged():
    unknown = [row["value"] for row in ROWS if verdict_of(row, "auto").unknown]
    assert len(unknown) <= 5


def test_the_installed_library_says_what_the_real_server_says():
    """With the extra `xgrammar` the library is asked itself."""
    pytest.importorskip("xgrammar")
    for row in ROWS:
        constraint = constraint_of(outputs_of(row))
        try:
            xgrammar.check(constraint)
            taken = True
        except RefusedError:
            taken = False
        assert taken == ("error" not in row["xgrammar"]), row["value"]


@pytest.mark.parametrize("check", [ebnf.check, lark.check])
def test_deep_groups_cost_no_stack(check):
    deep = ("root ::= " if check is ebnf.check else "start: ") + "(" * 5000 + '"a"' + ")" * 5000
    with pytest.raises((RefusedError, NotJudgedError)):
        check(deep, Work())
    check('root ::= (("a"))' if check is ebnf.check else 'start: (("a"))', Work())


@pytest.mark.slow
def test_a_schema_of_many_parts_is_given_up():
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        schema = {"anyOf": [schema, schema]}
    with pytest.raises(NotJudgedError):
        schemas.check_conversion(schema, Work())
    schemas.check_conversion({"anyOf": [{"type": "string"}, {"type": "null"}]}, Work())
