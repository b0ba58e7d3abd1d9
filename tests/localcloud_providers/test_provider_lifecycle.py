"""Every resource type of the table lives its whole life: made, unchanged, refreshed, imported, deleted."""

from typing import Any

import pytest
from provider_client import Provider
from provider_google import FakeGoogle

from bezel.localcloud.providers.rows import TYPES
from bezel.localcloud.providers.wire import decode

ROBOT = "serviceAccount:runtime@bezel-local.iam.gserviceaccount.com"

PROGRAMS: dict[str, dict[str, Any]] = {
    "gcp:cloudrunv2/service:Service": {
        "name": "llm",
        "location": "us-central1",
        "deletionProtection": False,
        "labels": {"app": "vllm"},
        "scaling": {"minInstanceCount": 0},
        "template": {
            "containers": [
                {
                    "image": "docker.io/vllm/vllm-openai:v1",
                    "args": ["--model=/mnt/models", "--max-model-len=4096"],
                    "envs": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}],
                    "ports": {"containerPort": 8080},
                    "resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}, "cpuIdle": False},
                    "startupProbe": {"httpGet": {"path": "/health"}, "periodSeconds": 10},
                }
            ],
            "scaling": {"minInstanceCount": 0, "maxInstanceCount": 1},
            "volumes": [{"name": "models", "gcs": {"bucket": "models", "readOnly": True}}],
        },
    },
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember": {
        "name": "llm",
        "location": "us-central1",
        "role": "roles/run.invoker",
        "member": "allUsers",
    },
    "gcp:serviceaccount/account:Account": {"accountId": "runtime", "displayName": "Runtime"},
    "gcp:serviceaccount/iAMMember:IAMMember": {
        "serviceAccountId": "projects/bezel-local/serviceAccounts/runtime@bezel-local.iam.gserviceaccount.com",
        "role": "roles/iam.serviceAccountUser",
        "member": ROBOT,
    },
    "gcp:storage/bucket:Bucket": {
        "name": "models",
        "location": "us-central1",
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "versioning": {"enabled": False},
        "lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
    },
    "gcp:storage/bucketObject:BucketObject": {"bucket": "models", "name": "a/readme.txt", "content": "hello"},
    "gcp:storage/bucketIAMMember:BucketIAMMember": {
        "bucket": "models",
        "role": "roles/storage.objectViewer",
        "member": ROBOT,
    },
    "gcp:secretmanager/secret:Secret": {"secretId": "hf", "replication": {"auto": {}}},
    "gcp:secretmanager/secretVersion:SecretVersion": {
        "secret": "projects/bezel-local/secrets/hf",
        "secretData": "not-a-real-token",
    },
    "gcp:secretmanager/secretIamMember:SecretIamMember": {
        "secretId": "projects/bezel-local/secrets/hf",
        "role": "roles/secretmanager.secretAccessor",
        "member": ROBOT,
    },
    "gcp:artifactregistry/repository:Repository": {
        "repositoryId": "hub",
        "location": "us-central1",
        "format": "DOCKER",
        "mode": "REMOTE_REPOSITORY",
        "remoteRepositoryConfig": {"dockerRepository": {"publicRepository": "DOCKER_HUB"}},
    },
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": {
        "repository": "hub",
        "location": "us-central1",
        "role": "roles/artifactregistry.reader",
        "member": ROBOT,
    },
    "gcp:projects/service:Service": {"service": "run.googleapis.com", "disableOnDestroy": True},
    "gcp:projects/iAMMember:IAMMember": {
        "project": "bezel-local",
        "role": "roles/logging.logWriter",
        "member": ROBOT,
    },
}


def test_every_type_of_the_table_is_tried() -> None:
    assert PROGRAMS.keys() == TYPES.keys()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_resource_is_made_and_then_unchanged_until_it_is_gone(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    program = PROGRAMS[kind]
    google.polls = 1
    resource_id, made = gcp.create(kind, program)
    assert made["id"] == resource_id
    assert gcp.diff(kind, resource_id, made, program).changes == 1, "DIFF_NONE straight after the create"

    again = gcp.read(kind, resource_id, made, gcp.inputs(kind, program))
    assert again.id == resource_id
    found = decode(again.properties)
    assert not gcp.diff(kind, resource_id, found, program).diffs, "nothing differs after a refresh"
    assert decode(again.inputs).keys() >= program.keys()

    if kind != "gcp:storage/bucketObject:BucketObject":  # as with the published plugin, it has no import
        assert gcp.read(kind, resource_id).id == resource_id, "an import by id finds it"

    gcp.delete(kind, resource_id, found)
    assert gcp.read(kind, resource_id, found).id == "", "what is gone has no id"
    gcp.delete(kind, resource_id, found)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_preview_asks_nobody_and_makes_nothing(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, foretold = gcp.create(kind, PROGRAMS[kind], preview=True)
    assert resource_id == ""
    assert foretold["id"] == "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert google.requests == []
