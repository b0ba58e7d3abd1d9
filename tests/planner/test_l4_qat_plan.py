"""The L4 stack as it is committed plans to exactly what Cloud Run and vLLM need."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from bezel.planner import make_plan, plan_summary
from tests.support.planner.l4_stack import L4


@pytest.fixture(scope="module")
def plan():
    return make_plan(L4, project="bezel-local", stack="l4-qat")


def test_the_argument_list_is_whole_and_in_one_spelling(plan):
    assert plan.service.arguments == (
        "/mnt/models/gemma-4-12B-it-qat-w4a16-ct",
        "--disable-chunked-mm-input",
        "--dtype=bfloat16",
        "--enable-auto-tool-choice",
        "--fail-on-environ-validation",
        "--gpu-memory-utilization=0.95",
        "--kv-cache-dtype=fp8",
        "--max-model-len=32768",
        "--max-num-batched-tokens=4096",
        "--max-num-seqs=8",
        "--port=8080",
        "--reasoning-parser=gemma4",
        "--safetensors-load-strategy=prefetch",
        "--served-model-name=gemma-4-12b-it-qat-w4a16",
        "--tool-call-parser=gemma4",
    )


def test_the_service_stays_inside_the_platforms_limits(plan):
    service = plan.service
    assert (service.cpu, service.memory_gib, service.accelerator_count) == (4, 16, 1)
    assert service.startup_probe.period_seconds * service.startup_probe.failure_threshold <= 1800
    assert service.startup_probe.timeout_seconds < service.startup_probe.period_seconds
    assert service.request_concurrency == 16
    assert not service.public
    assert not service.zonal_redundancy
    assert service.invokers == ()
    assert {"uid=1001", "gid=1001"} <= set(service.weights.mount_options)
    assert (service.weights.bucket, service.weights.create) == ("bezel-local-models", False)
    assert service.environment["HF_HUB_OFFLINE"] == "1"
    assert service.environment["VLLM_ENABLE_CUDA_COMPATIBILITY"] == "1"


def test_the_worked_price_comes_out(plan):
    cost = plan.cost.as_output()
    assert cost["usd_per_hour"] == 1.0465
    assert cost["usd_per_month_always_on"] == 763.96
    assert cost["usd_per_month_without_traffic"] == 0.0


def test_everything_fits_with_room_for_every_sequence_at_full_length(plan):
    assert plan.fit.starts
    assert plan.fit.full_context_sequences >= plan.fit.max_num_seqs == 8


def test_outputs_are_plain_values(plan):
    for part in (plan.fit, plan.estimate, plan.cost):
        assert json.loads(json.dumps(part.as_output())) == part.as_output()
    assert dataclasses.asdict(plan.service)["weights"]["mount_path"] == "/mnt/models"


def test_the_summary_shows_each_argument_and_where_it_came_from(plan):
    lines = [line.split() for line in plan_summary(plan).splitlines()]
    assert ["--max-model-len", "32768", "(stack", "file)"] in lines
    assert ["--tool-call-parser", "gemma4", "(catalogue", "default)"] in lines
    assert ["cpu", "4", "(computed)"] in lines
    shown = " ".join(" ".join(line) for line in lines)
    for word in plan.service.arguments:
        assert word.split("=")[0] in shown
    for text in (
        "1.0465 USD/h",
        "763.96 USD/month",
        "0.00 USD/month",
        "derived",
        "estimated, not measured",
        "not included",
    ):
        assert text in shown


def test_the_summary_names_every_origin_whatever_the_spelling():
    changes = {
        "region": "us-central1",
        "vllm_version": "0.33.0",
        "vllm": {"enable-prefix-caching": False, "served-model-name": ["one", "two"]},
    }
    plan = make_plan({**L4, **changes}, project="bezel-local", stack="l4-qat")
    text = plan_summary(plan)
    assert plan.served_model == "one"
    for name, value, origin in (
        ("--disable-prefix-caching", "", "stack file"),
        ("--served-model-name", "one two", "stack file"),
        ("region", r"us-central1 \(on invitation\)", "stack file"),
        ("--max-num-seqs", "8", "catalogue default"),
    ):
        assert re.search(rf"^  {name} +{value} +\({origin}\)$", text, flags=re.MULTILINE), name


def test_a_production_stack_is_protected_from_deletion(plan):
    prod = make_plan({**L4, "environment": "prod"}, project="bezel-local", stack="l4-qat")
    assert prod.service.deletion_protection
    assert not plan.service.deletion_protection


@pytest.mark.parametrize(
    ("environment", "protection", "protected"),
    [("prod", "never", False), ("dev", "always", True), ("staging", "environment", True)],
)
def test_a_stack_file_may_say_otherwise(environment, protection, protected):
    config = {**L4, "environment": environment, "deletion_protection": protection}
    assert make_plan(config, project="bezel-local", stack="l4-qat").service.deletion_protection is protected
