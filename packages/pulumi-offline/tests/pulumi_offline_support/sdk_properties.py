"""Properties that the installed SDK lets a program set and that a row lacks, each with the reason."""

from collections.abc import Iterator
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Fields, Kind, Mark
from pulumi_offline_support.sdk import nested_class, parameters, snake

UNSEEN = "not in the recordings: how the provider sends and reads it is not known"
GOOGLES = "Google's own, which the SDK lets a program set nevertheless"
NOT_RUN = "localcloud runs no lifecycle rule, and the provider's way to send a zero in one was not recorded"
NOT_SERVED = "localcloud does not serve it"
NO_USE = "nothing that a network of nodes needs"

WRITE_ONLY = ("id_wo", "id_wo_version", "secret_wo", "secret_wo_version")
PRIVATE = ("certificate_pem", "pem_private_key_wo", "pem_private_key_wo_version", "private_key_pem")

# What a program cannot use on localcloud, and why; Check refuses each by name.
LEFT_OUT: dict[str, dict[str, str]] = {
    "gcp:cloudscheduler/job:Job": {
        "app_engine_http_target": NOT_SERVED,
        "pubsub_target": NOT_SERVED,
    },
    "gcp:logging/metric:Metric": {
        "bucket_options.explicit_buckets": "a list of numbers, which no other type has; exponential_buckets fit tokens"
    },
    "gcp:monitoring/alertPolicy:AlertPolicy": {
        "conditions.condition_monitoring_query_language": NOT_SERVED,
        "conditions.condition_sql": NOT_SERVED,
    },
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": {
        "http_check.auth_info": "a password would be in the state; a service agent's token needs none",
        "resource_group": NOT_SERVED,
        "synthetic_monitor": NOT_SERVED,
    },
    "gcp:cloudrunv2/service:Service": {
        "functional_type": UNSEEN,
        "ssh_enabled": UNSEEN,
        "template.containers.build_infos": GOOGLES,
        "template.sandboxes.templates.envs": UNSEEN,
        "template.sandboxes.templates.volume_mounts": UNSEEN,
        "template.sandboxes.templates.working_dir": UNSEEN,
        "template.workload_identity_config": UNSEEN,
    },
    "gcp:compute/firewall:Firewall": dict.fromkeys(
        (
            "denies",
            "destination_ranges",
            "direction",
            "disabled",
            "enable_logging",
            "log_config",
            "params",
            "source_service_accounts",
            "source_tags",
            "target_service_accounts",
        ),
        NO_USE,
    ),
    "gcp:compute/network:Network": dict.fromkeys(
        (
            "bgp_always_compare_med",
            "bgp_best_path_selection_mode",
            "bgp_inter_region_cost",
            "delete_bgp_always_compare_med",
            "delete_default_routes_on_create",
            "enable_ula_internal_ipv6",
            "internal_ipv6_range",
            "mtu",
            "network_firewall_policy_enforcement_order",
            "network_profile",
            "params",
            "routing_mode",
        ),
        NO_USE,
    ),
    "gcp:compute/router:Router": dict.fromkeys(
        (
            "bgp",
            "encrypted_interconnect_router",
            "md5_authentication_keys",
            "ncc_gateway",
            "params",
        ),
        NO_USE,
    ),
    "gcp:compute/routerNat:RouterNat": dict.fromkeys(
        (
            "auto_network_tier",
            "drain_nat_ips",
            "enable_dynamic_port_allocation",
            "enable_endpoint_independent_mapping",
            "endpoint_types",
            "icmp_idle_timeout_sec",
            "initial_nat_ips",
            "log_config",
            "max_ports_per_vm",
            "min_ports_per_vm",
            "nat64_subnetworks",
            "nat_ips",
            "rules",
            "source_subnetwork_ip_ranges_to_nat64",
            "subnetworks",
            "tcp_established_idle_timeout_sec",
            "tcp_time_wait_timeout_sec",
            "tcp_transitory_idle_timeout_sec",
            "type",
            "udp_idle_timeout_sec",
        ),
        NO_USE,
    ),
    "gcp:compute/subnetwork:Subnetwork": dict.fromkeys(
        (
            "allow_subnet_cidr_routes_overlap",
            "external_ipv6_prefix",
            "internal_ipv6_prefix",
            "ip_collection",
            "ipv6_access_type",
            "log_config",
            "params",
            "private_ipv6_google_access",
            "purpose",
            "reserved_internal_range",
            "resolve_subnet_mask",
            "role",
            "secondary_ip_ranges",
            "send_secondary_ip_range_if_empty",
            "stack_type",
        ),
        NO_USE,
    ),
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": dict.fromkeys(
        ("attestation_rules", "inline_certificate_issuance_config", "inline_trust_config"),
        "for identities of Google's own workloads, which localcloud's pools do not have",
    ),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": dict.fromkeys(
        ("aws", "saml", "x509"), "localcloud exchanges tokens of OpenID Connect issuers only"
    ),
    "gcp:kms/cryptoKey:CryptoKey": {"key_access_justifications_policy": "for organizations with Assured Workloads"},
    "gcp:monitoring/notificationChannel:NotificationChannel": {
        "sensitive_labels": "localcloud has channels of the type email only, which have no secret",
    },
    "gcp:compute/securityPolicy:SecurityPolicy": {
        "rules.preconfigured_waf_config.exclusions.request_bodies": UNSEEN,
    },
    "gcp:compute/backendService:BackendService": {
        "dynamic_forwarding.forward_proxy": UNSEEN,
        "tls_settings.identity": UNSEEN,
        "iap.oauth2_client_secret_sha256": GOOGLES,
        **dict.fromkeys((f"iap.oauth2_client_{name}" for name in WRITE_ONLY), NOT_SERVED),
    },
    "gcp:compute/uRLMap:URLMap": {
        **{
            f"{place}.{name}": UNSEEN
            for place in (
                "default_route_action",
                "path_matchers.default_route_action",
                "path_matchers.path_rules.route_action",
                "path_matchers.route_rules.route_action",
            )
            for name in ("dynamic_compression_policy", "image_optimization_policy")
        },
        "path_matchers.route_rules.route_action.url_rewrite.regex_rewrite": UNSEEN,
    },
    "gcp:certificatemanager/certificate:Certificate": {
        "managed.authorization_attempt_infos": GOOGLES,
        "managed.provisioning_issues": GOOGLES,
        "managed.state": GOOGLES,
        **dict.fromkeys((f"self_managed.{name}" for name in PRIVATE), NOT_SERVED),
    },
    "gcp:secretmanager/secret:Secret": {"secret_type": UNSEEN},
    "gcp:storage/bucket:Bucket": {
        "enable_object_retention": "no recording of the published provider sets it",
        "encryption.customer_managed_encryption_enforcement_config": UNSEEN,
        "encryption.customer_supplied_encryption_enforcement_config": UNSEEN,
        "encryption.google_managed_encryption_enforcement_config": UNSEEN,
        "ip_filter.allow_all_service_agent_access": UNSEEN,
        "ip_filter.allow_cross_org_vpcs": UNSEEN,
        "ip_filter.public_network_source": UNSEEN,
        "ip_filter.vpc_network_sources": UNSEEN,
        "lifecycle_rules.condition.send_age_if_zero": NOT_RUN,
        "lifecycle_rules.condition.send_days_since_custom_time_if_zero": NOT_RUN,
        "lifecycle_rules.condition.send_days_since_noncurrent_time_if_zero": NOT_RUN,
        "lifecycle_rules.condition.send_num_newer_versions_if_zero": NOT_RUN,
        "lifecycle_rules.condition.with_state": NOT_RUN,
        "retention_policy.is_locked": "a lock is a call of its own, which was not recorded",
        "soft_delete_policy.effective_time": GOOGLES,
    },
    "gcp:storage/bucketObject:BucketObject": {
        "contexts": "localcloud's objects have no contexts",
        "customer_encryption": "the key travels in headers, which localcloud refuses",
        "force_empty_content_type": "localcloud gives every object a type",
        "retention": "no recording of the published provider sets it",
    },
}
EACH = [(token, path) for token, paths in LEFT_OUT.items() for path in paths]


def compare_properties(fields: Fields, arguments: Any, inputs: Any, beside: Mark, path: str = "") -> Iterator[str]:
    """`+path` for a property of ours that the SDK lacks, `-path` for one of the SDK's that we lack.

    Properties with a mark of `beside` are left aside.
    """
    theirs = parameters(arguments)
    ours = {snake(item.name): item for item in fields if not item.marks & beside}
    yield from (f"+{path}{name}" for name in sorted(ours.keys() - theirs.keys()))
    yield from (f"-{path}{name}" for name in sorted(theirs.keys() - ours.keys()))
    for name, item in ours.items():
        inner = (
            nested_class(theirs[name], inputs) if item.kind in (Kind.BLOCK, Kind.BLOCKS) and name in theirs else None
        )
        if inner is not None:
            yield from compare_properties(item.fields, inner, inputs, beside, f"{path}{name}.")


def settable(fields: Fields) -> Iterator[str]:
    """The properties that a program can set, nested ones too."""
    for item in fields:
        if not item.marks & (Mark.OUTPUT | Mark.REFUSED) and not item.name.startswith("effective"):
            yield item.name
            yield from settable(item.fields)
