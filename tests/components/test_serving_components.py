"""The image, the container and the service: what Cloud Run is asked for, and what it is never asked for."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pulumi
import pytest

from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.cloud_run_gpu_service import CloudRunGpuService, CloudRunGpuServiceArgs, VpcEgress
from bezel_components.container_image import ContainerImage, ContainerImageArgs
from bezel_components.lookups.image import ImageNotFoundError
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from bezel_components.vllm_container import BucketMount, Probe, VllmContainer
from tests.support.components.fake_cloud_run import running
from tests.support.components.fake_engine import CREATED, DIGEST, REVISION, declare, has_unknown

REFERENCE = f"us-east4-docker.pkg.dev/acme-llm/docker-hub/vllm/vllm-openai@{DIGEST}"
PROBE = Probe(path="/health", initial_delay_seconds=30, period_seconds=10, timeout_seconds=5, failure_threshold=150)


@pytest.fixture(autouse=True)
def _cloud_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cloud Run without a service: each one reads whether its newest revision has failed."""
    with running(monkeypatch):
        yield


def container(**more: Any) -> VllmContainer:
    defaults: dict[str, Any] = {
        "arguments": ("/mnt/models/gemma", "--max-model-len=32768"),
        "environment": {"VLLM_LOGGING_LEVEL": "INFO", "A_FIRST": "1"},
        "secrets": {"HF_TOKEN": "hf-token"},
        "cpu": 4,
        "memory_gib": 16,
        "startup_probe": PROBE,
        "mounts": (BucketMount(bucket="acme-llm-models", path="/mnt/models"),),
    }
    return VllmContainer(**{**defaults, **more})


def service_args(**more: Any) -> CloudRunGpuServiceArgs:
    defaults: dict[str, Any] = {
        "project": "acme-llm",
        "location": "us-east4",
        "service": "chat",
        "container": container(),
        "image": REFERENCE,
        "accelerator": "nvidia-l4",
        "service_account": "vllm-chat@acme-llm.iam.gserviceaccount.com",
        "max_instances": 2,
        "request_concurrency": 16,
        "invokers": ("user:a@acme.example", "serviceAccount:app@acme.iam.gserviceaccount.com"),
    }
    return CloudRunGpuServiceArgs(**{**defaults, **more})


def service(**more: Any) -> dict[str, Any]:
    args = service_args(**more)
    return declare(lambda: CloudRunGpuService("service", args)).one("cloudrunv2/service:Service").inputs


def block(**more: Any) -> dict[str, Any]:
    (container_block,) = service(container=container(**more))["template"]["containers"]
    return dict(container_block)


def image(**more: Any) -> ContainerImage:
    defaults = {"project": "acme-llm", "location": "us-east4", "repository_id": "docker-hub"}
    return ContainerImage(
        "image", ContainerImageArgs(**{**defaults, "image": "vllm/vllm-openai", "tag": "v0.32.0", **more})
    )


# The image


def test_an_image_is_deployed_by_the_digest_that_was_looked_up() -> None:
    declared = declare(image, preview=True)
    assert declared.one("ContainerImage").outputs == {"digest": DIGEST, "reference": REFERENCE}
    assert not has_unknown(declared.everything())


def test_a_digest_that_is_given_is_deployed_and_no_tag_is_looked_up() -> None:
    digest = "sha256:" + "f" * 64
    declared = declare(lambda: image(tag="nightly", digest=digest), digest=None, preview=True)
    assert declared.one("ContainerImage").outputs["reference"] == REFERENCE.replace(DIGEST, digest)
    with pytest.raises(ArgumentsError, match="digest"):
        declare(lambda: image(digest="sha256:short"))


@pytest.mark.slow
@pytest.mark.parametrize("digest", [None, "", "sha256:short", "v0.32.0"])
def test_without_a_digest_nothing_is_deployed(digest: str | None) -> None:
    with pytest.raises(ImageNotFoundError, match=r"digest of docker\.io/vllm/vllm-openai:v0\.99\.0") as raised:
        declare(lambda: image(tag="v0.99.0"), digest=digest)
    assert isinstance(raised.value, pulumi.RunError)
    assert ("another image: registry said: 404 Not Found.\n" in str(raised.value)) is (digest is None)
    assert "Repair: use a tag that docker.io/vllm/vllm-openai has" in str(raised.value)


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("docker.io", {"publicRepository": "DOCKER_HUB"}),
        ("ghcr.io", {"customRepository": {"uri": "https://ghcr.io"}}),
    ],
)
def test_the_pull_goes_through_a_repository_of_the_project(registry: str, expected: dict[str, Any]) -> None:
    repository = declare(lambda: image(registry=registry)).one("Repository").inputs
    assert repository["mode"] == "REMOTE_REPOSITORY"
    assert repository["location"] == "us-east4"
    assert repository["remoteRepositoryConfig"]["dockerRepository"] == expected


def test_the_reference_of_a_project_with_a_domain_has_a_path_for_it() -> None:
    declared = declare(lambda: image(project="example.com:acme"))
    assert (
        declared.one("ContainerImage")
        .outputs["reference"]
        .startswith("us-east4-docker.pkg.dev/example.com/acme/docker-hub/")
    )


# The container


def test_the_weights_are_mounted_read_only_for_the_server_s_user() -> None:
    """The weights are mounted read-only and belong to the user of the server."""
    declared = service()
    (volume,) = declared["template"]["volumes"]
    assert volume["gcs"] == {
        "bucket": "acme-llm-models",
        "readOnly": True,
        "mountOptions": [
            "uid=1001",
            "gid=1001",
            "implicit-dirs",
            "metadata-cache-ttl-secs=-1",
            "max-conns-per-host=100",
        ],
    }
    assert declared["template"]["containers"][0]["volumeMounts"] == [
        {"name": volume["name"], "mountPath": "/mnt/models"}
    ]


def test_the_owner_of_a_mount_is_said_once() -> None:
    mount = BucketMount(bucket="b", path="/m", options=("uid=1001", "implicit-dirs", "gid=1001", "implicit-dirs"))
    assert mount.owned_options == ["uid=1001", "gid=1001", "implicit-dirs"]


@pytest.mark.parametrize("option", ["uid=0", "gid=1000"])
def test_a_mount_that_the_server_could_not_read_is_refused(option: str) -> None:
    with pytest.raises(ArgumentsError, match=f"{option} gives the weights to another user"):
        BucketMount(bucket="b", path="/m", options=("implicit-dirs", option))


def test_without_a_mount_there_is_no_volume() -> None:
    declared = service(container=container(mounts=()))
    assert not declared["template"].get("volumes")
    assert not declared["template"]["containers"][0].get("volumeMounts")


def test_the_cpu_stays_allocated_and_the_gpu_is_asked_for() -> None:
    resources = block()["resources"]
    assert resources["cpuIdle"] is False
    assert resources["limits"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}


def test_a_secret_is_referred_to_and_never_written_out() -> None:
    envs = block()["envs"]
    assert envs == [
        {"name": "A_FIRST", "value": "1"},
        {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"},
        {"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf-token", "version": "latest"}}},
    ]


def test_a_variable_has_one_source() -> None:
    with pytest.raises(ArgumentsError, match="HF_TOKEN: set both"):
        container(environment={"HF_TOKEN": "x"})


def test_the_arguments_reach_the_server_as_planned() -> None:
    """The arguments reach the server as planned and the entrypoint stays."""
    declared = block(arguments=("/mnt/models/g", "--a=1", "--b"))
    assert declared["args"] == ["/mnt/models/g", "--a=1", "--b"]
    assert "commands" not in declared


def test_probes_ask_the_port_that_the_container_opens() -> None:
    alive = Probe(path="/alive", period_seconds=60, timeout_seconds=9, failure_threshold=3)
    declared = block(port=9000, liveness_probe=alive)
    assert declared["ports"] == {"name": "http1", "containerPort": 9000}
    assert declared["startupProbe"] == {
        "httpGet": {"path": "/health", "port": 9000},
        "initialDelaySeconds": 30,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 150,
    }
    assert declared["livenessProbe"]["httpGet"] == {"path": "/alive", "port": 9000}


def test_hung_server_is_replaced_unless_a_program_wants_no_probe() -> None:
    probe = {"httpGet": {"path": "/health", "port": 8080}, "initialDelaySeconds": 0}
    assert block()["livenessProbe"] == {**probe, "periodSeconds": 60, "timeoutSeconds": 30, "failureThreshold": 3}
    assert "livenessProbe" not in block(liveness_probe=None)


def test_readiness_is_asked_by_http_where_it_is_declared() -> None:
    ready = Probe(period_seconds=5, timeout_seconds=4, failure_threshold=2)
    assert "readinessProbe" not in block()
    assert block(port=9000, readiness_probe=ready)["readinessProbe"] == {
        "httpGet": {"path": "/health", "port": 9000},
        "periodSeconds": 5,
        "timeoutSeconds": 4,
        "failureThreshold": 2,
    }
    for wrong in ({"path": ""}, {"initial_delay_seconds": 1}):
        with pytest.raises(ArgumentsError, match=r"set its path, e\.g\. /health, and omit initial_delay_seconds"):
            container(readiness_probe=ready.model_copy(update=wrong))


# The service


def test_an_image_by_tag_is_refused_and_one_by_digest_is_deployed() -> None:
    with pytest.raises(ArgumentsError, match=r"vllm-openai:v0\.32\.0 has no digest"):
        service_args(image="vllm/vllm-openai:v0.32.0")
    assert service()["template"]["containers"][0]["image"] == REFERENCE


def test_a_gpu_gets_what_cloud_run_asks_for() -> None:
    template = service()["template"]
    assert template["executionEnvironment"] == "EXECUTION_ENVIRONMENT_GEN2"
    assert template["nodeSelector"] == {"accelerator": "nvidia-l4"}
    assert template["serviceAccount"] == "vllm-chat@acme-llm.iam.gserviceaccount.com"
    assert template["timeout"] == "3600s"
    assert template["scaling"] == {"minInstanceCount": 0, "maxInstanceCount": 2}


@pytest.mark.parametrize("redundancy", [True, False])
def test_zonal_redundancy_is_bought_only_when_asked_for(redundancy: bool) -> None:
    assert service(zonal_redundancy=redundancy)["template"]["gpuZonalRedundancyDisabled"] is not redundancy


@pytest.mark.parametrize("concurrency", [1, 16, 400])
def test_one_instance_gets_as_many_requests_as_planned(concurrency: int) -> None:
    assert service(request_concurrency=concurrency)["template"]["maxInstanceRequestConcurrency"] == concurrency


@pytest.mark.slow
def test_a_service_is_protected_unless_said_otherwise() -> None:
    assert service()["deletionProtection"] is True
    assert service(deletion_protection=False)["deletionProtection"] is False


def test_a_start_may_take_longer_than_the_provider_waits_by_itself() -> None:
    declared = declare(lambda: CloudRunGpuService("service", service_args()))
    assert declared.one("cloudrunv2/service:Service").timeouts == ("2400s", "2400s", "")


@pytest.mark.slow
def test_a_service_that_is_replaced_is_deleted_first() -> None:
    """Made first, the new one may find no GPU in the quota; under an address the old one serves until then."""
    declared = declare(lambda: CloudRunGpuService("service", service_args()))
    assert declared.one("cloudrunv2/service:Service").inputs["name"] == "chat"
    assert [resource.type for resource in declared.all if resource.deleted_first] == ["gcp:cloudrunv2/service:Service"]
    addressed = declare(lambda: CloudRunGpuService("service", service_args(audiences=("https://llm.acme.example",))))
    assert not [resource.type for resource in addressed.all if resource.deleted_first]


@pytest.mark.slow
def test_only_the_named_callers_may_call() -> None:
    declared = declare(lambda: CloudRunGpuService("service", service_args()))
    grants = [resource.inputs for resource in declared.of("ServiceIamMember")]
    assert [grant["member"] for grant in grants] == [
        "serviceAccount:app@acme.iam.gserviceaccount.com",
        "user:a@acme.example",
    ]
    assert {(grant["role"], grant["name"], grant["location"]) for grant in grants} == {
        ("roles/run.invoker", "chat", "us-east4")
    }
    assert "allUsers" not in declared.everything()


@pytest.mark.parametrize("everyone", ["allUsers", "allAuthenticatedUsers"])
def test_the_whole_internet_is_no_caller_unless_the_service_is_public(everyone: str) -> None:
    with pytest.raises(ArgumentsError, match=f"{everyone}, so anyone could use the accelerator"):
        service_args(invokers=(everyone,))
    args = service_args(invokers=(everyone,), public=True)
    grant = declare(lambda: CloudRunGpuService("service", args)).one("ServiceIamMember")
    assert grant.inputs["member"] == everyone


def test_a_public_service_admits_everybody() -> None:
    args = service_args(invokers=("user:a@acme.example",), public=True)
    grants = declare(lambda: CloudRunGpuService("service", args)).of("ServiceIamMember")
    assert [grant.inputs["member"] for grant in grants] == ["allUsers", "user:a@acme.example"]


def test_a_right_to_call_waits_for_the_service_that_it_names() -> None:
    declared = declare(lambda: CloudRunGpuService("service", service_args(invokers=("user:a@acme.example",))))
    grant, made = declared.one("ServiceIamMember"), declared.one("cloudrunv2/service:Service")
    assert declared.waits_for(grant, made)
    assert not declared.waits_for(made, grant)


def test_the_service_waits_for_its_accounts_secrets() -> None:
    def program() -> None:
        identity = RuntimeIdentity(
            "runtime", RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat", secrets=("hf-token",))
        )
        CloudRunGpuService("service", service_args(), pulumi.ResourceOptions(depends_on=[identity]))

    declared = declare(program)
    assert declared.waits_for(declared.by_name("service-service"), declared.one("SecretIamMember"))
    assert declared.waits_for(declared.by_name("service-service"), declared.one("Account"))


def test_in_a_first_preview_all_that_a_policy_judges_is_known() -> None:
    declared = declare(lambda: CloudRunGpuService("service", service_args()), preview=True)
    assert not has_unknown([(r.inputs, r.name) for r in declared.all])
    outputs = declared.one("CloudRunGpuService").outputs
    assert outputs.keys() == {"url", "newest_url", "revision", "created_revision", "resource_name"}
    assert outputs["resource_name"] == "projects/acme-llm/locations/us-east4/services/chat"
    assert has_unknown(outputs["url"])


def test_outputs_say_where_it_answers_and_which_revision() -> None:
    declared = declare(lambda: CloudRunGpuService("service", service_args()))
    assert declared.one("CloudRunGpuService").outputs == {
        "url": "https://chat.example",
        "newest_url": "https://chat.example",
        "revision": REVISION,
        "created_revision": CREATED,
        "resource_name": "projects/acme-llm/locations/us-east4/services/chat",
    }


def test_service_has_a_hook_that_explains_a_failure() -> None:
    hooks = declare(lambda: CloudRunGpuService("service", service_args())).one("cloudrunv2/service:Service").hooks
    assert hooks == ("service-explain-failure",)


def test_service_has_the_given_hooks_instead() -> None:
    def program(*names: str) -> None:
        hooks = [pulumi.ErrorHook(name, lambda _: False) for name in names]
        CloudRunGpuService("service", service_args(hooks=pulumi.ResourceHookBinding(on_error=hooks)))

    assert declare(lambda: program("say-why")).one("cloudrunv2/service:Service").hooks == ("say-why",)
    assert not declare(program).one("cloudrunv2/service:Service").hooks


def test_unknown_bucket_and_network_are_taken_and_refused_if_gated() -> None:
    with asyncio.Runner() as runner:  # an output takes the thread's loop, which an earlier test may have ended
        runner.get_loop()
        later = pulumi.Output.from_input("made")
        mounted = container(mounts=(BucketMount(bucket=later, path="/mnt/models"),))
        template = service(container=mounted, vpc=VpcEgress(network=later))["template"]
        assert template["volumes"][0]["gcs"]["bucket"] == "made"
        assert template["vpcAccess"]["networkInterfaces"] == [{"network": "made"}]
        for unknown in ({"container": mounted}, {"vpc": VpcEgress(subnetwork=later)}):
            with pytest.raises(ArgumentsError, match="gated requires names of buckets and networks that are known"):
                service_args(gated=True, **unknown)


def test_an_audience_is_accepted_and_makes_no_revision() -> None:
    gated = {"gated": True, "image": f"library/vllm@{DIGEST}"}
    with_audience, without = service(audiences=("https://llm.acme.example",), **gated), service(**gated)
    assert with_audience.pop("customAudiences") == ["https://llm.acme.example"]
    compared: list[Any] = []
    args = service_args(audiences=("https://llm.acme.example",))
    declare(lambda: compared.append(CloudRunGpuService("service", args).declared))
    assert compared[0]["customAudiences"] == ["https://llm.acme.example"], (
        "the engine's name, as the served state has it"
    )
    # The gate's fingerprint of what updates the service, with which its traffic is kept.
    assert with_audience.pop("annotations") != without.pop("annotations")
    assert with_audience == without


@pytest.mark.parametrize("audience", ["llm.acme.example", "https://llm.acme.example/v1", "http://llm.acme.example"])
def test_an_audience_that_no_token_has_is_refused(audience: str) -> None:
    with pytest.raises(ArgumentsError, match="which no token of a client of that address names"):
        service_args(audiences=(audience,))
