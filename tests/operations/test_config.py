"""Configuration before it is applied: what is shown is what the cloud has after the deploy, and the commands say it."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.config.commands_of_leases import instance_command
from bezel.operations.config.commands_of_services import service_command
from bezel.operations.config.config import LATER, Config, ConfigArguments, config
from bezel.operations.config.flags import Flags, list_value
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import DeployArguments, apply_deploy, plan_deploy
from bezel_base.errors import UserError
from tests.support.gitops.pipeline import Pipeline

NAME = "projects/acme/locations/us-east4/services/llm"


def words_of(command: str) -> list[str]:
    return shlex.split(command.replace(" \\\n  ", " "))


def read_list(text: str) -> list[str]:
    """The items of a list as gcloud reads it (`gcloud topic escaping`)."""
    if match := re.match(r"\^([^^]+)\^", text):
        return text[match.end() :].split(match.group(1))
    return text.split(",")


@pytest.mark.slow
@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="@;"), min_size=1, max_size=9), min_size=1))
def test_a_list_of_a_flag_is_read_as_it_was_meant(items: list[str]) -> None:
    if not items[0].startswith("^"):
        assert read_list(list_value(items)) == items


@pytest.mark.slow
@given(st.text(max_size=12))
def test_a_shell_reads_each_value_as_it_was_meant(value: str) -> None:
    flags = Flags({"a": {"b": value}})
    flags.move("--flag", "a", "b")
    assert words_of(flags.command("gcloud", "x")) == ["gcloud", "x", f"--flag={value}"]
    assert flags.leftover_paths() == ()


def service(**changes: Any) -> dict[str, Any]:
    container = {
        "image": "i",
        "env": [
            {"name": "A", "value": "1,2"},
            {"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf", "version": "latest"}}},
        ],
        "resources": {"limits": {"cpu": "4"}, "cpuIdle": True, "startupCpuBoost": True},
    }
    return {"name": NAME, "template": {"containers": [container]}, **changes}


def test_variables_and_secrets_are_flags_and_fields_without_one_are_named() -> None:
    command, rest = service_command(service(customAudiences=["a"], binaryAuthorization={"useDefault": True}))
    words_of_command = words_of(command)
    assert words_of_command[:5] == ["gcloud", "beta", "run", "deploy", "llm"]
    assert {"--region=us-east4", "--set-env-vars=^@^A=1,2", "--set-secrets=HF_TOKEN=hf:latest"} <= {*words_of_command}
    assert {"--cpu-throttling", "--cpu-boost", "--no-allow-unauthenticated"} <= {*words_of_command}
    assert rest == ("customAudiences[0]", "binaryAuthorization.useDefault")


def test_traffic_by_revision_has_no_flag_of_a_deploy() -> None:
    newest = [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}]
    assert service_command(service(traffic=newest))[1] == ()
    assert service_command(service(traffic=[{**newest[0], "percent": 50}]))[1] != ()
    assert "--no-invoker-iam-check" in service_command(service(invokerIamDisabled=True))[0]


def test_a_machine_of_compute_engine_is_asked_for_with_the_same_terms() -> None:
    body = {
        "name": "one",
        "machineType": "projects/p/zones/z/machineTypes/ct6e-standard-4t",
        "scheduling": {
            "provisioningModel": "FLEX_START",
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE",
            "instanceTerminationAction": "DELETE",
            "maxRunDuration": {"seconds": "14400"},
        },
        "disks": [{"autoDelete": True, "boot": True, "initializeParams": {"sourceImage": "i", "diskSizeGb": "200"}}],
        "networkInterfaces": [{"subnetwork": "s"}],
        "metadata": {"items": [{"key": "startup-script", "value": "#!"}]},
        "params": {"requestValidForDuration": {"seconds": "7200"}},
        "labels": {"a": "b"},
        "tags": {"items": ["node"]},
    }
    command, rest = instance_command(body, project="p", zone="z")
    assert rest == ()
    wanted = {"--machine-type=ct6e-standard-4t", "--provisioning-model=FLEX_START", "--max-run-duration=14400s"}
    wanted |= {"--no-restart-on-failure", "--request-valid-for-duration=7200s", "--no-address", "--tags=node"}
    assert wanted <= {*words_of(command)}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder = tmp_path_factory.mktemp("config")
    made = Pipeline.whole(folder)
    (folder / "states").mkdir()
    made.environment["PULUMI_BACKEND_URL"] = f"file://{folder}/states"
    yield made
    made.stop()


def context(pipeline: Pipeline) -> Context:
    return Context(pipeline.folder, pipeline.warm_environment, show=lambda _line: None)


def shown_config(pipeline: Pipeline, stack: str, **arguments: Any) -> Config:
    return config(context(pipeline), ConfigArguments(stack=stack, **arguments))


def differences(wanted: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Paths of what was shown and is not in the cloud."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        for key, value in wanted.items():
            yield from differences(value, actual.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        for number, (one, other) in enumerate(zip(wanted, actual, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif wanted != actual:
        yield f"{path}: {wanted!r} is {actual!r}"


@pytest.mark.slow
@pytest.mark.long
def test_a_service_is_in_the_cloud_as_it_was_shown(pipeline: Pipeline) -> None:
    pipeline.seed("l4-qat")
    before = shown_config(pipeline, "l4-qat")
    (request,) = before.requests
    assert pipeline.cloud.get(f"/run/v2/{request.body['name']}").status_code in (403, 404)
    assert [*yaml.safe_load_all(before.text())] == [request.body]
    assert request.body["template"]["volumes"][0]["gcs"]["mountOptions"][0] == "uid=1001"
    assert request.without_flag == ()

    arguments = DeployArguments(stack="l4-qat", wait="0s")
    assert apply_deploy(context(pipeline), plan_deploy(context(pipeline), arguments)).verdict == "done"
    live = pipeline.cloud.get(f"/run/v2/{request.body['name']}").json()
    assert [*differences(request.body, live)] == []
    assert [*differences({**request.body, "ingress": "INGRESS_TRAFFIC_INTERNAL_ONLY"}, live)] != []
    assert shown_config(pipeline, "l4-qat").requests == before.requests


@pytest.mark.wide
@pytest.mark.slow
def test_a_lease_is_shown_as_a_node_gets_it_with_its_gateway(pipeline: Pipeline) -> None:
    pipeline.seed("v6e4-moe")
    requests = {each.method: each for each in shown_config(pipeline, "v6e4-moe").requests}
    node = requests["tpu.projects.locations.queuedResources.create"]
    asked = node.body["tpu"]["nodeSpec"][0]["node"]
    assert (node.body["provisioningModel"], node.body["runDuration"]) == ("FLEX_START", {"maxRunDuration": "14400s"})
    assert asked["metadata"]["startup-script"].startswith("#!/bin/bash")
    assert node.without_flag == ()
    assert {"--provisioning-model=flex-start", "--zone=europe-west4-a"} <= {*words_of(node.gcloud)}
    gateway = requests["run.projects.locations.services.create"]
    assert gateway.body["template"]["containers"][0]["env"][0]["value"] == LATER


@pytest.mark.slow
def test_what_cannot_be_previewed_is_refused_with_its_reason(pipeline: Pipeline) -> None:
    pipeline.set("bezel:region", "mars-east1", "l4-e2b")
    with pytest.raises(UserError, match="mars-east1"):
        shown_config(pipeline, "l4-e2b")
    run = pipeline.bezel("config", "nothing")
    assert (run.code, "there is no Pulumi.nothing.yaml" in run.text) == (2, True)
