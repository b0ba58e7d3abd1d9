"""Bodies in other encodings than UTF-8, and with a mark at the beginning: read or refused, never a server error."""

import pytest

from bezel_base.json_documents import read_encodable_json
from localcloud_support.in_process import PARENT
from localcloud_support.registry_harness import APP, MANIFEST, Registry

TEXT = '{"name": "a-b\u00e9"}'
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-7", "cp037"]
BUCKETS = "/storage/v1/b?project=bezel-local"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Registry(tmp_path_factory.mktemp("encodings") / "cloud")
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield new_project
    new_project.close()


# In `make test` each path has each encoding once, and each name of a charset with one of them.
@pytest.mark.wide_except("*-", "*-utf-16-; charset=*")
@pytest.mark.parametrize("charset", ["", "; charset=utf-16", "; charset=none", '; charset="', "; charset=utf-8; a"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("POST", BUCKETS),
        ("PATCH", "/storage/v1/b/shelf"),
        ("POST", f"/crm/v1/{PARENT}:setIamPolicy"),
        ("POST", "/logging/v2/entries:list"),
        ("POST", f"/iam/v1/{PARENT}/serviceAccounts"),
        ("POST", "/upload/storage/v1/b/shelf/o?uploadType=resumable"),
        ("POST", "/batch/storage/v1"),
        ("POST", "/token"),
        ("POST", "/sts/v1/token"),
        ("PUT", f"{APP}/manifests/1"),
        ("POST", "/shelf/a?uploadId=x"),
        ("PUT", "/shelf?versioning"),
        ("POST", "/localcloud/faults"),
    ],
)
def test_another_encoding_is_no_server_error(project, verb, path, encoding, charset):
    content = TEXT.encode(encoding)
    kind = MANIFEST if "manifests" in path else "application/json"
    assert project.raw(verb, path, content, {"content-type": f"{kind}{charset}"}).status_code < 500


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_mark_at_the_beginning_is_read_over(project, encoding):
    body = '{"name": "BAD NAME \u00e9"}'.encode(encoding)
    answer = project.raw("POST", BUCKETS, body, {"content-type": "application/json"})
    assert (answer.status_code, "Invalid bucket name" in answer.text) == (400, True)


@pytest.mark.parametrize("body", ['{"name": "a\u00e9"}'.encode("latin-1"), b"\xff", b"\xef\xbb\xbf", b'"\xed\xa0\x80"'])
def test_bytes_of_no_encoding_are_refused(project, body):
    answer = project.raw("POST", BUCKETS, body, {"content-type": "application/json"})
    assert (answer.status_code, "Unable to parse" in answer.text) == (400, True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_half_a_pair_of_surrogates_is_no_text(encoding):
    """The parser takes it in each encoding, and no answer could be written with it."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        read_encodable_json('["\ud800"]'.encode(encoding, "surrogatepass"))
    assert read_encodable_json('["\U0001f600"]'.encode(encoding)) == ["\U0001f600"]


def test_a_hidden_declaration_of_xml_is_refused(project):
    """In UTF-16 the letters of a declaration are not together; it is refused before it is read."""
    text = "<?xml version='1.0' encoding='utf-16'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"
    for content in (text.encode("utf-16"), text.replace("utf-16", "utf-8").encode()):
        answer = project.raw("PUT", "/shelf?versioning", content)
        assert (answer.status_code, "declarations" in answer.text) == (400, True)
    good = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    assert project.raw("PUT", "/shelf?versioning", good.encode()).status_code == 200
