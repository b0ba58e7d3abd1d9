"""Policies of the pack, each with its configuration."""

from pulumi_policy import Policy

from bezel_policies.adapter import linked_policy, resource_policy
from bezel_policies.config import LabelConfig, PolicyConfig, RequestConfig
from bezel_policies.security import access, exposure, forwarding, requests
from bezel_policies.security.labels import fill_in, labels

NAME = "security"
POLICIES: list[Policy] = [
    resource_policy(PolicyConfig, access.no_public_invoker),
    resource_policy(RequestConfig, requests.known_requests),
    resource_policy(PolicyConfig, access.own_service_account),
    resource_policy(PolicyConfig, exposure.image_by_digest),
    resource_policy(PolicyConfig, exposure.no_plain_secret),
    resource_policy(PolicyConfig, exposure.no_external_address),
    linked_policy(PolicyConfig, forwarding.no_open_address),
    resource_policy(LabelConfig, labels, fill_in),
]
