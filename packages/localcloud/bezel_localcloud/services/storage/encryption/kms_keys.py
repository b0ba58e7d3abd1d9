"""Keys of Cloud KMS that objects are protected with, and the defaults of buckets.

Checked are the name, the location, the state of the key, and whether Cloud Storage's own account may use it; an object
whose key is disabled or taken away is not served. The bytes are on the disk as those of other objects, so that a mount
shows them, as it does on Google. Source of the texts: Cloud Storage's page on status codes, and its answers in issues.
"""

import re

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT_NUMBER, with_project_id
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.kms.keys import KEY, VERSION, current

STORAGE_AGENT = f"service-{PROJECT_NUMBER}@gs-project-accounts.iam.gserviceaccount.com"
"""The account that Cloud Storage itself acts as."""
_NAME = re.compile(
    r"projects/[^/]+/locations/(?P<location>[^/]+)/keyRings/[a-zA-Z0-9_-]{1,63}/cryptoKeys/[a-zA-Z0-9_-]{1,63}"
)
_LOCATIONS = {"EU": "europe"}  # of a bucket -> of the keys for it, where the names differ
_KMS = "cloudkms.googleapis.com"


def version_for(cloud: Context, bucket: Json, wanted: str, *, locked: bool) -> str:
    """The name of the key's version that a new object is protected with, "" for none.

    Args:
        cloud: The project's state.
        bucket: Bucket of the object.
        wanted: Name of the key that the caller asks for, "" for the default of the bucket.
        locked: Whether the caller brings a key of its own.

    Raises:
        ApiError: The key cannot be used.
    """
    if wanted and locked:
        text = "Cannot provide both a customer-supplied encryption key and a Cloud KMS key for one object."
        raise ApiError("INVALID_ARGUMENT", text)
    name = wanted or ("" if locked else default_of(bucket))
    return check_key(cloud, name, str(bucket["location"])) if name else ""


def default_of(bucket: Json) -> str:
    """Name of the key that objects of a bucket are protected with where their writers name none."""
    return str((bucket.get("encryption") or {}).get("defaultKmsKeyName") or "")


def check_key(cloud: Context, name: str, location: str) -> str:
    """Check that Cloud Storage can encrypt with a key, and return the name of its primary version.

    Args:
        cloud: The project's state.
        name: Name of the key.
        location: Location of the bucket.

    Raises:
        ApiError: 400 for a malformed name, another location, and a key without an enabled primary version; 403 for a
            key that does not exist, or that Cloud Storage's account may not use.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ApiError("INVALID_ARGUMENT", f"Malformed Cloud KMS crypto key: {name}")
    name = with_project_id(name)
    _check_allowed(cloud, name, "cloudkms.cryptoKeyVersions.useToEncrypt")
    if match["location"] != _LOCATIONS.get(location, location.lower()):
        text = "Cloud KMS key location not allowed."
        raise ApiError("INVALID_ARGUMENT", text, reason="cloudKmsKeyLocationNotAllowed")
    version = str(current(cloud, name).get("_primary") or "")
    _check_enabled(cloud, name, version)
    return version


def check_readable(cloud: Context, row: Json) -> None:
    """Check that Cloud Storage can decrypt an object.

    Raises:
        ApiError: 400 for a version that is not enabled, 403 where Cloud Storage's account may not use the key.
    """
    if version := str(row.get("kmsKeyName") or ""):
        key = version.partition("/cryptoKeyVersions/")[0]
        _check_allowed(cloud, key, "cloudkms.cryptoKeyVersions.useToDecrypt")
        _check_enabled(cloud, key, version)


def _check_allowed(cloud: Context, key: str, permission: str) -> None:
    exists = cloud.is_enabled(_KMS) and cloud.store.get(KEY, key) is not None
    if not exists or not cloud.access.allows(STORAGE_AGENT, permission, key):
        text = "Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service account has been "
        raise ApiError("PERMISSION_DENIED", text + "authorized to use this key.", reason="forbidden")


def _check_enabled(cloud: Context, key: str, version: str) -> None:
    current(cloud, key)  # what is due is done
    if (cloud.store.get(VERSION, version) or {}).get("state") != "ENABLED":
        text = "Cloud KMS key is disabled, destroyed, or scheduled to be destroyed."
        raise ApiError("INVALID_ARGUMENT", text, reason="cloudKmsDisabledKey")
