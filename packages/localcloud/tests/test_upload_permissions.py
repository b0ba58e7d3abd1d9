"""Every way to write bytes takes the permission to write: uploads of a registry, signed forms, parts of XML uploads."""

import base64
import json
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from bezel_localcloud.access.credentials import keys
from bezel_localcloud.core.files.blobs import digest_of
from localcloud_support.in_process import PARENT, SCOPE
from localcloud_support.registry_harness import APP, MANIFEST, Registry, manifest

BLOB = b"layer"
READER, WRITER = "artifactregistry.reader", "artifactregistry.writer"
FORM = {"content-type": "multipart/form-data; boundary=a"}


@pytest.fixture
def registry(tmp_path):
    project = Registry(tmp_path / "cloud")
    project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield project
    project.close()


def open_upload(registry):
    return registry.send("POST", f"{APP}/blobs/uploads/").headers["location"]


def registry_writes(registry):
    """(verb, path, content, headers) of each request that writes to a repository, each on an upload of its own."""
    content = json.dumps(manifest(APP, registry, b"{}", BLOB)).encode()
    yield "POST", f"{APP}/blobs/uploads/", b"", {}
    yield "POST", f"{APP}/blobs/uploads/?digest={digest_of(b'x')}", b"x", {}
    yield "PATCH", open_upload(registry), BLOB, {}
    yield "PUT", f"{open_upload(registry)}?digest={digest_of(BLOB)}", BLOB, {}
    yield "PUT", f"{APP}/manifests/1", content, {"content_type": MANIFEST}
    yield "GET", open_upload(registry), b"", {}
    yield "DELETE", open_upload(registry), b"", {}


@pytest.mark.slow
def test_an_upload_to_a_registry_takes_the_permission_to_write(registry):
    """A reader, and a client without a token, are refused what a writer may do."""
    tokens = {role: registry.account(role.rpartition(".")[2] + "-account", role) for role in (READER, WRITER)}
    accounts = {
        role: f"serviceAccount:{role.rpartition('.')[2]}-account@bezel-local.iam.gserviceaccount.com" for role in tokens
    }
    bindings = [{"role": f"roles/{role}", "members": [member]} for role, member in accounts.items()]
    registry.cloud.store.put_policy(
        f"{PARENT}/locations/us-east4/repositories/tools", {"version": 1, "etag": "ACAB", "bindings": bindings}
    )
    refused = [
        registry.send(verb, path, content, token=token, **headers).status_code
        for token in (tokens[READER], "")
        for verb, path, content, headers in registry_writes(registry)
    ]
    assert refused == [403] * 7 + [401] * 7
    taken = [
        registry.send(verb, path, content, token=tokens[WRITER], **headers).status_code
        for verb, path, content, headers in registry_writes(registry)
    ]
    assert taken == [202, 201, 202, 201, 201, 204, 204]


def signer(registry, name, *roles):
    """(e-mail, signature of a text) of a new account with a key and roles on the bucket."""
    email = registry.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": name})["email"]
    file = registry.ok("POST", f"/iam/v1/{PARENT}/serviceAccounts/{email}/keys", {})
    key = keys.load_private(json.loads(base64.b64decode(file["privateKeyData"]))["private_key"])
    bindings = [{"role": role, "members": [f"serviceAccount:{email}"]} for role in roles]
    registry.cloud.store.put_policy("projects/_/buckets/shelf", {"version": 1, "etag": "ACAB", "bindings": bindings})
    return email, lambda text: base64.b64encode(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()


def form(registry, email, sign):
    expires = datetime.fromtimestamp(registry.clock.now() + 60, UTC).isoformat()
    conditions = [{"bucket": "shelf"}, ["starts-with", "$key", ""]]
    policy = base64.b64encode(json.dumps({"expiration": expires, "conditions": conditions}).encode()).decode()
    fields = {"key": "made", "policy": policy, "GoogleAccessId": email, "Signature": sign(policy), "file": "x"}
    parts = [f'--a\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()]
    return "".join(parts).encode() + b"--a--"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "status"), [("roles/storage.objectViewer", 403), ("roles/storage.objectCreator", 204), ("", 403)]
)
def test_a_signed_form_writes_what_its_signer_may_write(registry, role, status):
    email, sign = signer(registry, "form-signer", *([role] if role else []))
    assert registry.raw("POST", "/shelf", form(registry, email, sign), FORM, token=False).status_code == status
    assert (registry.cloud.store.get("object", "shelf/made") is not None) == (status == 204)


def test_a_form_without_a_signature_is_one_of_a_client_without_a_token(registry):
    part = b'--a\r\nContent-Disposition: form-data; name="%s"\r\n\r\nmade\r\n'
    body = part % b"key" + part % b"file" + b"--a--"
    assert registry.raw("POST", "/shelf", body, FORM, token=False).status_code in {401, 403}
    bindings = [{"role": "roles/storage.objectCreator", "members": ["allUsers"]}]
    registry.cloud.store.put_policy("projects/_/buckets/shelf", {"version": 1, "etag": "ACAB", "bindings": bindings})
    assert registry.raw("POST", "/shelf", body, FORM, token=False).status_code == 204


@pytest.mark.slow
@pytest.mark.parametrize("role", ["roles/storage.objectViewer", "roles/storage.objectCreator"])
def test_a_part_and_the_end_of_an_xml_upload_take_the_permission(registry, role):
    """The upload was begun by an account that may; each further request needs the permission too."""
    writes = role.endswith("Creator")
    begun = registry.raw("POST", "/shelf/a?uploads").text.partition("<UploadId>")[2].partition("<")[0]
    email, _ = signer(registry, "part-writer", role)
    headers = {"Authorization": f"Bearer {registry.cloud.tokens.access_token(email, SCOPE)[0]}"}
    part = registry.raw("PUT", f"/shelf/a?uploadId={begun}&partNumber=1", b"part", headers)
    assert part.status_code == (200 if writes else 403)
    etag = part.headers.get("etag", "none")
    body = f"<C><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></C>".encode()
    completed = registry.raw("POST", f"/shelf/a?uploadId={begun}", body, headers)
    assert completed.status_code == (200 if writes else 403)
    assert (registry.cloud.store.get("object", "shelf/a") is not None) == writes
    assert registry.raw("DELETE", f"/shelf/a?uploadId={begun}", b"", headers).status_code == (404 if writes else 403)
