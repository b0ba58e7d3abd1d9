"""The package's process as the engine starts it: whom it serves, what it says to wrong requests, when it ends."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from bezel_plugin.table import COMPONENTS
from tests.support.other_user import reachable_by_other_user
from tests.support.plugin.program import PLUGIN

pytestmark = pytest.mark.slow
SECONDS = 60
HEALTH = "urn:pulumi:dev::shop::bezel:smoke:HealthCheck::health"
# Of a process that started the plugin and was killed: what the plugin says, until the end of its process.
STARTER = """
import subprocess, sys
plugin = subprocess.Popen([sys.executable, sys.argv[1], "127.0.0.1:1"], stdout=subprocess.PIPE)
plugin.stdout.readline()
print(plugin.pid, flush=True)
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    # An engine that nobody can reach: these calls need none.
    with subprocess.Popen([sys.executable, PLUGIN, "127.0.0.1:1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()
        assert process.wait(SECONDS) == 0


def stub(port: int) -> Any:
    return provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{port}"))


def failure(call: Any, request: Any) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        call(request, timeout=SECONDS)
    return str(refused.value.details())


def struct(**values: Any) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(values)
    return made


def test_the_own_user_is_served(port: int) -> None:
    assert stub(port).GetPluginInfo(empty_pb2.Empty(), timeout=SECONDS).version == "0.1.0"
    schema = json.loads(stub(port).GetSchema(pb.GetSchemaRequest(), timeout=SECONDS).schema)
    assert schema["resources"].keys() > COMPONENTS.keys()


def test_another_user_is_refused(port: int) -> None:
    requests = {"GetPluginInfo": empty_pb2.Empty(), "GetSchema": pb.GetSchemaRequest(), "Check": pb.CheckRequest(),
                "Create": pb.CreateRequest(urn=HEALTH), "Delete": pb.DeleteRequest(urn=HEALTH),
                "Construct": pb.ConstructRequest(), "Configure": pb.ConfigureRequest()}  # fmt: skip
    with reachable_by_other_user(port) as way:
        answers = {name: failure(getattr(stub(way), name), request) for name, request in requests.items()}
    assert answers == dict.fromkeys(requests, "this plugin serves only the user that started it")


def test_a_component_that_is_not_there_is_refused(port: int) -> None:
    request = pb.ConstructRequest(
        type="bezel:storage:WeightBucket", name="weights", monitorEndpoint=f"127.0.0.1:{port}"
    )
    text = failure(stub(port).Construct, request)
    assert "type bezel:storage:WeightBucket\n   the package bezel has no such component." in text
    assert "Repair: use bezel:storage:WeightsBucket." in text
    assert "Traceback" not in text


def test_wrong_inputs_of_a_component_are_refused(port: int) -> None:
    request = pb.ConstructRequest(
        type="bezel:storage:WeightsBucket",
        name="weights",
        inputs=struct(project="acme", bucket="models", locaton="us-east4"),
        monitorEndpoint=f"127.0.0.1:{port}",
    )
    text = failure(stub(port).Construct, request)
    assert "weights: locaton\n   there is no such input, so it would be ignored.\n   Repair: write location" in text
    assert "Traceback" not in text


def test_a_secret_input_of_a_check_stays_a_secret(port: int) -> None:
    mark = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "gemma"}
    news = struct(service="projects/p/locations/l/services/s", url="https://a.example", revision="r", servedModel=mark)
    checked = stub(port).Check(pb.CheckRequest(urn=HEALTH, news=news), timeout=SECONDS)
    assert not checked.failures
    assert dict(checked.inputs["servedModel"]) == mark
    assert checked.inputs["url"] == "https://a.example"
    made = stub(port).Create(pb.CreateRequest(urn=HEALTH, properties=checked.inputs, preview=True), timeout=SECONDS)
    assert dict(made.properties["servedModel"]) == mark


def test_a_failed_check_has_no_traceback(port: int) -> None:
    """By an input that `Check` would have refused."""
    request = pb.CreateRequest(
        urn="urn:pulumi:dev::shop::bezel:components:TrafficSwitch::traffic",
        properties=struct(service="projects/p/locations/l/services/s", revision="r", deadlineSeconds="soon"),
    )
    text = failure(stub(port).Create, request)
    assert text == "ValueError: could not convert string to float: 'soon'"


def test_the_process_ends_with_the_one_that_started_it() -> None:
    started = subprocess.run(
        [sys.executable, "-c", STARTER, PLUGIN], stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True
    )
    with subprocess.Popen(["tail", f"--pid={int(started.stdout)}", "-f", "/dev/null"]) as watch:
        assert watch.wait(SECONDS) == 0
