"""Generations of objects: versions, soft deletion, preconditions on them, and protection against deletion."""

import pytest

OBJECTS = "/storage/v1/b/shelf/o"
DAY = 86_400.0


def list_objects(project, **query):
    return [(item["name"], item["generation"]) for item in project.ok("GET", OBJECTS, **query).get("items", [])]


def enable_versions(project):
    project.ok("PATCH", "/storage/v1/b/shelf", {"versioning": {"enabled": True}})


@pytest.mark.slow
def test_versioning_keeps_earlier_generations_readable(project, put):
    """With versioning, an overwritten or deleted object stays readable by its generation."""
    enable_versions(project)
    first, second = put("a", b"1"), put("a", b"2")
    assert project.call("DELETE", f"{OBJECTS}/a").status_code == 204
    assert list_objects(project) == []
    assert list_objects(project, versions="true") == [("a", first["generation"]), ("a", second["generation"])]
    for row, content in ((first, b"1"), (second, b"2")):
        answer = project.raw("GET", f"{OBJECTS}/a?alt=media&generation={row['generation']}")
        assert answer.content == content
    assert project.refusal(409, "DELETE", "/storage/v1/b/shelf")["message"].endswith("not empty.")


def test_without_versioning_an_overwritten_object_is_no_version(project, put):
    first, second = put("a", b"1"), put("a", b"2")
    assert list_objects(project, versions="true") == [("a", second["generation"])]
    assert project.call("GET", f"{OBJECTS}/a", generation=first["generation"]).status_code == 404


def test_a_generation_that_is_named_is_deleted_for_good_and_no_other(project, put):
    enable_versions(project)
    first, second = put("a", b"1"), put("a", b"2")
    project.call("DELETE", f"{OBJECTS}/a", generation=second["generation"])
    assert list_objects(project, versions="true") == [("a", first["generation"])]
    assert list_objects(project) == []


def test_generations_grow_also_after_a_deletion_and_while_the_clock_stands(project, put):
    generations = []
    for _ in range(3):
        generations.append(int(put("a")["generation"]))
        project.call("DELETE", f"{OBJECTS}/a")
    assert generations == sorted(set(generations))


def test_a_soft_deleted_object_is_restored_in_its_time(project, put):
    """A soft-deleted object is restored as it was until its time is over."""
    row = put("a", b"content")
    project.call("DELETE", f"{OBJECTS}/a")
    assert list_objects(project, softDeleted="true") == [("a", row["generation"])]
    restored = project.ok("POST", f"{OBJECTS}/a/restore", generation=row["generation"])
    assert restored["generation"] != row["generation"]
    assert project.raw("GET", f"{OBJECTS}/a?alt=media").content == b"content"
    project.passes(8 * DAY)
    assert list_objects(project, softDeleted="true") == []
    assert project.call("POST", f"{OBJECTS}/a/restore", generation=row["generation"]).status_code == 404


def test_a_bucket_without_a_soft_delete_policy_keeps_nothing(project, put):
    """A bucket without a soft-delete policy keeps nothing of a deleted object."""
    project.ok("PATCH", "/storage/v1/b/shelf", {"softDeletePolicy": {"retentionDurationSeconds": "0"}})
    put("a", b"content")
    project.call("DELETE", f"{OBJECTS}/a")
    assert list_objects(project, softDeleted="true") == []
    assert list(project.cloud.layout.contents.iterdir()) == []


@pytest.mark.slow
def test_the_condition_of_a_second_writer_fails(project, put):
    """A condition of a rival that came second fails and the first object stays."""
    put("a", b"first")
    path = "/upload/storage/v1/b/shelf/o?uploadType=media&name=a&ifGenerationMatch=0"
    assert project.raw("POST", path, b"second").status_code == 412
    assert project.raw("GET", f"{OBJECTS}/a?alt=media").content == b"first"
    assert list(project.cloud.layout.uploads.iterdir()) == []


@pytest.mark.parametrize("hold", ["temporaryHold", "eventBasedHold"])
def test_a_held_object_is_neither_deleted_nor_overwritten(project, put, hold):
    """A held object is neither deleted nor overwritten until it is released."""
    put("a")
    project.ok("PATCH", f"{OBJECTS}/a", {hold: True})
    assert "hold" in project.refusal(403, "DELETE", f"{OBJECTS}/a")["message"]
    answer = project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a", b"y")
    assert answer.status_code == 403
    project.ok("PATCH", f"{OBJECTS}/a", {hold: False})
    assert project.call("DELETE", f"{OBJECTS}/a").status_code == 204


def test_a_retention_policy_protects_an_object_for_its_period(project, put):
    """A retention policy protects an object for its period and no longer."""
    project.ok("PATCH", "/storage/v1/b/shelf", {"retentionPolicy": {"retentionPeriod": "60"}})
    put("a")
    assert project.refusal(403, "DELETE", f"{OBJECTS}/a")["errors"][0]["reason"] == "retentionPolicyNotMet"
    project.passes(61)
    assert project.call("DELETE", f"{OBJECTS}/a").status_code == 204


def test_metadata_is_merged_by_a_patch_and_replaced_by_a_put(project, put):
    put("a")
    project.ok("PATCH", f"{OBJECTS}/a", {"metadata": {"a": "1", "b": "2"}, "cacheControl": "no-store"})
    merged = project.ok("PATCH", f"{OBJECTS}/a", {"metadata": {"a": None}})
    assert (merged["metadata"], merged["cacheControl"], merged["metageneration"]) == ({"b": "2"}, "no-store", "3")
    replaced = project.ok("PUT", f"{OBJECTS}/a", {"contentLanguage": "de"})
    assert (replaced.get("metadata"), replaced.get("cacheControl"), replaced["contentLanguage"]) == (None, None, "de")
