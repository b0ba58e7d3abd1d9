"""References of a revision: images, secrets, buckets. Each missing or unreadable one fails with its own reason."""

import base64

import pytest

from localcloud_support.client import PARENT, REPOSITORY, RUNTIME, SERVICES

SECRET = f"/secretmanager/v1/{PARENT}/secrets"
PLANTED = "planted-value-of-a-secret"


@pytest.fixture
def outcome(cloud):
    """A function that makes a service and tells (operation, its terminal condition, its messages)."""
    names = []

    def make(name, template):
        names.append(name)
        operation = cloud.create(name, template)
        return operation, cloud.service(name)["terminalCondition"]

    yield make
    for name in names:
        cloud.remove(name)


def secret_env(name="token"):
    return [{"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": name, "version": "latest"}}}]


@pytest.fixture
def secret(cloud):
    cloud.post(SECRET, {"replication": {"automatic": {}}}, secretId="token")
    data = base64.b64encode(PLANTED.encode()).decode()
    assert cloud.post(f"{SECRET}/token:addVersion", {"payload": {"data": data}}).status_code == 200
    yield "token"
    cloud.delete(f"{SECRET}/token")


@pytest.mark.parametrize(
    "image",
    [
        "docker.io/vllm/vllm-openai:v0.1.0",
        "us-east4-docker.pkg.dev/bezel-local/hub/vllm/vllm-openai:v9",
        "us-east4-docker.pkg.dev/bezel-local/absent/vllm/vllm-openai:v0.32.0",
        "no/image reference",
    ],
)
def test_an_image_that_is_nowhere_fails_the_revision(cloud, outcome, image):
    operation, terminal = outcome("image", cloud.template(image=image))
    assert operation["error"]["code"] == 5
    assert f"Image '{image}' not found." in operation["error"]["message"]
    assert terminal["reason"] == "CONTAINER_MISSING"


@pytest.mark.slow
@pytest.mark.parametrize("image", ["docker.io/vllm/vllm-openai:v0.33.0", "vllm/vllm-openai:v0.32.0"])
def test_an_image_of_the_upstream_registry_is_found_by_its_tag(cloud, outcome, image):
    operation, _ = outcome("upstream", cloud.template(image=image))
    assert "error" not in operation


@pytest.mark.slow
def test_a_secret_reaches_the_container_and_nothing_else(cloud, outcome, secret):
    cloud.grant(f"{SECRET}/{secret}", "roles/secretmanager.secretAccessor", f"serviceAccount:{RUNTIME}")
    operation, _ = outcome("secretive", cloud.template(env=secret_env()))
    assert "error" not in operation
    assert cloud.front("secretive").get("/").json()["environment"]["HF_TOKEN"] == PLANTED
    root = cloud.endpoint.directory
    for path in [*root.glob("logs/*"), root / "endpoint.json"]:
        assert PLANTED not in path.read_text()
    shown = [cloud.service("secretive"), cloud.get(f"{SERVICES}/secretive/revisions").json(), cloud.log("secretive")]
    assert PLANTED not in str(shown)


@pytest.mark.usefixtures("secret")
def test_a_secret_without_the_accessor_role_fails_the_revision(cloud, outcome):
    operation, terminal = outcome("unread", cloud.template(env=secret_env()))
    assert operation["error"]["code"] == 7
    assert "Secret Manager Secret Accessor" in operation["error"]["message"]
    assert terminal["reason"] == "SECRETS_ACCESS_CHECK_FAILED"
    assert PLANTED not in str(operation)


@pytest.fixture
def reader(cloud):
    """The runtime account may read every secret of the project."""
    path = f"/crm/v1/{PARENT}"
    before = cloud.post(f"{path}:getIamPolicy").json()["bindings"]
    cloud.grant_project("roles/secretmanager.secretAccessor", f"serviceAccount:{RUNTIME}")
    yield
    cloud.post(f"{path}:setIamPolicy", {"policy": {"bindings": before}})


@pytest.mark.usefixtures("reader", "secret")
@pytest.mark.parametrize(
    ("payload", "name", "message"), [(None, "absent", "was not found"), (b"\xff", "token", "is not UTF-8 text")]
)
def test_a_secret_that_cannot_be_a_variable_fails_the_revision(cloud, outcome, payload, name, message):
    if payload:
        cloud.post(f"{SECRET}/token:addVersion", {"payload": {"data": base64.b64encode(payload).decode()}})
    operation, terminal = outcome("unusable", cloud.template(env=secret_env(name)))
    assert message in operation["error"]["message"]
    assert terminal["reason"] == "SECRETS_ACCESS_CHECK_FAILED"


@pytest.mark.slow
@pytest.mark.usefixtures("reader", "secret")
@pytest.mark.parametrize(("hidden", "succeeds"), [("token", False), ("another", True)])
def test_a_secret_that_a_fault_hides_is_not_there_and_no_other_is(cloud, outcome, hidden, succeeds):
    faults = "/localcloud/faults"
    cloud.post(f"{SECRET}/token:addVersion", {"payload": {"data": base64.b64encode(b"readable").decode()}})
    assert cloud.post(faults, {"kind": "secret-missing", "parameters": {"secret": hidden}}).status_code == 200
    try:
        operation, _ = outcome(f"hidden-{hidden}", cloud.template(env=secret_env()))
    finally:
        assert cloud.delete(faults).status_code == 200
    assert ("error" not in operation) == succeeds
    assert succeeds or "was not found or cannot be read" in operation["error"]["message"]


def mount(bucket, *options):
    return {
        "volumes": [{"name": "weights", "gcs": {"bucket": bucket, "readOnly": True, "mountOptions": list(options)}}],
        "volumeMounts": [{"name": "weights", "mountPath": "/mnt/models"}],
    }


@pytest.mark.slow
def test_a_mounted_bucket_is_a_folder_with_its_objects(cloud, outcome):
    path = "/upload/storage/v1/b/models/o"
    cloud.http.post(path, params={"uploadType": "media", "name": "a/config.json"}, content=b"{}")
    operation, _ = outcome("mounted", cloud.template(**mount("models", "only-dir=a", "uid=1001")))
    assert "error" not in operation
    environment = cloud.front("mounted").get("/").json()["environment"]
    folder = cloud.endpoint.directory / "objects/models/a"
    assert environment["LOCALCLOUD_MOUNTS"] == f'{{"/mnt/models": "{folder}"}}'
    assert (folder / "config.json").read_bytes() == b"{}"
    cloud.delete("/storage/v1/b/models/o/a%2Fconfig.json")


@pytest.mark.parametrize(
    ("bucket", "options", "message"),
    [
        ("absent", (), "bucket not found"),
        ("private", (), "does not have storage.objects.list access"),
        ("listed", (), "does not have storage.objects.get access"),
        ("models", ("only-dir=nothing",), 'no directory "nothing"'),
        ("models", ("only-dir=../private",), 'no directory "../private"'),
    ],
)
def test_a_bucket_that_cannot_be_mounted_fails_the_container(cloud, outcome, bucket, options, message):
    """A bucket that cannot be mounted fails the container with the cause."""
    cloud.post("/storage/v1/b", {"name": "private"}, project="bezel-local")
    if cloud.post("/storage/v1/b", {"name": "listed"}, project="bezel-local").status_code == 200:
        cloud.grant_bucket("listed", "roles/storage.legacyBucketReader", f"serviceAccount:{RUNTIME}")
    operation, terminal = outcome("unmounted", cloud.template(**mount(bucket, *options)))
    assert operation["error"]["code"] == 9
    assert message in operation["error"]["message"]
    assert terminal["revisionReason"] == "HEALTH_CHECK_CONTAINER_ERROR"
    assert any(message in entry.get("textPayload", "") for entry in cloud.log("unmounted", "severity=ERROR"))


@pytest.mark.slow
def test_the_platforms_agent_reads_the_repository_with_its_role_only(cloud, outcome):
    """The repository is readable for the platform's agent only while it has its role."""
    policy = cloud.post(f"/crm/v1/{PARENT}:getIamPolicy").json()
    kept = [binding for binding in policy["bindings"] if binding["role"] != "roles/run.serviceAgent"]
    cloud.post(f"/crm/v1/{PARENT}:setIamPolicy", {"policy": {"bindings": kept, "etag": policy["etag"]}})
    try:
        operation, terminal = outcome("agentless", cloud.template())
        assert operation["error"]["code"] == 7
        assert terminal["reason"] == "CONTAINER_IMAGE_UNAUTHORIZED"
        agent = next(b["members"][0] for b in policy["bindings"] if b["role"] == "roles/run.serviceAgent")
        path = f"/artifactregistry/v1/{REPOSITORY}"
        cloud.grant(path, "roles/artifactregistry.reader", agent)
        operation = cloud.update("agentless", cloud.template("--again"))
        assert "error" not in operation
    finally:
        etag = cloud.post(f"/crm/v1/{PARENT}:getIamPolicy").json()["etag"]
        cloud.post(f"/crm/v1/{PARENT}:setIamPolicy", {"policy": {"bindings": policy["bindings"], "etag": etag}})
