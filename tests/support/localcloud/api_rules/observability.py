"""Rules of Cloud Logging and Cloud Monitoring; see the package."""

MONITORING = "monitoring.v3"

RULES = [
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
            "monitoring.what_is_leased_counts_in_its_zone_until_it_is_gone_and_then_is_zero",
            "monitoring.a_point_is_made_where_something_changed_and_once_a_day",
            "monitoring.instances_of_services_and_tasks_of_jobs_are_counted_while_they_run",
        ],
        "Google's list of metrics: serviceruntime, quota/allocation/usage; a measurement of Cloud Run's users, 2026",
        "",
        "",
    ),
]
