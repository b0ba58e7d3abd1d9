"""Bounds of a request: beside each refusal the largest request that is taken. docs/localcloud.md has the table."""

import asyncio
import gzip
import json
import tracemalloc

import pytest

from bezel_base.json_documents import MOST_VALUES, TooManyValuesError, read_encodable_json
from bezel_localcloud.access import conditions
from bezel_localcloud.access.cel.evaluator import compile_expression
from bezel_localcloud.access.cel.syntax import CelError
from bezel_localcloud.access.permissions import _with_parents
from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.http.messages import checked_message
from bezel_localcloud.http.multipart import head_and_content, parts_of
from bezel_localcloud.routing.batch import in_turn
from bezel_localcloud.services.cloud_run.containers.checks import container_violations
from bezel_localcloud.services.compute.vpc import free_address
from bezel_localcloud.services.storage.objects.content import _decompress
from bezel_localcloud.services.storage.xml.documents import parse
from localcloud_support.in_process import PARENT, Project, run

FORM = {"content-type": "multipart/form-data; boundary=a"}
BATCH = {"content-type": "multipart/mixed; boundary=a"}


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path / "cloud")
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield new_project
    new_project.close()


@pytest.mark.slow
@pytest.mark.parametrize("value", [b"1", b"[]", b"{}", b'"a,b"'])
def test_a_document_has_a_bounded_number_of_values(value):
    most = MOST_VALUES // 2 - 1
    assert len(read_encodable_json(b"[" + b",".join([value] * most) + b"]")) == most
    with pytest.raises(TooManyValuesError):
        read_encodable_json(b"[" + b",".join([value] * (MOST_VALUES + 1)) + b"]")


def test_signs_in_texts_are_no_values():
    text = '\\",[{' * MOST_VALUES
    assert read_encodable_json(f'{{"a":"{text}"}}'.encode()) == {"a": text.replace("\\", "")}


def test_a_document_with_too_many_values_is_refused_by_name(project):
    body = b'{"name":"a","labels":[' + b",".join([b"1"] * MOST_VALUES) + b"]}"
    answer = project.raw("POST", "/storage/v1/b?project=bezel-local", body, {"content-type": "application/json"})
    assert answer.status_code == 400
    assert f"more than {MOST_VALUES} values" in answer.json()["error"]["message"]


@pytest.mark.parametrize("body", [{f"a{n}": 1 for n in range(5000)}, {"labels": {f"a{n}": 1 for n in range(5000)}}])
def test_a_refusal_names_the_first_hundred_faults(body):
    with pytest.raises(ApiError) as refused:
        checked_message(body, "storage.Bucket", "")
    assert len(refused.value.details[0]["fieldViolations"]) == 100
    with pytest.raises(ApiError) as refused:
        checked_message({"a": 1, "b": 1}, "storage.Bucket", "")
    assert len(refused.value.details[0]["fieldViolations"]) == 2


@pytest.mark.parametrize("body", [{"a" * 10**6: 1}, {"labels": {"a" * 10**6: 1}}, {"location": ["a" * 10**6]}])
def test_a_refusal_does_not_repeat_what_is_long(body):
    with pytest.raises(ApiError) as refused:
        checked_message(body, "storage.Bucket", "")
    assert len(json.dumps(refused.value.body())) < 4000
    assert len(json.dumps(invalid("x" * 10**6, ("a" * 10**6, "b" * 10**6)).body())) < 70_000
    assert invalid("x" * 1000).message == "x" * 1000


@pytest.mark.slow
def test_variables_given_twice_are_found_in_one_pass():
    names = [f"A{n}" for n in range(50_000)]
    container = {"image": "a", "env": [{"name": name} for name in names]}
    assert list(container_violations(container, "c", has_gpu=False)) == []
    container["env"].append({"name": "A7"})
    assert list(container_violations(container, "c", has_gpu=False)) == [("c.env", "'A7' is given more than once")]


def members(count):
    return [{"role": "roles/viewer", "members": [f"user:{n}@example.com" for n in range(count)]}]


def set_policy(project, bindings, version=1):
    deployer = {"role": "roles/owner", "members": ["serviceAccount:deployer@bezel-local.iam.gserviceaccount.com"]}
    body = {"policy": {"version": version, "bindings": [deployer, *bindings]}}
    return project.raw("POST", f"/crm/v1/{PARENT}:setIamPolicy", json.dumps(body).encode())


def test_a_policy_has_a_bounded_number_of_members(project):
    refused = set_policy(project, members(1500))
    assert refused.status_code == 400
    expected = "The number of members in the policy (1,501) is larger than the maximum allowed size 1,500."
    assert refused.json()["error"]["message"] == expected
    assert set_policy(project, members(1499)).status_code == 200


def test_a_policy_has_a_bounded_size(project):
    long = {"title": "a", "description": "b" * (512 << 10), "expression": 'resource.name == "a"'}
    assert set_policy(project, [members(1)[0] | {"condition": long}], 3).status_code == 400
    assert set_policy(project, [members(1)[0] | {"condition": long | {"description": "b"}}], 3).status_code == 200


def test_a_request_tests_a_bounded_number_of_permissions(project):
    path = f"/crm/v1/{PARENT}:testIamPermissions"
    assert len(project.ok("POST", path, {"permissions": ["run.services.get"] * 100})["permissions"]) == 100
    assert "at most 100" in project.refusal(400, "POST", path, {"permissions": ["run.services.get"] * 101})["message"]


@pytest.mark.parametrize("text", ["!" * 10_001, "(" * 10_001, " " * 10_001, '"' + "a" * 10_000])
def test_a_long_condition_is_not_read(text):
    with pytest.raises(conditions.ConditionError, match="more than 10000 characters"):
        conditions.compile_condition(text)


@pytest.mark.parametrize("text", ["!" * 9000, "a" + " a" * 2000])
def test_the_words_of_a_condition_are_counted_while_they_are_read(text):
    """What follows behind the bound is not read: its end is no word of the language, and is not named."""
    with pytest.raises(conditions.ConditionError, match="more than 300 words"):
        conditions.compile_condition(f"{text} ;")


def test_a_condition_within_its_bounds_is_read():
    text = " || ".join(['resource.name == "a"'] * 37)
    assert conditions.holds(text, "a", 0.0)
    with pytest.raises(conditions.ConditionError, match="300 words"):
        conditions.compile_condition(f"{text} || {text}")


def test_a_long_expression_of_a_provider_is_not_read():
    with pytest.raises(CelError, match="more than 4096 characters"):
        compile_expression(" " * 5000 + "1", [])
    assert compile_expression(" " * 4000 + "1", [])({}) == 1


def test_what_is_not_understood_is_named_in_short():
    with pytest.raises(conditions.ConditionError) as refused:
        conditions.compile_condition(";" * 9000)
    assert len(str(refused.value)) < 200


def write_entries(project, entries, **shared):
    body = {"logName": f"{PARENT}/logs/a", "resource": {"type": "global"}, "entries": entries} | shared
    return project.raw("POST", "/logging/v2/entries:write", json.dumps(body).encode())


def test_an_entry_has_at_most_sixty_four_labels(project):
    labels = {str(n): "a" for n in range(64)}
    assert write_entries(project, [{"textPayload": "a", "labels": labels}]).status_code == 200
    assert write_entries(project, [{"textPayload": "a", "labels": labels}], labels={"0": "b"}).status_code == 200
    for entry_labels, shared in ((labels, {"more": "a"}), (labels | {"more": "a"}, {}), ({}, labels | {"more": "a"})):
        answer = write_entries(project, [{"textPayload": "a", "labels": entry_labels}], labels=shared)
        assert "at most 64 labels" in answer.text


def test_what_entries_share_is_not_stored_without_bounds(project):
    entries = [{"textPayload": "a"}] * 400
    answer = write_entries(project, entries, resource={"type": "global", "labels": {"a": "b" * 200_000}})
    assert (answer.status_code, "send fewer at once" in answer.text) == (400, True)
    assert write_entries(project, entries, resource={"type": "global", "labels": {"a": "b" * 100}}).status_code == 200


@pytest.mark.slow
def test_many_entries_of_one_time_are_stored_once_each(project):
    moment = project.cloud.pace.now() - 60
    stamp = "2027-01-15T07:59:00Z"
    assert moment == pytest.approx(1_799_999_940.0)
    entries = [{"textPayload": "a", "timestamp": stamp, "insertId": str(n % 700)} for n in range(1400)]
    for _ in range(2):
        assert write_entries(project, entries).status_code == 200
    stored = project.cloud.store.log_slice(newest_first=False, since=moment, until=moment, limit=5000)
    assert sorted(entry["insertId"] for _, entry in stored) == sorted(map(str, range(700)))


def batch(project, part, count):
    body = f"--a\r\nContent-Type: application/http\r\n\r\n{part}\r\n\r\n".encode() * count + b"--a--\r\n"
    return project.raw("POST", "/batch/storage/v1", body, BATCH)


def test_a_batch_has_a_bounded_number_of_calls(project):
    part = "GET /storage/v1/b/none HTTP/1.1"
    assert "must have between 1 and 1000" in batch(project, part, 1001).text
    assert batch(project, part, 3).text.count("HTTP/1.1 404") == 3


async def _answer(piece, full):
    return b"full" if full else piece * 100


@pytest.mark.parametrize(("largest", "whole"), [(100, 2), (99, 1), (10_000, 5)])
def test_calls_behind_the_largest_answer_are_not_made(largest, whole):
    answers = run(in_turn([b"a"] * 5, _answer, largest))
    assert answers == [b"a" * 100] * whole + [b"full"] * (5 - whole)


def test_other_requests_run_between_the_calls_of_a_batch():
    """A task that counts its turns gets as many as there are calls."""
    assert run(turns(50)) >= 50
    assert run(turns(0)) < 5


async def turns(calls):
    seen = 0

    async def count():
        nonlocal seen
        while True:
            seen += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    await in_turn([b"a"] * calls, _answer, 10**6)
    task.cancel()
    return seen


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"--a\r\nx\r\n--a\r\ny\r\n--a--\r\n", [b"x", b"y"]),
        (b"before\n--a\nx\n--a--", [b"x"]),
        (b"--a\r\nx\r\n--ab\r\n--a--", [b"x\r\n--ab"]),
        (b"--a \t\r\nx\r\n--a-- ", [b"x"]),
        (b"--a\r\nx\r\n-- a\r\n", []),
        (b"x--a\r\ny\r\n--a--", []),
        (b"", []),
    ],
)
def test_parts_lie_between_delimiters(body, parts):
    assert parts_of(body, "a", 10) == parts


def test_parts_are_sought_up_to_a_bound():
    assert len(parts_of(b"--a\r\nx\r\n" * 50 + b"--a--", "a", 10)) == 11
    with pytest.raises(ApiError, match="begin with its boundary"):
        parts_of(b"--ax\n" * 100_001, "a", 10)
    with pytest.raises(ApiError, match="more than 65536 bytes"):
        head_and_content(b"a" * 70_000 + b"\r\n\r\nb")
    assert head_and_content(b"a" * 60_000 + b"\r\n\r\nb")[1] == b"b"
    assert head_and_content(b"a\n\nb\n\nc") == (b"a", b"b\n\nc")


def field_of_form(name, value="x"):
    return f'--a\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()


@pytest.mark.parametrize(("fields", "status"), [(98, 204), (101, 400)])
def test_a_form_has_a_bounded_number_of_fields(project, fields, status):
    body = field_of_form("key", "made") + b"".join(field_of_form(f"x-ignore-{n}") for n in range(fields))
    assert project.raw("POST", "/shelf", body + field_of_form("file") + b"--a--", FORM).status_code == status


def test_a_field_of_a_form_has_bounded_headers(project):
    long = b"--a\r\nx: " + b"y" * 9000 + b"\r\n\r\nz\r\n"
    body = field_of_form("key", "made") + long + field_of_form("file") + b"--a--"
    assert project.raw("POST", "/shelf", body, FORM).status_code == 400


def test_a_document_of_xml_has_a_bounded_number_of_tags():
    with pytest.raises(ApiError, match="more than 100000 tags"):
        parse(b"<a>" + b"<b/>" * 100_000 + b"</a>")
    assert len(parse(b"<a>" + b"<b/>" * 90_000 + b"</a>")) == 90_000


HOSTILE_XML = [b"<a>" * 49_000 + b"</a>" * 49_000, b"<a " + b"b='c' " * 5 + b"/>", b"\xff\xfe<\0a\0"]
HOSTILE_XML += [b"<?xml version='1.0' encoding='%s'?><a/>" % name for name in (b"none", b"utf-16", b"gb18030")]


@pytest.mark.slow
@pytest.mark.parametrize("body", HOSTILE_XML)
def test_hostile_xml_is_no_server_error(project, body):
    begun = project.raw("POST", "/shelf/a?uploads")
    identifier = begun.text.partition("<UploadId>")[2].partition("<")[0]
    assert project.raw("POST", f"/shelf/a?uploadId={identifier}", body).status_code == 400


@pytest.mark.slow
def test_a_gzip_content_is_unpacked_piece_by_piece(project):
    """A hundred megabytes of zeros in a hundred kilobytes: the memory for them stays small."""
    packed = gzip.compress(bytes(100 << 20), 9)
    head = b'--a\r\n\r\n{"name":"bomb","contentEncoding":"gzip"}\r\n--a\r\nContent-Type: text/plain\r\n\r\n'
    kind = {"content-type": "multipart/related; boundary=a"}
    answer = project.raw(
        "POST", "/upload/storage/v1/b/shelf/o?uploadType=multipart", head + packed + b"\r\n--a--", kind
    )
    assert answer.status_code == 200, answer.text
    row = project.cloud.store.get("object", "shelf/bomb")
    assert largest_piece(project, row) <= 1 << 20


def largest_piece(project, row):
    async def read():
        with project.cloud.objects.content(row).open("rb") as file:
            sizes = [len(piece) async for piece in _decompress(file, None)]
        assert sum(sizes) == 100 << 20
        return max(sizes)

    return run(read())


def test_a_name_with_many_slashes_has_at_most_a_hundred_parents():
    """A policy counts for what lies up to 100 parts below the top; a longer name costs no more."""
    assert len(_with_parents("a/" * 50_000 + "b")) == 101
    assert _with_parents("a/b/c/d")[:3] == ["a/b/c/d", "a/b/c", "a/b"]


def test_the_addresses_of_a_large_range_are_not_listed(project):
    """A range of /8 has 16 million addresses: the first free one is found without a list of them."""
    name = f"{PARENT}/regions/us-east5/subnetworks/wide"
    project.cloud.store.put("subnetwork", name, {"ipCidrRange": "10.0.0.0/8"})
    tracemalloc.start()
    try:
        assert free_address(project.cloud.store, name) == "10.0.0.2"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
