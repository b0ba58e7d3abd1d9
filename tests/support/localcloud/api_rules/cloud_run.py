"""Rules of Cloud Run, and of every API where its document states it; see the package."""

RUN = "run.v2"
SERVICE = "schemas/GoogleCloudRunV2Service/properties"
PROBE = "schemas/GoogleCloudRunV2Probe/properties"
SERVICES = "resources/projects/resources/locations/resources/services/methods"

RULES = [
    (
        "an unknown field or query parameter is refused with its name",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        RUN,
        f"{SERVICE}",
        "template",
    ),
    (
        "a value of the wrong type, outside its range or its enum is refused with its field",
        ["api/properties.what_the_document_does_not_allow_is_refused_and_the_rest_taken"],
        RUN,
        f"{SERVICE}/ingress/enum",
        "INGRESS_TRAFFIC_ALL",
    ),
    (
        "every value that the document allows is accepted; int64 are strings in responses",
        [
            "api/properties.what_the_document_allows_is_taken_and_stays_allowed",
            "message_values.a_value_of_its_kind_is_kept_in_its_normal_form",
        ],
        RUN,
        f"{SERVICE}/generation/format",
        "int64",
    ),
    (
        "no request gets a 500, and every response is valid",
        ["api/properties.every_answer_is_valid_and_none_is_a_server_error"],
        RUN,
        "schemas/GoogleRpcStatus/properties",
        "details",
    ),
    (
        "an output-only field may be sent and has no effect",
        [
            "message_values.what_is_output_only_may_be_sent_and_means_nothing",
            "discovery_data.what_may_be_set_of_a_service_is_what_is_not_output_only",
        ],
        RUN,
        f"{SERVICE}/uid/description",
        "Output only",
    ),
    (
        "an update mask names the fields to change (or *), clears those that the body omits, and names existing fields",
        [
            "message_values.a_mask_says_what_changes_and_what_is_cleared",
            "message_values.a_mask_of_what_is_no_field_or_not_to_be_set_is_refused",
        ],
        RUN,
        f"{SERVICES}/patch/parameters/updateMask/description",
        "list of fields to be updated",
    ),
    (
        "validateOnly stores nothing, for create, patch and delete",
        ["api/refusals.validate_only_changes_nothing_and_shows_what_would_be"],
        RUN,
        f"{SERVICES}/patch/parameters/validateOnly/description",
        "without persisting the request",
    ),
    (
        "allowMissing creates a service if the caller may create one",
        ["api/refusals.allow_missing_creates_for_who_may_create"],
        RUN,
        f"{SERVICES}/patch/parameters/allowMissing/description",
        "The caller must have 'run.services.create' permissions",
    ),
    (
        "forceNewRevision makes a new revision of an unchanged template",
        ["cloud_run/run_services.the_same_template_makes_no_new_revision"],
        RUN,
        f"{SERVICES}/patch/parameters/forceNewRevision/description",
        "even if the system doesn't detect any changes",
    ),
    (
        "a list of services covers one region; the wildcard is refused",
        ["api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong"],
        RUN,
        f"{SERVICES}/list/parameters/parent/description",
        'cannot be the "-" wildcard',
    ),
    (
        "patch and delete of a service need its current etag, if they send one",
        [
            "cloud_run/run_services.a_name_is_given_once_and_a_stale_etag_changes_nothing",
            "api/methods.every_served_method_answers_validly_and_refuses_what_is_wrong",
        ],
        RUN,
        f"{SERVICES}/delete/parameters/etag/description",
        "detect modification conflict",
    ),
    (
        "labels and annotations of Cloud Run's namespaces are refused; descriptions have up to 512 characters; 1 port",
        ["cloud_run/run_checks.what_goes_beyond_a_bound_is_named_with_its_field_and_nothing_else"],
        RUN,
        f"{SERVICE}/annotations/description",
        "and they will be rejected in new resources",
    ),
    (
        "delays, periods and timeouts of probes have bounds",
        ["cloud_run/run_checks.what_goes_beyond_a_bound_is_named_with_its_field_and_nothing_else"],
        RUN,
        f"{PROBE}/periodSeconds/description",
        "Maximum value for startup probe is 240",
    ),
    (
        "manual scaling runs the number of instances that it sets",
        [
            "cloud_run/ingress_instances.manual_scaling_keeps_the_number_it_names_whatever_comes_in",
            "cloud_run/run_checks.gpus_are_counted_with_what_a_region_may_come_to_hold",
        ],
        RUN,
        "schemas/GoogleCloudRunV2ServiceScaling/properties/manualInstanceCount/description",
        "total instance count for the service in manual scaling mode",
    ),
    (
        "an operation that has ended has a response or an error",
        ["cloud_run/run_services.a_container_that_ends_makes_the_create_fail"],
        RUN,
        "schemas/GoogleLongrunningOperation/properties/done/description",
        "either `error` or `response` is available",
    ),
    (
        "a method that is not served gets 400 with its name",
        [
            "api/not_served.every_method_that_is_not_served_is_refused_by_its_name_and_api",
            "api/methods.an_unserved_method_says_so_and_an_unknown_one_is_not_found",
        ],
        RUN,
        "resources/projects/resources/locations/resources/jobs/methods/list/id",
        "run.projects.locations.jobs.list",
    ),
    (
        "an execution runs at most as many tasks at once as its parallelism",
        ["cloud_run/jobs_api.no_more_tasks_run_at_once_than_may"],
        RUN,
        "schemas/GoogleCloudRunV2ExecutionTemplate/properties/parallelism/description",
        "maximum desired number of tasks the execution should run at given time",
    ),
    (
        "a failed task is retried up to maxRetries times, each attempt with the full timeout; then it has failed",
        [
            "cloud_run/jobs_api.a_failed_task_is_retried_or_fails_the_execution",
            "cloud_run/jobs_api.a_task_has_its_timeout_and_is_ended_then",
        ],
        RUN,
        "schemas/GoogleCloudRunV2TaskTemplate/properties/timeout/description",
        "each retry can run for the full timeout",
    ),
    (
        "a task has the identity of the job's account, from its metadata server",
        ["cloud_run/jobs_api.a_task_has_the_tokens_of_its_account_and_of_no_other"],
        RUN,
        "schemas/GoogleCloudRunV2TaskTemplate/properties/serviceAccount/description",
        "represents the identity of the running task",
    ),
    (
        "a run's overrides replace arguments and the number of tasks, merge variables, and apply to that run only",
        ["cloud_run/jobs_api.a_run_may_set_arguments_tasks_and_variables_otherwise"],
        RUN,
        "schemas/GoogleCloudRunV2ContainerOverride/properties/env/description",
        "Will be merged with existing env for override",
    ),
    (
        "a service that alone exceeds a quota is refused at once, with the quota, the requested and the allowed amount",
        ["cloud_run/run_checks.a_service_beyond_a_quota_is_told_the_number_that_fits"],
        "reports in the tracker of Google's codelabs, April and August 2026",
        "",
        "",
    ),
    (
        "if the services of a region together exceed the GPU quota, the operation fails with code 8",
        [
            "cloud_run/run_services.services_beyond_the_gpu_quota_fail_with_the_quotas_name",
            "cloud_run/run_services.an_older_revision_counts_in_the_quota_while_it_holds_an_instance",
        ],
        "a recorded create that failed; Cloud Run's page on GPUs",
        "",
        "",
    ),
    (
        "the quota of the RTX PRO 6000 is in milli-GPU",
        ["cloud_run/run_checks.the_quota_of_the_rtx_is_in_thousandths"],
        "Cloud Run's page on GPUs",
        "",
        "",
    ),
    (
        "a cancelled execution counts its tasks as cancelled; its operation ends without an error",
        ["cloud_run/jobs_api.a_cancelled_execution_says_so_and_leaves_no_process"],
        "reports of users of Airflow's operator for Cloud Run jobs (apache/airflow#67050, #67767)",
        "",
        "",
    ),
    (
        "a secret volume shows versions as files with their modes, by default one file with the secret's name",
        [
            "cloud_run/secret_volumes.a_program_of_python_reads_its_secrets_as_files",
            "cloud_run/secret_volumes.a_volume_without_items_is_one_file_named_after_the_secret",
            "cloud_run/secret_volumes.a_secret_volume_that_cannot_be_read_fails_the_container",
        ],
        RUN,
        "schemas/GoogleCloudRunV2SecretVolumeSource/properties/items/description",
        "If unspecified, the volume will expose a file whose name is the secret",
    ),
    (
        "items of a secret volume have a path and a version; modes are from 0 to 0777",
        ["cloud_run/secret_volumes.a_wrong_secret_volume_is_refused_with_its_field"],
        RUN,
        "schemas/GoogleCloudRunV2SecretVolumeSource/properties/items/description",
        "they must specify a path and a version",
    ),
    (
        "a container starts after those in dependsOn, and stops before them; all end with the first that ends",
        [
            "cloud_run/several_containers.containers_start_in_their_order_and_end_together",
            "cloud_run/several_containers.a_sidecar_that_ends_at_its_start_leaves_no_instance",
        ],
        RUN,
        "schemas/GoogleCloudRunV2Container/properties/dependsOn/description",
        "must start before this container",
    ),
    (
        "up to ten containers, one of them with a port; a container that another depends on has a startup probe",
        [
            "cloud_run/several_containers_checks.a_rule_for_several_containers_is_named_with_its_field",
            "cloud_run/several_containers_checks.containers_within_every_rule_are_taken_up_to_ten",
        ],
        "messages in terraform-google-cloud-run#302 and cloud-run-samples#230; Cloud Run's page on sidecars",
        "",
        "",
    ),
    (
        "limits and quotas of an instance hold for the sum of its containers",
        ["cloud_run/several_containers_checks.a_revision_asks_for_the_sum_of_its_containers"],
        "Cloud Run's page on limits, which has them for an instance",
        "",
        "",
    ),
]
