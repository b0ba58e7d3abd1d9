"""Rules of Cloud Billing, its budgets and price list, and of notification channels; see the package."""

BUDGETS, BILLING = "billingbudgets.v1", "cloudbilling.v1"
BUDGET = "schemas/GoogleCloudBillingBudgetsV1Budget/properties"
FILTER = "schemas/GoogleCloudBillingBudgetsV1Filter/properties"

RULES = [
    (
        "a budget is shown with the values that its creator left out",
        ["billing.a_new_budget_has_the_values_that_google_fills_in"],
        BUDGETS,
        f"{FILTER}/creditTypesTreatment/description",
        "If not set, default behavior is `INCLUDE_ALL_CREDITS`",
    ),
    (
        "a budget's project is shown by its number, whatever was sent",
        ["billing.a_new_budget_has_the_values_that_google_fills_in"],
        "recording billing.Budget of the published provider: read after create",
        "",
        "",
    ),
    (
        "a budget has one of two amounts, in the account's currency, one period, one label and at most five channels",
        ["billing.a_budget_that_cannot_be_is_refused_with_its_reason"],
        BUDGETS,
        f"{FILTER}/labels/description",
        "multiple entries or multiple values per entry are not allowed",
    ),
    (
        "an empty etag of a budget overwrites, another one must be the current one",
        ["billing.a_change_is_that_of_the_mask_and_needs_the_current_etag"],
        BUDGETS,
        f"{BUDGET}/etag/description",
        "An empty etag causes an update to overwrite other changes",
    ),
    (
        "an owner of the project has no right to the billing account",
        [
            "billing.an_owner_of_the_project_has_no_right_to_the_account",
            "billing.a_role_on_the_account_allows_a_budget_and_nothing_of_the_project",
        ],
        "Cloud Billing's page on access control: a billing account is not part of a project",
        "",
        "",
    ),
    (
        "prices of a time range within one month of Los Angeles, else the latest ones",
        [
            "price_list.a_time_range_shows_the_prices_of_then",
            "price_list.a_time_range_that_cannot_be_is_refused",
        ],
        BILLING,
        "resources/services/resources/skus/methods/list/parameters/startTime/description",
        "within a single calendar month in America/Los_Angeles timezone",
    ),
    (
        "prices in another currency, converted by a rate that the response names",
        ["price_list.another_currency_is_converted_and_an_unknown_one_refused"],
        BILLING,
        "schemas/PricingInfo/properties/currencyConversionRate/description",
        "Conversion rate used for currency conversion",
    ),
    (
        "a change of a channel concerns the fields of its mask, or all without one",
        ["billing.a_channel_is_made_changed_and_deleted"],
        "monitoring.v3",
        "resources/projects/resources/notificationChannels/methods/patch/description",
        "Fields not specified in the field mask remain unchanged",
    ),
]
