"""Failures of revisions: the platform's message, the operation's code, the failed condition. Pure."""

from bezel_localcloud.core.json_types import Json


class RevisionFailureError(Exception):
    """A revision that will not become ready.

    Attributes:
        text: The platform's message after "Revision ... is not ready and cannot serve traffic.".
        code: google.rpc.Code of the operation's error.
        reason: The reason field of a run v2 Condition, e.g. {"revisionReason": "..."}.
        condition: The condition of the revision that failed.
    """

    def __init__(self, text: str, *, code: str, reason: Json, condition: str = "ContainerReady") -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.reason = reason
        self.condition = condition


class ContainerFailureError(RevisionFailureError):
    """The container did not start."""

    def __init__(self, text: str) -> None:
        reason = {"revisionReason": "HEALTH_CHECK_CONTAINER_ERROR"}
        super().__init__(text, code="FAILED_PRECONDITION", reason=reason, condition="ContainerHealthy")


class KilledError(ContainerFailureError):
    """The container was killed while it started, not by an error of its own: a new container may succeed."""


class NoCapacityError(RevisionFailureError):
    """The region has no accelerator left at this moment, whatever the project's quota.

    Attributes:
        status: Status of the requests that wait for an instance in vain.
    """

    def __init__(self, accelerator: str, region: str, status: int) -> None:
        text = f"Insufficient GPU capacity in {region} for the accelerator {accelerator} at this moment."
        reason = {"reason": "REVISION_FAILED"}
        super().__init__(text, code="RESOURCE_EXHAUSTED", reason=reason, condition="ResourcesAvailable")
        self.status = status


def quota_failure(text: str) -> RevisionFailureError:
    """The request exceeds a quota of the project."""
    reason = {"reason": "REVISION_FAILED"}
    return RevisionFailureError(text, code="RESOURCE_EXHAUSTED", reason=reason, condition="ResourcesAvailable")


def image_missing(image: str) -> RevisionFailureError:
    """The image does not exist."""
    text, reason = f"Image '{image}' not found.", {"reason": "CONTAINER_MISSING"}
    return RevisionFailureError(text, code="NOT_FOUND", reason=reason)


def image_unreadable(image: str, agent: str) -> RevisionFailureError:
    """The platform's agent may not read the image."""
    text = (
        f"Google Cloud Run Service Agent {agent} must have permission to read the image, {image}. Ensure that the "
        "provided container image URL is correct and that the above account has permission to access the image."
    )
    reason = {"reason": "CONTAINER_IMAGE_UNAUTHORIZED"}
    return RevisionFailureError(text, code="PERMISSION_DENIED", reason=reason)


def secret_failure(text: str, code: str) -> RevisionFailureError:
    """A secret does not exist, or the runtime account may not read it."""
    reason = {"reason": "SECRETS_ACCESS_CHECK_FAILED"}
    return RevisionFailureError(text, code=code, reason=reason)


def internal_failure() -> RevisionFailureError:
    """An internal error of localcloud; its daemon.log has the details."""
    reason = {"reason": "INTERNAL"}
    return RevisionFailureError("Internal error.", code="INTERNAL", reason=reason)
