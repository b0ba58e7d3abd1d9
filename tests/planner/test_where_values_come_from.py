"""The text of a plan says of each value where it came from: what a stack file changes is never told as a default."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel

from bezel.planner import make_plan, plan_summary
from bezel.planner.base.settings import Settings
from tests.support.planner.v6e_stack import V6E4_MOE

SERVICE = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
LEASE = V6E4_MOE | {"vllm": {}, "lease": {"zones": [{"zone": "us-east5-a"}]}}
CHANGES = {
    "environment": ["prod"],
    "region": ["europe-west4"],
    "vllm_version": ["0.33.0"],
    "image.registry": ["registry.example.com"],
    "image.repository": ["own/vllm"],
    "image.tag": ["v0.32.0-own"],
    "image.digest": ["sha256:" + "a" * 64],
    "image.options": ["0.32.0"],
    "weights.bucket": ["mine"],
    "weights.path": ["own/copy"],
    "weights.loading": ["hub", "fuse"],
    "vllm": [{"max-model-len": 8192, "max-num-seqs": 4, "dtype": "bfloat16", "seed": 7}],
    "resources.cpu": [8],
    "resources.memory": ["16Gi"],
    "resources.cpu_boost": [True],
    "adapters": [[{"name": "sql", "source": "acme/sql-lora", "rank": 8}]],
    "scaling.min_instances": [0],
    "scaling.max_instances": [2],
    "scaling.request_concurrency": [9],
    "scaling.request_timeout_seconds": [600],
    "scaling.schedule": [[{"cron": "0 8 * * *", "min_instances": 1}, {"cron": "0 9 * * *", "min_instances": 0}]],
    "rollout": ["gated"],
    "restarted_at": ["2026-11-24T12:00:00Z"],
    "probe.kind": ["tcp"],
    "probe.initial_delay_seconds": [60],
    "probe.period_seconds": [9],
    "probe.failure_threshold": [150],
    "access.invokers": [["user:a@example.com"]],
    "access.public": [True],
    "access.ingress": ["internal"],
    "access.keys": [True],
    "observability.metrics": [True],
    "vpc.network": ["own"],
    "vpc.egress": ["private-ranges-only"],
    "variables": [{"VLLM_LOGGING_LEVEL": "DEBUG", "TZ": "UTC"}],
    "secrets": [{"HF_TOKEN": "hf-token"}],
    "lease.zones": [[{"zone": "europe-west4-a", "patience": "2h"}]],
    "lease.patience": ["1h"],
    "lease.duration": ["2h"],
    "lease.provisioning": ["on-demand"],
    "lease.back_end": ["flex_start_vm"],
    "lease.renew": [True],
    "lease.count": [2],
    "lease.hours": [[{"start": "0 8 * * 1-5", "end": "0 11 * * 1-5", "time_zone": "Europe/Berlin"}]],
    "lease.provisioning_deadline": ["40m"],
    "lease.boot_deadline": ["2h"],
    "network.nat": [True],
    "cost.max_hourly_usd": [100],
    "cost.max_idle_hourly_usd": [50],
    "cost.max_lease_usd": [900],
    "regions": [["us-east4", "europe-west4"]],
    "optional_regions": [["europe-west4"]],
    "weights.regional_buckets": [True],
    "address.domain": ["llm.acme.example"],
    "address.zone": ["acme-example"],
    "fallback.accelerator": ["nvidia-l4"],
    "fallback.region": ["europe-west4"],
    "fallback.model": ["gemma-4-12b-it"],
    "fallback.vllm": [{"max-num-seqs": 4}],
    "fallback.resources.cpu": [22],
    "fallback.resources.memory": ["96Gi"],
    "fallback.max_instances": [2],
}
# What the text of a plan does not show, or only by what it costs or takes.
NOT_SHOWN = {
    "service_name", "deletion_protection", "weights.create", "scaling.zonal_redundancy", "probe.timeout_seconds",
    "access.accepted_risks", "vpc.subnetwork", "vpc.tags", "lease.compile_cache", "cost.prices", "labels",
    "smoke.deadline_seconds", "smoke.requests", "smoke.concurrency", "smoke.prompt_tokens", "smoke.output_tokens",
    "smoke.min_draft_acceptance", "smoke.random_weights", "smoke.impersonate", "smoke.inside",
    "observability.alerts", "observability.dashboard", "observability.email", "observability.max_error_share",
    "observability.max_cold_starts", "observability.idle_hours",
    "observability.max_ttft_seconds", "observability.max_tpot_seconds",
    "fallback.accept_shorter_context", "fallback.resources.cpu_boost",
    "observability.uptime", "observability.budget", "observability.billing_account", "observability.currency",
}  # fmt: skip
GPU = {"fallback.accelerator": "nvidia-rtx-pro-6000", "fallback.region": "us-central1"}
# What else a setting needs, so that there is a plan.
BESIDE: dict[str, dict[str, object]] = {
    "access.ingress": {"smoke.inside": True},
    "scaling.schedule": {"cost.max_idle_hourly_usd": 50},
    "vpc.egress": {"vpc.network": "own"},
    "lease.back_end": {"network.nat": True},
    "regions": {"region": ""},
    "optional_regions": {"region": "", "regions": ["us-east4", "europe-west4"]},
    "weights.regional_buckets": {"region": "", "regions": ["us-east4", "europe-west4"]},
    "address.zone": {"address.domain": "llm.acme.example"},
    "network.nat": {"weights.loading": "hub"},
    **{path: GPU | {path: CHANGES[path][0]} for path in CHANGES if path.startswith("fallback.")},
    "fallback.accelerator": GPU | {"fallback.accelerator": "nvidia-l4", "fallback.model": "gemma-4-12b-it-qat-w4a16"},
}
CHOSEN = {"model", "accelerator"}
OF_REGIONS = ("regions", "optional_regions", "weights.regional_buckets")


def paths(model: type[BaseModel], path: str = ""):
    """Every setting by its path."""
    for name, field in model.model_fields.items():
        if isinstance(field.default, BaseModel):
            yield from paths(type(field.default), f"{path}{name}.")
        else:
            yield f"{path}{name}"


def with_setting(config, path, value):
    """The configuration with one setting."""
    name, _, rest = path.partition(".")
    return config | {name: with_setting(config.get(name, {}), rest, value) if rest else value}


def rows(config) -> dict[str, tuple[str, str]]:
    """Section and name of each row -> its value and where it came from."""
    rows_by_name = {}
    section = ""
    for line in plan_summary(make_plan(config, project="p", stack="s")).splitlines():
        if not line.startswith(" "):
            section = line
        elif row := re.fullmatch(r"  (\S.*?)(?:  +(\S.*?))?  +\((.*)\)", line):
            rows_by_name[f"{section}: {row[1]}"] = (row[2] or "", row[3])
    return rows_by_name


CASES = [
    (path, value, kind)
    for path, values in CHANGES.items()
    for value in values
    for kind in (SERVICE, LEASE)
    if path.partition(".")[0]
    not in ({"lease", "network", "fallback"} if kind is SERVICE else {"resources", "scaling", "probe", "vpc"})
    and not (
        kind is LEASE
        and path in ("adapters", "rollout", "restarted_at", "access.ingress", "cost.max_idle_hourly_usd", *OF_REGIONS)
    )
    and not (kind is LEASE and value == "fuse")
    and not (kind is SERVICE and path == "cost.max_lease_usd")
]


@pytest.mark.parametrize(("path", "value", "kind"), CASES)
def test_what_a_stack_file_says_is_reported_as_its_own(path, value, kind):
    config = with_setting(kind, path, value)
    for other, beside in (
        BESIDE.get(path, {}) | ({"network.nat": True} if value == "hub" and kind is LEASE else {})
    ).items():
        config = with_setting(config, other, beside)
    without = kind
    if path.startswith("fallback."):  # a section that appears has rows with defaults
        for other, beside in (BESIDE[path] | {path: GPU.get(path)}).items():
            without = with_setting(without, other, beside) if beside is not None else without
    before, after = rows(without), rows(config)
    origins = make_plan(config, project="p", stack="s").origins
    assert "stack file" in {
        origin for name, origin in origins.items() if name == path or path == name.partition(".")[0]
    }
    changed = {name: row for name, row in after.items() if before.get(name, ("", ""))[0] != row[0]}
    wrong = {name: row for name, row in changed.items() if row[1] == "catalogue default"}
    assert not wrong
    changed_names = {name for name, row in after.items() if "stack file" in row[1] and row != before.get(name)}
    assert changed_names or path == "vllm_version"


def test_each_setting_is_changed_here_or_not_shown():
    assert {*paths(Settings)} == {*CHANGES} | NOT_SHOWN | CHOSEN


def test_variables_are_distinguished_from_those_of_the_plan():
    for kind in (SERVICE, LEASE):
        shown = rows(kind | {"variables": {"TZ": "UTC"}, "secrets": {"HF_TOKEN": "hf"}})
        assert shown["Stack: env TZ"] == ("UTC", "stack file")
        assert shown["Stack: env HF_TOKEN"][1] == "stack file"
        assert shown["Stack: env VLLM_NO_USAGE_STATS"] == ("1", "computed")


def test_what_nobody_said_is_not_reported_as_the_stack_files():
    for kind in (SERVICE, LEASE):
        file_rows = {name for name, (_, origin) in rows(kind).items() if "stack file" in origin}
        assert file_rows <= {
            "Stack: model", "Stack: region", "Stack: accelerator", "Stack: gateway region", "Lease: zone 1",
            "Lease: machines",
        }  # fmt: skip


def test_a_null_is_not_said():
    origins = make_plan(SERVICE | {"weights": {"bucket": None}}, project="p", stack="s").origins
    assert origins["weights.bucket"] == "computed"
