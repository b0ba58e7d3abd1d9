"""Places of a deployed stack's weights: where its starts read them from, and at what price. Asks Cloud Storage."""

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.redaction import clean_text
from bezel.planner.base.money import Priced, text
from bezel.planner.cost.weights_transfer import BucketPlace, Transfer
from bezel.rest import RestError
from bezel.rest.buckets import bucket_of
from bezel_catalog.quantities import GIB

# In a Python program, and in one that uses the Pulumi package, whose outputs are in camel case.
_MODEL_FILES = ("pulumi-python:dynamic/components:ModelFiles", "bezel:components:ModelFiles")


def weights_line(context: Context, deployment: Deployment) -> str | None:
    """The buckets of a deployment's weights with distance and price; None where it reads none."""
    outputs = [dict(each.get("outputs") or {}) for each in deployment.resources if each.get("type") in _MODEL_FILES]
    buckets = dict.fromkeys(str(each["bucket"]) for each in outputs if each.get("bucket"))
    regions = tuple(dict.fromkeys(lease.zone.rpartition("-")[0] for lease in deployment.leases if lease.zone))
    if not regions and deployment.service is not None and deployment.service.has_gpu:
        regions = tuple(deployment.urls)
    lines = []
    for bucket in buckets:
        sizes = (each.get("total_bytes") or each.get("totalBytes") or 0 for each in outputs if each["bucket"] == bucket)
        own_regions = tuple(region for region in regions if len(buckets) > 1 and bucket.endswith(f"-{region}"))
        if regions:
            read = sum(map(float, sizes)) / GIB
            may_copy = not deployment.leases and len(regions) > 1
            lines.append(
                _line(context, bucket, own_regions or regions, read, max(1, len(deployment.leases)), may_copy=may_copy)
            )
    return "; ".join(lines) or None


def _line(context: Context, bucket: str, regions: tuple[str, ...], gib: float, servers: int, *, may_copy: bool) -> str:
    """A bucket, how far it is from the regions that read it, and what reading it costs.

    `may_copy` is whether each of the regions may read a copy of its own.
    """
    try:
        place = BucketPlace.of(bucket_of(context.google, context.address("STORAGE"), bucket))
    except RestError as error:
        return clean_text(f"gs://{bucket}, whose location is not known: {error}", 300)
    transfer = Transfer(bucket, place, regions, gib, servers, may_copy=may_copy)
    if warning := transfer.warning():
        return f"FAR: {warning}"
    amount = transfer.usd
    price = f"{text(amount, 2)} USD" if isinstance(amount, Priced) else f"an unknown amount ({amount.reason})"
    near = f"not judged for {', '.join(regions)}" if transfer.far is None else f"near {', '.join(regions)}"
    return f"gs://{bucket} in {place}, {near}; reading it costs {price} a start"
