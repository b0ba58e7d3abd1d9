"""Rules of Cloud Logging and Cloud Monitoring; see the package."""

MONITORING = "monitoring.v3"

SCHEDULER = "cloudscheduler.v1"
JOB = "schemas/Job/properties"

RULES = [
    (
        "a job's request is sent when it is due, with a token of its account",
        [
            "scheduler.a_due_job_sends_its_request_with_its_account_s_token",
            "scheduler.a_job_needs_the_right_to_act_as_its_account",
        ],
        SCHEDULER,
        "schemas/OidcToken/properties/serviceAccountEmail/description",
        "The caller must have iam.serviceAccounts.actAs permission",
    ),
    (
        "a failed run is repeated retry_count times with pauses that double; else its job waits for the next time",
        [
            "scheduler.a_failed_run_is_repeated_with_growing_pauses",
            "scheduler.a_failed_run_shows_its_code_and_waits_for_the_next_time",
        ],
        SCHEDULER,
        "schemas/RetryConfig/properties/retryCount/description",
        "Values greater than 5 and negative values are not allowed",
    ),
    (
        "a job has a schedule and a time zone of the tz database, a deadline of 15 s to 30 minutes, and one token",
        ["scheduler.a_job_that_cannot_be_is_refused", "scheduler.a_new_job_has_the_values_that_google_fills_in"],
        SCHEDULER,
        f"{JOB}/attemptDeadline/description",
        "The deadline must be in the interval [15 seconds, 30 minutes]",
    ),
    (
        "a paused job does not run; resuming it sets its next time anew; a forced run leaves it",
        ["scheduler.a_paused_job_does_not_run_until_it_is_resumed_but_can_be_forced"],
        SCHEDULER,
        "resources/projects/resources/locations/resources/jobs/methods/run/description",
        "even if the job is already running",
    ),
    (
        "a metric of log entries has one extractor for each label, and counts by what they find",
        [
            "log_metrics.a_metric_that_cannot_be_is_refused_with_its_reason",
            "log_metrics.entries_are_counted_by_label_from_the_metrics_making_on",
        ],
        "logging.v2",
        "schemas/LogMetric/properties/labelExtractors/description",
        "must have an associated extractor expression in this map",
    ),
    (
        "a channel that an alert policy names is deleted by force only, and leaves the policy",
        ["observability.a_channel_that_a_policy_notifies_is_deleted_by_force_only"],
        MONITORING,
        "resources/projects/resources/notificationChannels/methods/delete/parameters/force/description",
        "will be deleted regardless of its use in alert policies",
    ),
    (
        "conditions of a policy get names, and keep them while they are sent back",
        ["observability.a_changed_policy_keeps_the_names_of_its_conditions"],
        MONITORING,
        "schemas/Condition/properties/name/description",
        "treat the change as a new condition and let the existing condition be deleted",
    ),
    (
        "an aligner fits the kind and the values of its metric; an unknown metric is not found",
        [
            "observability.a_policy_that_cannot_be_is_refused_with_its_reason",
            "observability.a_query_names_metrics_of_the_platform_or_written_ones",
        ],
        MONITORING,
        "schemas/Aggregation/properties/perSeriesAligner/description",
        "Not all alignment operations may be applied to all time series",
    ),
    (
        "masked headers and passwords of an uptime check are in no response",
        ["observability.an_uptime_check_keeps_what_it_watches_and_never_shows_a_secret"],
        MONITORING,
        "schemas/HttpCheck/properties/maskHeaders/description",
        "obscured with ******",
    ),
    (
        "an uptime check has a period of 1, 5, 10 or 15 minutes and a timeout of 1 to 60 seconds",
        ["observability.an_uptime_check_that_cannot_be_is_refused"],
        MONITORING,
        "schemas/UptimeCheckConfig/properties/period/description",
        "the only supported values are 60s (1 minute), 300s (5 minutes), 600s (10 minutes), and 900s (15 minutes)",
    ),
    (
        "a change of a dashboard that was changed meanwhile is refused by its etag",
        ["observability.a_dashboard_has_one_layout_and_its_etag_refuses_an_older_change"],
        "monitoring.v1",
        "schemas/Dashboard/properties/etag/description",
        "optimistic concurrency control",
    ),
    (
        "a page token is valid for its own list and filter only; a negative page size is refused",
        [
            "message_values.a_token_that_was_not_given_out_for_a_list_is_refused",
            "log_filters.a_long_log_is_paged_by_tokens_that_are_good_for_their_own_filter",
        ],
        "logging.v2",
        "schemas/ListLogEntriesRequest/properties/pageToken/description",
        "should be identical to those in the previous call",
    ),
    (
        "a written entry with the time and the id of an earlier one is that one; the request's labels are defaults",
        [
            "written_entries.an_entry_that_is_sent_again_is_there_once",
            "written_entries.an_entry_is_listed_with_what_the_request_says_for_all_of_them",
        ],
        "logging.v2",
        "schemas/LogEntry/properties/insertId/description",
        "with the same timestamp, and with the same insert_id to be duplicates",
    ),
    (
        "a written entry names its log and its monitored resource, has one payload and at most 256 KB",
        [
            "written_entries.what_is_no_entry_is_refused_and_nothing_is_written",
            "written_entries.with_partial_success_the_entries_that_can_be_are_written",
        ],
        "logging.v2",
        "schemas/WriteLogEntriesRequest/properties/partialSuccess/description",
        "Whether a batch's valid entries should be written",
    ),
    (
        "a log filter has at most 20,000 characters; a negative page size is refused",
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
        "a filter names one metric type; points are newest first, after the interval's start and not after its end",
        [
            "monitoring.each_label_of_a_filter_counts",
            "monitoring.a_filter_that_is_none_or_not_served_is_refused",
            "monitoring.an_interval_takes_its_end_and_not_its_start",
        ],
        MONITORING,
        "schemas/TimeInterval/description",
        "It includes the end time but excludes the start time",
    ),
    (
        "the page size of series counts points",
        ["monitoring.pages_count_points_and_headers_have_none"],
        MONITORING,
        "resources/projects/resources/timeSeries/methods/list/parameters/pageSize/description",
        "this is the maximum number of Points returned",
    ),
    (
        "the use of a quota has a point when it changes and at least one a day; an unused quota has no series",
        [
            "monitoring.a_lease_counts_in_its_zone_until_it_is_gone",
            "monitoring.a_point_is_made_where_something_changed_and_once_a_day",
            "monitoring.running_instances_and_tasks_are_counted",
        ],
        "Google's list of metrics: serviceruntime, quota/allocation/usage; a measurement of Cloud Run's users, 2026",
        "",
        "",
    ),
    (
        "instances and billable time of a Cloud Run revision are sampled every 60 s, readable after up to 120 s",
        [
            "monitoring_services.instances_are_sampled_by_state_and_zero_after_the_first",
            "monitoring_services.a_sample_can_be_read_within_two_minutes",
            "monitoring_services.a_service_that_runs_has_instances_and_billable_time",
        ],
        "Google's list of metrics: run, container/instance_count and container/billable_instance_time, November 2026",
        "",
        "",
    ),
    (
        "an alignment period has at least 60 seconds",
        ["monitoring_services.an_aggregation_that_cannot_be_or_is_not_served_is_refused"],
        MONITORING,
        "schemas/Aggregation/properties/alignmentPeriod/description",
        "The value must be at least 60 seconds",
    ),
    (
        "the collector beside a server scrapes 10 s after its start, at each interval and at its end",
        ["collector/collector_of_an_instance.a_server_is_scraped_after_its_start_at_intervals_and_at_its_end"],
        "Google's page on the Managed Service for Prometheus sidecar; GoogleCloudPlatform/run-gmp-sidecar",
        "",
        "",
    ),
    (
        "a RunMonitoring with an unknown field, a wrong interval or a rule on a protected label ends the collector",
        [
            "collector/run_monitoring.what_the_sidecar_ends_with_ends_the_collector_with_the_reason",
            "collector/collector_of_an_instance.a_wrong_configuration_ends_the_instance_with_its_reason",
        ],
        "GoogleCloudPlatform/run-gmp-sidecar: confgenerator/config.go and its golden errors",
        "",
        "",
    ),
    (
        "relabelling changes and drops series as Prometheus does",
        ["collector/scrape.rules_change_series_as_those_of_prometheus_do"],
        "recorded from prometheus/prometheus v0.316.0, model/relabel",
        "",
        "",
    ),
    (
        "a point of a histogram counts two samples and one for each bucket that is not empty",
        ["collector/scrape.a_histogram_is_one_sample_and_other_kinds_are_left_out"],
        "Google's page on the cost of Managed Service for Prometheus",
        "",
        "",
    ),
    (
        "Google's build of Prometheus writes counters from its first scrape on",
        ["collector/machine_collector.counters_are_written_from_the_first_scrape_on"],
        "GoogleCloudPlatform/prometheus: google/export/series_cache.go",
        "",
        "",
    ),
]
