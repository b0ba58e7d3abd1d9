"""Jobs of Cloud Scheduler as a program declares them, and what all policies of a resource say of a resource."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from pulumi_policy import ResourceValidationPolicy

from tests.support.policies.harness import POLICIES, UNKNOWN, violations

if TYPE_CHECKING:
    from collections.abc import Mapping

JOB = "gcp:cloudscheduler/job:Job"
EMAIL = "jobs@p.iam.gserviceaccount.com"
NO_TOKEN: dict[str, Any] = {"oauthToken": None}
IDENTITY = {"oauthToken": None, "oidcToken": {"serviceAccountEmail": EMAIL, "audience": "https://chat.example"}}


def encode(body: object) -> str:
    """A body as Cloud Scheduler takes it; an unknown one stays unknown."""
    return UNKNOWN if body == UNKNOWN else base64.b64encode(json.dumps(body).encode()).decode()


def job(uri: str, method: str = "POST", body: object = None, **target: object) -> dict[str, Any]:
    """A job's inputs; `target` changes the request."""
    request: dict[str, Any] = {"uri": uri, "httpMethod": method, "oauthToken": {"serviceAccountEmail": EMAIL}}
    if body is not None:
        request["body"] = encode(body)
    return {"schedule": "0 8 * * 1-5", "timeZone": "UTC", "httpTarget": {**request, **target}}


def all_violations(token: str, inputs: Mapping[str, Any]) -> dict[str, list[str]]:
    """What each policy of a resource says, by its name; those that say nothing are left out."""
    resource = [name for name, policy in POLICIES.items() if isinstance(policy, ResourceValidationPolicy)]
    return {name: problems for name in resource if (problems := violations(name, token, inputs))}
