"""Batch requests: each part is a call like any other."""

import pytest

HEADERS = {"Content-Type": "multipart/mixed; boundary=XX"}
TARGET = "/batch/storage/v1"


def batch(project, *parts, token=True, end="\r\n"):
    lines = []
    for number, part in enumerate(parts):
        head = f"Content-Type: application/http{end}Content-ID: <call+{number}>"
        lines.append(f"--XX{end}{head}{end}{end}{part.replace(chr(10), end)}{end}")
    body = "".join(lines) + f"--XX--{end}"
    return project.raw("POST", TARGET, body.encode(), HEADERS, token=token)


def statuses(answer):
    return [int(line.split()[1]) for line in answer.text.splitlines() if line.startswith("HTTP/1.1")]


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_every_part_is_answered_in_its_order_with_its_id(project, put, end):
    put("a")
    patch = 'PATCH /storage/v1/b/shelf/o/a HTTP/1.1\nContent-Type: application/json\n\n{"metadata": {"k": "v"}}'
    parts = [patch, "DELETE /storage/v1/b/shelf/o/absent HTTP/1.1\n", "GET http://127.0.0.1:1/storage/v1/b/shelf\n"]
    answer = batch(project, *parts, end=end)
    assert (answer.status_code, statuses(answer)) == (200, [200, 404, 200])
    assert [f"<response-call+{number}>" in answer.text for number in range(4)] == [True, True, True, False]
    assert project.ok("GET", "/storage/v1/b/shelf/o/a")["metadata"] == {"k": "v"}


def test_a_part_has_no_more_rights_than_its_token(project, put):
    put("a")
    parts = ["DELETE /storage/v1/b/shelf/o/a", f"GET /storage/v1/b/shelf\nAuthorization: Bearer {project.token}\n"]
    assert statuses(batch(project, *parts, token=False)) == [401, 200]
    assert project.call("GET", "/storage/v1/b/shelf/o/a").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "POST /upload/storage/v1/b/shelf/o?uploadType=media&name=x",
        "GET /storage/v1/b/shelf/o/a?alt=media",
        "POST /batch/storage/v1",
        "GET /token",
        "x",
    ],
)
def test_a_malformed_part_of_a_batch_is_refused_alone(project, line):
    """A part that a batch does not take is refused, and the others are not."""
    assert statuses(batch(project, line, "GET /storage/v1/b/shelf")) == [400, 200]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["multipart/mixed", "application/json", "multipart/related; boundary=XX"])
def test_what_is_no_batch_is_refused(project, kind):
    assert project.raw("POST", TARGET, b"--XX--", {"Content-Type": kind}).status_code == 400
    assert project.raw("POST", TARGET, b"nothing", HEADERS).status_code == 400
