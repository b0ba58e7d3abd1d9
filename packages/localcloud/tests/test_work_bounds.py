"""One request does not stop the others: what a caller writes is refused before it takes much work."""

import json

import pytest

from bezel_base.json_documents import read_encodable_json
from bezel_localcloud.access.cel.evaluator import compile_expression
from bezel_localcloud.access.cel.syntax import CelError
from bezel_localcloud.access.cel.values import LARGEST, MOST_STEPS, EvaluationError, Meter
from bezel_localcloud.access.credentials.keys import TokenError, header_and_claims
from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.work import TooMuchWorkError, Work
from bezel_localcloud.http.partial_response import select_fields
from bezel_localcloud.services.logging.filters import parse_filter
from localcloud_support.in_process import Project

CLAIMS = {"text": "a" * 30_000 + "!", "items": list(range(1000)), "letters": "ab"}


def bound_of(expression):
    meter = Meter()
    with pytest.raises(TooMuchWorkError):
        compile_expression(expression, ["assertion"])({"assertion": CLAIMS}, meter)
    assert meter.work.spent <= MOST_STEPS


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [
        "assertion.items.all(a, assertion.items.all(b, assertion.items.all(c, a + b + c >= 0)))",
        "assertion.items.exists(a, assertion.items.exists(b, a + b < 0))",
        "'a'" + ".replace('a', 'aaaaaaaaaa')" * 8 + " == ''",
        "'a'" + ".replace('', 'aaaaaaaaaa')" * 8 + " == ''",
        "[1]" + ".map(v, [v, v]).map(w, [w, w])" * 15 + " == []",
        "assertion.items.map(a, assertion.items.map(b, b)).size() > 0",
        "assertion.items.map(a, assertion.text).join(assertion.text) == ''",
        " + ".join(["assertion.text"] * 8) + " == ''",
        "assertion.text.matches('[a-q][^u-z]{500}x')",
        "(assertion.items.all(a, assertion.items.all(b, a + b >= 0))) || true",
    ],
)
def test_an_expression_ends_at_its_bound(expression):
    bound_of(expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("assertion.text.matches('^(a+)+$')", False),
        ("assertion.items.all(a, a >= 0)", True),
        ("assertion.letters.replace('a', 'xyz')", "xyzb"),
        ("assertion.text.split('a').size() > 30000", True),
        ("7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1", True),
        ("'Straße'.upperAscii()", "STRAßE"),
    ],
)
def test_an_expression_within_its_bounds_has_its_value(expression, expected):
    assert compile_expression(expression, ["assertion"])({"assertion": CLAIMS}) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "9223372036854775807 + 1 > 0",
        "9223372036854775807 * 9223372036854775807 > 0",
        "int('²') == 2",
        "int('\u0661') == 1",
        "int('1_000') == 1000",
        "dyn([1, 2])[0.5] == 1",
        "1 / 0 == 1",
        "timestamp(9999999999999) > timestamp(0)",
        "duration('300000000000s') + duration('300000000000s') > duration('1s')",
    ],
)
def test_an_expression_without_a_value_is_an_error_of_its_own(expression):
    with pytest.raises(EvaluationError):
        compile_expression(expression, [])({})


@pytest.mark.parametrize(
    "expression", ["9" * 5000, "9223372036854775808", "1." + "9" * 500, r"'\ud800'", r"'\U00110000'", "a" + " a" * 500]
)
def test_a_literal_out_of_range_is_not_compile_expression(expression):
    with pytest.raises(CelError):
        compile_expression(expression, ["a"])


def test_a_value_is_measured_with_all_that_it_shares():
    shared = [1] * 100
    for _ in range(20):
        shared = [shared, shared]
    assert Meter().weight(shared) > LARGEST * 100


@pytest.mark.parametrize("fields", ["a/" * 3000 + "a", "a(" * 3000 + "a" + ")" * 3000, "a," * 3000 + "b("])
def test_a_deep_selection_of_fields_is_refused(fields):
    with pytest.raises(ApiError) as refused:
        select_fields({"a": 1}, fields)
    assert refused.value.status == 400
    assert len(refused.value.message) < 400


def test_a_wide_selection_of_fields_is_taken():
    assert select_fields({"a": {"b": 1}, "c": 2}, "x," * 3000 + "a/b") == {"a": {"b": 1}}


@pytest.mark.parametrize(
    "text",
    ["[" * 102 + "]" * 102, "[" * 100_000, '"\\ud800"', "1e999", "NaN", "9" * 5000, '{"a":' * 3000 + "1" + "}" * 3000],
)
def test_a_document_out_of_bounds_is_none(text):
    with pytest.raises(ValueError, match=r".+"):
        read_encodable_json(text.encode())


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, '"\\ud83d\\ude00"', "[1e300, 9007199254740993]"])
def test_a_document_within_bounds_is_read(text):
    assert read_encodable_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("text", ["²", "\u0661", "-1", "+1", " 1", "1_0", "", "9" * 5000, "9223372036854775808", "1.0"])
def test_only_ascii_digits_are_a_number(text):
    assert decimal(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("0007", 7), ("9223372036854775807", 2**63 - 1)])
def test_ascii_digits_are_a_number(text, number):
    assert decimal(text) == number


@pytest.mark.parametrize(
    "token", ["", "a.b", "a.b.c", "W10.W10.", "e30.e30.!", "e30.e30.e30.e30", "eyJhIjoiXHVkODAwIn0.e30.e30"]
)
def test_a_malformed_token_is_refused(token):
    with pytest.raises(TokenError):
        header_and_claims(token)


@pytest.mark.slow
def test_a_filter_counts_its_comparisons():
    entry = {"textPayload": "a" * 100_000, "labels": {str(n): "a" * 100 for n in range(100)}}
    work = Work(200_000)
    with pytest.raises(TooMuchWorkError):
        parse_filter(" OR ".join(['textPayload:"b"'] * 1000)).holds(entry, work)
    assert work.spent <= 200_000
    assert not parse_filter('textPayload=~"^(a+)+$!"').holds(entry)


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path / "cloud")
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield new_project
    new_project.close()


def test_a_part_of_an_upload_takes_the_permission_to_write(project):
    begun = project.raw("POST", "/shelf/a?uploads")
    identifier = begun.text.partition("<UploadId>")[2].partition("<")[0]
    path = f"/shelf/a?uploadId={identifier}&partNumber=1"
    assert project.raw("PUT", path, b"part", token=False).status_code in {401, 403}
    assert "<Part>" not in project.raw("GET", f"/shelf/a?uploadId={identifier}").text
    assert project.raw("PUT", path, b"part").status_code == 200
    assert "<Part>" in project.raw("GET", f"/shelf/a?uploadId={identifier}").text


UPLOADS = [
    ("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a"),
    ("POST", "/upload/storage/v1/b/shelf/o?uploadType=resumable&name=a"),
    ("PUT", "/shelf/a"),
    ("POST", "/shelf/a?uploads"),
    ("POST", "/storage/v1/b/shelf/o/a/compose"),
    ("POST", "/storage/v1/b/shelf/o/a/copyTo/b/shelf/o/b"),
    ("POST", "/storage/v1/b/shelf/o/a/rewriteTo/b/shelf/o/b"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "path"), UPLOADS)
def test_an_upload_without_a_permission_is_refused(project, verb, path):
    project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a", b"before")
    assert project.raw(verb, path, b"{}", {"content-type": "application/json"}, token=False).status_code in {401, 403}
    [kept] = project.ok("GET", "/storage/v1/b/shelf/o")["items"]
    assert (kept["name"], kept["size"]) == ("a", "6")


@pytest.mark.slow
@pytest.mark.parametrize("digits", ["%C2%B2", "%D9%A1", "9" * 5000, "-1", "1_0"])
@pytest.mark.parametrize(
    ("verb", "path", "token"),
    [
        ("GET", "/shelf?max-keys={}", True),
        ("PUT", "/shelf/a?uploadId=x&partNumber={}", True),
        ("GET", "/shelf/a?GoogleAccessId=a&Expires={}&Signature=AAAA", False),
        ("GET", "/storage/v1/b/shelf/o?maxResults={}", True),
        ("GET", "/v2/_catalog?n={}", True),
    ],
)
def test_other_digits_are_no_server_error(project, verb, path, token, digits):
    assert project.raw(verb, path.format(digits), token=token).status_code in {400, 403, 404}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(a*)*b", "[", "{" * 3000, "**/" * 1000 + "x", "%5Cp" * 2000])
def test_a_hostile_glob_of_a_list_is_answered(project, pattern):
    assert project.raw("GET", f"/storage/v1/b/shelf/o?matchGlob={pattern}").status_code in {200, 400}


@pytest.mark.slow
@pytest.mark.parametrize(
    "token", ["a", "a.b.c", "W10.W10.W10", "eyJpc3MiOiJcdWQ4MDAifQ.eyJpc3MiOiJcdWQ4MDAifQ.e30", "e30.e30.=="]
)
def test_a_malformed_token_is_no_server_error(project, token):
    assert project.raw("GET", "/storage/v1/b/shelf", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    form = f"grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion={token}".encode()
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert project.raw("POST", "/token", form, kind, token=False).status_code == 400
