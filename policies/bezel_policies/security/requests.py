"""Rule of requests that resources send to Google's APIs after their deploy. Pure."""

from collections.abc import Iterator

from bezel.resource_cost.hardware import unread_in
from bezel.resource_cost.inputs import Inputs
from bezel.resource_cost.requests.scheduled import JOB, token_for_another_host
from bezel_base.errors import Problem
from bezel_policies.config import RequestConfig


def known_requests(token: str, inputs: Inputs, config: RequestConfig) -> Iterator[Problem]:
    """Jobs, workflows and builds send Google's APIs only requests that are understood whole."""
    if token in config.exempt:
        return
    unread = unread_in(token, inputs) or (token_for_another_host(inputs) if token == JOB else None)
    if unread is not None:
        yield Problem(
            unread.key,
            unread.value,
            f"{unread.why} is not understood: it may create, enlarge or open something after the deploy.",
            "send only requests that docs/policies.md lists, or declare what it creates as a resource. The owner of "
            f'the configuration can exempt the type: `"exempt": ["{token}"]` at this policy.',
        )
