"""The command that `bezel config STACK --gcloud` prints converts back to the plan of the same stack."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.conversion.conversion import convert
from bezel.engine.project.project import Project
from bezel.operations.config.commands_of_services import service_command
from bezel.planner import Plan, make_plan
from bezel_pulumi_offline.lifecycle.mapping import body
from bezel_pulumi_offline.resources import TYPES
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_cloud_run import FakeRun, running
from tests.support.components.fake_engine import declare

PROJECT = Project(Path(__file__).parents[2])
TYPE = "gcp:cloudrunv2/service:Service"
SUBNETWORK = {"ipCidrRange": "10.8.0.0/24", "privateIpGoogleAccess": True, "region": "regions/us-east4"}
SERVICES = [stack for stack in PROJECT.stacks() if "zones" not in str(PROJECT.configuration(stack).get("lease"))]


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        fake.quota = 2
        fake.subnetworks = {"projects/acme-llm/regions/us-east4/subnetworks/llm": SUBNETWORK}
        yield fake


def plan_of(stack: str, **changes: Any) -> Plan:
    made = make_plan(PROJECT.configuration(stack) | changes, project="acme-llm", stack=stack)
    assert isinstance(made, Plan)
    return made


def as_sent(value: Any) -> Any:
    """A value without nulls, and with the whole numbers that the wire to the engine makes real ones of."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: as_sent(item) for key, item in value.items() if item is not None}
    return [as_sent(item) for item in value] if isinstance(value, list) else value


def command_of(plan: Plan) -> str:
    service = declare(lambda: deploy(plan), preview=True).one("cloudrunv2/service:Service")
    place = f"projects/{plan.project}/locations/{plan.service.region}"
    sent = {"name": f"{place}/services/{plan.service.name}", **body(TYPES[TYPE].fields, service.inputs)}
    command, without_flag = service_command(as_sent({**sent, "labels": dict(plan.service.labels)}))
    assert without_flag == ()
    return command


def without_limits(plan: Plan) -> dict[str, Any]:
    """The settings that reach the service: not those of checks, of costs, and the digest, which a deploy looks up."""
    settings = plan.settings.model_dump(exclude={"cost", "smoke", "observability", "rollout", "image"})
    # Options are compared as they are planned: in whichever of its forms a file writes one.
    return {key: value for key, value in settings.items() if key not in ("vllm", "weights", "scaling")}


@pytest.mark.parametrize("stack", SERVICES)
def test_the_command_of_a_stack_converts_back_to_its_plan(stack: str) -> None:
    plan = plan_of(stack)
    back = convert(command_of(plan), "FILE")
    assert back.objections == ()
    assert isinstance(back.plan, Plan)
    assert back.stack == stack
    assert back.plan.project == plan.project
    again = replace(back.plan.service, image=plan.service.image)
    assert again == plan.service
    assert without_limits(back.plan) == without_limits(plan)
    assert back.prices.before == back.prices.after
    assert back.remarks("not converted") == []


CHANGES: dict[str, dict[str, Any]] = {
    "callers and labels": {
        "access": {"public": True, "ingress": "all"},
        "labels": {"team": "speech", "owner": "chat"},
        "environment": "prod",
    },
    "a network": {"vpc": {"network": "llm", "subnetwork": "llm", "egress": "all-traffic", "tags": ["a", "b"]}},
    "variables and secrets": {
        "variables": {"VLLM_LOGGING_LEVEL": "DEBUG", "LIST": "a,b", "TEXT": 'it\'s "here" ^@^ $x'},
        "secrets": {"HF_TOKEN": "hf-token", "OTEL_TOKEN": "otel"},
        "weights": {"loading": "hub"},
        "resources": {"cpu": 8, "memory": "32Gi"},
        "cost": {},
    },
    "a probe of the port": {"probe": {"kind": "tcp", "period_seconds": 20, "failure_threshold": 60}},
    "its own name and bucket": {"service_name": "chat", "weights": {"bucket": "acme-w", "path": "own/copy"}},
    "the streamer": {"weights": {"loading": "runai-streamer", "bucket": "acme-w"}, "cost": {}},
    "a reserve, a boost, and numbers": {
        "scaling": {
            "zonal_redundancy": True,
            "max_instances": 2,
            "request_concurrency": 5,
            "request_timeout_seconds": 90,
        },
        "resources": {"cpu_boost": True},
        "cost": {},
    },
    "options in JSON, lists and switches": {
        "vllm": {
            "limit-mm-per-prompt": {"image": 2},
            "speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
            "enable-prefix-caching": False,
            "served-model-name": ["gemma", "chat"],
            "tool-call-parser": None,
            "enable-auto-tool-choice": None,
        }
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_further_settings_convert_back_to_the_plan(changes: dict[str, Any]) -> None:
    plan = plan_of("l4-qat", **changes)
    back = convert(command_of(plan), "FILE")
    assert isinstance(back.plan, Plan), back.objections
    # Who may call is in the service's policy, which no flag but that of everyone says.
    kept = {"image": plan.service.image, "invokers": plan.service.invokers, "public": plan.service.public}
    names = {"service_account_id", "image_repository_id", "labels"} if "service_name" in changes else set()
    kept |= {name: getattr(plan.service, name) for name in names}
    assert replace(back.plan.service, **kept) == plan.service


def test_another_setting_does_not_convert_back_to_the_plan() -> None:
    plan = plan_of("l4-qat")
    other = plan_of("l4-qat", scaling={"max_instances": 2}, cost={})
    back = convert(command_of(other), "FILE").plan
    assert isinstance(back, Plan)
    assert replace(back.service, image=plan.service.image) != plan.service
