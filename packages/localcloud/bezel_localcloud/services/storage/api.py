"""Cloud Storage's API: its paths, resources and query parameters, which its modules register their methods under.

The methods of the JSON API are in buckets/, objects/, copies.py and uploads/, several in one request in
routing/batch.py, and the XML API in xml/. Leaves out files (bezel_localcloud.core.files.objects).
"""

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Api, Call

api = Api("storage.googleapis.com", "Cloud Storage API", legacy=True, public=True)
# Query parameters of a handler that calls `check_preconditions`, for buckets and for objects.
OF_BUCKETS = "ifMetagenerationMatch ifMetagenerationNotMatch"
OF_OBJECTS = f"ifGenerationMatch ifGenerationNotMatch {OF_BUCKETS}"
OF_SOURCES = OF_OBJECTS.replace("if", "ifSource")
BUCKET = "/storage/v1/b/{bucket:id}"
OBJECT = BUCKET + "/o/{object:path}"
UPLOAD, RESUMABLE = "/upload" + BUCKET + "/o", "/resumable/upload" + BUCKET + "/o"
"""Paths of uploads. Some clients take the second one for resumable uploads, as the discovery document says."""
# Names of the resources that permissions are needed on.
POLICY = "projects/_/buckets/{bucket}"
OBJECT_NAME = POLICY + "/objects/{object}"
ASIDE = "uniform:"
"""Prefix of the names of objects' policies that have no effect while their bucket's access is uniform."""


def bucket_of(call: Call, name: str = "") -> Json:
    """Return a bucket, that of the path by default.

    Raises:
        ApiError: NOT_FOUND.
    """
    return call.row_of("bucket", name or call.param("bucket"), "The specified bucket does not exist.")


def resource_of(bucket: str, name: str) -> str:
    """The resource name of an object."""
    return f"{POLICY.format(bucket=bucket)}/objects/{name}"
