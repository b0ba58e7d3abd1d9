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
            "iam_policies.an_object_is_put_where_its_own_name_is_permitted_and_overwritten_only_by_who_may_delete",
        ],
        "Cloud Storage's page on IAM roles: Storage Object Creator",
        "",
        "",
    ),
    (
        "an ended operation is deleted after a day, an unfinished upload after a week",
        [
            "pruning.an_operation_is_forgotten_a_day_after_its_end_and_never_while_it_is_open",
            "pruning.a_session_of_an_upload_is_forgotten_after_a_week_with_its_bytes",
        ],
        "Cloud Storage's page on resumable uploads; the day is localcloud's own",
        "",
        "",
    ),
]
