"""Generations of objects: versions, soft deletion, preconditions on them, and protection against deletion."""

import pytest

OBJECTS = "/storage/v1/b/shelf/o"
DAY = 86_400.0


def listed(project, **query):
    return [(item["name"], item["generation"]) for item in project.ok("GET", OBJECTS, **query).get("items", [])]


def enable_versions(project):
    project.ok("PATCH", "/storage/v1/b/shelf", {"versioning": {"enabled": True}})


@pytest.mark.slow
def test_with_versioning_an_overwritten_or_deleted_object_stays_readable_by_its_generation(project, put):
    enable_versions(project)
    first, second = put("a", b"1"), put("a", b"2")
    assert project.call("DELETE", f"{OBJECTS}/a").status_code == 204
    assert listed(project) == []
    assert listed(project, versions="true") == [("a", first["generation"]), ("a", second["generation"])]
    for row, content in ((first, b"1"), (second, b"2")):
        found = project.raw("GET", f"{OBJECTS}/a?alt=media&generation={row['generation']}")
        assert found.content == content
    assert project.refused(409, "DELETE", "/storage/v1/b/shelf")["message"].endswith("not empty.")


def test_without_versioning_an_overwritten_object_is_no_version(project, put):
    first, second = put("a", b"1"), put("a", b"2")
    assert listed(project, versions="true") == [("a", second["generation"])]
    assert project.call("GET", f"{OBJECTS}/a", generation=first["generation"]).status_code == 404


def test_a_generation_that_is_named_is_deleted_for_good_and_no_other(project, put):
    enable_versions(project)
    first, second = put("a", b"1"), put("a", b"2")
    project.call("DELETE", f"{OBJECTS}/a", generation=second["generation"])
    assert listed(project, versions="true") == [("a", first["generation"])]
    assert listed(project) == []


def test_generations_grow_also_after_a_deletion_and_while_the_clock_stands(project, put):
    found = []
    for _ in range(3):
        found.append(int(put("a")["generation"]))
        project.call("DELETE", f"{OBJECTS}/a")
    assert found == sorted(set(found))


def test_a_soft_deleted_object_is_restored_as_it_was_until_its_time_is_over(project, put):
    row = put("a", b"content")
    project.call("DELETE", f"{OBJECTS}/a")
    assert listed(project, softDeleted="true") == [("a", row["generation"])]
    restored = project.ok("POST", f"{OBJECTS}/a/restore", generation=row["generation"])
    assert restored["generation"] != row["generation"]
    assert project.raw("GET", f"{OBJECTS}/a?alt=media").content == b"content"
    project.passes(8 * DAY)
    assert listed(project, softDeleted="true") == []
    assert project.call("POST", f"{OBJECTS}/a/restore", generation=row["generation"]).status_code == 404


def test_a_bucket_without_a_soft_delete_policy_keeps_nothing_of_a_deleted_object(project, put):
    project.ok("PATCH", "/storage/v1/b/shelf", {"softDeletePolicy": {"retentionDurationSeconds": "0"}})
    put("a", b"content")
    project.call("DELETE", f"{OBJECTS}/a")
    assert listed(project, softDeleted="true") == []
    assert list(project.cloud.layout.contents.iterdir()) == []


def test_a_condition_of_a_rival_that_came_second_fails_and_the_first_object_stays(project, put):
    put("a", b"first")
    path = "/upload/storage/v1/b/shelf/o?uploadType=media&name=a&ifGenerationMatch=0"
    assert project.raw("POST", path, b"second").status_code == 412
    assert project.raw("GET", f"{OBJECTS}/a?alt=media").content == b"first"
    assert list(project.cloud.layout.uploads.iterdir()) == []


@pytest.mark.parametrize("hold", ["temporaryHold", "eventBasedHold"])
def test_a_held_object_is_neither_deleted_nor_overwritten_until_it_is_released(project, put, hold):
    put("a")
    project.ok("PATCH", f"{OBJECTS}/a", {hold: True})
    assert "hold" in project.refused(403, "DELETE", f"{OBJECTS}/a")["message"]
    answer = project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a", b"y")
    assert answer.status_code == 403
    project.ok("PATCH", f"{OBJECTS}/a", {hold: False})
    assert project.call("DELETE", f"{OBJECTS}/a").status_code == 204


def test_a_retention_policy_protects_an_object_for_its_period_and_no_longer(project, put):
    project.ok("PATCH", "/storage/v1/b/shelf", {"retentionPolicy": {"retentionPeriod": "60"}})
    put("a")
    assert project.refused(403, "DELETE", f"{OBJECTS}/a")["errors"][0]["reason"] == "retentionPolicyNotMet"
    project.passes(61)
    assert project.call("DELETE", f"{OBJECTS}/a").status_code == 204


def test_metadata_is_merged_by_a_patch_and_replaced_by_a_put(project, put):
    put("a")
    project.ok("PATCH", f"{OBJECTS}/a", {"metadata": {"a": "1", "b": "2"}, "cacheControl": "no-store"})
    merged = project.ok("PATCH", f"{OBJECTS}/a", {"metadata": {"a": None}})
    assert (merged["metadata"], merged["cacheControl"], merged["metageneration"]) == ({"b": "2"}, "no-store", "3")
    replaced = project.ok("PUT", f"{OBJECTS}/a", {"contentLanguage": "de"})
    assert (replaced.get("metadata"), replaced.get("cacheControl"), replaced["contentLanguage"]) == (None, None, "de")
