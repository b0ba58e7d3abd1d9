"""Signed URLs: only what was signed, by a key of an account, until it expires, within the account's rights."""

import base64
import hashlib
import json
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bezel_localcloud.core.paths import DEPLOYER

HOST = "127.0.0.1:1"


def sign(project, text):
    key = json.loads(project.cloud.layout.credentials.read_text())["private_key"]
    return load_pem_private_key(key.encode(), None).sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())


def signed_4(project, method, path, *, seconds=60, headers=None, email=DEPLOYER, **query):
    """A version 4 URL as Google's page on signing describes it, written apart from the product."""
    headers = {"host": HOST} | (headers or {})
    stamp = datetime.fromtimestamp(project.clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/auto/storage/goog4_request"
    query |= {
        "X-Goog-Algorithm": "GOOG4-RSA-SHA256",
        "X-Goog-Credential": f"{email}/{scope}",
        "X-Goog-Date": stamp,
        "X-Goog-Expires": str(seconds),
        "X-Goog-SignedHeaders": ";".join(sorted(headers)),
    }
    shown = "&".join(f"{quote(key, safe='~')}={quote(query[key], safe='~')}" for key in sorted(query))
    lines = "".join(f"{key}:{headers[key]}\n" for key in sorted(headers))
    canonical = "\n".join([method, path, shown, lines, ";".join(sorted(headers)), "UNSIGNED-PAYLOAD"])
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signature = sign(project, f"GOOG4-RSA-SHA256\n{stamp}\n{scope}\n{digest}").hex()
    return f"{path}?{shown}&X-Goog-Signature={signature}"


def signed_2(project, method, path, *, seconds=60):
    expires = str(int(project.clock.now()) + seconds)
    signature = base64.b64encode(sign(project, f"{method}\n\n\n{expires}\n{path}")).decode()
    return f"{path}?{urlencode({'GoogleAccessId': DEPLOYER, 'Expires': expires, 'Signature': signature})}"


@pytest.fixture(params=[signed_4, signed_2], ids=["version 4", "version 2"])
def sign_url(request, project, put):
    put("a b", b"signed")
    return lambda *arguments, **named: request.param(project, *arguments, **named)


def send(project, verb, url, content=b"", headers=None):
    return project.raw(verb, url, content, headers, token=False)


@pytest.mark.slow
def test_a_signed_url_does_what_was_signed_and_nothing_else(project, sign_url):
    url = sign_url("GET", "/shelf/a%20b")
    assert send(project, "GET", url).content == b"signed"
    assert "SignatureDoesNotMatch" in send(project, "PUT", url, b"x").text
    assert send(project, "GET", url.replace("a%20b", "other")).status_code == 403
    assert send(project, "GET", "/shelf/a%20b").status_code == 403


@pytest.mark.slow
def test_a_signed_url_ends_with_its_time(project, sign_url):
    url = sign_url("GET", "/shelf/a%20b")
    project.passes(59)
    assert send(project, "GET", url).status_code == 200
    project.passes(2)
    late = send(project, "GET", url)
    assert (late.status_code, "ExpiredToken" in late.text) == (400, True)


@pytest.mark.slow
def test_the_signed_lifetime_cannot_be_stretched(project, sign_url):
    url = sign_url("GET", "/shelf/a%20b", seconds=1)
    project.passes(5)
    longer = url.replace("X-Goog-Expires=1&", "X-Goog-Expires=9000&").replace("Expires=18", "Expires=19")
    assert longer != url
    assert send(project, "GET", longer).status_code == 403


@pytest.mark.slow
def test_signed_headers_must_be_sent_and_google_s_must_be_signed(project):
    """Headers that were signed must be sent and others of Google's must be signed."""
    url = signed_4(project, "PUT", "/shelf/new", headers={"x-goog-meta-a": "b", "content-type": "text/plain"})
    right = {"x-goog-meta-a": "b", "Content-Type": "text/plain"}
    assert send(project, "PUT", url, b"x", right | {"x-goog-meta-a": "c"}).status_code == 403
    assert send(project, "PUT", url, b"x", {"Content-Type": "text/plain"}).status_code == 403
    assert send(project, "PUT", url, b"x", right | {"x-goog-meta-z": "1"}).status_code == 400
    assert send(project, "PUT", url, b"x", right).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signed_host", "status"),
    [("127.0.0.1", 200), (HOST, 200), ("127.0.0.1:2", 403), ("localhost", 403), ("127.0.0.1:", 403), ("", 403)],
)
def test_a_host_may_be_signed_without_its_port(project, put, signed_host, status):
    put("a", b"signed")
    url = signed_4(project, "GET", "/shelf/a", headers={"host": signed_host})
    assert send(project, "GET", url).status_code == status
    begun = signed_4(project, "POST", "/shelf/b", headers={"host": signed_host, "x-goog-resumable": "start"})
    assert send(project, "POST", begun, headers={"x-goog-resumable": "start"}).status_code == (
        201 if status == 200 else 403
    )


@pytest.mark.slow
@pytest.mark.parametrize(("signed_host", "status"), [("", 200), (":1", 200), (":2", 403)])
def test_the_host_of_a_bucket_may_be_signed_without_its_port(project, put, signed_host, status):
    put("a", b"signed")
    url = signed_4(project, "GET", "/a", headers={"host": f"shelf.storage.localhost{signed_host}"})
    assert send(project, "GET", url, headers={"Host": "shelf.storage.localhost:1"}).status_code == status


@pytest.mark.slow
def test_a_url_counts_for_its_account_s_rights_only(project, put):
    put("a")
    url = signed_4(project, "GET", "/shelf/a", email="absent@bezel-local.iam.gserviceaccount.com")
    assert "InvalidAccessKeyId" in send(project, "GET", url).text
    other = "123456789012-compute@developer.gserviceaccount.com"
    assert "SignatureDoesNotMatch" in send(project, "GET", signed_4(project, "GET", "/shelf/a", email=other)).text
    key = project.cloud.store.rows("key", f"{DEPLOYER}/")[0][1]
    project.cloud.store.put("key", f"{other}/x", key)
    assert "AccessDenied" in send(project, "GET", signed_4(project, "GET", "/shelf/a", email=other)).text


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["X-Goog-Expires=700000", "X-Goog-Algorithm=GOOG4-HMAC-SHA256", "X-Goog-Date=now"])
def test_a_malformed_signature_is_refused_as_such(project, put, wrong):
    put("a")
    name = wrong.partition("=")[0]
    url = "&".join(wrong if part.startswith(name) else part for part in signed_4(project, "GET", "/shelf/a").split("&"))
    url = url if name != "X-Goog-Algorithm" else url.replace("X-Goog-Algorithm=GOOG4-RSA-SHA256", wrong)
    assert send(project, "GET", url).status_code == 400


@pytest.mark.slow
def test_a_form_is_taken_as_its_policy_allows_and_no_other(project):
    expires = datetime.fromtimestamp(project.clock.now() + 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{"bucket": "shelf"}, ["starts-with", "$key", "form/"], ["content-length-range", 1, 3]]
    policy = base64.b64encode(json.dumps({"expiration": expires, "conditions": conditions}).encode()).decode()
    signature = base64.b64encode(sign(project, policy)).decode()

    def form(content=b"abc", **fields):
        sent = {"key": "form/x", "policy": policy, "GoogleAccessId": DEPLOYER, "Signature": signature} | fields
        parts = [
            f'--XX\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in sent.items()
        ]
        file = (
            b'--XX\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + content + b"\r\n--XX--\r\n"
        )
        headers = {"Content-Type": "multipart/form-data; boundary=XX"}
        return send(project, "POST", "/shelf", "".join(parts).encode() + file, headers).status_code

    assert [form(), form(b"long content"), form(key="other/x"), form(**{"x-goog-meta-a": "b"})] == [204, 403, 403, 403]
    assert form(Signature="AAAA") == 403
    assert project.raw("GET", "/shelf/form/x").content == b"abc"
    project.passes(61)
    assert form() == 400
