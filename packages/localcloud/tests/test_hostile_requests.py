"""No request of two thousand hostile ones takes much work: calls, depth and bytes of each have a bound."""

import pytest

from localcloud_support.asgi import answer_of
from localcloud_support.hostile_requests import hostile_requests
from localcloud_support.in_process import Project
from localcloud_support.work_count import Count

pytestmark = pytest.mark.slow  # up to two thousand requests, each of them counted

MOST_CALLS = 400_000  # of functions, Python's own included: some tenths of a second
DEEPEST = 400  # frames above the test's
LARGEST = 1 << 20  # bytes of an answer


def count_calls(project, request):
    """(status, body) of the answer, and the work of the server alone: a client's reading of the URL is not counted."""
    headers = {"authorization": f"Bearer {project.token}", "content-length": str(len(request.content))}
    headers |= {name.lower(): value for name, value in request.headers.items()}
    with Count() as count:
        answer = answer_of(
            project.application, request.verb, request.path, body=request.content, headers=headers.items()
        )
    return answer, count


@pytest.mark.parametrize("number", [600, pytest.param(2000, marks=pytest.mark.long)])
def test_hostile_requests_take_a_bounded_work(tmp_path, number):
    project = Project(tmp_path / "cloud")
    project.ok("POST", "/storage/v1/b", {"name": "hostile-shelf"}, project="bezel-local")
    wrong, sent = [], 0
    for request in hostile_requests(number):
        (status, body), count = count_calls(project, request)
        if count.calls > MOST_CALLS:  # tables are read and compiled once
            (status, body), count = count_calls(project, request)
        sent += 1
        shown = f"{request.verb} {request.path[:100]} -> {status}"
        if status == 500:
            wrong.append(f"{shown}: {body[:100]!r}")
        if count.calls > MOST_CALLS or count.deepest > DEEPEST or len(body) > LARGEST:
            wrong.append(f"{shown}: {count.calls} calls, {count.deepest} deep, {len(body)} bytes")
    project.close()
    assert wrong == [], "\n".join(wrong)
    assert sent == number
