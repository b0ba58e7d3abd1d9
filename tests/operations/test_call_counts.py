"""Requests of callers: what became of each, which of them count, and what two sources say together."""

import pytest

from bezel.operations.service_use.call_counts import LOG, MONITORING, Call, Calls, counted_calls, missing_calls
from bezel.operations.service_use.service_metrics import RequestSample

NOW, MODEL = 1_790_000_000.0, "/v1/chat/completions"
OF_THE_MODEL = (
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses/resp_1", "/v1/messages",
    "/v1/audio/transcriptions", "/v1/score", "/v2/rerank", "/cohere/v2/chat", "/inference/v1/generate", "/invocations",
    "/pooling", "/classify", "/score", "/rerank", "/generative_scoring",
)  # fmt: skip
BESIDE = ("/", "/health", "/metrics", "/version", "/ping", "/load", "/docs", "/openapi.json", "/favicon.ico", "/.env",
          "/v1/models", "/v1/models/a", "/tokenize", "/detokenize")  # fmt: skip


def call(status: int, ago: float = 30.0, path: str = MODEL, revision: str = "a", **more: object) -> Call:
    return Call(NOW - ago, status, path, revision, **more)  # type: ignore[arg-type]


def counts(*calls: Call) -> Calls:
    return counted_calls(calls, window=600, now=NOW, read=(LOG, MONITORING))


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((101, 200, 201, 202, 204, 206, 301, 304), "succeeded"),
        ((400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 451), "refused"),
        ((429, 500, 501, 502, 503, 504, 507, 529), "failed"),
        ((499,), "abandoned"),
    ],
)
def test_a_status_says_what_became_of_a_request(statuses: tuple[int, ...], outcome: str) -> None:
    for status in statuses:
        calls = counts(call(status))
        assert (getattr(calls, outcome), calls.number) == (1, 1), status
        assert calls.statuses == ({} if outcome == "succeeded" else {str(status): 1})


def test_a_response_that_broke_off_failed_whatever_its_status() -> None:
    assert counts(call(200, message="Truncated response body.")).failed == 1
    assert counts(call(403, message="The request was not authenticated.")).refused == 1
    assert counts(call(403, message="The request was not authenticated.")).platform_says is None


def test_requests_beside_the_model_count_only_where_they_fail_alone() -> None:
    for path in OF_THE_MODEL:
        assert counts(call(200, path=path)).succeeded == 1, path
    for path in BESIDE:
        assert counts(call(200, path=path)).number == 0, path
        assert counts(call(404, path=path)).number == 0, path
        assert counts(call(503, path=path)).failed == 1, path
        assert counts(call(503, path=path), call(200)).failed == 0, path
        assert counts(call(200, path=path), call(503)).succeeded == 0, path


def test_the_newest_are_those_of_a_minute_and_three_at_least() -> None:
    calls = counts(call(500, 5), call(500, 60), *(call(200, ago) for ago in (66, 70, 400)))
    assert (calls.failed, calls.recent_failed, calls.recent_succeeded) == (2, 2, 1)
    calls = counts(*(call(200, second) for second in range(50)), call(500, 300))
    assert (calls.failed, calls.recent_failed, calls.recent_succeeded) == (1, 0, 50)
    assert counts(call(500)).recent_failed == 1
    assert counts(call(403), call(499)).recent_failed == 0


def sample(status: int, number: int, ago: float = 120.0, revision: str = "a") -> RequestSample:
    return RequestSample(revision, status, NOW - ago - 60, NOW - ago, number)


def test_monitoring_adds_only_what_the_log_lacks() -> None:
    logged = [call(200, 130), call(200, 20)]
    assert missing_calls(logged, [sample(200, 1)]) == []
    assert missing_calls(logged, [sample(200, 2)]) == []  # one of them is logged a little outside of the sample
    (added,) = missing_calls(logged, [sample(200, 5)])
    assert (added.number, added.at, added.status, added.path) == (3, NOW - 120, 200, "")
    # A log whose sink keeps the successes only.
    (added,) = missing_calls(logged, [sample(200, 2), sample(503, 4)])
    assert (added.number, added.status) == (4, 503)
    assert missing_calls([], []) == []


def test_a_log_without_its_newest_requests_is_filled_up_with_the_newest() -> None:
    logged = [call(200, ago) for ago in (300, 290, 280)]
    added = missing_calls(logged, [sample(200, 3, 250), sample(200, 7, 60)])
    assert [(each.number, each.at) for each in added] == [(7, NOW - 60)]


def test_the_line_has_numbers_window_age_and_sources() -> None:
    calls = counts(call(200, 12), call(429), call(503), call(503), call(401), call(499))
    assert calls.line() == (
        "6 in 10 minutes, 3 failed, 1 refused, 1 abandoned (1 x 401, 1 x 429, 1 x 499, 2 x 503); newest 12 s ago "
        "(request log and Cloud Monitoring)"
    )
    assert counts().line() == "none in 10 minutes (request log and Cloud Monitoring)"
    split = counts(call(200), call(503, revision="b"), call(503, revision="b"))
    assert split.shares() == "a: 0 of 1 failed, b: 2 of 2 failed"
    assert counts(call(200)).shares() == ""
