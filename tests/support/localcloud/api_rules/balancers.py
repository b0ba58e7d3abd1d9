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
        "a zone with records is not deleted",
        ["load_balancing/dns.a_zone_goes_only_when_it_is_empty"],
        "reports of Cloud DNS's users: terraform-provider-google#1572",
        "",
        "",
    ),
]
