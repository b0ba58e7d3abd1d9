"""References of a revision, checked when the platform makes it: quota, image, secrets, buckets."""

import re

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.files.secret_folders import FileContent
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER, RUN_AGENT
from bezel_localcloud.faults.platform import gpu_quota, hides_secret
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.images import parse_reference
from bezel_localcloud.services.artifact_registry.registry import find_image
from bezel_localcloud.services.cloud_quotas.in_force import value_in
from bezel_localcloud.services.cloud_run import failures
from bezel_localcloud.services.cloud_run.containers.volumes import BucketMount, SecretMount
from bezel_localcloud.services.cloud_run.quotas import gpu_quota_of, gpus_needed
from bezel_localcloud.services.cloud_run.spec import ContainerSpec, RevisionSpec
from bezel_localcloud.services.secret_manager.api import find_version, payload_of

RUN = "run.googleapis.com"
_READING = ("storage.objects.list", "storage.objects.get")
_ADDRESS = re.compile(r"gs://([a-z0-9][a-z0-9._-]+)")


def check_quota(cloud: Context, location: str, spec: RevisionSpec) -> None:
    """Count the GPUs that the services of a region may come to hold, see quotas.py.

    Raises:
        RevisionFailureError: RESOURCE_EXHAUSTED.
    """
    if not spec.instance_accelerators:
        return
    quota = gpu_quota_of(spec.accelerator, redundant=spec.redundant)
    value = value_in(cloud.store, cloud.pace.now(), RUN, quota.name, location, quota.gpus * quota.unit)
    allowed = gpu_quota(cloud.faults, value // quota.unit)
    services = [
        (service, dict(cloud.store.rows("revision", f"{name}/revisions/")), cloud.services.instance_counts(name))
        for name, service in cloud.store.rows("service", f"projects/{PROJECT}/locations/{location}/services/")
    ]
    needed = gpus_needed(services, spec.accelerator, redundant=spec.redundant)
    if needed > allowed:
        raise failures.quota_failure(
            f"Quota exceeded for total allowable count of GPUs per project per region: {quota.name} is "
            f"{quota.amount(allowed)} in {location}; the maximum instances of all services and the instances of older "
            f"revisions need {quota.amount(needed)}."
        )


def check_image(cloud: Context, image: str) -> None:
    """Check that the image exists and that Cloud Run's own agent may read it.

    Raises:
        RevisionFailureError: If it does not exist or is not readable.
    """
    reference = parse_reference(image)
    if reference is None:
        raise failures.image_missing(image)
    try:
        find_image(cloud, reference, RUN_AGENT)
    except ApiError as error:
        refused = error.code == "PERMISSION_DENIED"
        raise (failures.image_unreadable(image, RUN_AGENT) if refused else failures.image_missing(image)) from None


def resolve_environment(cloud: Context, spec: ContainerSpec) -> dict[str, str]:
    """Return the container's environment with the secrets' values, read as its service account.

    Raises:
        RevisionFailureError: If a secret does not exist or is not readable; the error never holds a value.
    """
    resolved = {}
    for entry in spec.environment:
        source = (entry.get("valueSource") or {}).get("secretKeyRef")
        resolved[entry["name"]] = _secret(cloud, spec, source) if source else str(entry.get("value", ""))
    return resolved


def _secret(cloud: Context, spec: ContainerSpec, source: Json) -> str:
    secret, version = str(source.get("secret", "")), str(source.get("version") or "latest")
    try:
        return _payload(cloud, spec, secret, version).decode()
    except UnicodeDecodeError:
        text = f"Secret {_version_name(secret, version)} is not UTF-8 text."
        raise failures.secret_failure(text, "FAILED_PRECONDITION") from None


def _version_name(secret: str, version: str) -> str:
    return f"projects/{PROJECT_NUMBER}/secrets/{secret.rpartition('/')[2]}/versions/{version}"


def _payload(cloud: Context, spec: ContainerSpec, secret: str, version: str) -> bytes:
    """Return the bytes of a secret's version, read as the service account of a container.

    Raises:
        RevisionFailureError: If it does not exist or is not readable; the error never holds a value.
    """
    shown, secret = _version_name(secret, version), secret.rpartition("/")[2]
    name = f"projects/{PROJECT}/secrets/{secret}"
    if not cloud.access.allows(spec.service_account, "secretmanager.versions.access", name):
        text = (
            f"Permission denied on secret: {shown} for Revision service account {spec.service_account}. The service "
            "account used must be granted the 'Secret Manager Secret Accessor' role "
            "(roles/secretmanager.secretAccessor) at the secret, project or higher level."
        )
        raise failures.secret_failure(text, "PERMISSION_DENIED")
    try:
        if hides_secret(cloud.faults, name):
            raise ApiError("NOT_FOUND", f"Secret [projects/{PROJECT_NUMBER}/secrets/{secret}] not found.")  # noqa: TRY301
        return payload_of(cloud.store, *find_version(cloud, name, version))
    except ApiError as error:
        text = f"Secret {shown} was not found or cannot be read: {error.message}"
        raise failures.secret_failure(text, error.code) from None


def resolve_secret_mounts(cloud: Context, spec: ContainerSpec) -> dict[SecretMount, list[FileContent]]:
    """Return the files of each secret that a container mounts, read as its service account.

    Raises:
        RevisionFailureError: A secret or a version does not exist or is not readable.
    """
    return {
        mount: [
            FileContent(file.path, file.mode, _payload(cloud, spec, mount.secret, file.version)) for file in mount.files
        ]
        for mount in spec.secrets
    }


def resolve_mounts(cloud: Context, spec: ContainerSpec) -> dict[str, str]:
    """Return mount path -> folder of this machine for each mounted bucket.

    Also `gs://BUCKET` -> folder for each bucket that an argument names and the service account may read: a server reads
    those without a mount.

    Raises:
        RevisionFailureError: If a bucket does not exist or the service account may not read it.
    """
    named = {bucket for argument in spec.args for bucket in _ADDRESS.findall(argument)}
    existing = {bucket for bucket in named if cloud.store.get("bucket", bucket)}
    readable = {bucket for bucket in existing if not _missing_permissions(cloud, spec, bucket)}
    folders = {f"gs://{bucket}": str(cloud.objects.bucket_folder(bucket)) for bucket in readable}
    return folders | {mount.path: _mount(cloud, spec, mount) for mount in spec.mounts}


def _missing_permissions(cloud: Context, spec: ContainerSpec, bucket: str) -> list[str]:
    account, allows = spec.service_account, cloud.access.allows
    return [permission for permission in _READING if not allows(account, permission, f"projects/_/buckets/{bucket}")]


def _mount(cloud: Context, spec: ContainerSpec, mount: BucketMount) -> str:
    begin = f'Mounting volume "{mount.volume}" (bucket "{mount.bucket}") failed'
    if cloud.store.get("bucket", mount.bucket) is None:
        raise failures.ContainerFailureError(f"{begin}: bucket not found. Create it, or name the right one.")
    for permission in _missing_permissions(cloud, spec, mount.bucket):
        text = f"{spec.service_account} does not have {permission} access to the bucket"
        raise failures.ContainerFailureError(f"{begin}: {text}. Grant it roles/storage.objectViewer on the bucket.")
    root = cloud.objects.bucket_folder(mount.bucket)
    folder = root / mount.only_dir
    if not folder.resolve().is_relative_to(root.resolve()) or not folder.is_dir():
        raise failures.ContainerFailureError(f'{begin}: the bucket has no directory "{mount.only_dir}".')
    return str(folder)
