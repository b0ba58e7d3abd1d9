"""Rules of load balancing, Certificate Manager and Cloud DNS; see the package."""

COMPUTE, DNS = "compute.beta", "dns.v1"

RULES = [
    (
        "a change of a backend service, URL map, proxy or policy needs the current fingerprint, else 412",
        ["load_balancing/resources.a_change_needs_the_current_fingerprint"],
        COMPUTE,
        "schemas/BackendService/properties/fingerprint/description",
        "fail with error 412 conditionNotMet",
    ),
    (
        "labels are set with their own fingerprint",
        ["load_balancing/resources.labels_need_their_own_fingerprint"],
        COMPUTE,
        "schemas/Address/properties/labelFingerprint/description",
        "You must always provide an",
    ),
    (
        "a resource of a balancer in use is not deleted",
        [
            "load_balancing/resources.a_resource_in_use_is_not_deleted",
            "load_balancing/resources.an_in_use_refusal_is_in_googles_words",
            "load_balancing/certificates.what_a_map_needs_is_not_deleted",
        ],
        "reports of Compute Engine's users: terraform-google-lb-http#159",
        "",
        "",
    ),
    (
        "a backend that is a serverless group has no maximum utilization",
        ["load_balancing/resources.a_wrong_resource_is_refused_by_its_field"],
        "reports of Compute Engine's users: terraform-provider-google#7167",
        "",
        "",
    ),
    (
        "a managed certificate is issued when its domain leads to a balancer that has it, and stays so",
        [
            "load_balancing/certificates.a_certificate_is_active_after_its_record_leads_to_its_balancer",
            "load_balancing/certificates.a_certificate_without_a_balancer_is_not_issued",
        ],
        COMPUTE,
        "schemas/SslCertificateManagedSslCertificate/properties/domainStatus/description",
        "Detailed statuses of the domains",
    ),
    (
        "a DNS authorization asks for a CNAME record, and its certificate waits for it",
        ["load_balancing/certificates.a_certificate_waits_for_the_record_of_its_authorization"],
        "certificatemanager.v1",
        "schemas/DnsAuthorization/properties/dnsResourceRecord/description",
        "DNS Resource Record that needs to be added to DNS",
    ),
    (
        "a change of a zone is made as a whole or not at all; a deletion is the record set as it is",
        ["load_balancing/dns.a_change_replaces_a_record_set_or_leaves_all_as_it_was"],
        DNS,
        "resources/changes/methods/create/description",
        "Atomically updates the ResourceRecordSet collection",
    ),
    (
        "a reference to another resource needs the permission to use it",
        ["load_balancing/rights.a_reference_needs_the_permission_to_use_it"],
        "docs: IAM roles and permissions of Compute Engine",
        "",
        "",
    ),
    (
        "a condition of a binding may name a record set; the permission is needed on the zone too",
        ["load_balancing/rights.a_condition_may_name_a_record_set_of_a_zone"],
        "docs: google_dns_managed_zone_iam_member of the provider",
        "",
        "",
    ),
    (
        "a zone with records is not deleted",
        ["load_balancing/dns.a_zone_goes_only_when_it_is_empty"],
        "reports of Cloud DNS's users: terraform-provider-google#1572",
        "",
        "",
    ),
    (
        "a region is ejected by 502, 503 and 504 in a row, longer each time, and never more than the percentage",
        [
            "load_balancing/region_choice.a_region_is_ejected_by_failures_in_a_row",
            "load_balancing/region_choice.a_region_is_out_longer_each_time_and_returns_at_a_sweep",
            "load_balancing/region_choice.never_more_regions_are_out_than_the_settings_allow",
            "load_balancing/balancer_traffic.a_dead_region_is_ejected_after_its_failures_and_returns",
        ],
        COMPUTE,
        "schemas/OutlierDetection/properties/consecutiveGatewayFailure/description",
        "consecutive gateway failures (502, 503, 504 status",
    ),
    (
        "a service with less than 60 % of its instances ready gets no traffic, which returns gradually",
        [
            "load_balancing/region_choice.a_regions_traffic_returns_gradually_with_its_health",
            "load_balancing/balancer_traffic.service_health_moves_traffic_away_and_gradually_back",
        ],
        "docs: Cloud Run service health",
        "",
        "",
    ),
    (
        "a request is sent again only by a retry policy, on its conditions",
        ["load_balancing/balancer_traffic.a_retry_policy_sends_a_failed_request_again"],
        COMPUTE,
        "schemas/HttpRetryPolicy/properties/retryConditions/description",
        "gateway-error",
    ),
    (
        "an address has no certificate before it is ACTIVE, and the caller's identity is the service's to check",
        [
            "load_balancing/balancer_traffic.tls_needs_a_certificate_that_is_active",
            "load_balancing/balancer_traffic.the_identity_of_the_address_is_checked_by_the_service",
            "load_balancing/balancer_traffic.a_service_may_be_hidden_but_for_the_balancer",
        ],
        "docs: serverless network endpoint groups; Cloud Run, custom audiences and ingress",
        "",
        "",
    ),
]
