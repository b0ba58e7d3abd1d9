"""Artifact Registry's REST API on what was pushed: the same images, tags and files, and deletes of them."""

import base64
import hashlib

import pytest

from bezel_localcloud.core.files.blobs import digest_of
from localcloud_support.registry_harness import APP, CONTENTS, HOST, REPOSITORY, Registry

DEEP = f"/v2/{HOST}/bezel-local/tools/deep/er"


def list_items(registry, what, key, **query):
    return registry.ok("GET", f"{CONTENTS}/{what}", **query).get(key, [])


def test_an_empty_repository_has_nothing(registry):
    for what in ("dockerImages", "packages", "files"):
        assert list_items(registry, what, what) == []
    for path in ("packages/app", "packages/app/versions", "packages/app/tags", "dockerImages/app:1", "files/sha256:a"):
        assert registry.refusal(404, "GET", f"{CONTENTS}/{path}")["status"] == "NOT_FOUND"


def test_docker_images_show_what_was_pushed(registry):
    digest = registry.image("1")
    registry.image("1", path=DEEP)
    (image, deep) = list_items(registry, "dockerImages", "dockerImages")
    assert image["name"] == f"{REPOSITORY}/dockerImages/app@{digest}"
    assert image["uri"] == f"{HOST}/bezel-local/tools/app@{digest}"
    assert (image["tags"], image["buildTime"]) == (["1"], "2026-01-02T03:04:05Z")
    assert deep["name"].endswith(f"/dockerImages/deep%2Fer@{digest}")
    for reference in (f"app@{digest}", "app:1"):
        assert registry.ok("GET", f"{CONTENTS}/dockerImages/{reference}") == image
    assert registry.ok("GET", f"{CONTENTS}/dockerImages/deep%2Fer@{digest}") == deep


@pytest.mark.slow
@pytest.mark.parametrize("created", ["yesterday", "2026-01-02", 5, None])
def test_a_config_without_a_time_gives_no_build_time(registry, created):
    registry.image("1", config={"created": created})
    (image,) = list_items(registry, "dockerImages", "dockerImages")
    assert "buildTime" not in image


def test_an_index_shows_its_platforms(registry):
    parts = [registry.image("", layer) for layer in (b"a", b"b")]
    whole = registry.index(*parts)
    shown = registry.ok("GET", f"{CONTENTS}/dockerImages/app@{whole}")["imageManifests"]
    assert [(row["digest"], row["architecture"]) for row in shown] == list(zip(parts, ("amd64", "arm64"), strict=True))


def test_packages_versions_and_tags_agree_with_the_protocol(registry):
    old, new = registry.image("1", b"old"), registry.image("2", b"new")
    registry.image("1", path=DEEP)
    names = [row["name"] for row in list_items(registry, "packages", "packages")]
    assert names == [f"{REPOSITORY}/packages/{name}" for name in ("app", "deep%2Fer")]
    assert registry.ok("GET", f"{CONTENTS}/packages/deep%2Fer")["name"] == names[1]
    versions = list_items(registry, "packages/app/versions", "versions")
    assert {row["name"] for row in versions} == {f"{names[0]}/versions/{digest}" for digest in (old, new)}
    full = registry.ok("GET", f"{CONTENTS}/packages/app/versions/{new}", view="FULL")
    tag = {"name": f"{names[0]}/tags/2", "version": f"{names[0]}/versions/{new}"}
    assert full["relatedTags"] == [tag]
    assert "relatedTags" not in versions[0]
    assert registry.ok("GET", f"{CONTENTS}/packages/app/tags/2") == tag
    assert len(list_items(registry, "packages/app/tags", "tags")) == 2
    assert len(list_items(registry, "packages/deep%2Fer/tags", "tags")) == 1


@pytest.mark.slow
def test_lists_come_in_pages(registry):
    for tag in ("a", "b", "c"):
        registry.image(tag)
    page = registry.ok("GET", f"{CONTENTS}/packages/app/tags", pageSize=2)
    rest = registry.ok("GET", f"{CONTENTS}/packages/app/tags", pageSize=2, pageToken=page["nextPageToken"])
    assert [row["name"][-1] for row in (*page["tags"], *rest["tags"])] == ["a", "b", "c"]
    assert "nextPageToken" not in rest


def test_files_are_the_blobs_and_the_manifests(registry):
    digest = registry.image("1", b"layer")
    files = {row["name"].rpartition("/")[2]: row for row in list_items(registry, "files", "files")}
    assert len(files) == 3
    layer = files[digest_of(b"layer")]
    assert layer["sizeBytes"] == "5"
    (checksum,) = layer["hashes"]
    assert base64.b64decode(checksum["value"]) == hashlib.sha256(b"layer").digest()
    assert files[digest]["owner"] == f"{REPOSITORY}/packages/app/versions/{digest}"
    assert registry.ok("GET", f"{CONTENTS}/files/{digest}") == files[digest]


def test_tags_are_created_moved_and_deleted(registry):
    old, new = registry.image("1", b"old"), registry.image("2", b"new")
    versions = f"{REPOSITORY}/packages/app/versions"
    registry.ok("POST", f"{CONTENTS}/packages/app/tags", {"version": f"{versions}/{old}"}, tagId="stable")
    pulled = registry.send("HEAD", f"{APP}/manifests/stable")
    assert pulled.headers["docker-content-digest"] == old
    taken = registry.refusal(409, "POST", f"{CONTENTS}/packages/app/tags", {"version": f"{versions}/{new}"}, tagId="1")
    assert taken["status"] == "ALREADY_EXISTS"
    registry.ok("PATCH", f"{CONTENTS}/packages/app/tags/stable", {"version": f"{versions}/{new}"})
    assert registry.send("HEAD", f"{APP}/manifests/stable").headers["docker-content-digest"] == new
    registry.ok("DELETE", f"{CONTENTS}/packages/app/tags/stable")
    assert registry.send("HEAD", f"{APP}/manifests/stable").status_code == 404
    registry.refusal(404, "DELETE", f"{CONTENTS}/packages/app/tags/stable")
    elsewhere = {"version": f"{REPOSITORY}/packages/other/versions/{old}"}
    registry.refusal(400, "POST", f"{CONTENTS}/packages/app/tags", elsewhere, tagId="x")
    registry.refusal(400, "POST", f"{CONTENTS}/packages/app/tags", {"version": f"{versions}/{old}"}, tagId="-x")
    missing = {"version": f"{versions}/{digest_of(b'')}"}
    registry.refusal(404, "POST", f"{CONTENTS}/packages/app/tags", missing, tagId="x")


def test_a_tagged_version_is_deleted_only_with_force(registry):
    digest = registry.image("1")
    path = f"{CONTENTS}/packages/app/versions/{digest}"
    assert registry.refusal(400, "DELETE", path)["status"] == "FAILED_PRECONDITION"
    assert registry.send("HEAD", f"{APP}/manifests/1").status_code == 200
    registry.ok("DELETE", path, force="true")
    assert registry.send("HEAD", f"{APP}/manifests/1").status_code == 404
    registry.refusal(404, "GET", f"{CONTENTS}/packages/app")


def test_a_part_of_an_index_is_not_deleted_before_it(registry):
    part = registry.image("")
    registry.index(part)
    error = registry.refusal(400, "DELETE", f"{CONTENTS}/packages/app/versions/{part}")
    assert "parent images" in error["message"]


@pytest.mark.slow
def test_several_versions_are_deleted_at_once(registry):
    digests = [registry.image(tag, tag.encode()) for tag in ("1", "2", "3")]
    names = [f"{REPOSITORY}/packages/app/versions/{digest}" for digest in digests[:2]]
    path = f"{CONTENTS}/packages/app/versions:batchDelete"
    registry.ok("POST", path, {"names": names, "validateOnly": True})
    assert len(list_items(registry, "packages/app/versions", "versions")) == 3
    registry.ok("POST", path, {"names": names})
    assert [row["name"][-71:] for row in list_items(registry, "packages/app/versions", "versions")] == digests[2:]
    registry.refusal(404, "POST", path, {"names": names})
    registry.refusal(400, "POST", path, {"names": []})
    registry.refusal(400, "POST", path, {"names": [f"{REPOSITORY}/packages/other/versions/{digests[2]}"]})


def test_a_package_is_deleted_with_everything_below_its_name_only(registry):
    registry.image("1")
    registry.image("1", path=f"{APP}/below")
    registry.ok("DELETE", f"{CONTENTS}/packages/app")
    assert [row["name"] for row in list_items(registry, "packages", "packages")] == [
        f"{REPOSITORY}/packages/app%2Fbelow"
    ]
    assert registry.send("GET", f"{APP}/below/manifests/1").status_code == 200


def test_immutable_tags_protect_their_versions(tmp_path):
    registry = Registry(tmp_path, dockerConfig={"immutableTags": True})
    old, new = registry.image("1", b"old"), registry.image("2", b"new")
    name = f"{REPOSITORY}/packages/app/versions"
    for verb, path, body, query in (
        ("PATCH", "tags/1", {"version": f"{name}/{new}"}, {}),
        ("DELETE", "tags/1", None, {}),
        ("DELETE", f"versions/{old}", None, {"force": "true"}),
    ):
        error = registry.refusal(400, verb, f"{CONTENTS}/packages/app/{path}", body, **query)
        assert "tag immutability" in error["message"]
    assert registry.refusal(400, "DELETE", f"{CONTENTS}/packages/app")["status"] == "FAILED_PRECONDITION"
    registry.ok("PATCH", f"{CONTENTS}/packages/app/tags/1", {"version": f"{name}/{old}"})
    registry.close()


def test_reading_needs_the_permission_of_each_collection(registry):
    digest = registry.image("1")
    registry.token = registry.account("reader", "artifactregistry.reader")
    for path in ("dockerImages", "packages", "files", "packages/app/tags", f"packages/app/versions/{digest}"):
        registry.ok("GET", f"{CONTENTS}/{path}")
    error = registry.refusal(403, "DELETE", f"{CONTENTS}/packages/app")
    assert "artifactregistry.packages.delete" in error["message"]
