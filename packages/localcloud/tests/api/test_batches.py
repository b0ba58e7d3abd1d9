"""Batches of every API, at the place of its discovery document and below its prefix."""

import pytest

from bezel_localcloud.http.methods import api_prefixes
from localcloud_support.in_process import PARENT, Project

HEADERS = {"Content-Type": "multipart/mixed; boundary=XX"}
LISTS = {
    "aiplatform": f"/v1/{PARENT}/locations/us-east4/models",
    "artifactregistry": f"/v1/{PARENT}/locations/us-east4/repositories",
    "billingbudgets": "/v1/billingAccounts/BE2E10-10CA1C-10D000/budgets",
    "cloudbilling": "/v1/billingAccounts",
    "certificatemanager": f"/v1/{PARENT}/locations/global/certificates",
    "dns": f"/v1/{PARENT}/managedZones",
    "cloudkms": f"/v1/{PARENT}/locations/us-east4/keyRings",
    "cloudquotas": f"/v1/{PARENT}/locations/global/quotaPreferences",
    "cloudscheduler": f"/v1/{PARENT}/locations/us-east4/jobs",
    "crm": f"/v1/{PARENT}",
    "iam": f"/v1/{PARENT}/serviceAccounts",
    "iamcredentials": f"/v1/{PARENT}/serviceAccounts/x:signJwt",
    "monitoring": f"/v3/{PARENT}/alertPolicies",
    "run": f"/v2/{PARENT}/locations/us-east4/services",
    "secretmanager": f"/v1/{PARENT}/secrets",
    "serviceusage": f"/v1/{PARENT}/services",
    "tpu": f"/v2/{PARENT}/locations/us-east5-a/nodes",
    "storage": "/v1/b?project=bezel-local",
    "compute": f"/v1/{PARENT}/global/networks",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Project(tmp_path_factory.mktemp("cloud"))
    for api in LISTS:
        new_project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    yield new_project
    new_project.close()


def statuses(project, target, *lines, token=True):
    parts = [f"--XX\r\nContent-Type: application/http\r\nContent-ID: {n}\r\n\r\n{line}\r\n\r\n\r\n" for n, line in
             enumerate(lines)]  # fmt: skip
    answer = project.raw("POST", target, ("".join(parts) + "--XX--").encode(), HEADERS, token=token)
    assert answer.status_code == 200, answer.text
    return [int(line.split()[1]) for line in answer.text.splitlines() if line.startswith("HTTP/1.1")]


@pytest.mark.slow
@pytest.mark.parametrize("api", sorted(LISTS))
def test_a_batch_answers_calls_of_its_api(project, api):
    verb, expected = ("POST", 400) if api == "iamcredentials" else ("GET", 200)
    whole = f"/{api}{LISTS[api]}"
    nothing = f"GET /{api}/{LISTS[api].split('/')[1]}/nothing"
    assert statuses(project, f"/{api}/batch", f"{verb} {whole}", nothing) == [expected, 404]
    assert statuses(project, "/batch", f"{verb} http://127.0.0.1:1{whole}") == [expected]
    if api in {"storage", "compute"}:
        assert statuses(project, f"/batch/{api}/v1", f"{verb} {whole}") == [expected]
    elif api not in {"crm", "tpu"}:  # these paths are also those of another API
        assert statuses(project, f"/{api}/batch", f"{verb} {LISTS[api]}") == [expected]


@pytest.mark.slow
def test_each_part_has_a_header_also_where_the_response_has_none(project):
    project.ok("POST", "/storage/v1/b", {"name": "parts"}, project="bezel-local")
    body = "--XX\r\nContent-Type: application/http\r\n\r\nDELETE /storage/v1/b/parts\r\n\r\n\r\n--XX--"
    text = project.raw("POST", "/batch/storage/v1", body.encode(), HEADERS).text
    assert "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n" in text
    plain = project.raw("POST", "/batch/storage/v1", body.replace("DELETE", "GET").encode(), HEADERS).text
    assert plain.count("Content-Length") == 1


def test_every_api_with_lists_is_tried():
    assert api_prefixes() - set(LISTS) == {"logging", "sts"}


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("/run/batch", "GET /secretmanager/v1/projects/bezel-local/secrets"),
        ("/run/batch", "POST /run/batch"),
        ("/batch", "POST /run/batch"),
        ("/batch", "POST /batch"),
        ("/batch", "POST /upload/storage/v1/b/x/o?uploadType=media&name=a"),
        ("/batch", "GET /storage/v1/b/x/o/a?alt=media"),
        ("/batch", "POST /token"),
        ("/batch", "GET /shelf/object"),
        ("/batch/compute/v1", "GET /storage/v1/b?project=bezel-local"),
    ],
)
def test_a_part_of_another_api_or_of_none_is_refused(project, target, line):
    assert statuses(project, target, line, f"GET {target.replace('/batch', '')}/nothing")[0] == 400


def test_a_part_without_a_token_has_that_of_the_batch_and_no_other(project):
    line = f"GET /secretmanager/v1/{PARENT}/secrets"
    assert statuses(project, "/secretmanager/batch", line) == [200]
    assert statuses(project, "/secretmanager/batch", line, token=False) == [401]
