"""Rules of IAM, IAM Credentials and Service Usage; see the package."""

IAM = "iam.v1"

RULES = [
    (
        "a policy has version 0, 1 or 3",
        ["iam_policies.a_policy_that_cannot_be_is_refused"],
        IAM,
        "schemas/Policy/properties/version/description",
        "Requests that specify an invalid value are rejected",
    ),
    (
        "conditions are read and written in version 3; a write without an etag may lose them",
        ["iam_policies.conditions_are_read_and_written_in_version_3_only"],
        IAM,
        "schemas/Policy/properties/version/description",
        "all of the conditions in the version `3` policy are lost",
    ),
    (
        "a conditional grant applies where its condition is true; an unsupported condition is refused when written",
        [
            "iam_policies.a_conditional_grant_holds_where_its_condition_does",
            "iam_policies.a_condition_that_is_not_understood_is_not_guessed",
        ],
        IAM,
        "schemas/Binding/properties/condition/description",
        "If the condition evaluates to `true`, then this binding applies to the current request",
    ),
    (
        "a condition may limit the roles that a caller grants or takes; other attributes are refused when written",
        [
            "documented_grant.an_account_that_may_grant_one_role_grants_and_takes_no_other",
            "iam_policies.a_condition_that_is_not_understood_is_not_guessed",
        ],
        "IAM's page on limits on granting roles: iam.googleapis.com/modifiedGrantsByRole",
        "",
        "",
    ),
    (
        "the default mask of a policy is bindings and etag",
        ["iam_policies.a_mask_changes_what_it_names_of_a_policy"],
        IAM,
        "schemas/SetIamPolicyRequest/properties/updateMask/description",
        'paths: "bindings, etag"',
    ),
    (
        "a policy with a stale etag is refused: 409, in Cloud Storage 412",
        [
            "google_apis.a_policy_written_with_a_stale_etag_is_refused",
            "api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong",
        ],
        IAM,
        "schemas/Policy/properties/etag/description",
        "optimistic concurrency control",
    ),
    (
        "permissions with wildcards cannot be tested",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        IAM,
        "schemas/TestIamPermissionsRequest/properties/permissions/description",
        "are not allowed",
    ),
    (
        "the etag of a service account has no effect",
        ["google_apis.an_account_is_made_once_changed_by_mask_and_gone_when_deleted"],
        IAM,
        "schemas/ServiceAccount/properties/etag/description",
        "Deprecated. Do not use",
    ),
    (
        "a deleted pool can be restored for 30 days, keeps its id, and its tokens have no effect",
        [
            "identity/pools.a_deleted_pool_keeps_its_name_for_thirty_days_and_can_be_restored",
            "identity/pools.a_deleted_pool_is_gone_with_its_providers_after_thirty_days",
            "identity/token_exchange.no_token_is_exchanged_where",
        ],
        IAM,
        "schemas/WorkloadIdentityPool/properties/state/enumDescriptions",
        "You cannot reuse the ID of a soft-deleted pool until it is permanently deleted",
    ),
    (
        "tokens of a disabled pool have no effect, those of a disabled provider have",
        ["identity/token_exchange.a_token_ends_with_its_pool_and_not_with_its_provider"],
        IAM,
        "schemas/WorkloadIdentityPoolProvider/properties/disabled/description",
        "existing tokens still grant access",
    ),
    (
        "a subject has at most 127 bytes, and attributes have names of a fixed form",
        [
            "identity/token_exchange.a_token_that_proves_nothing_is_refused",
            "identity/pools.a_provider_that_google_would_refuse_is_refused",
        ],
        IAM,
        "schemas/WorkloadIdentityPoolProvider/properties/attributeMapping/description",
        "Cannot exceed 127 bytes",
    ),
    (
        "a token is of the provider's audience: its own name, unless others are allowed",
        ["identity/token_exchange.allowed_audiences_take_the_place_of_the_provider_s_name"],
        IAM,
        "schemas/Oidc/properties/allowedAudiences/description",
        "with or without the HTTPS prefix",
    ),
    (
        "an issuer is asked for its keys unless the provider has them",
        [
            "identity/token_exchange.keys_are_fetched_once_and_again_for_a_new_one",
            "identity/token_exchange.keys_of_the_settings_are_used_without_asking_anyone",
        ],
        IAM,
        "schemas/Oidc/properties/jwksJson/description",
        "from the .well-known path of the `issuer_uri`",
    ),
    (
        "a disabled or deleted custom role grants nothing",
        [
            "identity/custom_roles.a_changed_role_changes_what_it_granted",
            "identity/custom_roles.a_deleted_role_grants_nothing_until_it_is_restored",
        ],
        IAM,
        "schemas/Role/properties/stage/enumDescriptions",
        "will not contribute permissions",
    ),
    (
        "an account id has 6 to 30 characters of a fixed form",
        ["google_apis.an_account_id_has_its_form"],
        IAM,
        "schemas/CreateServiceAccountRequest/properties/accountId/description",
        "6-30 characters",
    ),
    (
        "an access token is valid for at most an hour and needs a scope",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        "iamcredentials.v1",
        "schemas/GenerateAccessTokenRequest/properties/lifetime/description",
        "maximum allowed value is 1 hour",
    ),
    (
        "at most 20 services are enabled in one call, all or none",
        ["api/refusals.what_a_method_cannot_do_is_refused_with_the_reason"],
        "serviceusage.v1",
        "schemas/BatchEnableServicesRequest/properties/serviceIds/description",
        "maximum of 20 services at a time",
    ),
    (
        "the list of services accepts two filters",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        "serviceusage.v1",
        "resources/services/methods/list/parameters/filter/description",
        "`state:ENABLED` and `state:DISABLED`",
    ),
]
