"""Calls of google-cloud-resource-manager, -quotas, -artifact-registry and -tpu over REST."""

import time

from google.cloud import artifactregistry_v1 as ar
from google.cloud import cloudquotas_v1 as quotas
from google.cloud import resourcemanager_v3 as crm
from google.cloud import tpu_v2
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.longrunning import operations_pb2
from google_calls import PARENT, PROJECT, REGION, Report, options

MEMBER = f"serviceAccount:runtime@{PROJECT}.iam.gserviceaccount.com"


def project() -> None:
    """The project and its policy, which is read, changed and written under its etag."""
    report = Report("google-cloud-resource-manager")
    client = crm.ProjectsClient(transport="rest", client_options=options("RESOURCE_MANAGER"))
    active = crm.Project.State.ACTIVE
    report.call("get_project", lambda: client.get_project({"name": PARENT}), lambda got: got.state == active)
    report.call(
        "search_projects",
        lambda: list(client.search_projects({"query": f"projectId:{PROJECT}"})),
        lambda answer: [one.project_id for one in answer] == [PROJECT],
    )
    report.raises(
        "get_project of another", "PERMISSION_DENIED", lambda: client.get_project({"name": "projects/other1"})
    )
    policy = report.call(
        "get_iam_policy", lambda: client.get_iam_policy({"resource": PARENT}), lambda got: got.bindings
    )
    policy.bindings.append(policy_pb2.Binding(role="roles/logging.viewer", members=[MEMBER]))
    replace = iam_policy_pb2.SetIamPolicyRequest(resource=PARENT, policy=policy)
    report.call(
        "set_iam_policy",
        lambda: client.set_iam_policy(replace),
        lambda got: MEMBER in [member for binding in got.bindings for member in binding.members],
    )
    report.raises("set_iam_policy with an old etag", "ABORTED", lambda: client.set_iam_policy(replace))
    permissions = ["run.services.get", "resourcemanager.projects.delete"]
    report.call(
        "test_iam_permissions",
        lambda: client.test_iam_permissions({"resource": PARENT, "permissions": permissions}),
        lambda reply: list(reply.permissions) == permissions,
    )
    report.call("list_projects", lambda: client.list_projects({"parent": "organizations/1"}))
    report.call("update_project", lambda: client.update_project({"project": {"name": PARENT, "labels": {"a": "b"}}}))


def limits() -> None:
    """Quotas of Cloud Run and of machines."""
    report = Report("google-cloud-quotas")
    client = quotas.CloudQuotasClient(transport="rest", client_options=options("CLOUD_QUOTAS"))
    parent = f"{PARENT}/locations/global/services/run.googleapis.com"
    infos = report.call(
        "list_quota_infos, pages of 2",
        lambda: list(client.list_quota_infos({"parent": parent, "page_size": 2})),
        lambda infos: len(infos) > 3,
    )
    report.call(
        "get_quota_info",
        lambda: client.get_quota_info({"name": infos[0].name}),
        lambda got: (
            got.quota_id == infos[0].quota_id
            and got.dimensions_infos[0].details.value > 0
            and got.container_type == quotas.QuotaInfo.ContainerType.PROJECT
        ),
    )
    report.raises(
        "get_quota_info of no quota", "NOT_FOUND", lambda: client.get_quota_info({"name": f"{parent}/quotaInfos/None"})
    )
    above = f"{PARENT}/locations/global"
    body = quotas.QuotaPreference(
        service="run.googleapis.com",
        quota_id="CpuAllocPerProjectRegion",
        dimensions={"region": "us-west1"},
        quota_config=quotas.QuotaConfig(preferred_value=300_000),
        contact_email="a@example.com",
    )
    request = {"parent": above, "quota_preference": body, "quota_preference_id": "cpus"}
    made = report.call(
        "create_quota_preference",
        lambda: client.create_quota_preference(request),
        lambda got: got.reconciling and got.quota_config.trace_id and not got.contact_email,
    )
    report.raises("create_quota_preference again", "ALREADY_EXISTS", lambda: client.create_quota_preference(request))
    report.call(
        "get_quota_preference",
        lambda: client.get_quota_preference({"name": made.name}),
        lambda got: got.quota_config.preferred_value == 300_000,
    )
    made.quota_config.preferred_value = 400_000
    changed = {"quota_preference": made, "update_mask": {"paths": ["quota_config.preferred_value"]}}
    report.call(
        "update_quota_preference",
        lambda: client.update_quota_preference(changed),
        lambda got: got.quota_config.preferred_value == 400_000,
    )
    report.raises(
        "update_quota_preference with an old etag", "ABORTED", lambda: client.update_quota_preference(changed)
    )
    report.call(
        "list_quota_preferences",
        lambda: list(client.list_quota_preferences({"parent": above})),
        lambda infos: [one.quota_id for one in infos] == ["CpuAllocPerProjectRegion"],
    )


def registry() -> None:
    """Repositories."""
    report = Report("google-cloud-artifact-registry")
    client = ar.ArtifactRegistryClient(transport="rest", client_options=options("ARTIFACT_REGISTRY"))
    parent = f"{PARENT}/locations/{REGION}"
    name = f"{parent}/repositories/tried"
    body = ar.Repository(format_=ar.Repository.Format.DOCKER, description="one", labels={"a": "b"})
    request = {"parent": parent, "repository_id": "tried", "repository": body}
    made = report.call(
        "create_repository",
        lambda: client.create_repository(request).result(timeout=60),
        lambda got: got.format_ == ar.Repository.Format.DOCKER and got.name == name,
    )
    report.raises("create_repository again", "ALREADY_EXISTS", lambda: client.create_repository(request))
    report.call("get_repository", lambda: client.get_repository({"name": name}), lambda got: got == made)
    report.call(
        "list_repositories, pages of 1",
        lambda: list(client.list_repositories({"parent": parent, "page_size": 1})),
        lambda answer: {one.name.rpartition("/")[2] for one in answer} == {"hub", "tried"},
    )
    body = ar.Repository(name=name, description="two")
    report.call(
        "update_repository",
        lambda: client.update_repository({"repository": body, "update_mask": {"paths": ["description"]}}),
        lambda got: got.description == "two" and got.labels["a"] == "b",
    )
    policy = report.call(
        "get_iam_policy", lambda: client.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=name))
    )
    policy.bindings.append(policy_pb2.Binding(role="roles/artifactregistry.reader", members=[MEMBER]))
    replace = iam_policy_pb2.SetIamPolicyRequest(resource=name, policy=policy)
    report.call("set_iam_policy", lambda: client.set_iam_policy(replace))
    report.raises("set_iam_policy with an old etag", "ABORTED", lambda: client.set_iam_policy(replace))
    asked = iam_policy_pb2.TestIamPermissionsRequest(
        resource=name, permissions=["artifactregistry.repositories.downloadArtifacts"]
    )
    report.call("test_iam_permissions", lambda: client.test_iam_permissions(asked), lambda reply: reply.permissions)
    operation = report.call("delete_repository", lambda: client.delete_repository({"name": name}))
    report.call("operation.result", lambda: operation.result(timeout=60))
    get = operations_pb2.GetOperationRequest(name=operation.operation.name)
    report.call("get_operation", lambda: client.get_operation(get), lambda body: body.done)
    report.call("operation.cancel", operation.cancel)
    report.raises("get_repository of a deleted one", "NOT_FOUND", lambda: client.get_repository({"name": name}))
    report.call("list_locations", lambda: client.list_locations({"name": PARENT}))


def tpus() -> None:
    """Queued resources of v2, which has no fields for flex-start."""
    report = Report("google-cloud-tpu")
    client = tpu_v2.TpuClient(transport="rest", client_options=options("TPU_V2ALPHA1"))
    parent = f"{PARENT}/locations/us-east5-a"
    report.call("list_locations", lambda: client.list_locations({"name": PARENT}), lambda got: got.locations)
    report.call(
        "get_location", lambda: client.get_location({"name": parent}), lambda got: got.location_id == "us-east5-a"
    )
    report.call(
        "list_accelerator_types",
        lambda: [kind.type_ for kind in client.list_accelerator_types({"parent": parent})],
        lambda answer: "v6e-4" in answer,
    )
    report.call(
        "get_accelerator_type", lambda: client.get_accelerator_type({"name": f"{parent}/acceleratorTypes/v6e-4"})
    )
    report.call(
        "list_runtime_versions",
        lambda: [one.version for one in client.list_runtime_versions({"parent": parent})],
        lambda answer: "v2-alpha-tpuv6e" in answer,
    )
    node = tpu_v2.Node(
        accelerator_type="v6e-1",
        runtime_version="v2-alpha-tpuv6e",
        network_config=tpu_v2.NetworkConfig(network="tpus", subnetwork="tpus"),
        labels={"tried": "yes"},
    )
    spec = tpu_v2.QueuedResource.Tpu.NodeSpec(parent=parent, node_id="tried", node=node)
    body = tpu_v2.QueuedResource(tpu={"node_spec": [spec]}, spot={})
    request = {"parent": parent, "queued_resource_id": "tried", "queued_resource": body}
    name = f"{parent}/queuedResources/tried"
    made = report.call(
        "create_queued_resource",
        lambda: client.create_queued_resource(request).result(timeout=60),
        lambda got: got.name == name and got.state.state != tpu_v2.QueuedResourceState.State.FAILED,
    )
    report.raises("create_queued_resource again", "ALREADY_EXISTS", lambda: client.create_queued_resource(request))
    eight = dict(request, queued_resource_id="many")
    report.raises(
        "create_queued_resource over a quota", "RESOURCE_EXHAUSTED", lambda: many(client, eight), "QUOTA_EXCEEDED"
    )
    report.call(
        "get_queued_resource", lambda: active(client, name), lambda got: got.tpu.node_spec[0].node_id == "tried"
    )
    report.call(
        "list_queued_resources",
        lambda: list(client.list_queued_resources({"parent": parent})),
        lambda answer: made.name in {one.name for one in answer},
    )
    one = f"{parent}/nodes/tried"
    ready = tpu_v2.Node.State.READY
    report.call(
        "get_node", lambda: client.get_node({"name": one}), lambda got: got.state == ready and got.labels["tried"]
    )
    report.call("list_nodes", lambda: list(client.list_nodes({"parent": parent})), lambda answer: len(answer) == 1)
    report.call("get_guest_attributes", lambda: client.get_guest_attributes({"name": one}))
    report.call("stop_node", lambda: client.stop_node({"name": one}))
    operation = report.call("delete_node", lambda: client.delete_node({"name": one}))
    report.call("operation.result", lambda: operation.result(timeout=60))
    get = operations_pb2.GetOperationRequest(name=operation.operation.name)
    report.call("get_operation", lambda: client.get_operation(get), lambda body: body.done)
    report.call(
        "list_operations",
        lambda: client.list_operations(operations_pb2.ListOperationsRequest(name=parent)),
        lambda got: operation.operation.name in {one.name for one in got.operations},
    )
    report.call(
        "cancel_operation",
        lambda: client.cancel_operation(operations_pb2.CancelOperationRequest(name=operation.operation.name)),
    )
    report.call(
        "delete_operation",
        lambda: client.delete_operation(operations_pb2.DeleteOperationRequest(name=operation.operation.name)),
    )
    report.call("reset_queued_resource", lambda: client.reset_queued_resource({"name": name}).result(timeout=60))
    active(client, name)
    report.call(
        "delete_queued_resource",
        lambda: client.delete_queued_resource({"name": name, "force": True}).result(timeout=60),
    )
    report.raises(
        "get_queued_resource of a deleted one", "NOT_FOUND", lambda: client.get_queued_resource({"name": name})
    )


def many(client: tpu_v2.TpuClient, request: dict[str, object]) -> None:
    """Request slices until the quota is used up; they are deleted again."""
    body = tpu_v2.QueuedResource(request["queued_resource"])
    body.tpu.node_spec[0].node.accelerator_type = "v6e-8"
    names = []
    try:
        for number in range(9):
            body.tpu.node_spec[0].node_id = f"many-{number}"
            more = dict(request, queued_resource_id=f"many-{number}", queued_resource=body)
            names.append(client.create_queued_resource(more).result(timeout=60).name)
    finally:
        for name in names:
            wait_until_settled(client, name)
            client.delete_queued_resource({"name": name, "force": True}).result(timeout=60)


def wait_until_settled(client: tpu_v2.TpuClient, name: str) -> tpu_v2.QueuedResource:
    """Read a queued resource until it accepts calls."""
    states = tpu_v2.QueuedResourceState.State
    while True:
        resource = client.get_queued_resource({"name": name})
        if resource.state.state not in {states.CREATING, states.PROVISIONING}:
            return resource
        time.sleep(0.05)


def active(client: tpu_v2.TpuClient, name: str) -> tpu_v2.QueuedResource:
    """Read a queued resource until it is active."""
    while (
        resource := client.get_queued_resource({"name": name})
    ).state.state != tpu_v2.QueuedResourceState.State.ACTIVE:
        time.sleep(0.05)
    return resource


if __name__ == "__main__":
    project()
    limits()
    registry()
    tpus()
