"""Rules of the TPU API and Compute Engine; see the package."""

TPU = "tpu.v2alpha1"
COMPUTE = "compute.beta"
QUEUED = "resources/projects/resources/locations/resources/queuedResources/methods"

RULES = [
    (
        "without force a queued resource is deleted only without nodes; its id is free when the operation is done",
        ["tpu_api.a_name_is_free_only_when_its_deletion_is_done"],
        TPU,
        f"{QUEUED}/delete/parameters/force/description",
        "in the ACCEPTED, FAILED, or SUSPENDED state",
    ),
    (
        "a request without capacity waits until its validity ends, then fails",
        [
            "compute/machines_lifecycle.a_request_without_capacity_waits_while_it_is_valid_and_no_longer",
            "tpu_api.a_request_that_is_not_valid_any_more_fails",
        ],
        TPU,
        "schemas/QueueingPolicy/properties/validUntilDuration/description",
        "If the request cannot be fulfilled by this time the request will be failed",
    ),
    (
        "a queued resource that is being provisioned cannot be deleted",
        ["tpu_api.a_request_is_deleted_only_in_a_state_that_has_settled"],
        "reports of Cloud TPU's users, 2026",
        "",
        "",
    ),
    (
        "a request counts in the quota of its zone (TPU) or region (Compute Engine) until it is deleted, in any state",
        [
            "compute/machines_lifecycle.a_quota_counts_all_requests_that_are_not_deleted",
            "tpu_api.what_is_not_deleted_counts_in_the_quota_whatever_became_of_it",
            "compute/instances.the_quotas_of_a_region_are_named_the_preemptible_one_first",
        ],
        "reports of Cloud TPU's users, 2026",
        "",
        "",
    ),
    (
        "a repeated requestId returns the first request's operation, for TPU and Compute Engine",
        [
            "tpu_api.the_same_request_is_stored_once",
            "compute/vpc_networks.a_name_that_is_taken_is_refused_and_the_same_request_is_not",
        ],
        COMPUTE,
        "resources/networks/methods/insert/parameters/requestId/description",
        "will ignore the second request",
    ),
    (
        "at the end of the run duration an instance is deleted and a queued resource suspended",
        [
            "tpu_api.a_request_goes_from_stored_to_suspended_and_its_machine_with_it",
            "compute/instances.the_providers_own_request_runs_for_its_time_and_is_then_deleted",
        ],
        COMPUTE,
        "schemas/Scheduling/properties/maxRunDuration/description",
        "will be performed at the end of the run",
    ),
    (
        "a flex-start instance is PENDING while its request is valid; its operation has the reason of a failure",
        ["compute/instances.a_waiting_request_is_pending_and_its_operation_says_why"],
        COMPUTE,
        "schemas/InstanceParams/properties/requestValidForDuration/description",
        "Relative deadline for waiting for capacity",
    ),
    (
        "the firewall rule with the lowest priority number decides; of two equal ones the denial",
        ["compute/vpc.the_rule_with_the_least_number_counts_a_denial_first"],
        COMPUTE,
        "schemas/Firewall/properties/priority/description",
        "DENY rules take precedence over ALLOW rules if they have equal priority",
    ),
    (
        "ranges of one network do not overlap",
        ["compute/vpc_networks.what_cannot_be_is_refused_by_its_field"],
        COMPUTE,
        "schemas/Subnetwork/properties/ipCidrRange/description",
        "be unique and non-overlapping within a network",
    ),
    (
        "a patch of a subnetwork needs its current fingerprint, else 412",
        ["compute/vpc_networks.a_patch_changes_what_it_names_and_refuses_what_is_fixed"],
        COMPUTE,
        "schemas/Subnetwork/properties/fingerprint/description",
        "error 412 conditionNotMet",
    ),
    (
        "a network in use cannot be deleted, nor a subnetwork with machines or Cloud Run services",
        [
            "compute/vpc_networks.a_network_goes_only_when_nothing_is_in_it",
            "compute/vpc_networks.a_subnetwork_goes_only_when_no_service_is_attached_to_it",
            "tpu_api.a_subnetwork_is_held_by_the_machines_in_it",
        ],
        "Compute Engine's error resourceInUseByAnotherResource",
        "",
        "",
    ),
]
