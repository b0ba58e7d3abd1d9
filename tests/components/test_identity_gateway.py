"""The front door of nodes: what Cloud Run is asked for, and what a change of the nodes changes."""

from typing import Any

import pulumi
import pytest

from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.config.gateway import PROBE_ATTEMPTS
from bezel_components.config.gateway_fallback import IDENTITY, identity_program
from bezel_components.identity_gateway import (
    CONFIGURATION,
    SCRIPT,
    SCRIPT_WITH_FALLBACK,
    GatewayFallback,
    IdentityGateway,
    IdentityGatewayArgs,
)
from tests.support.components.fake_engine import DIGEST, REVISION, Declarations, declare, has_unknown

IMAGE = f"us-east4-docker.pkg.dev/acme-llm/docker-hub/library/haproxy@{DIGEST}"


def gateway_args(**more: Any) -> IdentityGatewayArgs:
    defaults: dict[str, Any] = {
        "project": "acme-llm",
        "location": "us-east4",
        "service": "chat-tpu",
        "account_id": "chat-gateway",
        "image": IMAGE,
        "nodes": ("10.64.0.5", "10.64.0.6"),
        "network": "projects/acme-llm/global/networks/bezel-chat",
        "subnetwork": "projects/acme-llm/regions/us-east4/subnetworks/bezel-chat",
        "invokers": ("user:a@acme.example",),
    }
    return IdentityGatewayArgs(**{**defaults, **more})


def declarations_of(*, preview: bool = False, **more: Any) -> Declarations:
    return declare(lambda: IdentityGateway("gateway", gateway_args(**more)), preview=preview)


def service(**more: Any) -> dict[str, Any]:
    return declarations_of(**more).one("cloudrunv2/service:Service").inputs


def test_the_gateway_costs_nothing_without_requests() -> None:
    """The gateway costs nothing without requests and has one leg in the nodes' network."""
    template = service()["template"]
    (container,) = template["containers"]
    assert container["resources"] == {
        "limits": {"cpu": "1", "memory": "512Mi"},
        "cpuIdle": True,
        "startupCpuBoost": False,
    }
    assert template["scaling"] == {"minInstanceCount": 0, "maxInstanceCount": 2}
    assert "nodeSelector" not in template
    assert template["timeout"] == "3600s"
    args = gateway_args(tags=("front",))
    assert service(tags=("front",))["template"]["vpcAccess"] == {
        "egress": "PRIVATE_RANGES_ONLY",
        "networkInterfaces": [{"network": args.network, "subnetwork": args.subnetwork, "tags": ["front"]}],
    }


def test_it_runs_as_an_account_of_its_own_that_has_no_role() -> None:
    declarations = declarations_of()
    account, made = declarations.one("serviceaccount/account:Account"), declarations.one("cloudrunv2/service:Service")
    assert account.inputs["accountId"] == "chat-gateway"
    assert made.inputs["template"]["serviceAccount"] == "chat-gateway@acme-llm.iam.gserviceaccount.com"
    assert declarations.waits_for(made, account)
    assert [resource.type for resource in declarations.all if "Iam" in resource.type] == [
        "gcp:cloudrunv2/serviceIamMember:ServiceIamMember"
    ]


def test_only_its_invokers_may_call_it() -> None:
    members = declarations_of().of("ServiceIamMember")
    assert [(one.inputs["role"], one.inputs["member"]) for one in members] == [
        ("roles/run.invoker", "user:a@acme.example")
    ]
    assert "invokerIamDisabled" not in service()


def test_everybody_may_only_where_that_is_said() -> None:
    members = declarations_of(invokers=(), public=True).of("ServiceIamMember")
    assert [one.inputs["member"] for one in members] == ["allUsers"]
    with pytest.raises(ArgumentsError, match="public=True"):
        gateway_args(invokers=("allUsers",))


def test_another_number_of_nodes_changes_the_environment_and_nothing_else() -> None:
    few, many = declarations_of(nodes=("10.64.0.5",)), declarations_of(nodes=("10.64.0.5", "10.64.0.6", "10.64.0.7"))
    assert [(one.type, one.name) for one in few.all] == [(one.type, one.name) for one in many.all]
    first, second = (declarations.one("cloudrunv2/service:Service").inputs for declarations in (few, many))
    texts = [made["template"]["containers"][0].pop("envs")[0]["value"] for made in (first, second)]
    assert first == second
    assert [text.count("\n    server ") for text in texts] == [1, 3]


def test_the_preview_knows_all_but_addresses_that_are_not_known_yet() -> None:
    assert not has_unknown(declarations_of(preview=True).one("cloudrunv2/service:Service").inputs)

    def program() -> None:
        unknown: pulumi.Output[str] = pulumi.Output.from_input("").apply(lambda _: "10.64.0.5")
        IdentityGateway("gateway", gateway_args(nodes=(unknown, "10.64.0.6")))

    made = declare(program).one("cloudrunv2/service:Service").inputs
    assert "server node-0 10.64.0.5:8000" in made["template"]["containers"][0]["envs"][0]["value"]


def test_a_node_that_turns_out_not_to_be_there_stops_no_deploy() -> None:
    def program() -> None:
        gone: pulumi.Output[str] = pulumi.Output.from_input("").apply(lambda _: "")
        IdentityGateway("gateway", gateway_args(nodes=(gone, "10.64.0.6")))

    made = declare(program).one("cloudrunv2/service:Service").inputs
    text = made["template"]["containers"][0]["envs"][0]["value"]
    assert [line.split()[1] for line in text.splitlines() if line.startswith("    server ")] == ["node-1"]


def test_the_startup_probe_lasts_until_it_passes_without_a_node() -> None:
    probe = service()["template"]["containers"][0]["startupProbe"]
    assert probe["httpGet"]["path"] == "/gateway"
    assert probe["failureThreshold"] > PROBE_ATTEMPTS
    assert probe["failureThreshold"] * probe["periodSeconds"] <= 240


def test_what_is_no_address_is_reported_without_a_traceback() -> None:
    with pytest.raises(pulumi.RunError, match="chat-tpu: nodes = node 1: 'node'"):
        declarations_of(nodes=("10.64.0.5", "node"))


def test_there_is_no_gateway_without_a_node_or_without_a_digest() -> None:
    with pytest.raises(ArgumentsError, match="nodes"):
        gateway_args(nodes=())
    with pytest.raises(ArgumentsError, match="has no digest"):
        gateway_args(image="docker.io/library/haproxy:2.6.33")


def test_the_outputs_tell_where_it_is_and_what_runs() -> None:
    assert declarations_of().one("IdentityGateway").outputs == {
        "url": "https://chat.example",
        "revision": REVISION,
        "created_revision": REVISION.replace("00001", "00002"),
        "resource_name": "projects/acme-llm/locations/us-east4/services/chat-tpu",
    }


FALLBACK = GatewayFallback(location="us-east4", service="chat-l4", url="https://chat-l4-1.us-east4.run.app")


def test_a_gateway_with_a_fallback_may_call_it_before_it_serves() -> None:
    declared = declarations_of(fallback=FALLBACK)
    grant = next(one for one in declared.of("ServiceIamMember") if one.name == "gateway-fallback-invoker")
    made = declared.one("cloudrunv2/service:Service")
    assert {key: grant.inputs[key] for key in ("location", "name", "role", "member")} == {
        "location": "us-east4",
        "name": "chat-l4",
        "role": "roles/run.invoker",
        "member": "serviceAccount:chat-gateway@acme-llm.iam.gserviceaccount.com",
    }
    assert declared.waits_for(made, grant)
    (container,) = made.inputs["template"]["containers"]
    variables = {one["name"]: one["value"] for one in container["envs"]}
    assert container["args"] == ["-c", SCRIPT_WITH_FALLBACK]
    assert variables[IDENTITY] == identity_program()
    assert "fallback_identity https://chat-l4-1.us-east4.run.app" in variables[CONFIGURATION]


def test_a_gateway_without_a_fallback_has_one_grant_and_one_text() -> None:
    declared = declarations_of()
    (container,) = declared.one("cloudrunv2/service:Service").inputs["template"]["containers"]
    assert container["args"] == ["-c", SCRIPT]
    assert [one["name"] for one in container["envs"]] == [CONFIGURATION]
    assert len(declared.of("ServiceIamMember")) == 1


def test_a_fallback_of_another_address_ends_the_deploy() -> None:
    elsewhere = FALLBACK.model_copy(update={"url": "https://chat.acme.example/v1"})
    with pytest.raises(pulumi.RunError, match="send its identity there"):
        declarations_of(fallback=elsewhere)
