"""Signed URLs and signed forms."""

import datetime as dt
import urllib.parse

import requests

from storage_parts.common import BASE, HOUR, call_of, client

depot = client.bucket("library-depot")
blob = depot.blob("signed/ü x")


@call_of("")
def _():
    blob.upload_from_string("signed")


for version in ("v4", "v2"):

    @call_of(f"Blob.generate_signed_url {version}")
    def _(version=version):
        signed = {"version": version, "api_access_endpoint": BASE}
        url = blob.generate_signed_url(HOUR, response_disposition="attachment", **signed)
        response = requests.get(url, timeout=30)
        assert (response.text, response.headers["content-disposition"]) == ("signed", "attachment"), response.text
        assert requests.put(url, b"x", timeout=30).status_code == 403
        assert requests.get(url.replace("signed/", "other/"), timeout=30).status_code == 403
        put = depot.blob("signed/put").generate_signed_url(
            HOUR, method="PUT", content_type="text/plain", headers={"x-goog-meta-a": "b"}, **signed
        )
        headers = {"Content-Type": "text/plain", "x-goog-meta-a": "b"}
        assert requests.put(put, b"put", headers=headers, timeout=30).status_code == 200
        assert requests.put(put, b"put", headers=headers | {"x-goog-meta-a": "c"}, timeout=30).status_code == 403
        assert depot.get_blob("signed/put").metadata == {"a": "b"}
        resumable = depot.blob("signed/session").generate_signed_url(HOUR, method="RESUMABLE", **signed)
        opened = requests.post(resumable, headers={"x-goog-resumable": "start"}, timeout=30)
        assert opened.status_code == 201, opened.text
        assert requests.put(opened.headers["location"], b"session", timeout=30).status_code == 200
        gone = depot.blob("signed/put").generate_signed_url(HOUR, method="DELETE", **signed)
        assert requests.delete(gone, timeout=30).status_code == 204
        past = dt.datetime.now(dt.UTC) - HOUR if version == "v2" else 1
        late = blob.generate_signed_url(past, **signed) if version == "v2" else _expired_url(blob)
        answer = requests.get(late, timeout=30)
        assert (answer.status_code, "ExpiredToken" in answer.text) == (400, True), answer.text


@call_of("Bucket.generate_signed_url")
def _():
    url = depot.generate_signed_url(HOUR, version="v4", api_access_endpoint=BASE)
    assert "<Key>signed/ü x</Key>" in requests.get(url, timeout=30).content.decode()


@call_of("Bucket.generate_upload_policy")
def _():
    fields = depot.generate_upload_policy([["starts-with", "$key", "form/"]])
    sent = {"key": "form/old"} | fields
    answer = requests.post(f"{BASE}/library-depot", sent, files={"file": b"form"}, timeout=30)
    assert (answer.status_code, depot.blob("form/old").download_as_bytes()) == (204, b"form"), answer.text


@call_of("Client.generate_signed_post_policy_v4")
def _():
    policy = client.generate_signed_post_policy_v4(
        "library-depot", "form/${filename}", HOUR, conditions=[["content-length-range", 1, 5]], scheme="http"
    )
    fields, url = policy["fields"], f"{BASE}/library-depot"
    files = {"file": ("new", b"form")}
    answer = requests.post(url, fields, files=files, timeout=30)
    assert (answer.status_code, depot.blob("form/new").download_as_bytes()) == (204, b"form"), answer.text
    assert requests.post(url, fields, files={"file": ("x", b"too long")}, timeout=30).status_code == 403
    assert requests.post(url, fields | {"x-goog-meta-a": "b"}, files=files, timeout=30).status_code == 403


def _expired_url(blob):
    from google.cloud.storage._signing import generate_signed_url_v4

    day_before = (dt.datetime.now(dt.UTC) - 24 * HOUR).strftime("%Y%m%dT%H%M%SZ")
    resource = f"/library-depot/{urllib.parse.quote(blob.name, safe='/~')}"
    arguments = {"api_access_endpoint": BASE, "_request_timestamp": day_before}
    return generate_signed_url_v4(client._credentials, resource, 60, **arguments)
