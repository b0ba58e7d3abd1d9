"""Endpoint of a stack: the address and the commands of its access, without a request to anybody."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.deployment.server_access import ServerAccess
from bezel.operations.endpoint.endpoint import Endpoint, EndpointArguments, endpoint
from bezel.operations.endpoint.token_command import token_command
from bezel_base.errors import UserError
from bezel_base.terminal.layout import lay_out
from tests.support.operations.deployed import (
    Deployed,
    address_output,
    door_resource,
    further_resource,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import Answer

URL = "https://llm.example"
SHELLS = [name for name in ("bash", "dash", "zsh") if shutil.which(name)]


def of(cloud: Deployed, *resources: dict[str, Any], url: str = URL) -> Endpoint:
    cloud.keep("dev", state_of(*(resources or (service_resource(),)), url=url, model="gemma"))
    endpoint_of_stack = endpoint(cloud.context, EndpointArguments(stack="dev"))
    assert cloud.server.calls == []
    return endpoint_of_stack


def check(**outputs: Any) -> dict[str, Any]:
    type_ = "pulumi-python:dynamic/smoke:HealthCheck"
    return {"urn": f"urn:pulumi:dev::bezel::{type_}::health", "type": type_, "custom": True, "outputs": outputs}


def test_a_private_service_is_called_with_a_token_or_through_the_proxy(cloud: Deployed) -> None:
    endpoint_of_stack = of(cloud)
    assert (endpoint_of_stack.openai_base_url, endpoint_of_stack.is_public, endpoint_of_stack.audience) == (
        f"{URL}/v1",
        False,
        URL,
    )
    assert (
        endpoint_of_stack.curl == f'curl -H "Authorization: Bearer $(gcloud auth print-identity-token)" {URL}/v1/models'
    )
    assert endpoint_of_stack.proxy == "bezel proxy dev"
    assert "identity token of audience" in endpoint_of_stack.text()


def test_a_public_service_is_called_without_a_token(cloud: Deployed) -> None:
    endpoint_of_stack = of(cloud, service_resource(invokerIamDisabled=True))
    assert (endpoint_of_stack.is_public, endpoint_of_stack.audience, endpoint_of_stack.proxy) == (True, None, None)
    assert endpoint_of_stack.curl == f"curl {URL}/v1/models"


def test_the_smoke_check_s_account_gets_a_token_of_its_audience(cloud: Deployed) -> None:
    endpoint_of_stack = of(
        cloud, service_resource(), check(audience="https://own.example", impersonate="caller@acme.example")
    )
    account = "--impersonate-service-account=caller@acme.example --audiences=https://own.example --include-email"
    assert account in endpoint_of_stack.curl


def test_address_is_shown_with_state_records_and_urls_of_regions(cloud: Deployed) -> None:
    near = {**service_resource(), "outputs": {"uri": URL}}
    outputs = {"url": "https://llm.acme.example", "model": "gemma", "address": address_output()}
    cloud.keep("dev", state_of(near, further_resource("europe-west4"), check(audience=URL), **outputs))
    result = endpoint(cloud.context, EndpointArguments(stack="dev"))
    assert (result.url, result.audience) == ("https://llm.acme.example", "https://llm.acme.example")
    assert [each.region for each in result.regions] == ["us-east4", "europe-west4"]
    assert result.address is not None
    assert not result.address.answers
    assert result.curl.endswith(f" {URL}/v1/models"), "the command answers before the address does"
    text = result.text()
    for part in (
        "203.0.113.7, does not answer: no load balancer of localcloud",
        "record                   _acme-challenge.llm.acme.example. CNAME proof.authorize.example.",
        "service in europe-west4  https://llm-europe-west4.example",
    ):
        assert part in text
    shown = lay_out(result.page(), 80)
    assert "  record  _acme-challenge.llm.acme.example. CNAME proof.authorize.example." in shown
    assert {line.split()[0] for line in shown if len(line) > 80} <= {"record", "curl"}


def test_one_region_has_neither_address_nor_regions(cloud: Deployed) -> None:
    assert (of(cloud).address, of(cloud).regions) == (None, ())


def programs_in(folder: Path, **scripts: str) -> dict[str, str]:
    """Variables of a shell that has these programs before its own."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin", "no_proxy": "*"}


def printed_line(endpoint_of_stack: Endpoint) -> str:
    (line,) = [line for line in endpoint_of_stack.text().splitlines() if "curl" in line]
    return line


@pytest.mark.parametrize("shell", SHELLS)
def test_the_printed_line_answers_on_localcloud(cloud: Deployed, tmp_path: Path, shell: str) -> None:
    cloud.server.routes.insert(0, lambda call: Answer(json={"data": []}) if call.path == "/v1/models" else None)
    key_file = tmp_path / "two words" / "credentials.json"
    cloud.context.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(key_file)  # type: ignore[index]
    line = printed_line(of(cloud, url=cloud.server.url))
    variables = programs_in(tmp_path, bezel='echo "of $*"')
    ran = subprocess.run([shell, "-c", line], env=variables, capture_output=True, text=True, check=True)
    assert ran.stdout == '{"data": []}'
    (call,) = cloud.server.calls
    token = f"of local token {cloud.server.url} --dir {key_file.parent}"
    assert call.headers["authorization"] == f"Bearer {token}"


def test_the_printed_line_has_the_token_of_gcloud_on_google(cloud: Deployed, tmp_path: Path) -> None:
    line = printed_line(of(cloud, service_resource(), check(audience=URL, impersonate="caller@acme.example")))
    variables = programs_in(tmp_path, gcloud="shift 2; echo $#:$1", curl='printf "%s\\n" "$@"')
    ran = subprocess.run(["bash", "-c", line], env=variables, capture_output=True, text=True, check=True)
    token = "3:--impersonate-service-account=caller@acme.example"
    assert ran.stdout.splitlines() == ["-H", f"Authorization: Bearer {token}", f"{URL}/v1/models"]


@pytest.mark.parametrize(
    ("url", "key_file", "command"),
    [
        ("http://127.0.0.1:8080", "/chat/.localcloud/credentials.json", "bezel local token http://127.0.0.1:8080"),
        ("https://localhost:8080", "", "bezel local token https://localhost:8080"),
        (
            "http://127.0.0.1:8080",
            "/chat/docs/.localcloud/credentials.json",
            "bezel local token http://127.0.0.1:8080 --dir /chat/docs/.localcloud",
        ),
        ("https://localhost.example", "/chat/.localcloud/credentials.json", "gcloud auth print-identity-token"),
    ],
    ids=["the project's own", "no key file", "elsewhere", "not on this machine"],
)
def test_a_token_is_asked_of_the_cloud_that_has_the_stack(url: str, key_file: str, command: str) -> None:
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": key_file}
    assert token_command(ServerAccess(url, url), environ, Path("/chat")) == command


def test_a_stack_without_an_address_has_no_endpoint(cloud: Deployed) -> None:
    with pytest.raises(UserError, match="no address"):
        of(cloud, url="")


def test_a_door_of_keys_is_shown_with_its_commands_and_is_no_server(cloud: Deployed) -> None:
    shown = of(cloud, door_resource(), service_resource())
    assert shown.door is not None
    assert shown.door.openai_base_url == "https://llm-door.example/v1"
    assert (shown.url, shown.is_public) == (URL, False)
    text = shown.text()
    assert "door for keys" in text
    assert "bezel keys create dev" in text
    assert 'curl -H "Authorization: Bearer $BEZEL_KEY" https://llm-door.example/v1/models' in text
    assert of(cloud).door is None
    assert "keys" not in of(cloud).text()
