"""Texts of errors as the published provider has them: its own, the plugin SDK's around them, and the bridge's."""

import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2

from bezel_pulumi_offline.plugin.fast_import import sdk_version
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.client import FailedError, Provider, ServedProvider, urn
from pulumi_offline_support.google import DROPPED, FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, UPDATES, with_change

SERVICE = "gcp:cloudrunv2/service:Service"
SECRET = "gcp:secretmanager/secret:Secret"
BUCKET = "gcp:storage/bucket:Bucket"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
ENABLED = "gcp:projects/service:Service"
MEMBER = "gcp:storage/bucketIAMMember:BucketIAMMember"
NO = {"error": {"code": 403, "message": "no"}}
REFUSED = "googleapi: Error 403: no"
LLM = "projects/bezel-local/locations/us-central1/services/llm"


def text_of(call: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(FailedError) as failed:
        call(*arguments, **more)
    return failed.value.text


def one(text: str) -> str:
    return f"1 error occurred:\n\t* {text}\n\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (SERVICE, f'CloudRunV2Service "{LLM}"'),
        (SECRET, 'SecretManagerSecret "projects/bezel-local/secrets/hf"'),
        (REPOSITORY, 'ArtifactRegistryRepository "projects/bezel-local/locations/us-central1/repositories/hub"'),
        (BUCKET, 'Storage Bucket "models"'),
        ("gcp:compute/network:Network", 'ComputeNetwork "projects/bezel-local/global/networks/nodes"'),
    ],
)
def test_a_read_that_fails_names_the_resource_with_its_product(
    kind: str, named: str, google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.fail("GET .*", 403, NO, times=9)
    text = text_of(gcp.read, kind, resource_id, made, gcp.inputs(kind, PROGRAMS[kind]))
    assert text == f"refreshing {urn(kind)}: " + one(f"Error when reading or editing {named}: {REFUSED}")


def test_an_update_that_is_refused_says_so_under_the_resources_urn(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.fail("PATCH .*", 403, NO)
    text = text_of(gcp.update, SERVICE, resource_id, made, with_change(PROGRAMS[SERVICE], *UPDATES[SERVICE]))
    assert text == f"updating {urn(SERVICE)}: " + one(f'Error updating Service "{LLM}": {REFUSED}')


def test_a_delete_that_is_refused_says_so_under_the_resources_urn(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.fail("DELETE .*", 403, NO)
    text = text_of(gcp.delete, SERVICE, resource_id, made)
    assert text == f"deleting {urn(SERVICE)}: " + one(f"Error when reading or editing Service: {REFUSED}")


def test_a_refused_create_has_no_prefix_and_one_that_fails_late_has(google: FakeGoogle, gcp: Provider) -> None:
    google.fail("POST .*/services", 403, NO)
    assert text_of(gcp.create, SERVICE, PROGRAMS[SERVICE]) == one(f"Error creating Service: {REFUSED}")
    google.failing["create"] = {"code": 13, "message": "Internal error."}
    late = one("Error waiting to create Service: Error code 13, message: Internal error.")
    assert text_of(gcp.create, SERVICE, PROGRAMS[SERVICE]) == f"creating {urn(SERVICE)}: {late}"


@pytest.mark.slow
@pytest.mark.parametrize(("polls", "waited"), [(0, ""), (2, "Error waiting for Updating Service: ")])
def test_what_was_waited_for_is_named_where_it_was_waited_for(
    polls: int, waited: str, google: FakeGoogle, gcp: Provider
) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.polls = polls
    google.failing["update"] = {"code": 9, "message": "Revision llm-00002-abc is not ready."}
    text = text_of(gcp.update, SERVICE, resource_id, made, with_change(PROGRAMS[SERVICE], *UPDATES[SERVICE]))
    failure = f"{waited}Error code 9, message: Revision llm-00002-abc is not ready."
    assert text == f"updating {urn(SERVICE)}: " + one(failure)


@pytest.mark.slow
def test_a_create_names_both_its_waits(google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 2
    google.failing["create"] = {"code": 13, "message": "Internal error."}
    assert "Error waiting to create Service: Error waiting for Creating Service: Error code 13, message: " in text_of(
        gcp.create, SERVICE, PROGRAMS[SERVICE]
    )


@pytest.mark.slow
def test_an_unreadable_operation_is_named_and_a_missing_one_awaited(google: FakeGoogle, gcp: Provider) -> None:
    google.polls = 2
    google.fail("GET .*/operations/.*", 404, {"error": {"code": 404, "message": "not yet"}}, times=3)
    gcp.create(REPOSITORY, PROGRAMS[REPOSITORY])
    google.fail("GET .*/operations/.*", 403, NO)
    wanted = {**PROGRAMS[REPOSITORY], "repositoryId": "second"}
    whole = f"Error waiting for Creating Repository: error while retrieving operation: {REFUSED}"
    assert text_of(gcp.create, REPOSITORY, wanted) == one(f"Error waiting to create Repository: {whole}")


def test_a_policy_is_named_as_the_provider_describes_its_resource(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(MEMBER, PROGRAMS[MEMBER])
    bucket = 'storage bucket "b/models"'
    google.fail("GET .*/iam", 403, NO, times=2)
    assert text_of(gcp.create, MEMBER, PROGRAMS[MEMBER]) == one(f"Error retrieving IAM policy for {bucket}: {REFUSED}")
    read = text_of(gcp.read, MEMBER, resource_id, made, gcp.inputs(MEMBER, PROGRAMS[MEMBER]))
    assert (
        'Error when reading or editing Resource "storage bucket \\"b/models\\"" with IAM Member: Role "roles/' in read
    )
    google.fail("PUT .*/iam", 403, NO)
    applying = f"Error applying IAM policy for {bucket}: Error setting IAM policy for {bucket}: {REFUSED}"
    member = {**PROGRAMS[MEMBER], "member": "user:b@example.com"}
    assert text_of(gcp.create, MEMBER, member) == one(applying)


@pytest.mark.parametrize(
    ("kind", "described", "batched"),
    [("gcp:projects/iAMMember:IAMMember", 'project "bezel-local"', True), (MEMBER, 'storage bucket "b/models"', False)],
)
def test_a_change_of_a_projects_policy_is_named_in_the_words_of_the_batch(
    kind: str, described: str, batched: bool, google: FakeGoogle, gcp: Provider
) -> None:
    program = PROGRAMS[kind]
    request = f"{program['role']} {program['member']}"
    resource_id, made = gcp.create(kind, program)
    why = f"Error applying IAM policy for {described}: Error setting IAM policy for {described}: {REFUSED}"
    google.fail("(POST .*setIamPolicy|PUT .*/iam)", 403, NO)
    head = f"Request `Create IAM Members {request} for {described}` returned error: " if batched else ""
    assert text_of(gcp.create, kind, program) == one(f"{head}{why}")
    google.fail("(POST .*setIamPolicy|PUT .*/iam)", 403, NO)
    text = text_of(gcp.delete, kind, resource_id, made)
    quoted = described.replace('"', r"\"")
    head = f'Request `Delete IAM Members {request} for "{quoted}"` returned error: '
    assert text.endswith(f": {head if batched else ''}{why}\n\n")


@pytest.mark.slow
def test_an_api_that_cannot_be_enabled_is_named_in_the_words_of_the_batch(google: FakeGoogle, gcp: Provider) -> None:
    name = PROGRAMS[ENABLED]["service"]
    google.fail("POST .*:enable", 403, NO)
    batch = f'Request `Enable Project Service "{name}" for project "bezel-local"` returned error: '
    expected = one(f"{batch}failed to enable services: failed on request preconditions: {REFUSED}")
    assert text_of(gcp.create, ENABLED, PROGRAMS[ENABLED]) == expected
    google.fail("POST .*:enable", 200, {"name": "operations/1", "done": True, "error": {"code": 7, "message": "no"}})
    late = f"{batch}failed to enable services: Error code 7, message: no"
    assert text_of(gcp.create, ENABLED, PROGRAMS[ENABLED]) == one(late), "the preconditions were met"
    google.fail("GET .*/services", 403, NO)
    listing = "Request `List Project Services bezel-local` returned error: Failed to list enabled services"
    assert f"{listing} for project bezel-local: {REFUSED}" in text_of(gcp.create, ENABLED, PROGRAMS[ENABLED])


def test_a_dropped_connection_is_told_as_eof_with_what_to_do_after_it(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.fail("PATCH .*", DROPPED, None)
    text = text_of(gcp.update, SERVICE, resource_id, made, with_change(PROGRAMS[SERVICE], *UPDATES[SERVICE]))
    eof = f'Error updating Service "{LLM}": Patch "{google.base}/run/v2/{LLM}?alt=json": EOF'
    assert text.startswith(f"updating {urn(SERVICE)}: " + one(eof))
    assert text.endswith("Is localcloud running? `make up` starts it.\n")


class Engine(engine_pb2_grpc.EngineServicer):
    """The engine's server for its plugins, as far as messages go."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.lock = threading.Lock()

    def Log(self, request: Any, context: Any) -> empty_pb2.Empty:  # noqa: N802 - the protocol's name
        del context
        with self.lock:
            self.logged.append(request)
        return empty_pb2.Empty()


@pytest.fixture
def engine() -> Iterator[tuple[Engine, str]]:
    server, engine = grpc.server(futures.ThreadPoolExecutor(2)), Engine()
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield engine, f"127.0.0.1:{port}"
    server.stop(0).wait(5)


@pytest.fixture
def attached_provider(google: FakeGoogle, engine: tuple[Engine, str]) -> Iterator[Provider]:
    provider = ServedProvider(GooglePlugin(google.environment()))
    provider.call("Attach", plugin_pb2.PluginAttach(address=engine[1]))
    yield provider
    provider.close()


def test_an_error_is_logged_as_the_sdks_line_beside_it(
    google: FakeGoogle, engine: tuple[Engine, str], attached_provider: Provider
) -> None:
    resource_id, made = attached_provider.create(SECRET, PROGRAMS[SECRET])
    assert engine[0].logged == []
    google.fail("GET .*", 403, NO)
    text_of(attached_provider.read, SECRET, resource_id, made, attached_provider.inputs(SECRET, PROGRAMS[SECRET]))
    (logged,) = engine[0].logged
    assert logged.severity == engine_pb2.ERROR
    assert logged.urn == urn(SECRET)
    assert logged.message == (
        "  sdk-v2/provider2.go:571: sdk.helper_schema: Error when reading or editing SecretManagerSecret "
        f'"projects/bezel-local/secrets/hf": {REFUSED}: provider=google-beta@{sdk_version("pulumi_gcp")}'
    )


IGNORING = [(token, name) for token, kind in TYPES.items() for name in {"create", "update"} - kind.timeouts]


@pytest.mark.slow
@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize(("kind", "operation"), sorted(IGNORING))
def test_a_limit_that_a_type_ignores_is_warned_of(
    kind: str, operation: str, preview: bool, engine: tuple[Engine, str], attached_provider: Provider
) -> None:
    if operation == "update":
        resource_id, made = attached_provider.create(kind, PROGRAMS[kind])
        attached_provider.update(kind, resource_id, made, PROGRAMS[kind], preview=preview, timeout=5400)
    else:
        attached_provider.create(kind, PROGRAMS[kind], preview=preview, timeout=5400)
    (logged,) = engine[0].logged
    assert (logged.severity, logged.urn) == (engine_pb2.WARNING, urn(kind))
    assert logged.message == f"Resource does not support customTimeouts, ignoring: {operation}=1h30m0s"


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(TYPES))
def test_no_limit_is_warned_of_that_is_kept_or_not_set(
    kind: str, engine: tuple[Engine, str], attached_provider: Provider
) -> None:
    kept = {name: 5400.0 if name in TYPES[kind].timeouts else 0.0 for name in ("create", "update")}
    attached_provider.create(kind, PROGRAMS[kind], preview=True, timeout=kept["create"])
    resource_id, made = attached_provider.create(kind, PROGRAMS[kind])
    attached_provider.update(kind, resource_id, made, PROGRAMS[kind], preview=True, timeout=kept["update"])
    assert engine[0].logged == []


def test_an_ignored_limit_bounds_nothing(google: FakeGoogle) -> None:
    quick = ServedProvider(GooglePlugin({**google.environment(), "BEZEL_SPEED": "1000"}))
    try:
        google.fail("PUT .*", 503, NO, times=9)  # for longer than the half minute that a limit of nothing leaves
        quick.create(MEMBER, PROGRAMS[MEMBER], timeout=0.001)
        google.fail("POST .*/secrets", 503, NO, times=9)
        assert "timeout: 0s" in text_of(quick.create, SECRET, PROGRAMS[SECRET], timeout=0.001)
    finally:
        quick.close()


def test_a_create_that_is_refused_logs_no_advice_and_no_prefix(
    engine: tuple[Engine, str], attached_provider: Provider
) -> None:
    attached_provider.create(SECRET, PROGRAMS[SECRET])
    text_of(attached_provider.create, SECRET, PROGRAMS[SECRET])
    (logged,) = engine[0].logged
    assert "sdk.helper_schema: Error creating Secret: googleapi: Error 409: " in logged.message
    assert "adopt" not in logged.message
    assert "1 error occurred" not in logged.message


def test_a_look_up_that_fails_logs_nothing(
    google: FakeGoogle, engine: tuple[Engine, str], attached_provider: Provider
) -> None:
    google.fail("GET .*", 403, NO, times=9)
    text_of(attached_provider.invoke, "gcp:organizations/getProject:getProject", {})
    assert engine[0].logged == []


def test_an_engine_that_is_gone_keeps_no_error_back(google: FakeGoogle, gcp: Provider) -> None:
    gcp.call("Attach", plugin_pb2.PluginAttach(address="127.0.0.1:9"))
    google.fail("POST .*", 403, NO)
    assert text_of(gcp.create, SECRET, PROGRAMS[SECRET]) == one(f"Error creating Secret: {REFUSED}")
