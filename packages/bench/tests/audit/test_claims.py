"""Each fault of a claim is named where it is, and not where the same claim is as it should be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bench_support.audited_files import CLEAN, audit, grid
from bezel_bench.audit import findings, table
from bezel_bench.audit.findings import FINDINGS
from bezel_bench.audit.runner import audit_files

if TYPE_CHECKING:
    from pathlib import Path

Claim = dict[str, Any]
RATE: Claim = {"id": "c", "metric": "throughput", "unit": "req/s", "value": 20.0, "users": 8}
ON_L4: Claim = {"hardware": "L4", "model": "gemma-4-12b-it-qat-w4a16"}
KV: Claim = {"id": "c", "metric": "kv dtype", "hardware": "v6e-4", "model": "gemma-4-12B-it", "kv_gib": 40.0}
DRAFTS: Claim = {**RATE, "speculation": "mtp 3"}
LONG = {"output_tokens": 128, "generated_tokens": 9000, "drafts": 4000, "draft_tokens": 12000, "accepted": 5000}

# Fault, a claim that has it, what of it is changed in the twin that has not.
CLAIMS: list[tuple[str, int, Claim, Claim]] = [
    ("a mean of two runs", findings.MEANS, {**RATE, "value": 66.4, "runs": [71.16, 61.75]}, {"runs": [66.9, 66.0]}),
    ("a mean of three", findings.MEANS, {**RATE, "value": 20.0, "runs": [25.0, 19.0, 16.0]}, {"runs": [21, 20.5,
    18.5]}), ("a failed run in a mean", findings.MISSING, {**RATE, "value": 15.4, "runs": [30.89, 0.0]}, {"runs": [15.5,
    15.4]}), ("a copied file", findings.COPIES, {**RATE, "same_file_as": "other"}, {"same_file_as": None}),
    ("a file of two models", findings.COPIES, {**RATE, "same_file_for": ["26B", "31B"]}, {"same_file_for": ["26B"]}),
    ("more than the peak", findings.ROOFLINE, {**RATE, **ON_L4, "context": 1024}, {"context": 64}),
    ("more than its chips", findings.ROOFLINE, {**RATE, **ON_L4, "context": 512}, {"instances": 16}),
    ("97 % of the peak", findings.ROOFLINE, {**RATE, "metric": "share of peak", "unit": "%", "value": 97}, {"value":
    41}), ("one prompt", findings.ROOFLINE, {**RATE, "prompts": "identical"}, {"prompts": "random"}),
    ("one prompt declared as a study", findings.ROOFLINE, {**RATE, "prompts": "same"}, {"study": "prefix cache"}),
    (
        "a timeout",
        findings.TIMEOUTS,
        {"id": "c", "metric": "success", "unit": "%", "value": 71, "users": 2048, "throughput": 24.5, "timeout_s": 60},
        {"value": 96},
    ),
    (
        "a timeout that is not declared",
        findings.TIMEOUTS,
        {"id": "c", "metric": "success", "unit": "%", "value": 71, "users": 2048, "throughput": 24.5},
        {"throughput": 16.0},
    ),
    (
        "a length called memory",
        findings.LENGTHS,
        {"metric": "cause", "value": "OOM", "context": 16384, "output_tokens": 1, "max_model_len": 16384},
        {"max_model_len": 32768},
    ),
    (
        "a length called a timeout",
        findings.LENGTHS,
        {"metric": "cause", "value": "timeout", "context": 16384, "output_tokens": 1, "max_model_len": 16384},
        {"max_model_len": 32768},
    ),
    ("a queue", findings.QUEUES, {**RATE, "users": 64, "service_concurrency": 4, "instances": "1-3"}, {"users": 12}),
    ("a queue of the engine", findings.QUEUES, {**RATE, "users": 1024, "max_num_seqs": 256}, {"users": 256}),
    ("a cap", findings.CAPS, {**RATE, "users": 2048, "requests_cap": 100}, {"users": 100}),
    ("one-token answers", findings.SPECULATION, {**DRAFTS, "output_tokens": 1}, {"output_tokens": 128}),
    ("no drafts made", findings.SPECULATION, {**DRAFTS, **LONG, "drafts": 139}, {"drafts": 4000}),
    ("too few drafts", findings.SPECULATION, {**DRAFTS, "drafts": 139, "draft_tokens": 417, "accepted": 23}, LONG),
    (
        "a ttft by drafts",
        findings.SPECULATION,
        {"id": "c", "metric": "ttft", "unit": "s", "value": 0.3, "speculation": "ngram 3"},
        {"speculation": "none"},
    ),
    (
        "a sum",
        findings.SUMS,
        {"id": "c", "metric": "itl", "unit": "s", "value": 0.057, "ttft": 0.4, "e2e": 0.46, "output_tokens": 10},
        {"value": 0.0066},
    ),
    (
        "a gap that leaves seconds unexplained",
        findings.SUMS,
        {"id": "c", "metric": "tpot", "unit": "s", "value": 0.001, "ttft": 0.4, "e2e": 3.0, "output_tokens": 128},
        {"value": 0.02},
    ),
    (
        "a gap longer than all together",
        findings.SUMS,
        {"id": "c", "metric": "tpot", "unit": "s", "value": 0.95, "ttft": 2.6, "e2e": 3.0},
        {"value": 0.02},
    ),
    (
        "a sum without a first token",
        findings.SUMS,
        {"id": "c", "metric": "tpot", "unit": "s", "value": 2.6, "e2e": 3.0, "output_tokens": 128},
        {"value": 0.02},
    ),
    ("no time for a token", findings.ROOFLINE, {"metric": "tpot", "value": 0.004, "unit": "ms"}, {"value": 4}),
    (
        "less than a step for a token",
        findings.ROOFLINE,
        {"metric": "tpot", "value": 3, "unit": "ms", "speculation": "none", **ON_L4},
        {"value": 40},
    ),
    ("chunks", findings.CHUNKS, {**DRAFTS, "counted": "SSE chunks"}, {"counted": "usage"}),
    ("chunks without drafts", findings.CHUNKS, {**DRAFTS, "counted": "SSE chunks"}, {"speculation": "none"}),
    ("bare tokens", findings.UNITS, {**RATE, "unit": "tok/s"}, {"unit": "output tok/s"}),
    ("both tokens", findings.UNITS, {**RATE, "unit": "tok/s", "direction": "input and output"}, {"unit": "req/s"}),
    (
        "a price of input tokens",
        findings.UNITS,
        {
            "id": "c", "metric": "cost per million tokens", "value": 0.04, "unit": "USD",
            "throughput": 9300, "throughput_counts": "input", "price_per_h": 1.38,
        },
        {"metric": "cost per million input tokens"},
    ),
    ("another device", findings.LABELS, {**RATE, "hardware": "8 x L4", "measured_on": "L4"}, {"measured_on": "L4 x 8"}),
    ("an assistant", findings.LABELS, {**RATE, "model": "gemma-4-12B-it-assistant"}, {"model": "gemma-4-12B-it"}),
    (
        "another option",
        findings.LABELS,
        {"id": "c", "metric": "setting", "value": "chunked prefill disabled", "text": "( --disable_chunked_mm_input )"},
        {"text": "( --no-enable-chunked-prefill )"},
    ),
    (
        "weights that are the budget",
        findings.LABELS,
        {
            "id": "c", "metric": "weights", "value": 115, "unit": "GB",
            "hardware": "v6e-4", "model": "gemma-4-26B-A4B-it", "dtype": "bfloat16",
        },
        {"value": 52},
    ),
    ("a large model", findings.LABELS, {**RATE, "hardware": "v6e-1", "model": "gemma-4-31b-it"}, {"hardware": "v6e-4"}),
    (
        "three prices",
        findings.LABELS,
        {"id": "c", "metric": "cost per hour", "unit": "USD/h", "value": [2.7, 1.2, 1.38]},
        {"value": [1.38, 1.4]},
    ),
    ("fp8 that is bf16", findings.KV_PRECISION, {**KV, "value": "fp8_e5m2", "kv_tokens": 109226}, {"kv_tokens":
    218453}), ("bf16 that is fp8", findings.KV_PRECISION, {**KV, "value": "bfloat16", "kv_tokens": 218453},
    {"kv_tokens": 109226}),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "claim", "changed"), [one[1:] for one in CLAIMS], ids=[one[0] for one in CLAIMS])
def test_a_claim_is_accused_of_its_fault_and_its_twin_is_not(
    tmp_path: Path, fault: int, claim: Claim, changed: Claim
) -> None:
    assert fault in audit(tmp_path, claims_json=json.dumps({"claims": [claim]}))
    assert fault not in audit(tmp_path, claims_json=json.dumps({"claims": [{**claim, **changed}]}))


@pytest.mark.parametrize(
    ("fault", "side", "changed"),
    [
        (findings.OUTPUTS, {"output_tokens": 16}, {"output_tokens": 100}),
        (
            findings.QUEUES,
            {"max_instances": 1, "service_concurrency": 4},
            {"max_instances": 3, "service_concurrency": 16},
        ),
        (findings.CAPS, {"requests_cap": 100}, {}),
    ],
)
def test_sides_that_differ_are_not_comparable_and_equal_ones_are(
    tmp_path: Path, fault: int, side: Claim, changed: Claim
) -> None:
    ratio = {"id": "c", "metric": "ratio", "value": 2.7, "unit": "x", "a": {"hardware": "L4", **side}}
    other = {"hardware": "v6e-1"}
    assert audit(tmp_path, a_json=json.dumps({"claims": [{**ratio, "b": {**other, **changed}}]})) == {fault}
    assert not audit(tmp_path, a_json=json.dumps({"claims": [{**ratio, "b": {**other, **side}}]}))


def test_a_cap_that_a_claim_tells_explains_the_flat_table_of_that_machine(tmp_path: Path) -> None:
    flat = grid({context: [3.8, 20.1, 44.0, 44.9] for context in (16, 64)})
    wide = flat.replace(",512,", ",2048,")
    claim = {"id": "c", "metric": "success", "unit": "%", "value": 100, "hardware": "v6e-1", "users": 2048}
    files = {"v6e1_12b_csv": wide + "16,512,44.5,req/s,100,ok\n64,512,44.2,req/s,100,ok\n"}
    assert not audit(tmp_path, **files), "a flat rate alone is an open question"
    result = audit_files([tmp_path / "v6e1_12b.csv"])
    assert (findings.QUEUES, findings.CAPS) in {question.kinds for question in result.questions}
    both = audit(tmp_path, **files, claims_json=json.dumps({"claims": [{**claim, "requests_cap": 100}]}))
    assert both == {findings.CAPS}


def test_claimed_engine_limit_holds_for_tables_of_its_machine_and_model(tmp_path: Path) -> None:
    claim = {"id": "c", "metric": "setting", "value": "seqs", "max_num_seqs": 64, "hardware": "v6e-1", "model": "12B"}
    limit = json.dumps({"claims": [claim]})
    assert audit(tmp_path, v6e1_12b_csv=grid(CLEAN), claims_json=limit) == {findings.QUEUES}
    assert not audit(tmp_path, v6e1_e4b_csv=grid(CLEAN), claims_json=limit)


def test_every_fault_has_a_case() -> None:
    tested = {one[1] for one in CLAIMS} | {findings.DRAIN, findings.OUTPUTS, findings.TOTALS, findings.SENDING}
    assert tested == set(FINDINGS)


def test_of_an_id_in_two_files_the_last_claim_is_compared() -> None:
    def source(file: str, *claims: Claim) -> table.ResultSource:
        read = [
            table.Claim(item=claim["id"], metric="", value=None, unit="", fields=claim, row=table.Row())
            for claim in claims
        ]
        return table.ResultSource(item=file, format="claims", claims=tuple(read))

    asking: Claim = {"id": "b", "compared_with": "a"}
    both = table.AuditTable((source("1", {"id": "a", "n": 1}), source("2", asking, {"id": "a", "n": 2})))
    compared = both.compared_with(both.claims[1])
    assert compared is not None
    assert compared.fields["n"] == 2
    assert both.compared_with(both.claims[0]) is None
