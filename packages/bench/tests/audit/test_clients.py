"""Files of eight other load clients, each written after that client's own source: read, judged, and what is not.

The writers and their sources are in packages/bench/tests/bench_support/writers.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from bench_support.writers.formats import FIGURES, FORMATS, Format, loads, scale_figure
from bench_support.writers.reports import guidellm, inference_perf
from bench_support.writers.requests import Load, closed_load, open_load
from bench_support.writers.serving import sglang, vllm
from bezel_bench.audit import findings
from bezel_bench.audit.runner import Audit, audit_files, judged_relations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FACTORS = {"by a fifth": (1.2, 1 / 1.2), "by half": (2.0, 0.5)}
HELD_OUT = 5_000
# Two counts of the same tokens, the client's and the server's: where they differ, that is named, not found.
COUNTED_TWICE = "successes.output_len"


def audit_document(folder: Path, kind: Format, document: Any) -> Audit:
    return audit_text(folder, kind.text(document))


def audit_text(folder: Path, text: str) -> Audit:
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    audit = audit_files([path])
    assert not audit.unreadable
    return audit


def kinds(audit: Audit) -> set[int]:
    return {one.kind for one in audit.findings}


def run(folder: Path, document: Any) -> Audit:
    path = folder / "run.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    audit = audit_files([path])
    assert not audit.unreadable
    return audit


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_file_of_each_client_is_read_with_its_unit(tmp_path: Path, name: str) -> None:
    kind, load = FORMATS[name], closed_load(7)
    (source,) = audit_document(tmp_path, kind, kind.write(load)).sources
    (row,) = source.rows
    assert source.format == kind.name
    assert (row.users, row.completed, row.context) == (8, 96, 512)
    assert row.mean_output == pytest.approx(128)
    assert row.figures["requests_per_second"].value == pytest.approx(96 / load.seconds, rel=0.12)
    assert row.figures["ttft"].value == pytest.approx(load.column("ttft").mean(), rel=1e-6)
    assert row.figures["e2e"].value == pytest.approx(load.column("e2e").mean(), rel=0.01)
    if name != "llmperf":
        assert row.figures["tpot"].value == pytest.approx(load.column("tpot").mean(), rel=1e-6)


@pytest.mark.slow
@pytest.mark.wide_cases("* detailed", "* yaml", "4-*")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("first", [0, 4])
def test_clean_file_of_each_client_is_not_accused(tmp_path: Path, name: str, first: int) -> None:
    for seed in range(HELD_OUT + first, HELD_OUT + first + 4):
        for how, load in loads(seed, FORMATS[name]):
            audit = audit_document(tmp_path, FORMATS[name], FORMATS[name].write(load))
            assert not [(seed, how, one.arithmetic) for one in audit.findings]


def changes_of(name: str, change: str, load: int) -> list[tuple[float, bool]]:
    """The changes of each figure of a load: all by a fifth, but of a variant of another format one in turn.

    Over the four loads of a format each figure has each change.
    """
    changes = list(itertools.product(FACTORS[change], (False, True)))
    return changes[load % 4 :: 4] if change == "by half" or name.endswith((" detailed", " yaml")) else changes


@pytest.mark.slow
@pytest.mark.wide_cases("* detailed", "* yaml", "by half-*")  # what is further off is found more easily
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("change", FACTORS)
def test_changed_core_figure_is_found_in_each_format(tmp_path: Path, change: str, name: str) -> None:
    kind, missed = FORMATS[name], []
    for seed, (how, load) in enumerate(loads(HELD_OUT, kind)):
        document = kind.write(closed_load(seed, rounds=24) if how == "closed, fixed" else load)
        for path in (path for paths in kind.places.values() for path in paths):
            top = path.partition(".")[0]
            # What does not change is written once: with each request listed that is a megabyte.
            others = kind.text({name: part for name, part in document.items() if name != top})
            written = {
                (factor, kind.text({top: scale_figure(document, path, factor, whole=whole)[top]}))
                for factor, whole in changes_of(name, change, seed)
            }  # A plain number is the same alone and as a whole.
            for factor, changed in written:
                audit = audit_text(tmp_path, kind.joined_text(others, changed))
                named = path == COUNTED_TWICE and any("two counts" in one.text for one in audit.questions)
                if not audit.findings and not named:
                    missed.append((how, path, factor, changed[:200]))
    assert not missed


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_judged_and_what_is_not_is_named(tmp_path: Path, name: str) -> None:
    kind = FORMATS[name]
    audit = audit_document(tmp_path, kind, kind.write(closed_load(3)))
    judged = set(judged_relations(audit.sources[0]))
    texts = " ".join(one.text for one in audit.questions)
    for figure, relation in (
        ("duration", "requests/s x duration = completed requests"),
        ("e2e", "ttft + (tokens - 1)"),
    ):
        is_judged = any(each.startswith(relation) for each in judged)
        assert is_judged or relation in texts, "neither judged nor named"
        if figure not in kind.places:
            assert not is_judged
    assert "machine" in texts, "the roofline needs one"


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("vllm", "max_output_tokens_per_s"),
        ("sglang", "total_output_tokens_retokenized"),
        ("aiperf", "inter_chunk_latency"),
        ("genai-perf", "time_to_second_token"),
        ("inference-perf", "successes.latency.inter_token_latency"),
        ("llmperf", "results_request_output_throughput_token_per_s"),
        ("llm-d 0.2", "results.request_performance.aggregate.latency.inter_token_latency"),
    ],
)
def test_fields_that_are_not_read_are_named(tmp_path: Path, name: str, left: str) -> None:
    kind = FORMATS[name]
    (source,) = audit_document(tmp_path, kind, kind.write(closed_load(3))).sources
    assert left in source.unread
    assert not [field for field in source.unread if "ttft" in field or "first_token" in field]


def test_every_format_that_holds_a_figure_is_listed() -> None:
    holding = {figure: [name for name, kind in FORMATS.items() if figure in kind.places] for figure in FIGURES}
    assert {figure: len(names) for figure, names in holding.items()} == {
        "rate": 12, "duration": 9, "tokens": 12, "tpot": 12, "e2e": 12,
    }  # fmt: skip


def in_seconds(document: dict[str, Any]) -> dict[str, Any]:
    """The run with its latencies in seconds under names without a unit."""
    return {
        name.removesuffix("_ms"): value / 1000 if name.endswith("_ms") else value for name, value in document.items()
    }


def test_seconds_without_a_unit_are_read_and_judged(tmp_path: Path) -> None:
    plain = in_seconds(vllm(closed_load(1)))
    audit = run(tmp_path, plain)
    assert audit.sources[0].rows[0].figures["e2e"].value == pytest.approx(plain["mean_e2el"])
    assert not audit.findings
    assert kinds(run(tmp_path, plain | {"mean_e2el": 1.2 * plain["mean_e2el"]})) & {findings.SUMS, findings.TOTALS}


def test_time_without_a_unit_that_cannot_be_seconds_is_named(tmp_path: Path) -> None:
    run_ = in_seconds(vllm(closed_load(1)))
    run_.pop("latencies")
    audit = run(tmp_path, run_ | {"mean_e2el": 1000 * run_["duration"]})
    assert "e2e" not in audit.sources[0].rows[0].figures
    assert any("mean_e2el was not read: its name has no unit" in one.text for one in audit.questions)


def test_summary_of_no_known_tool_is_not_called_vllm(tmp_path: Path) -> None:
    run_ = in_seconds(vllm(closed_load(1)))
    for name in ("endpoint_type", "backend", "tokenizer_id"):
        run_.pop(name)
    assert run(tmp_path, run_).sources[0].format == "summary like that of vllm bench serve, of an unknown tool"
    assert run(tmp_path, vllm(closed_load(1))).sources[0].format == "vllm bench serve"


@pytest.mark.parametrize("write", [vllm, sglang])
@pytest.mark.parametrize("merged", [1.18, 3.0, 20.0])
def test_merged_chunks_are_no_contradiction(
    tmp_path: Path, write: Callable[[Load], dict[str, Any]], merged: float
) -> None:
    document = write(closed_load(2))
    for statistic in ("mean", "median", "std", "p99", "p95", "p90"):
        if f"{statistic}_itl_ms" in document:
            document[f"{statistic}_itl_ms"] *= merged
    assert not run(tmp_path, document).findings


def test_listed_requests_refute_another_mean(tmp_path: Path) -> None:
    document = vllm(closed_load(4), detailed=True)
    assert not run(tmp_path, document).findings
    assert findings.TOTALS in kinds(run(tmp_path, document | {"mean_ttft_ms": 1.2 * document["mean_ttft_ms"]}))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [*itertools.chain(*FACTORS.values())])
def test_count_of_the_client_is_judged_where_the_server_counted_none(tmp_path: Path, factor: float) -> None:
    """Of requests that the server did not count the writer takes the client's count for both statistics."""
    document = inference_perf(closed_load(3))
    document["successes"]["client_fallback_requests"]["output"] = document["successes"]["count"]
    assert not run(tmp_path, document).findings
    audit = run(tmp_path, scale_figure(document, COUNTED_TWICE, factor, whole=True))
    assert findings.TOTALS in kinds(audit)
    document["successes"]["client_fallback_requests"]["output"] = 3
    audit = run(tmp_path, scale_figure(document, COUNTED_TWICE, factor, whole=True))
    assert not audit.findings
    assert any("not judged: " in one.text and "two counts" in one.text for one in audit.questions)


@pytest.mark.parametrize("place", ["successes.prompt_tokens.total", "successes.output_tokens.total"])
def test_total_of_tokens_is_held_to_their_mean(tmp_path: Path, place: str) -> None:
    document = inference_perf(open_load(3, varied=True))
    assert not run(tmp_path, document).findings
    assert findings.TOTALS in kinds(run(tmp_path, scale_figure(document, place, 1.2, whole=True)))


def test_cached_prompt_tokens_are_not_computed_ones(tmp_path: Path) -> None:
    """inference-perf's rate of input tokens holds the cached ones, which no hardware computes."""
    document = inference_perf(closed_load(3))
    usage, rates = document["successes"]["prompt_tokens"], document["successes"]["throughput"]
    for name in ("total", "mean", "min", "max", "median", *(name for name in usage if name.startswith("p"))):
        usage[name] *= 200
    rates["total_tokens_per_sec"] += 199 * rates["input_tokens_per_sec"]
    rates["input_tokens_per_sec"] *= 200
    usage["uncached"] = usage["total"]
    path = tmp_path / "l4-12b.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert findings.ROOFLINE in kinds(audit_files([path]))
    usage |= {"cached": 0.999 * usage["total"], "uncached": 0.001 * usage["total"]}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert not audit_files([path]).findings


def test_listed_latencies_of_vllm_are_judged_without_e2el(tmp_path: Path) -> None:
    """vLLM lists them without --save-detailed, whatever --percentile-metrics names."""
    document = vllm(closed_load(4), e2el=False)
    audit = run(tmp_path, document)
    assert not audit.findings
    assert any(each.startswith("ttft + (tokens - 1)") for each in judged_relations(audit.sources[0]))
    assert kinds(run(tmp_path, document | {"mean_tpot_ms": 1.2 * document["mean_tpot_ms"]}))
    short = document | {"latencies": document["latencies"][1:]}
    assert "e2e" not in run(tmp_path, short).sources[0].rows[0].figures, "which of them failed is unknown"


def test_load_that_the_client_did_not_send_is_found(tmp_path: Path) -> None:
    load = open_load(5, rate=5.0)
    document = inference_perf(load)
    assert not run(tmp_path, document).findings
    document["load_summary"]["requested_rate"] = 9.0
    assert findings.SENDING in kinds(run(tmp_path, document))


@pytest.mark.slow
@pytest.mark.parametrize("write", [inference_perf, guidellm])
@pytest.mark.parametrize(("late", "accused"), [(0.0003, False), (0.004, True), (0.2, True)])
def test_wait_in_the_client_is_judged_beside_ttft(
    tmp_path: Path, late: float, accused: bool, write: Callable[[Load], dict[str, Any]]
) -> None:
    """The p99 of an exponential wait of 4 ms is 18 ms, of a ttft of 100 ms."""
    audit = run(tmp_path, write(open_load(6, late=late)))
    assert (findings.SENDING in kinds(audit)) == accused


def test_more_completed_than_offered_is_found(tmp_path: Path) -> None:
    document = vllm(open_load(8, rate=5.0))
    assert not run(tmp_path, document).findings
    assert findings.TOTALS in kinds(run(tmp_path, document | {"request_rate": 2.5}))


def test_less_completed_than_offered_is_named_a_queue(tmp_path: Path) -> None:
    document = vllm(open_load(8, rate=5.0))
    assert kinds(run(tmp_path, document | {"request_rate": 20.0})) == {findings.QUEUES}
    ramp = document | {"request_rate": 20.0, "ramp_up_strategy": "linear"}
    assert not run(tmp_path, ramp).findings, "a ramp offers its rate only at its end"


def test_broken_yaml_is_refused_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "report.yaml"
    path.write_text("version: '0.2'\nresults: [1, 2\nscenario: {}\n", encoding="utf-8")
    (text,) = audit_files([path]).unreadable
    assert "the YAML is broken at line 3" in text


def test_yaml_of_no_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("name: a\nusers: 3\n", encoding="utf-8")
    (text,) = audit_files([path]).unreadable
    assert "the YAML has no known format" in text


def test_yaml_that_contains_itself_is_read(tmp_path: Path) -> None:
    kind = FORMATS["llm-d 0.2"]
    path = tmp_path / "report.yaml"
    path.write_text(kind.text(kind.write(closed_load(3))) + "more: &me\n  again: *me\n  value: 3\n", encoding="utf-8")
    audit = audit_files([path])
    assert not audit.unreadable
    assert "more.value" in audit.sources[0].unread
