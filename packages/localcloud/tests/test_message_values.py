"""Single values of each kind that a discovery document knows: what is taken in which form, what is not; and masks."""

import pytest

from bezel_localcloud.core.errors import ApiError, refuse_unserved
from bezel_localcloud.http.messages import NotOfKindError, checked_message, scalar
from bezel_localcloud.http.paging import open_token, page_of, seal_token
from bezel_localcloud.http.partial_response import select_fields
from bezel_localcloud.http.update_mask import apply_mask


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("int32", 5, 5),
        ("int32", "5", 5),
        ("int32", 5.0, 5),
        ("int32", -(2**31), -(2**31)),
        ("int64", 5, "5"),
        ("int64", str(2**63 - 1), str(2**63 - 1)),
        ("uint64", "0", "0"),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("int32", "1e3", 1000),
        ("int64", "1.50e1", "15"),
        ("double", 1, 1),
        ("double", "-1.5e-3", -0.0015),
        ("string", "", ""),
        ("bool", False, False),
        ("bytes", "_-8", "/+8="),
        ("bytes", "YQ==", "YQ=="),
        ("timestamp", "2026-11-21T10:00:00.123456789+01:00", "2026-11-21T10:00:00.123456789+01:00"),
        ("duration", "-1.5s", "-1.5s"),
        ("mask", "a,b.c", "a,b.c"),
        ("enum:A|B", "B", "B"),
        ("enum:A|B", 1, "B"),
        ("any", [1], [1]),
    ],
)
def test_a_value_of_its_kind_is_kept_in_its_normal_form(kind, value, kept):
    assert scalar(value, kind) == kept


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int32", 2**31),
        ("int32", 1.5),
        ("int32", True),
        ("int32", "\u0665"),
        ("int32", "9" * 5000),
        ("int32", [1]),
        ("uint32", -1),
        ("uint64", "-1"),
        ("int64", str(2**63)),
        ("double", "one"),
        ("double", "1e999"),
        ("double", True),
        ("double", float("inf")),
        ("string", 5),
        ("string", None),
        ("bool", "true"),
        ("bytes", "a"),
        ("bytes", "a b="),
        ("bytes", "YQ==="),
        ("timestamp", "2026-11-21"),
        ("timestamp", "2026-13-21T10:00:00Z"),
        ("timestamp", "2026-11-21T10:00:00"),
        ("duration", "5"),
        ("duration", "315576000001s"),
        ("mask", 1),
        ("int32", "1e-1"),
        ("int32", "1e99999"),
        ("enum:A|B", "C"),
        ("enum:A|B", "1"),
        ("enum:A|B", 2),
        ("enum:A|B", True),
        ("enum:A|B", 0.5),
        ("enum:A|B", ["A"]),
        ("no such kind", "a"),
    ],
)
def test_a_value_of_another_kind_is_refused(kind, value):
    with pytest.raises(NotOfKindError):
        scalar(value, kind)


@pytest.mark.parametrize("empty", ["", None, [], {}, False, 0])
def test_an_empty_value_of_an_unserved_field_counts_as_absent(empty):
    """An empty value of an unserved field counts as absent and any other is refused by name."""
    refuse_unserved({"kmsKeyName": empty, "name": "r"}, {"kmsKeyName", "tags"}, "a repository")
    with pytest.raises(ApiError, match="localcloud does not serve kmsKeyName, tags of a repository") as caught:
        refuse_unserved({"kmsKeyName": "k", "tags": {"a": empty}}, {"tags", "kmsKeyName"}, "a repository")
    assert caught.value.status == 400


def test_names_numbers_and_bytes_have_one_normal_form():
    """Names in either spelling, numbers and URL-safe bytes have one normal form."""
    body = {"launch_stage": 4, "template": {"max_instance_request_concurrency": "7", "execution_environment": 2.0}}
    template = {"maxInstanceRequestConcurrency": 7, "executionEnvironment": "EXECUTION_ENVIRONMENT_GEN2"}
    kept = {"launchStage": "GA", "template": template}
    assert checked_message(body, "run.GoogleCloudRunV2Service", "service") == kept
    payload = {"payload": {"data": "_-8", "data_crc32c": 5}}
    kept = {"payload": {"data": "/+8=", "dataCrc32c": "5"}}
    assert checked_message(payload, "secretmanager.AddSecretVersionRequest", "") == kept
    with pytest.raises(ApiError, match=r"service\.launch_stage.*TYPE_ENUM"):
        checked_message({"launchStage": 99}, "run.GoogleCloudRunV2Service", "service")
    with pytest.raises(ApiError, match="purpose"):
        checked_message({"purpose": 1}, "compute.Subnetwork", "", keep_null=True)


def test_what_is_output_only_may_be_sent_and_means_nothing():
    body = {"name": "n", "createTime": "2026-11-21T10:00:00Z", "labels": {"a": "b"}}
    assert checked_message(body, "secretmanager.Secret", "secret") == {"labels": {"a": "b"}}
    with pytest.raises(ApiError, match=r"secret\.create_time"):
        checked_message({"createTime": "yesterday"}, "secretmanager.Secret", "secret")


def test_null_is_absent_but_where_it_removes():
    assert checked_message({"labels": None}, "secretmanager.Secret", "secret") == {}
    body = {"labels": {"a": None}, "versioning": None}
    assert checked_message(body, "storage.Bucket", "", keep_null=True) == body
    with pytest.raises(ApiError):
        checked_message({"labels": {"a": None}}, "secretmanager.Secret", "secret")


@pytest.mark.parametrize("keep_null", [True, False])
def test_an_unknown_name_is_refused_unless_it_says_nothing(keep_null):
    nat = {"name": "nat", "initialNatIps": [], "noSuchThing": None}
    body = {"nats": [nat], "name": "router", "noSuchThing": []}
    kept = {"nats": [{"name": "nat"}], "name": "router"}
    assert checked_message(body, "compute.Router", "", keep_null=keep_null) == kept
    for value in (0, "", False, {}, [None]):
        with pytest.raises(ApiError, match='Unknown name "noSuchThing"'):
            checked_message({"noSuchThing": value}, "compute.Router", "", keep_null=keep_null)


SETTABLE = frozenset({"labels", "description", "scaling", "template"})
OLD = {"name": "n", "labels": {"a": "1", "b": "2"}, "scaling": {"minInstanceCount": 1, "maxInstanceCount": 2}}


@pytest.mark.parametrize(
    ("mask", "body", "kept"),
    [
        ("labels", {"labels": {"c": "3"}, "description": "x"}, {"labels": {"c": "3"}, "scaling": OLD["scaling"]}),
        ("labels", {}, {"scaling": OLD["scaling"]}),
        ("labels.a", {"labels": {"a": "9"}}, {"labels": {"a": "9", "b": "2"}, "scaling": OLD["scaling"]}),
        ("scaling.min_instance_count", {}, {"labels": OLD["labels"], "scaling": {"maxInstanceCount": 2}}),
        ("*", {"description": "x", "name": "other"}, {"description": "x"}),
    ],
)
def test_a_mask_says_what_changes_and_what_is_cleared(mask, body, kept):
    assert apply_mask(OLD, body, mask.split(","), "run.GoogleCloudRunV2Service", SETTABLE) == kept
    assert OLD["labels"] == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("nothing", "is unknown"),
        ("labels.a.b", "is unknown"),
        ("scaling.nothing", "is unknown"),
        ("description.x", "is unknown"),
        ("labels,*", "is unknown"),
        ("uid", "cannot be updated"),
        ("name", "cannot be updated"),
    ],
)
def test_a_mask_of_what_is_no_field_or_not_to_be_set_is_refused(mask, message):
    with pytest.raises(ApiError, match=message):
        apply_mask(OLD, {}, mask.split(","), "run.GoogleCloudRunV2Service", SETTABLE)


def test_pages_hold_every_item_once_whatever_is_added_meanwhile():
    items = [(name, name) for name in ("a", "b\nb", "c", "d")]
    first, token = page_of(items, 2, "", "list")
    items.insert(0, ("A", "A"))
    second, last = page_of(items, 2, token, "list")
    assert [key for key, _ in [*first, *second]] == ["a", "b\nb", "c", "d"]
    assert last == ""


@pytest.mark.parametrize("token", ["x", "bm8K", "\x80", seal_token("a", "another list")])
def test_a_token_that_was_not_given_out_for_a_list_is_refused(token):
    with pytest.raises(ApiError, match="Invalid page token"):
        open_token(token, "list")


ANSWER = {
    "items": [{"name": "a", "size": 1, "acl": {"x": 1, "y": 2}}, {"name": "b"}],
    "nextPageToken": "t",
    "kind": "k",
}


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ("nextPageToken", {"nextPageToken": "t"}),
        ("items/name,kind", {"items": [{"name": "a"}, {"name": "b"}], "kind": "k"}),
        ("items(name, acl/x)", {"items": [{"name": "a", "acl": {"x": 1}}, {"name": "b"}]}),
        ("items/acl(x,y),items/size", {"items": [{"size": 1, "acl": {"x": 1, "y": 2}}, {}]}),
        ("*", ANSWER),
        ("*/name", {"items": [{"name": "a"}, {"name": "b"}], "nextPageToken": "t", "kind": "k"}),
        ("nothing", {}),
    ],
)
def test_fields_pick_a_part_of_an_answer(fields, kept):
    assert select_fields(ANSWER, fields) == kept


@pytest.mark.parametrize("fields", ["a,", "a//b", "a(b", "a)", "(a)", "a;", "/a", "a()"])
def test_what_selects_nothing_is_refused(fields):
    with pytest.raises(ApiError, match="Invalid field selection"):
        select_fields(ANSWER, fields)
