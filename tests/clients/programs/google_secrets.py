"""Calls of google-cloud-secret-manager and google-cloud-service-usage over REST."""

from google.cloud import secretmanager_v1 as sm
from google.cloud import service_usage_v1 as su
from google.iam.v1 import iam_policy_pb2, options_pb2, policy_pb2
from google.longrunning import operations_pb2
from google.protobuf import field_mask_pb2
from google_calls import PARENT, PROJECT, Report, options


def service_usage() -> None:
    """Enable, read, disable services."""
    report = Report("google-cloud-service-usage")
    client = su.ServiceUsageClient(transport="rest", client_options=options("SERVICE_USAGE"))
    name = f"{PARENT}/services/pubsub.googleapis.com"
    enabled = lambda reply: reply.service.state == su.State.ENABLED  # noqa: E731
    report.call("enable_service", lambda: client.enable_service({"name": name}).result(timeout=60), enabled)
    report.call(
        "get_service", lambda: client.get_service({"name": name}), lambda service: service.state == su.State.ENABLED
    )
    names = [f"{PARENT}/services/{api}.googleapis.com" for api in ("run", "pubsub")]
    report.call(
        "batch_get_services",
        lambda: client.batch_get_services({"parent": PARENT, "names": names}),
        lambda reply: len(reply.services) == 2,
    )
    report.call(
        "list_services, pages of 2",
        lambda: list(client.list_services({"parent": PARENT, "filter": "state:ENABLED", "page_size": 2})),
        lambda services: len(services) > 4 and len({service.name for service in services}) == len(services),
    )
    report.call(
        "batch_enable_services",
        lambda: client.batch_enable_services(
            {"parent": PARENT, "service_ids": ["secretmanager.googleapis.com", "pubsub.googleapis.com"]}
        ).result(timeout=60),
        lambda reply: len(reply.services) == 2,
    )
    operation = report.call("disable_service", lambda: client.disable_service({"name": name}))
    report.call("operation.result", lambda: operation.result(timeout=60))
    report.call(
        "get_operation",
        lambda: client.get_operation(operations_pb2.GetOperationRequest(name=operation.operation.name)),
        lambda body: body.done,
    )
    report.call("list_operations", lambda: client.list_operations(operations_pb2.ListOperationsRequest(name="")))
    no_such = f"{PARENT}/services/nosuch.googleapis.com"
    report.raises("enable_service of no service", "PERMISSION_DENIED", lambda: client.enable_service({"name": no_such}))
    report.raises("get_service of no service", "PERMISSION_DENIED", lambda: client.get_service({"name": no_such}))
    report.raises(
        "disable_service of a disabled one",
        "FAILED_PRECONDITION",
        lambda: client.disable_service({"name": name}),
    )


def secrets() -> None:
    """Secrets, versions, policies."""
    report = Report("google-cloud-secret-manager")
    client = sm.SecretManagerServiceClient(transport="rest", client_options=options("SECRET_MANAGER"))
    name, data = f"{PARENT}/secrets/token", "pa\u00df\n\x00word".encode()
    body = sm.Secret(replication=sm.Replication(automatic=sm.Replication.Automatic()), labels={"a": "b"})
    request = {"parent": PARENT, "secret_id": "token", "secret": body}
    secret = report.call(
        "create_secret",
        lambda: client.create_secret(request),
        lambda made: made.name.startswith("projects/123456789012/"),
    )
    report.raises("create_secret again", "ALREADY_EXISTS", lambda: client.create_secret(request))
    report.call(
        "get_secret", lambda: client.get_secret({"name": name}), lambda got: got == secret and got.labels["a"] == "b"
    )
    checksum = 773_773_778  # CRC32C of the data
    payload = sm.SecretPayload(data=data, data_crc32c=checksum)
    version = report.call(
        "add_secret_version",
        lambda: client.add_secret_version({"parent": name, "payload": payload}),
        lambda made: made.state == sm.SecretVersion.State.ENABLED and made.client_specified_payload_checksum,
    )
    wrong = sm.SecretPayload(data=data, data_crc32c=checksum ^ 1)
    report.raises(
        "add_secret_version with a wrong checksum",
        "INVALID_ARGUMENT",
        lambda: client.add_secret_version({"parent": name, "payload": wrong}),
    )
    latest = f"{name}/versions/latest"
    report.call(
        "access_secret_version",
        lambda: client.access_secret_version({"name": latest}),
        lambda got: got.payload.data == data and got.payload.data_crc32c == checksum,
    )
    report.call(
        "get_secret_version", lambda: client.get_secret_version({"name": latest}), lambda got: got.name == version.name
    )
    for _ in range(4):
        client.add_secret_version({"parent": name, "payload": payload})
    report.call(
        "list_secret_versions, pages of 2",
        lambda: list(client.list_secret_versions({"parent": name, "page_size": 2})),
        lambda versions: [made.name.rpartition("/")[2] for made in versions] == ["5", "4", "3", "2", "1"],
    )
    report.call(
        "list_secrets",
        lambda: list(client.list_secrets({"parent": PARENT})),
        lambda answer: [one.name for one in answer] == [secret.name],
    )
    versions(report, client, name)
    mask = field_mask_pb2.FieldMask(paths=["labels", "annotations", "version_aliases"])
    changed = sm.Secret(name=name, labels={"c": "d"}, annotations={"e": "f"}, version_aliases={"good": 2})
    report.call(
        "update_secret",
        lambda: client.update_secret({"secret": changed, "update_mask": mask}),
        lambda got: dict(got.labels) == {"c": "d"} and got.version_aliases["good"] == 2,
    )
    stale = sm.Secret(name=name, etag=secret.etag, labels={})
    report.raises(
        "update_secret with an old etag",
        "ABORTED",
        lambda: client.update_secret({"secret": stale, "update_mask": {"paths": ["labels"]}}),
    )
    report.raises(
        "update_secret with an unknown mask",
        "INVALID_ARGUMENT",
        lambda: client.update_secret({"secret": changed, "update_mask": {"paths": ["nosuch"]}}),
    )
    policies(report, client, name)
    report.call("list_locations", lambda: client.list_locations({"name": PARENT}))
    report.raises("get_secret of no secret", "NOT_FOUND", lambda: client.get_secret({"name": f"{name}x"}))
    report.raises(
        "get_secret of another project",
        "PERMISSION_DENIED",
        lambda: client.get_secret({"name": "projects/other/secrets/x"}),
    )
    report.call("delete_secret", lambda: client.delete_secret({"name": name}))
    report.raises("get_secret of a deleted one", "NOT_FOUND", lambda: client.get_secret({"name": name}))


def versions(report: Report, client: sm.SecretManagerServiceClient, name: str) -> None:
    """States of versions."""
    states = sm.SecretVersion.State
    second = {"name": f"{name}/versions/1"}
    report.call(
        "disable_secret_version",
        lambda: client.disable_secret_version(second),
        lambda version: version.state == states.DISABLED,
    )
    report.raises(
        "access_secret_version of a disabled one",
        "FAILED_PRECONDITION",
        lambda: client.access_secret_version(second),
    )
    report.call(
        "enable_secret_version",
        lambda: client.enable_secret_version(second),
        lambda version: version.state == states.ENABLED,
    )
    report.call(
        "destroy_secret_version",
        lambda: client.destroy_secret_version(second),
        lambda version: version.state == states.DESTROYED and version.destroy_time,
    )


def policies(report: Report, client: sm.SecretManagerServiceClient, name: str) -> None:
    """IAM policy of a secret, with its etag and a condition."""
    empty = report.call(
        "get_iam_policy", lambda: client.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=name))
    )
    member = f"serviceAccount:deployer@{PROJECT}.iam.gserviceaccount.com"
    binding = policy_pb2.Binding(role="roles/secretmanager.secretAccessor", members=[member])
    policy = policy_pb2.Policy(bindings=[binding], etag=empty.etag)
    request = iam_policy_pb2.SetIamPolicyRequest(resource=name, policy=policy)
    report.call("set_iam_policy", lambda: client.set_iam_policy(request), lambda made: made.bindings[0] == binding)
    report.raises("set_iam_policy with an old etag", "ABORTED", lambda: client.set_iam_policy(request))
    binding.condition.title, binding.condition.expression = "soon", 'request.time < timestamp("2099-01-01T00:00:00Z")'
    conditional = policy_pb2.Policy(version=3, bindings=[binding])
    report.call(
        "set_iam_policy with a condition and a mask",
        lambda: client.set_iam_policy(
            iam_policy_pb2.SetIamPolicyRequest(
                resource=name, policy=conditional, update_mask=field_mask_pb2.FieldMask(paths=["bindings"])
            )
        ),
    )
    asked = options_pb2.GetPolicyOptions(requested_policy_version=3)
    report.call(
        "get_iam_policy, version 3",
        lambda: client.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=name, options=asked)),
        lambda policy: policy.version == 3 and policy.bindings[0].condition.title == "soon",
    )
    permissions = ["secretmanager.versions.access", "secretmanager.secrets.delete"]
    report.call(
        "test_iam_permissions",
        lambda: client.test_iam_permissions(
            iam_policy_pb2.TestIamPermissionsRequest(resource=name, permissions=permissions)
        ),
        lambda reply: list(reply.permissions) == permissions,
    )


if __name__ == "__main__":
    service_usage()
    secrets()
