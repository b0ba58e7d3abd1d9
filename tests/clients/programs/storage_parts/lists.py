"""Lists of objects, versions, and soft-deleted objects."""

from google.api_core import exceptions
from google.cloud.storage.blob import ObjectContexts, ObjectCustomContextPayload

from storage_parts.common import call_of, client, expect_refusal, names

shelf = client.bucket("library-shelf")


@call_of("")
def _():
    for name in ("l/a.txt", "l/b.txt", "l/c/", "l/c/d.txt", "l/c/e/f.md", "l/g.md"):
        shelf.blob(name).upload_from_string("x")


@call_of("Client.list_blobs")
def _():
    assert len(list(client.list_blobs("library-shelf", prefix="l/"))) == 6
    blobs = client.list_blobs("library-shelf", prefix="l/", delimiter="/", page_size=2)
    assert names(blobs) == ["l/a.txt", "l/b.txt", "l/g.md"]
    assert blobs.prefixes == {"l/c/"}
    asked = {"prefix": "l/", "fields": "items(name),nextPageToken"}
    assert len(list(client.list_blobs("library-shelf", max_results=3, **asked))) == 3
    expect_refusal(exceptions.NotFound, list, client.list_blobs("library-absent"))


@call_of("Bucket.list_blobs with offsets")
def _():
    blobs = shelf.list_blobs(start_offset="l/b", end_offset="l/c/e")
    assert names(blobs) == ["l/b.txt", "l/c/", "l/c/d.txt"]


@call_of("Bucket.list_blobs match_glob")
def _():
    assert names(shelf.list_blobs(match_glob="l/*.txt")) == ["l/a.txt", "l/b.txt"]
    assert names(shelf.list_blobs(match_glob="l/**.md")) == ["l/c/e/f.md", "l/g.md"]
    assert names(shelf.list_blobs(match_glob="l/{a,g}.*")) == ["l/a.txt", "l/g.md"]
    assert names(shelf.list_blobs(match_glob="l/[!a].txt")) == ["l/b.txt"]


@call_of("Bucket.list_blobs include_trailing_delimiter")
def _():
    blobs = shelf.list_blobs(prefix="l/", delimiter="/", include_trailing_delimiter=True)
    assert names(blobs) == ["l/a.txt", "l/b.txt", "l/c/", "l/g.md"]


@call_of("Bucket.list_blobs include_folders_as_prefixes")
def _():
    blobs = shelf.list_blobs(prefix="l/", delimiter="/", include_folders_as_prefixes=True)
    assert (len(list(blobs)), blobs.prefixes) == (3, {"l/c/"})


@call_of("Bucket.list_blobs versions")
def _():
    blob = shelf.blob("v/one")
    generations = []
    for text in ("1", "2", "3"):
        blob.upload_from_string(text)
        generations.append(blob.generation)
    blobs = list(shelf.list_blobs(prefix="v/", versions=True))
    assert [item.generation for item in blobs] == generations == sorted(generations)
    assert [item.time_deleted is None for item in blobs] == [False, False, True]
    assert shelf.blob("v/one", generation=generations[0]).download_as_bytes() == b"1"
    shelf.delete_blob("v/one")
    assert (shelf.get_blob("v/one"), len(list(shelf.list_blobs(prefix="v/", versions=True)))) == (None, 3)
    shelf.copy_blob(blobs[1], shelf, "v/one", source_generation=generations[1])
    assert shelf.blob("v/one").download_as_bytes() == b"2"
    shelf.delete_blob("v/one", generation=generations[0])
    expect_refusal(exceptions.NotFound, shelf.blob("v/one", generation=generations[0]).reload)


@call_of("Bucket.list_blobs soft_deleted")
def _():
    depot = client.bucket("library-depot")
    blob = depot.blob("gone")
    blob.upload_from_string("still here")
    blob.delete()
    blobs = list(depot.list_blobs(soft_deleted=True))
    assert [(item.name, item.generation) for item in blobs] == [("gone", blob.generation)]
    assert blobs[0].soft_delete_time < blobs[0].hard_delete_time
    shown = depot.get_blob("gone", generation=blob.generation, soft_deleted=True)
    assert shown.soft_delete_time is not None


@call_of("Bucket.restore_blob")
def _():
    depot = client.bucket("library-depot")
    generation = next(iter(depot.list_blobs(soft_deleted=True))).generation
    restored = depot.restore_blob("gone", generation=generation, if_generation_match=0)
    assert restored.download_as_bytes() == b"still here"
    assert restored.generation != generation


@call_of("Bucket.list_blobs filter")
def _():
    blob = shelf.blob("contexts/a")
    blob.contexts = ObjectContexts(blob, {"team": ObjectCustomContextPayload("ml")})
    blob.upload_from_string("x")
    assert shelf.get_blob("contexts/a").contexts.custom["team"].value == "ml"
    assert names(shelf.list_blobs(filter_='contexts."team"="ml"')) == ["contexts/a"]
    assert names(shelf.list_blobs(filter_='contexts."team"="web"')) == []
    assert "contexts/a" not in names(shelf.list_blobs(filter_='-contexts."team":*'))
    expect_refusal(exceptions.BadRequest, list, shelf.list_blobs(filter_="name=a"))
