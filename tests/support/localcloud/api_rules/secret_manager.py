"""Rules of Secret Manager; see the package."""

SECRETS = "secretmanager.v1"

RULES = [
    (
        "an input-only field is never returned (checked on every response of every test)",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        SECRETS,
        "schemas/Secret/properties/ttl/description",
        "Input only",
    ),
    (
        "a secret expires by a timestamp or a duration, returned as a timestamp; then it goes with its versions",
        [
            "secret_expiration.an_expiration_is_shown_as_a_timestamp_however_it_was_given",
            "secret_expiration.a_secret_goes_with_its_versions_at_its_time",
        ],
        SECRETS,
        "schemas/Secret/properties/expireTime/description",
        "always provided on output, regardless of what was sent on input",
    ),
    (
        "secrets and their versions are listed newest first, with their total number",
        ["api/refusals.secrets_and_versions_are_listed_newest_first_by_pages"],
        SECRETS,
        "schemas/ListSecretVersionsResponse/properties/versions/description",
        "newest first",
    ),
    (
        "an etag of a secret or version must be the current one, and may be left out",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        SECRETS,
        "schemas/EnableSecretVersionRequest/properties/etag/description",
        "The request succeeds if it matches",
    ),
    (
        "an alias of a secret's version has a fixed form and works only for get and access",
        ["api/refusals.an_alias_names_a_version", "api/refusals.what_a_method_cannot_do_is_refused_with_the_reason"],
        SECRETS,
        "schemas/Secret/properties/versionAliases/description",
        "Access by alias is only be supported on GetSecretVersion and AccessSecretVersion",
    ),
    (
        "a payload must match its CRC32C and has at most 64 KiB",
        [
            "google_apis.a_payload_that_does_not_match_its_checksum_is_refused",
            "api/refusals.what_a_method_cannot_do_is_refused_with_the_reason",
        ],
        SECRETS,
        "schemas/SecretPayload/properties/dataCrc32c/description",
        "verify the integrity of the received data",
    ),
]
