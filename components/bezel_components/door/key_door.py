"""Door of a server for callers who can only send a key: a small Cloud Run service that admits keys itself.

Cloud Run reads a caller's identity from the header in which OpenAI's and Anthropic's clients send their key. So the
door is open to every caller, refuses each one without a valid key, and calls the server with its own identity; the
server's invokers go past it as before. Its program is `bezel_door`.

Owns the service, its account, the secret with the program, the bucket of keys and of their use, and the account's
right to call the server. Leaves keys to their commands (`bezel keys`), and the server and its address to others.

- The program is one archive of the standard library's Python in a secret, mounted as a file: no image to build. Its
  digest is in the container's command, so what runs can be judged by the service alone; another archive is another
  version of the secret and another revision. A secret holds 64 KiB.
- Cloud Run's check of identities is switched off on this one service. A grant to everyone would do the same, but is
  refused by many organizations, and says nothing of the service that it opens.
- The account reads the bucket, and writes in the folder of use only: a door cannot make a key.
- The bucket goes with the door, and with it every key: what has no door has no keys. `deletion_protection` keeps both.
- Deleted objects are not kept: the use of keys is overwritten every few seconds.
- A deploy makes another revision after a failed one, as of the GPU service: Cloud Run retries none. So the service is
  read, in previews too.
- CPU only while requests are served (a stream is one request), no instance without them.

Facts: Cloud Run gives an instance at most 1000 concurrent requests, and its start without a GPU 240 s; Secret Manager
takes at most 65,536 bytes a version (docs of both, November 2026).

Example:
    ```python
    from bezel_components.container_image import ContainerImage, ContainerImageArgs

    python = ContainerImage("python", ContainerImageArgs(
        project="acme-llm", location="us-east4", repository_id="door-hub", image=IMAGE, tag=TAG,
    ))
    door = KeyDoor(
        "door",
        KeyDoorArgs(project="acme-llm", location="us-east4", service="chat-door", account_id="chat-door",
                    image=python.reference, secret_id="chat-door-program", bucket="acme-llm-chat-door",
                    upstream="https://chat-123.us-east4.run.app", servers={"us-east4": "chat"}),
        opts=pulumi.ResourceOptions(depends_on=[python]),
    )
    pulumi.export("door", door.url)
    ```
"""

import base64
from collections.abc import Mapping

import pulumi
from pulumi_gcp import cloudrunv2
from pulumi_gcp.secretmanager import (
    Secret,
    SecretReplicationArgs,
    SecretReplicationAutoArgs,
    SecretVersion,
)
from pulumi_gcp.storage import Bucket, BucketIAMMember, BucketIAMMemberConditionArgs, BucketSoftDeletePolicyArgs
from pydantic import Field

from bezel.diagnosis.revision_traffic import ATTEMPT, attempt
from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.base.cloud_run_service import CloudRunServiceArgs, declare_service
from bezel_components.base.failure_explanation import service_failure_hook
from bezel_components.base.granted_roles import INVOKER, OBJECT_USER, OBJECT_VIEWER
from bezel_components.lookups.cloud_run import look_up_service
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from bezel_door.archive import door_archive, packed_archive
from bezel_door.calls.routes import PROBE_PATH
from bezel_door.launch import (
    ARCHIVE_NAME,
    AUDIENCE,
    BUCKET,
    COMMANDS,
    FOLDER,
    PORT,
    UPSTREAM,
    arguments_of,
)
from bezel_door.usage_file import USAGE_FOLDER

IMAGE = "library/python"
"""Path of Python's image on Docker Hub."""
TAG = "3.13.14-slim-bookworm"
_VOLUME = "program"
# A grant on a bucket may take minutes until it counts, and the probe passes when the keys were read.
_PROBE_SECONDS = 2
_PROBE_ATTEMPTS = 115
_DEADLINE_SECONDS = 600


class KeyDoorArgs(ComponentArgs):
    """Arguments of `KeyDoor`."""

    project: str
    location: str
    """Region of the service, of its bucket and of its image."""
    service: str
    """Name of the service: it becomes part of its URL."""
    account_id: str
    """Id of the account that is made for it: 6 to 30 characters, unique in the project."""
    image: Text
    """Reference of Python's image, by digest."""
    secret_id: str
    """Id of the secret that is made for its program."""
    bucket: str
    """Globally unique name of the bucket that is made for keys and their use."""
    upstream: Text
    """URL of the server that it calls, and the audience of its tokens."""
    servers: Mapping[str, str]
    """Region -> name of the Cloud Run service that answers at `upstream`; the door becomes an invoker of each."""
    max_instances: int = Field(4, ge=1)
    """Most instances; `VllmService` takes as many as the requests of its servers need."""
    request_concurrency: int = Field(250, ge=1, le=1000)
    """Requests at a time in one instance."""
    timeout_seconds: int = Field(3600, ge=1, le=3600)
    """Time limit of a request with its whole response."""
    deletion_protection: bool = True
    """Whether deleting the service, and so its keys, is refused: on, as a component knows no environment; `VllmService`
    does."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of the service, the secret and the bucket; `VllmService` adds its stack, environment and model."""


class KeyDoor(pulumi.ComponentResource):
    """A door that admits callers by key and calls a server with its own identity.

    Attributes:
        url: Address of the door.
        revision: Name of the latest revision that became ready.
        created_revision: Name of the latest one that was made, ready or not.
        resource_name: `projects/P/locations/L/services/S`, computed.
    """

    def __init__(self, name: str, args: KeyDoorArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:door:KeyDoor", name, None, opts)
        secret = Secret(
            f"{name}-program",
            project=args.project,
            secret_id=args.secret_id,
            replication=SecretReplicationArgs(auto=SecretReplicationAutoArgs()),
            labels=dict(args.labels),
            opts=child_options(self, opts),
        )
        version = SecretVersion(
            f"{name}-program-version",
            secret=secret.id,
            secret_data=base64.b64encode(packed_archive()).decode(),
            is_secret_data_base64=True,
            opts=child_options(self, opts),
        )
        bucket = _bucket(self, name, args, opts)
        account = RuntimeIdentity(
            name,
            RuntimeIdentityArgs(
                project=args.project,
                account_id=args.account_id,
                description="Runs a door",
                secrets=(args.secret_id,),
            ),
            opts=child_options(self, opts, depends_on=[secret]),
        )
        service_args = CloudRunServiceArgs(
            project=args.project,
            location=args.location,
            service=args.service,
            image=args.image,
            deletion_protection=args.deletion_protection,
            labels=args.labels,
        )
        self.resource_name = service_args.resource_name
        service = declare_service(
            self,
            name,
            service_args,
            opts,
            inputs={
                "ingress": service_args.ingress,
                "invoker_iam_disabled": True,
                "labels": dict(args.labels),
                "template": _template(args, account.email, version, attempt(look_up_service(self.resource_name))),
            },
            seconds=_DEADLINE_SECONDS,
            depends_on=[account, version, *_grants(self, name, args, opts, account, bucket)],
            hooks=pulumi.ResourceHookBinding(on_error=[service_failure_hook(f"{name}-explain-failure")]),
        )
        self.url = service.uri
        self.revision = service.latest_ready_revision
        self.created_revision = service.latest_created_revision
        outputs = ("url", "revision", "created_revision", "resource_name")
        self.register_outputs({key: getattr(self, key) for key in outputs})


def _bucket(component: pulumi.Resource, name: str, args: KeyDoorArgs, opts: pulumi.ResourceOptions | None) -> Bucket:
    """The bucket of keys and of their use."""
    return Bucket(
        f"{name}-bucket",
        project=args.project,
        name=args.bucket,
        location=args.location.upper(),  # as the API returns it
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        soft_delete_policy=BucketSoftDeletePolicyArgs(retention_duration_seconds=0),
        force_destroy=True,
        labels=dict(args.labels),
        opts=child_options(component, opts),
    )


def _grants(
    component: pulumi.Resource,
    name: str,
    args: KeyDoorArgs,
    opts: pulumi.ResourceOptions | None,
    account: RuntimeIdentity,
    bucket: Bucket,
) -> list[pulumi.Resource]:
    """What the account may do beside reading its program: read the bucket, write use in it, call the server."""
    may = child_options(component, opts, depends_on=[account, bucket])
    reader = BucketIAMMember(f"{name}-reader", bucket=args.bucket, role=OBJECT_VIEWER, member=account.member, opts=may)
    writer = BucketIAMMember(
        f"{name}-writer",
        bucket=args.bucket,
        role=OBJECT_USER,
        member=account.member,
        condition=BucketIAMMemberConditionArgs(
            title="only-usage",
            expression=f'resource.name.startsWith("projects/_/buckets/{args.bucket}/objects/{USAGE_FOLDER}")',
        ),
        opts=may,
    )
    invokers = [
        cloudrunv2.ServiceIamMember(
            f"{name}-server-{region}",
            project=args.project,
            location=region,
            name=service,
            role=INVOKER,
            member=account.member,
            opts=child_options(component, opts, depends_on=[account]),
        )
        for region, service in args.servers.items()
    ]
    return [reader, writer, *invokers]


def _template(args: KeyDoorArgs, account: str, version: SecretVersion, failed: str) -> cloudrunv2.ServiceTemplateArgs:
    """The template; `failed` is the revision that this one is another attempt at, "" for none."""
    item = cloudrunv2.ServiceTemplateVolumeSecretItemArgs(path=ARCHIVE_NAME, version=version.version)
    program = cloudrunv2.ServiceTemplateVolumeSecretArgs(secret=args.secret_id, items=[item])
    return cloudrunv2.ServiceTemplateArgs(
        annotations={ATTEMPT: failed} if failed else None,
        execution_environment="EXECUTION_ENVIRONMENT_GEN2",
        service_account=account,
        scaling=cloudrunv2.ServiceTemplateScalingArgs(min_instance_count=0, max_instance_count=args.max_instances),
        max_instance_request_concurrency=args.request_concurrency,
        timeout=f"{args.timeout_seconds}s",
        containers=[_container(args)],
        volumes=[cloudrunv2.ServiceTemplateVolumeArgs(name=_VOLUME, secret=program)],
    )


def _container(args: KeyDoorArgs) -> cloudrunv2.ServiceTemplateContainerArgs:
    variables = {UPSTREAM: args.upstream, AUDIENCE: args.upstream, BUCKET: args.bucket}
    return cloudrunv2.ServiceTemplateContainerArgs(
        image=args.image,
        commands=list(COMMANDS),
        args=list(arguments_of(door_archive())),
        envs=[cloudrunv2.ServiceTemplateContainerEnvArgs(name=each, value=value) for each, value in variables.items()],
        ports=cloudrunv2.ServiceTemplateContainerPortsArgs(container_port=PORT),
        resources=cloudrunv2.ServiceTemplateContainerResourcesArgs(
            limits={"cpu": "1", "memory": "512Mi"}, cpu_idle=True, startup_cpu_boost=False
        ),
        volume_mounts=[cloudrunv2.ServiceTemplateContainerVolumeMountArgs(name=_VOLUME, mount_path=FOLDER)],
        startup_probe=cloudrunv2.ServiceTemplateContainerStartupProbeArgs(
            period_seconds=_PROBE_SECONDS,
            timeout_seconds=_PROBE_SECONDS,
            failure_threshold=_PROBE_ATTEMPTS,
            http_get=cloudrunv2.ServiceTemplateContainerStartupProbeHttpGetArgs(path=PROBE_PATH, port=PORT),
        ),
    )
