"""Manifests and tags: what is accepted, what is served, what refers to what, and what a delete leaves."""

import json

import pytest

from bezel_localcloud.core.files.blobs import digest_of
from bezel_localcloud.services.artifact_registry.errors import RegistryError
from bezel_localcloud.services.artifact_registry.image_store import SESSION_SECONDS
from bezel_localcloud.services.artifact_registry.manifests import MAX_BYTES, parse_manifest
from localcloud_support.registry_harness import (
    APP,
    CONFIG,
    HOST,
    INDEX,
    LAYER,
    MANIFEST,
    REPOSITORY,
    Registry,
    code,
    index,
    manifest,
)
from localcloud_support.work_count import Count

DIGEST = digest_of(b"")


def put(registry, reference, content, kind=MANIFEST):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    return registry.send("PUT", f"{APP}/manifests/{reference}", content, content_type=kind)


def test_a_manifest_is_served_as_it_was_pushed_by_tag_and_by_digest(registry):
    body = manifest(APP, registry, b"{}", b"layer")
    content = json.dumps(body, indent=3).encode() + b"\n"
    pushed = put(registry, "1", content)
    digest = digest_of(content)
    assert pushed.headers["docker-content-digest"] == digest
    assert pushed.headers["location"] == f"{APP}/manifests/{digest}"
    for reference in ("1", digest):
        answer = registry.send("GET", f"{APP}/manifests/{reference}", accept=MANIFEST)
        assert (answer.content, answer.headers["content-type"]) == (content, MANIFEST)
        head = registry.send("HEAD", f"{APP}/manifests/{reference}")
        assert head.headers["docker-content-digest"] == digest
        assert head.headers["content-length"] == str(len(content))


def test_a_missing_tag_digest_image_or_repository_is_404_with_its_code(registry):
    registry.image()
    for reference in ("absent", DIGEST):
        assert code(registry.send("GET", f"{APP}/manifests/{reference}")) == (404, "MANIFEST_UNKNOWN")
    assert code(registry.send("GET", f"{APP}/nosuch/tags/list")) == (404, "NAME_UNKNOWN")
    nowhere = f"/v2/{HOST}/bezel-local/nosuch/app"
    assert code(registry.send("GET", f"{nowhere}/manifests/1")) == (404, "NAME_UNKNOWN")
    assert code(registry.send("POST", f"{nowhere}/blobs/uploads/")) == (404, "NAME_UNKNOWN")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bezel-local/tools", "bezel-local/tools/App", "bezel-local/tools/a..b", "a" * 256])
def test_a_name_that_can_be_no_images_is_refused(registry, name):
    assert code(registry.send("GET", f"/v2/{HOST}/{name}/manifests/1")) == (400, "NAME_INVALID")


def test_a_type_that_the_client_does_not_accept_is_not_served(registry):
    registry.image()
    answer = registry.send("GET", f"{APP}/manifests/1", accept="application/vnd.docker.distribution.manifest.v2+json")
    assert code(answer) == (404, "MANIFEST_UNKNOWN")
    assert f'Manifest has media type "{MANIFEST}" but' in answer.json()["errors"][0]["message"]


def test_a_push_with_a_missing_blob_or_manifest_is_refused(registry):
    body = manifest(APP, registry, b"{}", b"layer")
    body["layers"].append({"mediaType": LAYER, "digest": DIGEST, "size": 0})
    assert code(put(registry, "1", body)) == (400, "MANIFEST_BLOB_UNKNOWN")
    assert code(put(registry, "1", index(DIGEST), INDEX)) == (400, "MANIFEST_BLOB_UNKNOWN")
    registry.blob(b"")
    assert put(registry, "1", body).status_code == 201


def test_layers_that_may_not_be_distributed_need_not_be_there(registry):
    body = manifest(APP, registry, b"{}", b"layer")
    foreign = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
    body["layers"].append({"mediaType": foreign, "digest": DIGEST, "size": 0, "urls": ["https://example.com/x"]})
    assert put(registry, "1", body).status_code == 201


def test_a_push_under_another_digest_or_a_wrong_tag_is_refused(registry):
    body = manifest(APP, registry, b"{}", b"layer")
    assert code(put(registry, DIGEST, body)) == (400, "DIGEST_INVALID")
    assert code(put(registry, "sha256:abc", body)) == (400, "DIGEST_INVALID")
    assert code(put(registry, "-a", body)) == (400, "TAG_INVALID")
    assert code(put(registry, "a" * 129, body)) == (400, "TAG_INVALID")
    assert put(registry, "a" * 128, body).status_code == 201


@pytest.mark.slow
def test_a_manifest_of_more_than_four_mebibytes_is_refused(registry):
    body = manifest(APP, registry, b"{}", b"layer")
    room = MAX_BYTES - len(json.dumps(body | {"annotations": {"a": ""}}))
    assert code(put(registry, "1", body | {"annotations": {"a": "x" * (room + 1)}})) == (413, "SIZE_INVALID")
    assert put(registry, "1", body | {"annotations": {"a": "x" * room}}).status_code == 201


PART = {"mediaType": LAYER, "digest": DIGEST, "size": 0}
GOOD = {"schemaVersion": 2, "mediaType": MANIFEST, "config": PART | {"mediaType": CONFIG}, "layers": [PART]}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", MANIFEST),
        (b"[" * 100_000, MANIFEST),
        (b"[]", MANIFEST),
        ({}, MANIFEST),
        (GOOD | {"schemaVersion": 1}, MANIFEST),
        (GOOD | {"mediaType": INDEX}, MANIFEST),
        (GOOD | {"manifests": []}, MANIFEST),
        (GOOD | {"layers": {}}, MANIFEST),
        (GOOD | {"layers": [PART | {"size": -1}]}, MANIFEST),
        (GOOD | {"layers": [PART | {"size": True}]}, MANIFEST),
        (GOOD | {"layers": [PART | {"digest": "sha256:x"}]}, MANIFEST),
        (GOOD | {"config": None}, MANIFEST),
        (GOOD | {"subject": []}, MANIFEST),
        (GOOD | {"annotations": {"a": 1}}, MANIFEST),
        (GOOD, "application/json"),
        (GOOD, "application/vnd.docker.distribution.manifest.v1+json"),
        ({"schemaVersion": 2, "manifests": [], "layers": []}, INDEX),
        ({"schemaVersion": 2}, INDEX),
    ],
)
def test_a_document_that_is_no_manifest_is_invalid(body, kind):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(RegistryError) as refused:
        parse_manifest(content, kind)
    assert (refused.value.code, refused.value.status) == ("MANIFEST_INVALID", 400)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (GOOD, MANIFEST),
        (GOOD, f"{MANIFEST}; charset=utf-8"),
        (GOOD, ""),
        ({key: value for key, value in GOOD.items() if key != "mediaType"}, MANIFEST),
        (GOOD | {"mediaType": "application/vnd.docker.distribution.manifest.v2+json"}, ""),
        (GOOD | {"layers": []}, MANIFEST),
        (GOOD | {"layers": None, "artifactType": "application/x", "more": 1}, MANIFEST),
        ({"schemaVersion": 2, "manifests": None}, INDEX),
        ({"schemaVersion": 2, "manifests": [PART]}, "application/vnd.docker.distribution.manifest.list.v2+json"),
    ],
)
def test_every_kind_of_manifest_is_accepted(body, kind):
    assert parse_manifest(json.dumps(body).encode(), kind).body == body


def test_tags_are_listed_in_order_and_in_pages(registry):
    for tag in ("b", "a", "c", "B"):
        registry.image(tag)
    answer = registry.send("GET", f"{APP}/tags/list").json()
    assert answer["tags"] == ["B", "a", "b", "c"]
    first = registry.send("GET", f"{APP}/tags/list?n=2")
    assert first.json()["tags"] == ["B", "a"]
    link = first.headers["link"]
    assert link == f'<{APP}/tags/list?n=2&last=a>; rel="next"'
    rest = registry.send("GET", link[1 : link.index(">")])
    assert rest.json()["tags"] == ["b", "c"]
    assert "link" not in rest.headers
    assert registry.send("GET", f"{APP}/tags/list?n=0").json()["tags"] == []
    assert code(registry.send("GET", f"{APP}/tags/list?n=-1")) == (400, "PAGINATION_NUMBER_INVALID")


def test_the_list_of_tags_has_artifact_registrys_manifests_and_children(registry):
    digest = registry.image("1")
    registry.image("2", path=f"{APP}/below")
    body = registry.send("GET", f"{APP}/tags/list").json()
    assert body["child"] == ["below"]
    assert body["manifest"][digest]["tag"] == ["1"]
    assert body["manifest"][digest]["timeCreatedMs"] == "1767323045000"


@pytest.mark.slow
def test_a_moved_tag_points_to_the_new_manifest_and_the_old_one_stays(registry):
    old, new = registry.image("1", b"old"), registry.image("1", b"new")
    assert registry.send("HEAD", f"{APP}/manifests/1").headers["docker-content-digest"] == new
    assert registry.send("HEAD", f"{APP}/manifests/{old}").status_code == 200


def test_a_manifest_is_deleted_by_digest_after_its_tags(registry):
    digest = registry.image("1")
    refused = registry.send("DELETE", f"{APP}/manifests/{digest}")
    assert code(refused) == (400, "GOOGLE_MANIFEST_DANGLING_TAG")
    assert registry.send("DELETE", f"{APP}/manifests/1").status_code == 202
    assert registry.send("HEAD", f"{APP}/manifests/1").status_code == 404
    assert registry.send("HEAD", f"{APP}/manifests/{digest}").status_code == 200
    assert registry.send("DELETE", f"{APP}/manifests/{digest}").status_code == 202
    assert code(registry.send("DELETE", f"{APP}/manifests/{digest}")) == (404, "MANIFEST_UNKNOWN")


@pytest.mark.slow
def test_the_parts_of_an_index_cannot_be_deleted_before_it(registry):
    part = registry.image("")
    whole = registry.index(part)
    assert code(registry.send("DELETE", f"{APP}/manifests/{part}")) == (400, "GOOGLE_MANIFEST_DANGLING_PARENT_IMAGE")
    registry.send("DELETE", f"{APP}/manifests/all")
    assert registry.send("DELETE", f"{APP}/manifests/{whole}").status_code == 202
    assert registry.send("DELETE", f"{APP}/manifests/{part}").status_code == 202


def test_referrers_are_found_by_their_subject_and_filtered_by_type(registry):
    digest = registry.image("1")
    subject = {"mediaType": MANIFEST, "digest": digest, "size": 1}
    assert registry.send("GET", f"{APP}/referrers/{digest}").json()["manifests"] == []
    body = manifest(APP, registry, b"{}", b"bill") | {"subject": subject, "annotations": {"a": "b"}}
    pushed = put(registry, "bill", body | {"artifactType": "application/x.bill"})
    assert pushed.headers["oci-subject"] == digest
    note = registry.image("", b"note", subject=subject)
    answer = registry.send("GET", f"{APP}/referrers/{digest}")
    assert answer.headers["content-type"] == INDEX
    kinds = {row["artifactType"]: row for row in answer.json()["manifests"]}
    assert set(kinds) == {"application/x.bill", CONFIG}
    assert kinds["application/x.bill"]["annotations"] == {"a": "b"}
    assert kinds[CONFIG]["digest"] == note
    filtered = registry.send("GET", f"{APP}/referrers/{digest}?artifactType={CONFIG.replace('+', '%2B')}")
    assert [row["digest"] for row in filtered.json()["manifests"]] == [note]
    assert filtered.headers["oci-filters-applied"] == "artifactType"
    registry.send("DELETE", f"{APP}/manifests/1")
    assert code(registry.send("DELETE", f"{APP}/manifests/{digest}")) == (400, "GOOGLE_MANIFEST_REFERRING_MANIFEST")
    assert code(registry.send("GET", f"{APP}/referrers/x")) == (400, "DIGEST_INVALID")


def test_immutable_tags_can_be_added_but_neither_moved_nor_deleted(tmp_path):
    registry = Registry(tmp_path, dockerConfig={"immutableTags": True})
    digest = registry.image("1")
    assert registry.image("1") == digest
    body = manifest(APP, registry, b"{}", b"other")
    refused = put(registry, "1", body)
    assert code(refused) == (400, "MANIFEST_INVALID")
    assert "cannot update tag 1. The repository has enabled tag immutability" in refused.text
    assert code(registry.send("DELETE", f"{APP}/manifests/1")) == (400, "MANIFEST_INVALID")
    assert put(registry, "2", body).status_code == 201
    registry.close()


def test_a_remote_repository_serves_its_upstream_and_takes_no_push(registry):
    remote = {"dockerRepository": {"publicRepository": "DOCKER_HUB"}}
    registry.repository("hub", mode="REMOTE_REPOSITORY", remoteRepositoryConfig=remote)
    path = f"/v2/{HOST}/bezel-local/hub/vllm/vllm-openai"
    assert registry.send("GET", f"{path}/manifests/v0.32.0").status_code == 200
    assert registry.send("GET", f"{path}/tags/list").json()["tags"] == ["v0.32.0", "v0.33.0"]
    assert code(registry.send("POST", f"{path}/blobs/uploads/")) == (405, "UNSUPPORTED")


@pytest.mark.slow
def test_deleted_repositories_and_old_blobs_leave_no_file(registry):
    registry.image("1")
    registry.blob(b"of a push that ended early")
    registry.image("2", b"more")
    for tag in ("1", "2"):
        digest = registry.send("HEAD", f"{APP}/manifests/{tag}").headers["docker-content-digest"]
        registry.send("DELETE", f"{APP}/manifests/{tag}")
        registry.send("DELETE", f"{APP}/manifests/{digest}")
    assert len(registry.files()) == 4  # blobs are kept for a day, as the next push may name them
    registry.passes(SESSION_SECONDS + 1)
    registry.restart()
    digest = registry.image("3")
    registry.send("DELETE", f"{APP}/manifests/3")
    registry.send("DELETE", f"{APP}/manifests/{digest}")
    assert len(registry.files()) == 2
    registry.ok("DELETE", "/artifactregistry/v1/projects/bezel-local/locations/us-east4/repositories/tools")
    assert registry.files() == []


@pytest.mark.slow
def test_a_method_that_the_spec_does_not_have_is_unsupported(registry):
    assert code(registry.send("POST", f"{APP}/tags/list")) == (405, "UNSUPPORTED")
    assert code(registry.send("PATCH", f"{APP}/manifests/1")) == (405, "UNSUPPORTED")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "wanted"), [("rate-limited", (429, "TOOMANYREQUESTS")), ("server-errors", (503, "UNKNOWN"))]
)
def test_an_injected_failure_has_the_specs_json(registry, kind, wanted):
    registry.image("1")
    registry.cloud.faults.add(kind, {})
    assert code(registry.send("GET", f"{APP}/manifests/1")) == wanted
    registry.cloud.faults.clear()
    assert registry.send("GET", f"{APP}/manifests/1").status_code == 200


def calls_of_a_list(registry, manifests):
    """Calls of functions that a list takes for an image of so many manifests, each with a tag."""
    store, digest = registry.cloud.store, registry.image()
    row = store.get("imageManifest", f"{REPOSITORY}/app@{digest}")
    for number in range(manifests):
        other = f"sha256:{number:064x}"
        store.put("imageManifest", f"{REPOSITORY}/app@{other}", row)
        store.put("imageTag", f"{REPOSITORY}/app:t{number}", {"digest": other})
    with Count() as count:
        answer = registry.send("GET", f"{APP}/tags/list").json()
    assert len(answer["manifest"]) == len(answer["tags"]) == manifests + 1
    assert answer["manifest"][f"sha256:{1:064x}"]["tag"] == ["t1"]
    return count.calls


@pytest.mark.slow
def test_a_list_takes_as_much_work_as_there_are_manifests(registry):
    """With a look at all tags for each manifest, it would take the square of their number."""
    few = calls_of_a_list(registry, 100)
    assert calls_of_a_list(registry, 400) < 6 * few
