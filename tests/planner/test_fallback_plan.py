"""The fallback of a lease: planned by the rules of a service, priced in each state, and refused where callers break."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bezel.planner import LeasePlan, PlanError, make_plan
from bezel.planner.base.money import Priced, round_usd
from bezel.planner.fallback.gateway_checks import detection_seconds
from bezel.planner.render.summary import plan_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.planner.base.money import Amount
    from bezel_base.errors import Problem

QAT = "gemma-4-12b-it-qat-w4a16"
STACK: dict[str, Any] = {
    "model": "gemma-4-12b-it",
    "accelerator": "v6e-1",
    "region": "us-east4",
    "lease": {"zones": [{"zone": "us-east5-a"}]},
    "vllm": {"max-model-len": 8192, "max-num-seqs": 64},
    "fallback": {"accelerator": "nvidia-l4", "model": QAT, "vllm": {"max-num-seqs": 8}},
}


def plan_with(vllm: dict[str, Any] | None = None, fallback: dict[str, Any] | None = None, **changes: Any) -> LeasePlan:
    """The plan of a stack with another fallback; None of `fallback` leaves a key out."""
    chosen = {key: value for key, value in (STACK["fallback"] | (fallback or {})).items() if value is not None}
    config = STACK | {"vllm": STACK["vllm"] | (vllm or {}), "fallback": chosen} | changes
    plan = make_plan(config, project="acme-llm", stack="chat")
    assert isinstance(plan, LeasePlan)
    return plan


def problems_of(**changes: Any) -> Sequence[Problem]:
    with pytest.raises(PlanError) as caught:
        plan_with(**changes)
    return caught.value.problems


def test_a_fallback_promises_what_the_lease_does() -> None:
    plan = plan_with()
    assert plan.fallback is not None
    service = plan.fallback.service
    assert (service.name, service.region, service.accelerator) == ("bezel-chat-fallback", "us-east4", "nvidia-l4")
    assert (service.min_instances, service.max_instances) == (0, 1)
    assert (service.invokers, service.public, service.ingress) == ((), False, "all")
    assert service.values["served-model-name"] == ["gemma-4-12b-it"]
    assert service.values["max-model-len"] == 8192
    assert service.values.get("reasoning-parser") == plan.node.values.get("reasoning-parser")
    assert service.values["tool-call-parser"] == plan.node.values["tool-call-parser"]
    assert service.weights.path == "gemma-4-12B-it-qat-w4a16-ct"
    assert service.image.repository == "vllm/vllm-openai"
    # Beside the lease's names, so that one stack has both.
    others = (plan.gateway.name, plan.service_account_id, plan.gateway.service_account_id, plan.image_repository_id)
    assert not {service.name, service.service_account_id, service.image_repository_id}.intersection(others)


def test_a_lease_without_a_fallback_has_nothing_of_one() -> None:
    config = {key: value for key, value in STACK.items() if key != "fallback"}
    plan = make_plan(config, project="acme-llm", stack="chat")
    assert isinstance(plan, LeasePlan)
    assert plan.fallback is None
    assert "allback" not in plan_summary(plan)
    assert not [key for key in plan.as_output() if "fallback" in key]
    assert plan.cost.hourly_in_a_change == plan.cost.hourly_at_max


def test_each_state_has_its_price() -> None:
    plan = plan_with(fallback={"max_instances": 2})
    cost, fallback = plan.cost, plan.cost.fallback
    assert fallback is not None
    amounts = [cost.hourly_at_max, cost.fallback_at_max, fallback.hourly_at_min, cost.hourly_in_a_change]
    assert all(isinstance(amount, Priced) for amount in amounts)
    # A v6e chip at 1.35; two instances of an L4 with 4 CPUs and 16 GiB at 1.0465; the gateway's two at 0.1818.
    usd = [amount.usd.quantize(Decimal("0.0001")) for amount in amounts if isinstance(amount, Priced)]
    assert usd == [Decimal("1.5318"), Decimal("2.2748"), Decimal(0), Decimal("3.6248")]
    text = " ".join(plan_summary(plan).split())
    for shown in ("1.5318 USD/h", "2.2748 USD/h", "0.0000 USD/h", "3.6248 USD/h"):
        assert shown in text
    for seconds in detection_seconds().values():
        assert f"no request after {seconds} s at most" in text


def test_an_address_costs_in_each_state() -> None:
    plain, addressed = plan_with().cost, plan_with(address={"domain": "llm.acme.example"}).cost
    assert addressed.address is not None
    address = usd_of(addressed.address.hourly)
    assert address > 0
    for name in ("hourly_at_rest", "hourly_at_max", "fallback_at_max", "hourly_in_a_change"):
        assert usd_of(getattr(addressed, name)) == usd_of(getattr(plain, name)) + address, name


def usd_of(amount: Amount | None) -> Decimal:
    assert isinstance(amount, Priced)
    return amount.usd


def test_the_document_has_the_prices_and_times_of_the_plan() -> None:
    document = (Path(__file__).parents[2] / "docs/leases.md").read_text()
    cost = plan_with().cost
    amounts = [cost.hourly_at_max, cost.fallback_at_max, cost.hourly_at_rest, cost.hourly_in_a_change]
    usd = [round_usd(amount.usd, 4) for amount in amounts if isinstance(amount, Priced)]
    assert re.findall(r"^\| [^|]+ \| (\d+\.\d{4}) \|", document, re.MULTILINE) == usd
    ended, gone, hangs = detection_seconds().values()
    assert f"after {ended} s where its server" in document
    assert f"{gone} s where the machine is gone, {hangs} s where its server hangs" in document


def test_the_limit_counts_both_while_one_takes_over() -> None:
    limits = {"max_hourly_usd": 2.5}
    (problem,) = problems_of(cost=limits)
    assert problem.key == "bezel:cost.max_hourly_usd"
    assert problem.consequence.startswith("machines, gateway and fallback cost up to 2.5783 USD per hour")
    # There is one of each: fewer would be none.
    assert problem.repair == "raise `bezel:cost.max_hourly_usd` to 2.58."
    (problem,) = problems_of(cost=limits, fallback={"max_instances": 2}, lease=STACK["lease"] | {"count": 2})
    assert problem.repair.endswith(", or lease fewer machines, or lower bezel:fallback.max_instances.")
    assert plan_with(cost={"max_hourly_usd": 2.6}).fallback


def test_callers_are_told_of_another_model_and_an_accepted_length() -> None:
    plan = plan_with(fallback={"accept_shorter_context": True, "vllm": {"max-model-len": 4096}})
    notes = [warning for warning in plan.warnings if warning.startswith("While the fallback serves")]
    assert notes == [
        f"While the fallback serves, answers come from {QAT} in place of gemma-4-12b-it.",
        "While the fallback serves, requests of more than 4096 tokens get 400; the lease takes 8192.",
    ]
    same = plan_with(fallback={"model": None, "accelerator": "nvidia-rtx-pro-6000", "region": "us-central1"})
    assert [warning for warning in same.warnings if "fallback" in warning] == []


WRONG = {
    "shorter": ({"vllm": {"max-model-len": 4096}}, "fallback.vllm.max-model-len", "up to the lease's 8192, get 400"),
    "another name": ({"vllm": {"served-model-name": "chat"}}, "fallback.vllm.served-model-name", "get 404 while"),
    "another parser": ({"vllm": {"response-role": "bot"}}, "fallback.vllm.response-role", "another form"),
    "no parser": ({"vllm": {"reasoning-parser": "gemma4"}}, "fallback.vllm.reasoning-parser", "is not set"),
    "leased": ({"accelerator": "v6e-4"}, "fallback.accelerator", "it is leased itself"),
    "unknown GPU": ({"accelerator": "nvidia-l5"}, "fallback.accelerator", "not in the catalogue"),
    "no GPU": ({"accelerator": None}, "fallback.accelerator", "it is required"),
    "region": ({"region": "us-east5"}, "fallback.region", "does not offer nvidia-l4 there"),
    "unknown model": ({"model": "gemma-5"}, "fallback.model", "not in the catalogue"),
    "unpublished model": ({"model": "gemma-4-26b-a4b-it-w4a16"}, "fallback.model", "is not published"),
    "too large": ({"model": "gemma-4-31b-it"}, "fallback.model", ""),
    "memory": ({"resources": {"memory": "8Gi"}}, "fallback.resources.memory", ""),
    "option": ({"vllm": {"max-model-lenn": 1}}, "fallback.vllm.max-model-lenn", ""),
    "instances": ({"max_instances": 0}, "fallback.max_instances", "out of range"),
    "key": ({"min_instances": 1}, "fallback.min_instances", "does not exist"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_fallback_that_fails_its_callers_is_refused_by_its_own_key(case: str) -> None:
    fallback, key, text = WRONG[case]
    problems = problems_of(fallback=fallback)
    assert [problem.key for problem in problems] == [f"bezel:{key}"]
    assert text in problems[0].consequence
    assert problems[0].repair
    assert "bezel:vllm.max-model-lenn" not in repr(problems)


@pytest.mark.parametrize(("name", "meant"), [("nvidia_l4", "did you mean nvidia-l4?"), ("v6e-3", "choose one of ")])
def test_an_unknown_fallback_lists_the_hardware_that_it_may_have(name: str, meant: str) -> None:
    (problem,) = problems_of(fallback={"accelerator": name})
    assert problem.repair.startswith(meant)
    assert "nvidia-rtx-pro-6000" in problem.repair
    assert "v6e-1" not in problem.repair
    (of_the_lease,) = problems_of(accelerator="v6e-3", fallback={"accelerator": None, "model": None, "vllm": None})
    assert "v6e-1" in of_the_lease.repair


def test_problems_of_the_lease_and_the_fallback_come_together() -> None:
    problems = problems_of(fallback={"region": "us-east5"}, vllm={"max-num-seqs": 0})
    assert {"bezel:fallback.region", "bezel:vllm.max-num-seqs"} <= {problem.key for problem in problems}


def test_a_gateway_of_the_name_of_its_fallback_is_refused() -> None:
    (problem,) = problems_of(service_name="bezel-chat-fallback")
    assert (problem.key, problem.value) == ("bezel:service_name", "bezel-chat-fallback")
    assert "the fallback has this name in us-east4 too" in problem.consequence
    assert plan_with(service_name="bezel-chat-fallback", fallback={"region": "europe-west4"}).fallback


def test_a_stack_with_the_name_of_a_fallback_is_warned() -> None:
    config = {"model": QAT, "accelerator": "nvidia-l4", "region": "us-east4"}
    warned = {
        stack: [text for text in make_plan(settings, project="acme-llm", stack=stack).warnings if "too, and" in text]
        for stack, settings in {
            "chat-fallback": config,
            "Chat-fallback": config,
            "fallback": config,
            "chat": STACK,
            "other": config | {"service_name": "bezel-chat-fallback"},
        }.items()
    }
    assert [stack for stack, texts in warned.items() if texts] == ["chat-fallback", "other"]
    assert "a stack chat has the name bezel-chat-fallback too" in warned["other"][0]
    assert "set bezel:service_name" in warned["other"][0]
    renamed = make_plan(config | {"service_name": "chat"}, project="acme-llm", stack="chat-fallback")
    assert not [text for text in renamed.warnings if "too, and" in text]


def test_a_service_has_no_fallback() -> None:
    config = {"model": QAT, "accelerator": "nvidia-l4", "region": "us-east4", "fallback": {"accelerator": "nvidia-l4"}}
    with pytest.raises(PlanError) as caught:
        make_plan(config, project="acme-llm", stack="chat")
    assert [problem.key for problem in caught.value.problems] == ["bezel:fallback"]
