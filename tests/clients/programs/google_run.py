"""Calls of google-cloud-run over REST: services, revisions, jobs, executions, tasks, operations."""

import os

from google.api_core import exceptions
from google.cloud import run_v2
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.longrunning import operations_pb2
from google.protobuf import duration_pb2, field_mask_pb2
from google_calls import PARENT, PROJECT, REGION, Report, options

LOCATION = f"{PARENT}/locations/{REGION}"
IMAGE = os.environ["TRIED_IMAGE"]
ACCOUNT = f"runtime@{PROJECT}.iam.gserviceaccount.com"
report = Report("google-cloud-run")
common = {"transport": "rest", "client_options": options("CLOUD_RUN_V2")}
services = run_v2.ServicesClient(**common)
revisions = run_v2.RevisionsClient(**common)
jobs = run_v2.JobsClient(**common)
executions = run_v2.ExecutionsClient(**common)
tasks = run_v2.TasksClient(**common)


def service(*args: str, maximum: int = 1) -> run_v2.Service:
    """A service with a GPU."""
    container = run_v2.Container(
        image=IMAGE,
        args=args,
        ports=[run_v2.ContainerPort(name="http1", container_port=8080)],
        resources=run_v2.ResourceRequirements(limits={"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}),
        startup_probe=run_v2.Probe(
            http_get=run_v2.HTTPGetAction(path="/health"), period_seconds=10, timeout_seconds=5, failure_threshold=30
        ),
    )
    template = run_v2.RevisionTemplate(
        containers=[container],
        service_account=ACCOUNT,
        node_selector=run_v2.NodeSelector(accelerator="nvidia-l4"),
        gpu_zonal_redundancy_disabled=True,
        max_instance_request_concurrency=4,
        timeout=duration_pb2.Duration(seconds=600),
        execution_environment=run_v2.ExecutionEnvironment.EXECUTION_ENVIRONMENT_GEN2,
        scaling=run_v2.RevisionScaling(max_instance_count=maximum),
    )
    return run_v2.Service(
        template=template,
        labels={"tried": "yes"},
        ingress=run_v2.IngressTraffic.INGRESS_TRAFFIC_INTERNAL_ONLY,
        launch_stage="GA",
    )


def request(service_id: str, body: run_v2.Service, **more: object) -> dict[str, object]:
    """A request to create a service."""
    return {"parent": LOCATION, "service_id": service_id, "service": body} | more


def create_service() -> run_v2.Service:
    """Create and read."""
    validated = report.call(
        "create_service, validate_only",
        lambda: services.create_service(request("tried", service(), validate_only=True)).result(timeout=60),
        lambda made: made.name == f"{LOCATION}/services/tried",
    )
    report.call(
        "list_services",
        lambda: list(services.list_services({"parent": LOCATION})),
        lambda answer: not answer and validated,
    )
    operation = report.call("create_service", lambda: services.create_service(request("tried", service())))
    report.call("operation.metadata", lambda: operation.metadata, lambda body: isinstance(body, run_v2.Service))
    made = report.call(
        "operation.result",
        lambda: operation.result(timeout=60),
        lambda made: made.terminal_condition.state == run_v2.Condition.State.CONDITION_SUCCEEDED,
    )
    report.call("operation.done", operation.done, lambda done: done is True)
    report.raises(
        "create_service again", "ALREADY_EXISTS", lambda: services.create_service(request("tried", service()))
    )
    report.call(
        "get_service",
        lambda: services.get_service({"name": made.name}),
        lambda got: (
            got == made
            and got.ingress == run_v2.IngressTraffic.INGRESS_TRAFFIC_INTERNAL_ONLY
            and got.template.timeout.seconds == 600
            and got.traffic[0].type_ == run_v2.TrafficTargetAllocationType.TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST
        ),
    )
    return made


def change_service(made: run_v2.Service) -> None:
    """Update with and without masks, and with etags."""
    body = run_v2.Service(name=made.name, labels={"tried": "again"})
    mask = field_mask_pb2.FieldMask(paths=["labels"])
    update = services.update_service
    report.call(
        "update_service with a mask",
        lambda: update({"service": body, "update_mask": mask}).result(timeout=60),
        lambda got: dict(got.labels) == {"tried": "again"} and got.template == made.template,
    )
    whole = service()
    whole.name, whole.template.max_instance_request_concurrency = made.name, 8
    star = field_mask_pb2.FieldMask(paths=["*"])
    report.call(
        'update_service with the mask "*"',
        lambda: update({"service": whole, "update_mask": star}).result(timeout=60),
        lambda got: (
            got.template.max_instance_request_concurrency == 8
            and got.latest_ready_revision != made.latest_ready_revision
        ),
    )
    report.raises(
        "update_service with an unknown mask",
        "INVALID_ARGUMENT",
        lambda: update({"service": body, "update_mask": {"paths": ["nothing"]}}),
    )
    stale = run_v2.Service(whole, etag=made.etag)
    report.raises("update_service with an old etag", "ABORTED", lambda: update({"service": stale}))
    body = service()
    body.name = f"{LOCATION}/services/second"
    report.call(
        "update_service, allow_missing",
        lambda: update({"service": body, "allow_missing": True}).result(timeout=60),
        lambda got: got.name == body.name,
    )


def read(made: run_v2.Service) -> None:
    """Lists, revisions and policies."""
    report.call(
        "list_services, pages of 1",
        lambda: list(services.list_services({"parent": LOCATION, "page_size": 1})),
        lambda answer: [one.name.rpartition("/")[2] for one in answer] == ["second", "tried"],
    )
    pages = lambda: [page.services for page in services.list_services({"parent": LOCATION, "page_size": 1}).pages]  # noqa: E731
    report.call("list_services.pages", pages, lambda answer: [len(page) for page in answer] == [1, 1])
    answer = report.call(
        "list_revisions, pages of 1",
        lambda: list(revisions.list_revisions({"parent": made.name, "page_size": 1})),
        lambda answer: len(answer) == 2,
    )
    report.call(
        "get_revision",
        lambda: revisions.get_revision({"name": answer[1].name}),
        lambda one: one.service == made.name.rpartition("/")[2],
    )
    report.call("delete_revision", lambda: revisions.delete_revision({"name": answer[1].name}))
    report.raises(
        "get_service of no service", "NOT_FOUND", lambda: services.get_service({"name": f"{LOCATION}/services/none"})
    )
    report.raises(
        "list_services of another project",
        "PERMISSION_DENIED",
        lambda: services.list_services({"parent": f"projects/other/locations/{REGION}"}),
        "IAM_PERMISSION_DENIED",
    )
    policies(made.name, services, "service", "run.services.get")


def policies(name: str, client: run_v2.ServicesClient | run_v2.JobsClient, kind: str, permission: str) -> None:
    """The policy of a service or a job."""
    current = report.call(
        f"get_iam_policy of a {kind}", lambda: client.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=name))
    )
    binding = policy_pb2.Binding(role="roles/run.invoker", members=["allUsers"])
    policy = policy_pb2.Policy(bindings=[binding], etag=current.etag)
    replace = iam_policy_pb2.SetIamPolicyRequest(resource=name, policy=policy)
    report.call(
        f"set_iam_policy of a {kind}", lambda: client.set_iam_policy(replace), lambda got: got.bindings[0] == binding
    )
    report.raises(f"set_iam_policy of a {kind} with an old etag", "ABORTED", lambda: client.set_iam_policy(replace))
    asked = iam_policy_pb2.TestIamPermissionsRequest(resource=name, permissions=[permission])
    report.call(
        f"test_iam_permissions of a {kind}",
        lambda: client.test_iam_permissions(asked),
        lambda reply: list(reply.permissions) == [permission],
    )


def check_refusals() -> None:
    """Errors with their details, of a call and of an operation."""
    report.raises(
        "create_service without a container",
        "INVALID_ARGUMENT",
        lambda: services.create_service(request("x", run_v2.Service(template={}))),
    )
    report.raises(
        "create_service of 50 GPUs",
        "INVALID_ARGUMENT",
        lambda: services.create_service(request("x", service(maximum=50))),
    )

    def over_quota() -> str:
        operation = services.create_service(request("third", service(maximum=3)))
        try:
            operation.result(timeout=60)
        except exceptions.ResourceExhausted as error:
            return error.message
        return ""

    report.call("operation.result over a quota: ResourceExhausted", over_quota, lambda text: "Quota" in text)
    third = f"{LOCATION}/services/third"
    report.call("delete_service of a failed one", lambda: services.delete_service({"name": third}).result(timeout=60))


def check_operations() -> None:
    """The mixin of operations."""
    body = services.create_service(request("timed", service())).operation
    name = body.name
    wait = operations_pb2.WaitOperationRequest(name=name, timeout=duration_pb2.Duration(seconds=30))
    report.call("wait_operation", lambda: services.wait_operation(wait), lambda got: got.done)
    get = operations_pb2.GetOperationRequest(name=name)
    report.call("get_operation", lambda: services.get_operation(get), lambda got: got.name == name and got.done)
    listed = operations_pb2.ListOperationsRequest(name=LOCATION)
    report.call(
        "list_operations",
        lambda: services.list_operations(listed),
        lambda got: name in {one.name for one in got.operations},
    )
    report.call("delete_operation", lambda: services.delete_operation(operations_pb2.DeleteOperationRequest(name=name)))
    report.raises("get_operation of a deleted one", "NOT_FOUND", lambda: services.get_operation(get))


def ran() -> None:
    """Jobs, executions, tasks."""
    container = run_v2.Container(image=IMAGE, args=["--exit", "0"])
    template = run_v2.TaskTemplate(containers=[container], service_account=ACCOUNT, max_retries=0)
    body = run_v2.Job(template=run_v2.ExecutionTemplate(template=template, task_count=2, parallelism=1))
    name = f"{LOCATION}/jobs/tried"
    report.call(
        "create_job",
        lambda: jobs.create_job({"parent": LOCATION, "job_id": "tried", "job": body}).result(timeout=60),
        lambda made: made.name == name and made.template.task_count == 2,
    )
    report.call("get_job", lambda: jobs.get_job({"name": name}), lambda got: got.template.template.max_retries == 0)
    report.call(
        "list_jobs",
        lambda: list(jobs.list_jobs({"parent": LOCATION})),
        lambda answer: name in {one.name for one in answer},
    )
    body.name, body.labels = name, {"a": "b"}
    report.call(
        "update_job",
        lambda: jobs.update_job({"job": body}).result(timeout=60),
        lambda got: got.labels["a"] == "b" and got.generation == 2,
    )
    policies(name, jobs, "job", "run.jobs.run")
    execution = report.call(
        "run_job",
        lambda: jobs.run_job({"name": name, "overrides": {"task_count": 1}}).result(timeout=120),
        lambda got: got.task_count == 1,
    )
    report.call(
        "get_execution", lambda: executions.get_execution({"name": execution.name}), lambda got: got.job == "tried"
    )
    second = jobs.run_job({"name": name}).metadata.name
    report.call(
        "cancel_execution",
        lambda: executions.cancel_execution({"name": second}).result(timeout=120),
        lambda got: got.cancelled_count > 0,
    )
    report.call(
        "list_executions, pages of 1",
        lambda: list(executions.list_executions({"parent": name, "page_size": 1})),
        lambda answer: len(answer) == 2,
    )
    listed = report.call(
        "list_tasks", lambda: list(tasks.list_tasks({"parent": execution.name})), lambda answer: len(answer) == 1
    )
    report.call("get_task", lambda: tasks.get_task({"name": listed[0].name}), lambda got: got.index == 0)
    report.call("delete_execution", lambda: executions.delete_execution({"name": second}).result(timeout=60))
    report.call("delete_job", lambda: jobs.delete_job({"name": name}).result(timeout=60))
    report.raises("get_job of a deleted one", "NOT_FOUND", lambda: jobs.get_job({"name": name}))


def delete_service() -> None:
    """Delete with an etag, and for good."""
    name = f"{LOCATION}/services/tried"
    report.raises(
        "delete_service with an old etag", "ABORTED", lambda: services.delete_service({"name": name, "etag": '"old"'})
    )
    report.call(
        "delete_service",
        lambda: services.delete_service({"name": name}).result(timeout=60),
        lambda got: got.delete_time,
    )
    report.raises("get_service of a deleted one", "NOT_FOUND", lambda: services.get_service({"name": name}))
    for other in ("second", "timed"):
        services.delete_service({"name": f"{LOCATION}/services/{other}"}).result(timeout=60)


if __name__ == "__main__":
    first = create_service()
    change_service(first)
    read(first)
    check_refusals()
    check_operations()
    ran()
    delete_service()
