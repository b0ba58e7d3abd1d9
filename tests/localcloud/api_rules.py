"""The rules of Google's APIs that localcloud keeps beyond single fields: where each is tried, and what says so.

A row: the rule; the tests that try it (file without `test_` and `.py`, then the function); the document and the place
in it; words that stand there. What no discovery document says has the source in the place of the document.
"""

RUN, SECRETS, STORAGE, IAM = "run.v2", "secretmanager.v1", "storage.v1", "iam.v1"
SERVICE = "schemas/GoogleCloudRunV2Service/properties"
PROBE = "schemas/GoogleCloudRunV2Probe/properties"
SERVICES = "resources/projects/resources/locations/resources/services/methods"

RULES = [
    (
        "a field or query parameter that no message has is refused by its name",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        RUN,
        f"{SERVICE}",
        "template",
    ),
    (
        "a value of another type, beyond its range or its enum is refused with its field",
        ["api_properties.what_the_document_does_not_allow_is_refused_and_the_rest_taken"],
        RUN,
        f"{SERVICE}/ingress/enum",
        "INGRESS_TRAFFIC_ALL",
    ),
    (
        "whatever the document allows is taken; int64 are strings in answers",
        [
            "api_properties.what_the_document_allows_is_taken_and_stays_allowed",
            "message_values.a_value_of_its_kind_is_kept_in_its_normal_form",
        ],
        RUN,
        f"{SERVICE}/generation/format",
        "int64",
    ),
    (
        "no request ends in a 500, and every answer is valid",
        ["api_properties.no_request_ends_in_an_error_of_the_server_and_every_answer_is_valid"],
        RUN,
        "schemas/GoogleRpcStatus/properties",
        "details",
    ),
    (
        "what is output only may be sent and changes nothing",
        [
            "message_values.what_is_output_only_may_be_sent_and_means_nothing",
            "discovery_data.what_may_be_set_of_a_service_is_what_is_not_output_only",
        ],
        RUN,
        f"{SERVICE}/uid/description",
        "Output only",
    ),
    (
        "what is input only is never answered (held against every answer of every test)",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        SECRETS,
        "schemas/Secret/properties/ttl/description",
        "Input only",
    ),
    (
        "an update mask names what changes, clears what the body leaves out, may be *, and names fields that exist",
        [
            "message_values.a_mask_says_what_changes_and_what_is_cleared",
            "message_values.a_mask_of_what_is_no_field_or_not_to_be_set_is_refused",
        ],
        RUN,
        f"{SERVICES}/patch/parameters/updateMask/description",
        "list of fields to be updated",
    ),
    (
        "a page token is good for its own list and filter; a negative page size is refused",
        [
            "message_values.a_token_that_was_not_given_out_for_a_list_is_refused",
            "log_filters.a_long_log_is_paged_by_tokens_that_are_good_for_their_own_filter",
        ],
        "logging.v2",
        "schemas/ListLogEntriesRequest/properties/pageToken/description",
        "should be identical to those in the previous call",
    ),
    (
        "secrets and their versions are listed newest first, with their number",
        ["api_refusals.secrets_and_versions_are_listed_newest_first_by_pages"],
        SECRETS,
        "schemas/ListSecretVersionsResponse/properties/versions/description",
        "newest first",
    ),
    (
        "a policy has version 0, 1 or 3",
        ["iam_policies.a_policy_that_cannot_be_is_refused"],
        IAM,
        "schemas/Policy/properties/version/description",
        "Requests that specify an invalid value are rejected",
    ),
    (
        "conditions are read and written in version 3; without an etag they may be lost",
        ["iam_policies.conditions_are_read_and_written_in_version_3_only"],
        IAM,
        "schemas/Policy/properties/version/description",
        "all of the conditions in the version `3` policy are lost",
    ),
    (
        "a conditional grant holds where its condition does; what is not understood is refused when written",
        [
            "iam_policies.a_conditional_grant_holds_where_its_condition_does_and_nowhere_else",
            "iam_policies.a_condition_that_is_not_understood_is_not_guessed",
        ],
        IAM,
        "schemas/Binding/properties/condition/description",
        "If the condition evaluates to `true`, then this binding applies to the current request",
    ),
    (
        "a policy's mask is bindings and etag where none is given",
        ["iam_policies.a_mask_changes_what_it_names_of_a_policy"],
        IAM,
        "schemas/SetIamPolicyRequest/properties/updateMask/description",
        'paths: "bindings, etag"',
    ),
    (
        "a stale etag of a policy changes nothing: 409, in Cloud Storage 412",
        [
            "google_apis.a_policy_written_with_a_stale_etag_is_refused",
            "api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong",
        ],
        IAM,
        "schemas/Policy/properties/etag/description",
        "optimistic concurrency control",
    ),
    (
        "permissions with wildcards cannot be tested",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        IAM,
        "schemas/TestIamPermissionsRequest/properties/permissions/description",
        "are not allowed",
    ),
    (
        "an etag of a secret or version must be the current one, and may be left out",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        SECRETS,
        "schemas/EnableSecretVersionRequest/properties/etag/description",
        "The request succeeds if it matches",
    ),
    (
        "an alias of a secret's version has its form, and finds versions only to get and to access",
        ["api_refusals.an_alias_names_a_version", "api_refusals.what_a_method_cannot_do_is_refused_with_the_reason"],
        SECRETS,
        "schemas/Secret/properties/versionAliases/description",
        "Access by alias is only be supported on GetSecretVersion and AccessSecretVersion",
    ),
    (
        "a payload is checked against its CRC32C, and has 64 KiB at most",
        [
            "google_apis.a_payload_that_does_not_match_its_checksum_is_refused",
            "api_refusals.what_a_method_cannot_do_is_refused_with_the_reason",
        ],
        SECRETS,
        "schemas/SecretPayload/properties/dataCrc32c/description",
        "verify the integrity of the received data",
    ),
    (
        "the etag of a service account means nothing",
        ["google_apis.an_account_is_made_once_changed_by_mask_and_gone_when_deleted"],
        IAM,
        "schemas/ServiceAccount/properties/etag/description",
        "Deprecated. Do not use",
    ),
    (
        "an account id has 6 to 30 characters of its form",
        ["google_apis.an_account_id_has_its_form"],
        IAM,
        "schemas/CreateServiceAccountRequest/properties/accountId/description",
        "6-30 characters",
    ),
    (
        "an access token lives an hour at most and has a scope",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        "iamcredentials.v1",
        "schemas/GenerateAccessTokenRequest/properties/lifetime/description",
        "maximum allowed value is 1 hour",
    ),
    (
        "20 services are enabled at once at most, all or none",
        ["api_refusals.what_a_method_cannot_do_is_refused_with_the_reason"],
        "serviceusage.v1",
        "schemas/BatchEnableServicesRequest/properties/serviceIds/description",
        "maximum of 20 services at a time",
    ),
    (
        "services are listed by one of two filters",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        "serviceusage.v1",
        "resources/services/methods/list/parameters/filter/description",
        "`state:ENABLED` and `state:DISABLED`",
    ),
    (
        "validateOnly keeps nothing, for create, patch and delete",
        ["api_refusals.validate_only_changes_nothing_and_shows_what_would_be"],
        RUN,
        f"{SERVICES}/patch/parameters/validateOnly/description",
        "without persisting the request",
    ),
    (
        "allowMissing creates, for who may create",
        ["api_refusals.allow_missing_creates_for_who_may_create"],
        RUN,
        f"{SERVICES}/patch/parameters/allowMissing/description",
        "The caller must have 'run.services.create' permissions",
    ),
    (
        "forceNewRevision makes a revision of the same template",
        ["run_services.the_same_template_makes_no_new_revision"],
        RUN,
        f"{SERVICES}/patch/parameters/forceNewRevision/description",
        "even if the system doesn't detect any changes",
    ),
    (
        "services are listed of one region, never of all",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        RUN,
        f"{SERVICES}/list/parameters/parent/description",
        'cannot be the "-" wildcard',
    ),
    (
        "a service's etag must be the current one, for patch and delete",
        [
            "run_services.a_name_is_given_once_and_a_stale_etag_changes_nothing",
            "api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong",
        ],
        RUN,
        f"{SERVICES}/delete/parameters/etag/description",
        "detect modification conflict",
    ),
    (
        "no labels and annotations of Cloud Run's own namespaces; a description of 512 characters; one port",
        ["run_checks.what_goes_beyond_a_bound_is_named_with_its_field_and_nothing_else"],
        RUN,
        f"{SERVICE}/annotations/description",
        "and they will be rejected in new resources",
    ),
    (
        "the bounds of probes",
        ["run_checks.what_goes_beyond_a_bound_is_named_with_its_field_and_nothing_else"],
        RUN,
        f"{PROBE}/periodSeconds/description",
        "Maximum value for startup probe is 240",
    ),
    (
        "manual scaling has as many instances as it says",
        [
            "front_instances.manual_scaling_keeps_the_number_it_names_whatever_comes_in",
            "run_checks.gpus_are_counted_with_what_a_region_may_come_to_hold",
        ],
        RUN,
        "schemas/GoogleCloudRunV2ServiceScaling/properties/manualInstanceCount/description",
        "total instance count for the service in manual scaling mode",
    ),
    (
        "an operation that has ended has a response or an error",
        ["run_services.a_container_that_ends_makes_the_create_fail_and_is_no_ready_service"],
        RUN,
        "schemas/GoogleLongrunningOperation/properties/done/description",
        "either `error` or `response` is available",
    ),
    (
        "preconditions on generations: 412, and 304 to who reads",
        [
            "api_refusals.what_has_not_changed_is_not_sent_again",
            "api_refusals.a_session_keeps_its_condition_until_its_end",
        ],
        STORAGE,
        "resources/objects/methods/insert/parameters/ifGenerationMatch/description",
        "Setting to 0 makes the operation succeed only if there are no live versions",
    ),
    (
        "who may create objects may not overwrite one: that takes the permission to delete it",
        [
            "iam_policies.an_object_is_put_where_its_own_name_is_permitted_and_overwritten_only_by_who_may_delete",
        ],
        "Cloud Storage's page on IAM roles: Storage Object Creator",
        "",
        "",
    ),
    (
        "a bucket is made in a project that is named",
        ["api_methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        STORAGE,
        "resources/buckets/methods/insert/parameters/project/required",
        "True",
    ),
    (
        "a filter of the log has 20,000 characters at most; a negative page size is refused",
        ["log_filters.what_is_no_filter_is_refused_with_its_place", "log_filters.a_reading_that_cannot_be_is_refused"],
        "logging.v2",
        "schemas/ListLogEntriesRequest/properties/filter/description",
        "The maximum length of a filter is 20,000 characters",
    ),
    (
        "Logging's query language: OR before AND, NOT, parentheses, has, lists, regular expressions; no functions",
        [
            "log_filters.an_entry_that_fulfils_a_filter_is_taken",
            "log_filters.what_is_no_filter_is_refused_with_its_place",
        ],
        "Cloud Logging's page on its query language",
        "",
        "",
    ),
    (
        "a method that is not served says so: 501 with its name",
        [
            "api_methods.every_other_method_of_google_is_known_by_its_name",
            "api_methods.a_method_that_is_not_served_says_so_and_one_that_nobody_has_is_not_found",
        ],
        RUN,
        "resources/projects/resources/locations/resources/jobs/methods/list/id",
        "run.projects.locations.jobs.list",
    ),
    (
        "a service alone beyond a quota is refused at once, with the quota, what was requested and what is allowed",
        ["run_checks.a_service_that_alone_is_beyond_a_quota_is_told_the_quota_and_the_number_that_would_do"],
        "reports in the tracker of Google's codelabs, April and August 2026",
        "",
        "",
    ),
    (
        "services of a region together beyond the GPU quota: the operation fails with code 8",
        [
            "run_services.services_that_need_more_gpus_together_fail_the_operation_with_the_quotas_name",
            "run_services.an_older_revision_counts_in_the_quota_while_it_holds_an_instance",
        ],
        "a recorded create that failed; Cloud Run's page on GPUs",
        "",
        "",
    ),
    (
        "the quota of the RTX PRO 6000 is in milli-GPU",
        ["run_checks.the_quota_of_the_rtx_is_in_thousandths"],
        "Cloud Run's page on GPUs",
        "",
        "",
    ),
    (
        "an ended operation is forgotten after a day, an upload nobody ends after a week",
        [
            "pruning.an_operation_is_forgotten_a_day_after_its_end_and_never_while_it_is_open",
            "pruning.a_session_of_an_upload_is_forgotten_after_a_week_with_its_bytes",
        ],
        "Cloud Storage's page on resumable uploads; the day is localcloud's own",
        "",
        "",
    ),
]
