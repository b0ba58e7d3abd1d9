"""Rules of Cloud Storage; see the package."""

STORAGE = "storage.v1"

RULES = [
    (
        "a failed precondition on a generation is 412, or 304 for a read",
        [
            "api/refusals.what_has_not_changed_is_not_sent_again",
            "api/refusals.a_session_keeps_its_condition_until_its_end",
        ],
        STORAGE,
        "resources/objects/methods/insert/parameters/ifGenerationMatch/description",
        "Setting to 0 makes the operation succeed only if there are no live versions",
    ),
    (
        "creating a bucket needs the project parameter",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        STORAGE,
        "resources/buckets/methods/insert/parameters/project/required",
        "True",
    ),
    (
        "overwriting an object needs the permission to delete it besides the one to create it",
        [
            "iam_policies.an_object_is_overwritten_only_by_who_may_delete",
        ],
        "Cloud Storage's page on IAM roles: Storage Object Creator",
        "",
        "",
    ),
    (
        "an ended operation is deleted after a day, an unfinished upload after a week",
        [
            "pruning.an_operation_is_forgotten_a_day_after_its_end",
            "pruning.a_session_of_an_upload_is_forgotten_after_a_week_with_its_bytes",
        ],
        "Cloud Storage's page on resumable uploads; the day is localcloud's own",
        "",
        "",
    ),
    (
        "with object versioning, a superseded or deleted live object becomes a noncurrent version",
        [
            "storage/generations.versioning_keeps_earlier_generations_readable",
            "storage/generations.without_versioning_an_overwritten_object_is_no_version",
        ],
        STORAGE,
        "resources/objects/methods/list/parameters/versions/description",
        "lists all versions of an object as distinct results",
    ),
    (
        "a soft-deleted object can be restored until its time is over",
        ["storage/generations.a_soft_deleted_object_is_restored_in_its_time"],
        STORAGE,
        "schemas/Object/properties/hardDeleteTime/description",
        "no longer be restorable",
    ),
    (
        "an object's name has no line break, at most 1,024 bytes, and is neither . nor ..",
        ["storage_objects.a_name_that_google_refuses_is_refused_and_nothing_of_it_stays"],
        "Cloud Storage's page on objects: naming requirements",
        "",
        "",
    ),
    (
        "a composite object has a CRC32C and no MD5, and counts its components",
        ["storage/contents.a_composition_has_the_bytes_and_the_checksum_of_its_parts"],
        STORAGE,
        "schemas/Object/properties/componentCount/description",
        "Number of underlying components that make up this object",
    ),
    (
        "a signed URL allows what was signed, until it expires, within the rights of its account",
        [
            "storage/signatures.a_signed_url_does_what_was_signed_and_nothing_else",
            "storage/signatures.a_url_counts_for_its_account_s_rights_only",
        ],
        "Cloud Storage's pages on signed URLs and on V4 signing",
        "",
        "",
    ),
    (
        "all users read and list a bucket that allows it, unless public access prevention is enforced",
        [
            "storage/xml.all_users_read_and_list_where_the_bucket_allows_it",
            "storage/xml.public_access_prevention_keeps_a_bucket_from_all_users",
        ],
        "Cloud Storage's pages on public data and on public access prevention",
        "",
        "",
    ),
]
