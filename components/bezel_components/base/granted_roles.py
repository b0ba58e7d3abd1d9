"""Roles that the components grant, by what they are granted on: the only grants that a deploy makes.

The account that deploys may then be limited to them (`bezel_bootstrap.access.only_roles`). Each is the smallest role of
Google's that holds what its member needs; who gets it is each component's.
"""

LOG_WRITER = "roles/logging.logWriter"
"""Machines that write log entries: Google has no smaller resource than the project for that."""
METRIC_WRITER = "roles/monitoring.metricWriter"
"""Servers whose collector writes their series, and machines that do."""
TPU_ADMIN, NETWORK_USER = "roles/tpu.admin", "roles/compute.networkUser"
INSTANCE_ADMIN = "roles/compute.instanceAdmin.v1"
"""Jobs that request and delete machines by the hour: neither API has grants on a machine that is not there yet."""
ON_PROJECT = (LOG_WRITER, METRIC_WRITER, TPU_ADMIN, NETWORK_USER, INSTANCE_ADMIN)

ACCOUNT_USER = "roles/iam.serviceAccountUser"
"""Jobs that name the account of a service or a machine in their requests."""
ON_ACCOUNT = (ACCOUNT_USER,)

INVOKER, SERVICE_DEVELOPER = "roles/run.invoker", "roles/run.developer"
"""Callers of a service, and the jobs that scale it."""
REPOSITORY_READER = "roles/artifactregistry.reader"
ON_SERVICE_OR_REPOSITORY = (INVOKER, SERVICE_DEVELOPER, REPOSITORY_READER)

OBJECT_VIEWER, OBJECT_USER = "roles/storage.objectViewer", "roles/storage.objectUser"
ON_BUCKET = (OBJECT_VIEWER, OBJECT_USER)

SECRET_ACCESSOR = "roles/secretmanager.secretAccessor"  # noqa: S105 - a role
ON_SECRET = (SECRET_ACCESSOR,)
