"""Google's own paths without a prefix reach the API that they are of, and nothing else is moved."""

import pytest

from bezel_localcloud.routing.bare_paths import BarePaths
from bezel_localcloud.services.artifact_registry import api as artifact_registry
from bezel_localcloud.services.cloud_quotas import api as cloud_quotas
from bezel_localcloud.services.cloud_run import api as run
from bezel_localcloud.services.iam import api as iam
from bezel_localcloud.services.iam import credentials
from bezel_localcloud.services.logging import api as logs
from bezel_localcloud.services.resource_manager import api as resource_manager
from bezel_localcloud.services.secret_manager import api as secret_manager
from bezel_localcloud.services.service_usage import api as service_usage
from bezel_localcloud.services.tpu import api as tpu
from localcloud_support.client import PARENT, REGION, plain

MODULES = (run, secret_manager, artifact_registry, service_usage, cloud_quotas, iam, credentials, logs)
PATHS = BarePaths(None, [module.api for module in (*MODULES, resource_manager, tpu)])
ACCOUNT = f"{PARENT}/serviceAccounts/a@b"


@pytest.mark.parametrize(
    ("verb", "path", "prefix"),
    [
        ("GET", f"/v2/{PARENT}/locations/{REGION}/services/s", "/run"),
        ("POST", f"/v2/{PARENT}/locations/{REGION}/services/s:setIamPolicy", "/run"),
        ("GET", f"/v2/{PARENT}/locations/{REGION}/operations/o", "/run"),
        ("GET", f"/v2/{PARENT}/locations/us-east5-a/operations/o", "/tpu"),
        ("GET", f"/v2/{PARENT}/locations/us-east5-a/nodes", "/tpu"),
        ("GET", f"/v2alpha1/{PARENT}/locations/-/queuedResources", "/tpu"),
        ("GET", f"/v1/{PARENT}/secrets", "/secretmanager"),
        ("GET", f"/v1/{PARENT}/locations/{REGION}/operations/o", "/artifactregistry"),
        ("GET", "/v1/operations/o", "/serviceusage"),
        ("GET", f"/v1/{PARENT}/services/run.googleapis.com", "/serviceusage"),
        ("GET", f"/v1/{PARENT}/locations/global/services/s/quotaInfos", "/cloudquotas"),
        ("GET", f"/v1/{ACCOUNT}", "/iam"),
        ("POST", f"/v1/{ACCOUNT}:generateIdToken", "/iamcredentials"),
        ("GET", f"/v1/{PARENT}", "/crm"),
        ("POST", f"/v3/{PARENT}:getIamPolicy", "/crm"),
        ("POST", "/v2/entries:list", "/logging"),
        ("GET", "/v2/projects/nothing", ""),
        ("GET", "/v9/projects/p/secrets", ""),
    ],
)
def test_a_path_without_a_prefix_is_that_of_its_api(verb, path, prefix):
    assert PATHS.prefix(verb, path) == prefix


@pytest.mark.slow
def test_a_bare_path_is_served_as_the_prefixed_one(cloud):
    """A bare path is served as the prefixed one and a registry's path stays."""
    assert cloud.get(f"/v1/{PARENT}/secrets").json() == cloud.get(f"/secretmanager/v1/{PARENT}/secrets").json()
    assert cloud.get(f"/v1/{PARENT}/secrets/absent").status_code == 404
    assert cloud.post(f"/v1/{PARENT}/serviceAccounts/x:signBlob").status_code == 400
    assert "manifests" not in cloud.get("/v2/vllm/vllm-openai/tags/list").text
    assert cloud.get("/v2/vllm/vllm-openai/tags/list").json()["name"] == "vllm/vllm-openai"
    assert cloud.get("/v7/projects/x").status_code == 404


def test_a_body_may_repeat_what_the_path_says_and_nothing_else(cloud):
    path = f"/secretmanager/v1/{PARENT}/secrets"
    cloud.post(path, {"replication": {"automatic": {}}}, secretId="repeated")
    asked = {"permissions": ["secretmanager.secrets.get"], "resource": f"{PARENT}/secrets/repeated"}
    headers = {"Authorization": cloud.http.headers["Authorization"]}
    url = f"{cloud.endpoint.base}{path}/repeated:testIamPermissions"
    # Not by the checking client: the documents leave a path's own names out of their messages.
    assert plain.post(url, json=asked, headers=headers).json()["permissions"] == asked["permissions"]
    assert plain.post(url, json=asked | {"parent": PARENT}, headers=headers).status_code == 400
    cloud.delete(f"{path}/repeated")
